"""Flips and cuts of every state file: no crash, nothing unnoticed, no alarm that nobody ever ends.

A run of twelve drones, some of which are silent when it is cut off, leaves a state directory. One file of it is
damaged, a second run starts on it, and all drones speak again. A model of the broker, which has retained what the first
run published, must be empty in the end. 500 flips and 500 cuts of each file run in `make proofs`.
"""

from __future__ import annotations

import gc
import logging
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from watchkeeper.config.loader import load
from watchkeeper.config.outputs import HomeAssistant, Webhook
from watchkeeper.daemon.intake.inputlog import FED, InputLog, Position, Step
from watchkeeper.daemon.outputs.base import Context
from watchkeeper.daemon.outputs.home_assistant import MEMORY, HomeAssistantSink
from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.daemon.outputs.webhook import WebhookSink
from watchkeeper.daemon.state.folder import StateFolder
from watchkeeper.daemon.state.recovery import SNAPSHOT, recover, settle
from watchkeeper.daemon.state.snapshot import fingerprint, write_snapshot
from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.foreign.states import StateEncoder
from watchkeeper.streams.messages import FIELDS, Kind

# drones of this test have no IMU, which is what `watch` would say
SETTINGS = {
    "fleet": {"max_vehicles": 20}, "diagnosis": {"enabled": False}, "detectors": {"watch": {"enabled": False}}
}  # fmt: skip
CONFIG = load(None, env={}, overrides=SETTINGS)
DRONES = 12
CUT_OFF_T = 170.0
TOLD = "webhook-pager.told"
FILES = ["journal.jsonl", "journal.sent", SNAPSHOT, "snapshot.old", TOLD, MEMORY, "input-00000001.log"]


def fixes(first_t: float, last_t: float, *, all_speak: bool = False) -> Batch:
    """Every drone once a second; drone i is silent for 25 s from 105 + 5 i on."""
    t = np.repeat(np.arange(first_t, last_t + 1), DRONES)
    who = np.tile(np.arange(DRONES, dtype=np.int32), len(t) // DRONES)
    begins = 105.0 + 5.0 * who
    keep = np.full(len(t), True) if all_speak else (t < begins) | (t > begins + 25)
    values = {
        f.name: np.zeros(len(t)) if f.name.startswith("gps_") else np.full(len(t), np.nan) for f in FIELDS[Kind.GPS]
    }
    columns = {name: column[keep] for name, column in values.items()}
    return Batch([f"d{i}" for i in range(DRONES)], {Kind.GPS: columns_of(Kind.GPS, who[keep], t[keep], columns)})


class Broker:
    """What it has retained, by topic."""

    def __init__(self) -> None:
        self.retained: dict[tuple[str, tuple[str, ...]], str] = {}
        self.ended: set[str] = set()

    def hear(self, events: list[AlarmEvent]) -> None:
        for event in events:
            place = event.kind, event.subjects
            if event.state == CLEARED:
                self.retained.pop(place, None)
                self.ended.add(event.id)
            else:
                self.retained[place] = event.id


def context(state: StateFolder, journal: Journal) -> Context:
    nothing: object = None
    return Context(
        version="0", client_id="test", output="watchkeeper", state_dir=state.path, past=journal.past,
        transport=nothing, max_active=100, vehicles=lambda: 0, callsigns=dict, state=state,
        watched=nothing,
    )  # type: ignore[arg-type]  # fmt: skip


WEBHOOK = Webhook(name="pager", url="http://127.0.0.1:1/")


class Past:
    """The first run's directory, and what the world knew when it was cut off."""

    def __init__(self, path: Path) -> None:
        self.path = path
        state = StateFolder(path)
        journal = Journal(path, fsync=False, check=state.check)
        pipeline = Pipeline(CONFIG)
        self.broker = Broker()
        webhook = WebhookSink(WEBHOOK, path, state=state)
        for first_t in np.arange(100.0, CUT_OFF_T, 5.0):
            events = pipeline.feed(fixes(first_t, first_t + 4))
            journal.confirm(journal.append(events))
            self.broker.hear(events)
            for event in events:
                webhook._known.note(event)
            payload = StateEncoder().encode(pipeline.snapshot())
            write_snapshot(path / SNAPSHOT, payload, fingerprint(CONFIG), journal.number)
        self.active = {event.id for event in pipeline.active.values()}
        assert len(self.active) >= 3
        assert len(self.broker.ended) >= 3
        HomeAssistantSink(HomeAssistant(enabled=True), context(state, journal))._remember({"a/config", "b/config"})
        log = InputLog(path, max_bytes=10**9, fsync=False)
        for i in range(5):
            log.append([(f"telemetry/gps/d{i}", b"x" * 40, 1.0)], [Step(i + 1, FED)], 0.0)
        log.close()
        webhook._known.close()
        journal.close()
        state.release()

    def second_run(self, path: Path) -> list[str]:
        """What is said about damage, after a run in which every alarm ends."""
        state = StateFolder(path)
        journal = Journal(path, fsync=False, check=state.check)
        broker = Broker()
        broker.retained = dict(self.broker.retained)
        pipeline = recover(CONFIG, state, journal).pipeline
        webhook = WebhookSink(WEBHOOK, path, state=state)
        webhook.catch_up(journal.past.active, journal.past.ended)
        HomeAssistantSink(HomeAssistant(enabled=True), context(state, journal))
        log = InputLog(path, max_bytes=10**9, fsync=False)
        assert len(list(log.blocks(Position()))) <= 5
        events = settle(pipeline, journal, [])
        journal.append(events)
        events += [
            e for e in pipeline.feed(fixes(CUT_OFF_T, CUT_OFF_T + 60, all_speak=True)) if not journal.is_repeat(e)
        ]
        journal.append(events)
        broker.hear([event for _, event in journal.past.unsent] + events)
        assert broker.retained == {}, "somebody would see an alarm that is over"
        assert journal.active == {}
        assert self.active <= broker.ended
        for event in events:
            webhook.put(event)
        told = {webhook._outbox.take().event.id for _ in range(webhook.waiting)}
        assert self.active <= told, "the receiver would never hear the end"
        webhook._known.close()
        journal.close()
        state.release()
        return state.warnings() + log.notes()


@pytest.fixture(autouse=True)
def _unlogged() -> Iterator[None]:
    """pytest keeps every record of a test, and with what was raised the frames that hold a pipeline."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    return Past(tmp_path_factory.mktemp("damage") / "state")


def damaged(whole: bytes, rng: random.Random, how: str) -> bytes:
    at = rng.randrange(len(whole))
    if how == "cut":
        return whole[:at]
    return whole[:at] + bytes([whole[at] ^ rng.randrange(1, 256)]) + whole[at + 1 :]


def test_an_undamaged_directory_says_nothing(past: Past, tmp_path: Path) -> None:
    shutil.copytree(past.path, tmp_path / "state")
    assert past.second_run(tmp_path / "state") == []


def play(past: Past, folder: Path, name: str, how: str, seeds: range) -> None:
    whole = (past.path / name).read_bytes()
    for seed in seeds:
        path = folder / f"{seed}"
        shutil.copytree(past.path, path)
        (path / name).write_bytes(damaged(whole, random.Random(f"{name} {how} {seed}"), how))
        try:
            assert past.second_run(path), "nobody noticed"
            if name.startswith("journal"):
                # and it is mended
                assert Journal(path, fsync=False).past.notes == []
        except BaseException:
            print(f"{name}: {how} with seed {seed}")
            raise
        shutil.rmtree(path)
        # a pipeline is large and full of cycles: a few hundred of them are more than there is memory
        gc.collect()


@pytest.mark.parametrize("how", ["flip", "cut"])
@pytest.mark.parametrize("name", FILES)
def test_damage_is_noticed_and_leaves_no_ghost(past: Past, tmp_path: Path, name: str, how: str) -> None:
    play(past, tmp_path, name, how, range(2))


@pytest.mark.long
@pytest.mark.parametrize("how", ["flip", "cut"])
@pytest.mark.parametrize("name", FILES)
def test_five_hundred_times(past: Past, tmp_path: Path, name: str, how: str) -> None:
    play(past, tmp_path, name, how, range(500))
