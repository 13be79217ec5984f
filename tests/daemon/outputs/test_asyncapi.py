"""docs/asyncapi.json is what the types say, and names every stream and what we publish."""

from __future__ import annotations

import json

from watchkeeper.daemon.outputs.asyncapi import document
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.streams.messages import FIELDS, Kind

from where import DOCS


def test_the_document_is_up_to_date() -> None:
    assert json.loads((DOCS / "asyncapi.json").read_text()) == json.loads(json.dumps(document())), "make docs"


def test_every_stream_and_every_field_is_in_it() -> None:
    made = document()
    for kind in Kind:
        message = made["channels"][kind.word]["messages"][kind.word]
        if kind is Kind.SIGNAL:
            assert "number" in message["payload"]["additionalProperties"]["type"], "any named number"
            continue
        assert {field.name for field in FIELDS[kind]} < set(message["payload"]["properties"])
    assert set(made["components"]["schemas"]["AlarmEvent"]["properties"]) == set(AlarmEvent.__struct_encode_fields__)
    assert {channel["address"] for channel in made["channels"].values()} >= {
        "watchkeeper/alarm/{kind}/{subject}", "watchkeeper/watch/{id}", "watchkeeper/status", "watchkeeper/deadletter",
    }  # fmt: skip
