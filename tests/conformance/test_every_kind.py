"""Every alarm kind: its events carry the evidence that is declared, and become a sentence that a stranger understands.

The events are those of the golden replays, which raise alarms of every kind of the project; a kind of another package
has those of its detector's scenario.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import get_args, get_type_hints

import msgspec
import pytest

from watchkeeper.config.guests import default, section_of
from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent
from watchkeeper.detectors.catalog import REGISTRY, detector_kinds, discover, kinds
from watchkeeper.detectors.conflict.constants import FOLLOW_S
from watchkeeper.detectors.declaration import ENDINGS, fields_of
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.sentence import said, say, telling

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


# A number in a sentence, without those that are part of a name, a time of day or a date; and what may follow it.
NUMBER = re.compile(r"(?<![\w.:,/-])-?\d[\d,]*(?:\.\d+)?(?![\w:])")
UNITS = (
    "NM", "ft", "s", "min", "h", "days", "kt", "ft/min", "m", "m/s", "km", "sigma", "%", "g", "deg/s", "m/s2", "Hz",
    "aircraft", "alarm", "alarms", "vehicle", "vehicles", "samples", "streams", "fixes",
)  # fmt: skip
TIME = re.compile(r"(since|ended) (\d\d\d\d-\d\d-\d\d )?(\d\d:\d\d:\d\dZ|[\d,.]+ s)")
CALLSIGN = re.compile(r"\b[A-Z]{3}\d{1,4}[A-Z]*\b")
LONGEST = 175


def now(event: AlarmEvent) -> bool:
    """Whether the sentence tells of this moment, and not of the worst one."""
    return not event.ended and "; over for the moment, alarm since " not in event.say


def without_names(event: AlarmEvent) -> str:
    """The sentence without the names that vehicles and places have by themselves, and without times of day."""
    sentence = event.say
    named = {*event.subjects, *re.findall(r"[\w~-]+", (event.diagnosis or {}).get("location", "").replace("/", " "))}
    # signals have names of their own, and their numbers are in the unit of whoever sends them
    told = (
        (event.worst.evidence if event.worst is not None and not now(event) else event.evidence)
        if event.kind == "signal"
        else {}
    )
    named |= {name for name in (told.get("signal"), told.get("partner"), *told.get("also", ())) if name}
    named |= {f"{told[key]:.4g}" for key in ("value", "expected") if told.get(key) is not None}
    for name in sorted(named, key=len, reverse=True):
        sentence = sentence.replace(name, "X")
    # a transponder's code is a name made of digits
    sentence = re.sub(r"squawk \d{4}", "X", sentence)
    return re.sub(rf"{CALLSIGN.pattern}|\b[0-9a-f]{{6}}\b", "X", sentence)


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_the_sentence_is_one_for_people(kind: str) -> None:
    for event in events(kind):
        assert re.fullmatch(r"[A-Z0-9a-z].{20,}\.", event.say), event.say
        assert len(event.say) <= LONGEST, (len(event.say), event.say)
        assert not re.search(r"\bnan\b|None|unknown|[a-z]_[a-z]", without_names(event)), event.say


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_the_sentence_alone_names_subject_size_and_time(kind: str) -> None:
    for event in events(kind):
        assert TIME.search(event.say), event.say
        # a place is named by where it is; a vehicle by its callsign or its id
        who = event.say.partition(": ")[0]
        if kind == "gnss_interference":
            assert re.search(r"[\d.]+° [NS] [\d.]+° [EW]", who), event.say
        else:
            assert all(name in who for name in event.subjects) or CALLSIGN.search(who), event.say


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_no_number_is_without_a_unit(kind: str) -> None:
    for event in events(kind):
        sentence = without_names(event)
        for number in NUMBER.finditer(sentence):
            rest = sentence[number.end() :]
            unit = re.match(r"°|\)? ?([^\s,;:()]+)", rest)
            of_all = re.match(r" of \d+ aircraft", rest)
            assert of_all or (unit and (unit.group(0) == "°" or unit.group(1).rstrip(".") in UNITS)), (
                number.group(), event.say,
            )  # fmt: skip


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_every_field_of_evidence_has_a_meaning_and_every_number_a_unit(kind: str) -> None:
    facts = kinds()[kind].facts
    hints = get_type_hints(facts)
    written = dict(zip(facts.__struct_encode_fields__, facts.__struct_fields__, strict=True))
    for field in fields_of(facts):
        assert field.meaning
        if {int, float} & {hints[written[field.name]], *get_args(hints[written[field.name]])}:
            assert field.unit, f"{kind}: {field.name} is a number without a unit"


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_the_end_says_how_long_it_lasted_and_how_it_ended(kind: str) -> None:
    for event in (event for event in events(kind) if event.state == CLEARED):
        assert re.search(r"; ended \S+( \S+)? after [\d.,]+ (s|min|h|days): ", event.say), event.say
        assert event.worst is not None
        # two aircraft may have been closest just before that was an alarm; they are followed back for a minute
        before_s = FOLLOW_S if kinds()[kind].least else 0.0
        # the row that raised it may be some milliseconds older than the tick
        assert event.t_onset - before_s <= event.worst.t <= event.t


def test_an_alarm_whose_cause_pauses_is_told_with_its_worst_figures() -> None:
    paused = [event for event in events("kinematics") if not event.evidence["causes"] and event.state != CLEARED]
    assert paused
    for event in paused:
        assert re.search(
            r"jumped from place to place \(that takes [\d,]+ kt\), worst at \S+Z; over for the moment", event.say
        )


def test_the_most_responsible_numbers_come_first() -> None:
    for event in events("gps_imu"):
        sigmas = [value for field, value in telling(event) if field.unit == "sigma"]
        assert sigmas == sorted(sigmas, reverse=True)


def test_an_event_of_an_earlier_version_gets_its_sentence_when_it_is_shown() -> None:
    event = events("los")[0]
    assert said(msgspec.structs.replace(event, say="")) == say(event)
    assert said(event) == event.say


def test_a_better_name_is_used_where_there_is_one() -> None:
    event = events("los")[0]
    assert "SWR1AB" in say(event, {event.subjects[0]: "SWR1AB"})


def test_evidence_of_another_version_still_gives_a_sentence() -> None:
    event = msgspec.structs.replace(events("conflict")[0], evidence={"surprise": 1})
    assert say(event).startswith(f"{' and '.join(event.subjects)}: conflict alarm since ")


def test_a_sentence_that_fails_does_not_hold_up_the_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_subjects: object, _facts: object) -> str:
        raise ZeroDivisionError

    event = events("los")[0]
    monkeypatch.setattr(
        "watchkeeper.detectors.sentence.kind_of", lambda name: replace(detector_kinds()[name], say=broken)
    )
    assert say(event).startswith(f"{' and '.join(event.subjects)}: los alarm since ")


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
    assert say(lost).endswith(": no more evidence came, but it may go on.")
    assert say(msgspec.structs.replace(last, ended="in_a_later_way")).endswith(": in a later way.")


@pytest.mark.parametrize("kind", sorted(detector_kinds()))
def test_the_threshold_shown_is_the_one_that_counts(kind: str) -> None:
    settings, declared = section_of(default(), "detectors", kind), detector_kinds()[kind]
    lowest, found = declared.threshold(settings), {event.threshold for event in events(kind)}
    if declared.threshold_most is None:
        assert found == {lowest}
    else:
        # another one for each row, and within what is declared
        assert lowest < declared.threshold_most(settings)
        assert lowest <= min(found)
        assert max(found) <= declared.threshold_most(settings)
