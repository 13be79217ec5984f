"""Replays whose alarms and scores must not change unnoticed. replays.py says what they are, and writes the files again.

Times, ids, kinds and states are compared to the letter; numbers to a millionth, because another processor may
round the last bit of a sine differently.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import pytest
from golden.replays import GOLDEN, HERE, outputs, restarting

from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.catalog import detector_kinds, kinds

KINDS = set(kinds())
FILES = ("jsonl", "scores.jsonl")
# What is compared to the letter: the order of lines is part of it.
LETTERS = ("t", "kind", "state", "id", "subjects", "severity", "rows", "vehicles")

replayed = cache(outputs)


def lines(content: bytes) -> list[dict[str, Any]]:
    """A file's lines; those with gauges have all of them, not only the ones that changed."""
    found: list[dict[str, Any]] = []
    gauges: dict[str, float | None] = {}
    for line in map(msgspec.json.decode, content.splitlines()):
        if "gauges" in line:
            line["gauges"] = gauges = gauges | line["gauges"]
        found.append(line)
    return found


def close(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == pytest.approx(b, rel=1e-6, abs=2e-4)
    return bool(a == b)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_a_replay_is_what_it_was(name: str, file: str) -> None:
    expected = lines((HERE / f"{name}.{file}").read_bytes())
    found = lines(replayed(name)[f"{name}.{file}"])
    assert [[line.get(key) for key in LETTERS] for line in found] == [
        [line.get(key) for key in LETTERS] for line in expected
    ]
    for a, b in zip(found, expected, strict=True):
        assert close(a, b), (a, b)


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.long), 19])
@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_restarts_change_no_byte(name: str, every: int) -> None:
    assert restarting(name, every) == replayed(name)[f"{name}.jsonl"]


def test_every_alarm_kind_is_in_a_replay() -> None:
    events = [event for name in GOLDEN for event in lines((HERE / f"{name}.jsonl").read_bytes())]
    assert {event["kind"] for event in events} == KINDS


def test_every_detector_has_scores_in_a_replay() -> None:
    scores = [line for name in GOLDEN for line in lines((HERE / f"{name}.scores.jsonl").read_bytes())]
    assert {line["kind"] for line in scores if line.get("rows")} == set(detector_kinds())


def test_every_file_here_belongs_to_a_replay() -> None:
    assert {path.name for path in HERE.glob("*.jsonl")} == {f"{name}.{file}" for name in GOLDEN for file in FILES}


@pytest.mark.parametrize("name", GOLDEN)
def test_an_alarm_with_nothing_new_repeats_itself_no_sooner_than_it_should(name: str) -> None:
    """Several fixes of one tick are one piece of news, not five. What an incident says in between does not count.

    That the pattern of a contradiction has a name, or another one than before, is news.
    """
    said: dict[str, dict[str, Any]] = {}
    cause: dict[str, Any] = {}
    named: dict[str, str] = {}
    for event in lines((HERE / f"{name}.jsonl").read_bytes()):
        if event["kind"] not in {"gps_imu", "conflict", "los", "kinematics"}:
            continue
        found = [event["diagnosis"], event["incident"]]
        if found != cause.setdefault(event["id"], [None, None]):
            cause[event["id"]] = found
            continue
        before = said.get(event["id"])
        likely = {name: p for name, p in event["evidence"].items() if name.endswith("_p") and p is not None}
        name_now = max(likely, key=likely.__getitem__, default="")
        if before is not None and all(event[key] == before[key] for key in ("severity", "state")):
            soon = event["t"] - before["t"] < DEFAULT.alarms.update_s
            assert not soon or named.get(event["id"], "") != name_now, (before, event)
            named[event["id"]] = name_now
        said[event["id"]] = event
