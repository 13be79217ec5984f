"""AsyncAPI 3 of the MQTT side, made from the types of the messages: `python -m watchkeeper.daemon.outputs.asyncapi`.

Topics as in docs/operations.md and docs/messages.md; prefixes are those of an empty configuration. A test keeps
docs/asyncapi.json up to date.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Any

import msgspec

from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.outputs.status import status_topic
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.streams.messages import FIELDS, Kind

_REF = "#/components/schemas/{name}"
_ID = {"description": "the vehicle, escaped so that no wildcard or separator survives"}


def document() -> dict[str, Any]:
    """The whole document."""
    telemetry, output = DEFAULT.topics.telemetry, DEFAULT.topics.output
    (alarm,), schemas = msgspec.json.schema_components([AlarmEvent], ref_template=_REF)
    channels: dict[str, Any] = {}
    operations: dict[str, Any] = {}

    def add(name: str, address: str, action: str, said: str, payload: dict[str, Any], **parameters: Any) -> None:
        message = {"name": name, "summary": said, "contentType": "application/json", "payload": payload}
        channels[name] = {"address": address, "messages": {name: message}}
        if parameters:
            channels[name]["parameters"] = parameters
        operations[f"{action}_{name}"] = {"action": action, "channel": {"$ref": f"#/channels/{name}"}}

    for kind in Kind:
        said = f"one sample of {kind.word}, as JSON or MessagePack; the id may come from the topic"
        add(kind.word, f"{telemetry}/{kind.word}/{{id}}", "receive", said, _sample(kind), id=_ID)
    add(
        "alarm", f"{output}/alarm/{{kind}}/{{subject}}", "send",
        "an alarm event, QoS 1, retained while the alarm is active; an empty payload removes it", alarm,
        kind={"description": "the kind of alarm"},
        subject={"description": "a vehicle, a pair <a>~<b> or a place, escaped"},
    )  # fmt: skip
    words = "what is watched of this vehicle, and what not and why; QoS 1, retained"
    coverage = _object("id", "t", "watched", "partly", "not_watched")
    add("watch", f"{output}/watch/{{id}}", "send", words, coverage, id=_ID)
    words = "online or offline; QoS 1, retained, and the last will"
    add("status", status_topic(output), "send", words, _object("state", "t", "version", "instance"))
    words = "input that was refused, with the reason and its beginning; at most 100 a second"
    add("deadletter", f"{output}/deadletter", "send", words, _object("topic", "reason", "size", "payload", "encoding"))
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Watchkeeper over MQTT",
            "version": version("watchkeeper"),
            "description": "Telemetry in, alarms out. Times are Unix seconds of event time.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def _sample(kind: Kind) -> dict[str, Any]:
    """One sample: its time, and the fields of its kind with their units; of signals any named numbers."""
    fields = {
        field.name: {"type": "number", **({"description": f"in {field.unit}"} if field.unit else {})}
        for field in (FIELDS[kind] if kind is not Kind.SIGNAL else ())
    }
    more = {"via": {"type": "string", "description": "the gateway that it came through"}}
    if kind is Kind.ADSB:
        more["callsign"] = {"type": "string", "description": "what the aircraft calls itself"}
    t = {"type": "number", "description": "Unix seconds"}
    shape = {"type": "object", "required": ["t"], "properties": {"t": t, "id": {"type": "string"}, **fields, **more}}
    if kind is Kind.SIGNAL:
        shape["additionalProperties"] = {"type": ["number", "boolean", "string", "null"]}
    return shape


def _object(*names: str) -> dict[str, Any]:
    return {"type": "object", "required": list(names), "properties": {name: {} for name in names}}


if __name__ == "__main__":
    text = msgspec.json.format(msgspec.json.encode(document()), indent=2)
    sys.stdout.write(text.decode() + "\n")
