"""Snapshot and journal together: what one has lost the other knows, and what both have lost is told, not dropped."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from watchkeeper.config.schema import Config, Diagnosis, FleetLimits
from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.daemon.state.folder import StateFolder
from watchkeeper.daemon.state.recovery import SNAPSHOT, recover, settle
from watchkeeper.daemon.state.snapshot import fingerprint, previous, write_snapshot
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.foreign.states import StateEncoder
from watchkeeper.streams.messages import FIELDS, Kind

CONFIG = Config(fleet=FleetLimits(max_vehicles=50), diagnosis=Diagnosis(enabled=False))
# degrees of longitude a second at 450 kt
SPEED = 450 * 1852 / 3600 / 111_319.49
# the alarm is up at the first, and over at the second
UP_T, OVER_T = 140.0, 215.0


def flown(first_t: float, last_t: float, *names: str) -> Batch:
    """Two aircraft that meet head-on at t = 160 and part, once a second; or only the one that is named."""
    t = np.repeat(np.arange(first_t, last_t + 1), 2)
    who = np.tile(np.array([0, 1], np.int32), len(t) // 2)
    keep = np.isin(who, [("east", "west").index(name) for name in names or ("east", "west")])
    east = who == 0
    lon = np.where(east, (t - 160) * SPEED, (160 - t) * SPEED)
    values = {"lat": 0 * t, "lon": lon, "alt_ft": 0 * t + 3e4, "gs_kt": 0 * t + 450, "vs_fpm": 0 * t}
    values["trk_deg"] = np.where(east, 90.0, 270.0)
    columns = {f.name: values.get(f.name, np.full(len(t), np.nan))[keep] for f in FIELDS[Kind.ADSB]}
    return Batch(["east", "west"], {Kind.ADSB: columns_of(Kind.ADSB, who[keep], t[keep], columns)})


class Run:
    """A first run that is cut off, its state directory, and a second run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.pipeline = Pipeline(CONFIG)
        self.journal = Journal(path, fsync=False)
        self.events: list[AlarmEvent] = []

    def feed(self, first_t: float, last_t: float) -> None:
        events = [e for e in self.pipeline.feed(flown(first_t, last_t)) if e.kind == "conflict"]
        self.events += events
        self.journal.append(events)

    def save(self) -> None:
        payload = StateEncoder().encode(self.pipeline.snapshot())
        write_snapshot(self.path / SNAPSHOT, payload, fingerprint(CONFIG), self.journal.number)

    def spoil(self, number: int) -> None:
        lines = self.journal.path.read_bytes().splitlines(keepends=True)
        lines[number] = lines[number][:20] + b"\0\0\0" + lines[number][23:]
        self.journal.path.write_bytes(b"".join(lines))

    def again(self) -> tuple[StateFolder, Journal, Pipeline, list[AlarmEvent]]:
        self.journal.close()
        state = StateFolder(self.path)
        journal = Journal(self.path, fsync=False, check=state.check)
        pipeline = recover(CONFIG, state, journal).pipeline
        ended = settle(pipeline, journal, [])
        journal.append(ended)
        state.release()
        return state, journal, pipeline, ended


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = Run(tmp_path / "state")
    run.feed(100.0, UP_T)
    assert [e.state for e in run.events][:1] == ["raised"]
    return run


def test_an_undamaged_run_goes_on_without_a_word(run: Run) -> None:
    run.save()
    state, _, pipeline, ended = run.again()
    assert (state.warnings(), ended) == ([], [])
    assert [e.id for e in pipeline.active.values()] == [run.events[0].id]


def test_an_end_that_is_lost_after_the_snapshot_is_in_doubt_and_the_evidence_decides(run: Run) -> None:
    run.save()
    run.feed(UP_T + 1, OVER_T)
    assert run.events[-1].state == "cleared"
    run.spoil(-1)
    state, journal, pipeline, ended = run.again()
    assert ended == []
    assert len(state.warnings()) == 2
    assert "1 active alarms may have ended" in state.warnings()[1]
    assert [e.id for e in pipeline.active.values()] == [run.events[0].id]
    assert list(journal.active) == [run.events[0].id]
    # they are far from each other now
    events = pipeline.feed(flown(OVER_T + 1, OVER_T + 60))
    assert [(e.id, e.state) for e in events if e.state == "cleared"] == [(run.events[0].id, "cleared")]
    assert pipeline.active == {}


def test_an_end_that_is_lost_before_the_snapshot_is_told_again(run: Run) -> None:
    run.feed(UP_T + 1, OVER_T)
    run.save()
    run.spoil(-1)
    state, journal, pipeline, ended = run.again()
    assert [(e.id, e.state, e.ended) for e in ended] == [(run.events[0].id, "cleared", "not_known")]
    assert state.warnings()
    assert (pipeline.active, journal.active) == ({}, {})


@pytest.mark.parametrize("lost", [["journal.jsonl"], ["journal.jsonl", "journal.sent"]])
def test_an_alarm_that_only_the_snapshot_knows_stays_active_and_is_written_again(run: Run, lost: list[str]) -> None:
    run.save()
    for name in lost:
        (run.path / name).unlink()
    state, journal, pipeline, _ = run.again()
    assert state.warnings()[0].startswith("journal: event 0 is the last of")
    assert [e.id for e in pipeline.active.values()] == [run.events[0].id]
    assert [e.id for e in journal.past.active] == [run.events[0].id]
    journal.close()
    again = Journal(run.path, fsync=False).past
    assert ([e.id for e in again.active], again.notes) == ([run.events[0].id], [])


def test_with_the_journal_alone_a_doubtful_alarm_of_vehicles_that_are_gone_ends(run: Run) -> None:
    run.feed(UP_T + 1, OVER_T)
    run.spoil(-1)
    _, journal, pipeline, ended = run.again()
    journal.append(ended)
    journal.append(pipeline.feed(flown(OVER_T + 1, OVER_T + 120, "east")))
    assert journal.active == {}


def test_a_damaged_snapshot_is_said_and_the_one_before_it_used(run: Run) -> None:
    run.save()
    run.feed(UP_T + 1, UP_T + 5)
    run.save()
    path = run.path / SNAPSHOT
    path.write_bytes(path.read_bytes()[:-1])
    state, _, pipeline, ended = run.again()
    assert state.warnings() == ["snapshot.msgpack is damaged; what it had is from an earlier one, or learned again"]
    assert (len(pipeline.fleet), ended) == (2, [])
    previous(path).write_bytes(b"")
    state, _, pipeline, _ = run.again()
    assert len(state.warnings()) == 2
    assert len(pipeline.active) == 1


def test_an_alarm_whose_place_another_one_has_is_ended(run: Run) -> None:
    [raised] = [e for e in run.events if e.state == "raised"]
    run.save()
    run.journal.close()
    state = StateFolder(run.path)
    journal = Journal(run.path, fsync=False, check=state.check)
    pipeline = recover(CONFIG, state, journal).pipeline
    # part of the input log is lost: what is left of it gives an alarm of the same two with a later onset
    other = msgspec.structs.replace(raised, id="0123456789abcdef", t_onset=raised.t_onset + 5, t=raised.t + 5)
    ended = settle(pipeline, journal, [other])
    state.release()
    assert [(e.id, e.state, e.ended) for e in ended] == [(raised.id, "cleared", "not_resumed")]
    assert [e.id for e in pipeline.active.values() if e.kind == "conflict"] == [other.id]
