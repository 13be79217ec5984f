"""Every alarm kind: its events carry the evidence that is declared, and become a sentence that a stranger understands.

The events are those of the golden replays, which raise alarms of every kind of the project; a kind of another package
has those of its detector's scenario.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec
import pytest

from watchkeeper.config.guests import default, section_of
from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent
from watchkeeper.detectors.catalog import REGISTRY, detector_kinds, discover, kinds, say
from watchkeeper.detectors.declaration import ENDINGS, fields_of
from watchkeeper.detectors.engine.pipeline import Pipeline

GOLDEN = Path(__file__).parents[1] / "golden"
discover()


@cache
def events(kind: str) -> list[AlarmEvent]:
    lines = [
        line
        for path in sorted(GOLDEN.glob("*.jsonl"))
        if path.name.count(".") == 1
        for line in path.read_bytes().splitlines()
    ]
    found = [event for event in map(AlarmEvent.of, lines) if event.kind == kind] or scene(kind)
    assert found, f"neither a golden replay nor its scenario raises an alarm of the kind {kind}"
    return found


def scene(kind: str) -> list[AlarmEvent]:
    """The alarms of this kind in the scenario of its detector."""
    pipeline = Pipeline(default())
    makers = [d.declaration for d in REGISTRY.values() if kind in {k.name for k in d.declaration.kinds}]
    return [e for d in makers for batch in d.scenario.batches() for e in pipeline.feed(batch) if e.kind == kind]


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_the_evidence_is_what_is_declared(kind: str) -> None:
    facts = kinds()[kind].facts
    for event in events(kind):
        msgspec.convert(event.evidence, facts)
    assert all(field.meaning for field in fields_of(facts))


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_the_sentence_is_one_for_people(kind: str) -> None:
    for event in events(kind):
        sentence = say(event)
        assert re.fullmatch(r"[A-Z0-9a-z].{20,240}\.", sentence), sentence
        assert not re.search(r"nan|None|unknown|[a-z]_[a-z]", sentence), sentence
        if kind not in {"gnss_interference", "incident"}:
            assert all(name in sentence for name in event.subjects), sentence


def test_a_better_name_is_used_where_there_is_one() -> None:
    event = events("los")[0]
    assert "SWR1AB" in say(event, {event.subjects[0]: "SWR1AB"})


def test_evidence_of_another_version_still_gives_a_sentence() -> None:
    event = msgspec.structs.replace(events("conflict")[0], evidence={"surprise": 1})
    assert say(event) == f"Conflict alarm about {' and '.join(event.subjects)}."


def test_a_sentence_that_fails_does_not_hold_up_the_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_subjects: object, _facts: object) -> str:
        raise ZeroDivisionError

    event = events("los")[0]
    monkeypatch.setattr(
        "watchkeeper.detectors.catalog.kinds", lambda: {"los": replace(detector_kinds()["los"], say=broken)}
    )
    assert say(event) == f"Los alarm about {' and '.join(event.subjects)}."


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_the_last_event_alone_says_how_the_alarm_ended(kind: str) -> None:
    for event in events(kind):
        assert (event.ended in ENDINGS) == (event.state == CLEARED)
        assert (event.ended is None) == (event.state != CLEARED)


def test_an_end_of_an_earlier_version_is_read_in_the_present_words() -> None:
    last = next(event for event in events("conflict") if event.ended == "cause_gone")
    earlier = {key: value for key, value in msgspec.to_builtins(last).items() if key != "ended"}
    assert AlarmEvent.of(msgspec.json.encode(earlier)) == last
    earlier["evidence"] = {**last.evidence, "cleared_by": "lost"}
    lost = AlarmEvent.of(msgspec.json.encode(earlier))
    assert lost == msgspec.structs.replace(last, ended="out_of_sight")
    assert say(lost).endswith("Ended: no more evidence came, so whether the cause has gone is not known.")
    assert say(msgspec.structs.replace(last, ended="in_a_later_way")).endswith("Ended: in a later way.")


@pytest.mark.parametrize("kind", sorted(detector_kinds()))
def test_the_threshold_shown_is_the_one_that_counts(kind: str) -> None:
    settings = section_of(default(), "detectors", kind)
    assert {event.threshold for event in events(kind)} == {detector_kinds()[kind].threshold(settings)}
