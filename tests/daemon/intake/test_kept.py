"""Acknowledged means kept: when the broker is told, what a crash leaves, and that the next run goes on from there."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from pumping import CONFIG
from waiting import PATIENCE_S

from watchkeeper.config.loader import load
from watchkeeper.config.schema import Config
from watchkeeper.daemon.intake import queue as queue_module
from watchkeeper.daemon.intake.deadletter import DeadLetters
from watchkeeper.daemon.intake.pump import SETTLE_S, Pump
from watchkeeper.daemon.intake.queue import Intake
from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.daemon.state.folder import StateFolder
from watchkeeper.daemon.state.memory import Memory
from watchkeeper.detectors.alarms.events import AlarmEvent

pytestmark = pytest.mark.usefixtures("_compiled")


class Line:
    """A transport that has delivered some messages and notes what is acknowledged."""

    received = 0
    acknowledged = 0

    def acknowledge(self, number: int) -> None:
        assert number <= self.received
        self.acknowledged = max(self.acknowledged, number)


class Run:
    """Intake, pump and memory of one run, as the App wires them, and the events that are told."""

    def __init__(self, folder: Path | None, config: Config = CONFIG) -> None:
        self.now_s = 1000.0
        self.line = Line()
        self.told: list[AlarmEvent] = []
        self.journal = Journal(folder, fsync=False) if folder is not None else None
        self.state = StateFolder(folder) if folder is not None else None
        self.memory = Memory(config, self.state, self.journal)
        self.intake = Intake(config.limits.queue_messages, now=lambda: self.now_s)
        self.pump = Pump(
            config, self.memory.pipeline, self.intake, DeadLetters(config.topics), self._submit, now=lambda: self.now_s
        )
        self.memory.attach(self.pump, self.line)  # type: ignore[arg-type]

    def _submit(self, events: list[AlarmEvent], _arrived_s: float | None) -> None:
        self.memory.note(events)
        fresh = [event for event in events if self.journal is None or not self.journal.is_repeat(event)]
        if self.journal is not None:
            self.journal.append(fresh)
        self.told += fresh

    async def begin(self, *, session_kept: bool = True) -> None:
        self._submit(await self.memory.relive(lambda: False), None)
        self.memory.connected(session_kept=session_kept)

    def deliver(self, topic: str, payload: bytes) -> None:
        self.line.received += 1
        self.intake.put(topic, payload)

    async def settle(self) -> None:
        await asyncio.wait_for(self.pump._drain(), PATIENCE_S)
        if self.intake:
            # it waits until everybody had time to come back
            self.now_s += SETTLE_S
            await asyncio.wait_for(self.pump._drain(), PATIENCE_S)

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not done():
                await asyncio.sleep(0.001)

    def crash(self) -> None:
        """What kill -9 leaves: nothing is flushed, the disk has what was written."""
        self.memory.close()
        if self.journal is not None:
            self.journal.close()
        if self.state is not None:
            self.state.release()


def fix(name: str, t: float, x: float = 0.0) -> tuple[str, bytes]:
    return f"telemetry/gps/{name}", json.dumps({"t": t, "gps_x": x, "gps_y": 0, "gps_z": 0}).encode()


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_a_message_is_acknowledged_once_it_is_in_the_log_and_not_before(tmp_path: Path) -> None:
    async def work() -> None:
        one = Run(tmp_path)
        await one.begin(session_kept=False)
        for t in range(10):
            one.deliver(*fix("a", 100.0 + t))
        assert one.line.acknowledged == 0
        await one.until(lambda: one.line.acknowledged == 10)
        one.crash()
        two = Run(tmp_path)
        await two.begin()
        # none of it was judged by the first run
        assert two.memory.pipeline.samples["gps"] == 10
        two.crash()

    run(work())


def test_without_a_state_directory_a_message_is_acknowledged_when_the_pipeline_has_it() -> None:
    async def work() -> None:
        one = Run(None)
        await one.begin()
        for t in range(10):
            one.deliver(*fix("a", 100.0 + t))
        await asyncio.sleep(0.02)
        assert one.line.acknowledged == 0
        await one.settle()
        one.deliver(*fix("a", 110.0))
        await one.settle()
        assert one.line.acknowledged == 10
        await one.memory.save()
        assert one.line.acknowledged == 11
        one.crash()

    run(work())


def test_while_the_queue_is_full_nothing_is_acknowledged_and_nothing_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_module, "UNACKNOWLEDGED_MAX", 300)
    # senders are not back yet: so many more may wait
    monkeypatch.setattr(queue_module, "SETTLING_MESSAGES", 200)

    async def work() -> None:
        config = load(None, env={}, overrides={"limits": {"queue_messages": 100}})
        one = Run(tmp_path, config)
        await one.begin()
        for t in range(299):
            one.deliver(*fix("a", 100.0 + t))
        await one.until(lambda: one.line.acknowledged == 299)
        for t in range(299, 400):
            one.deliver(*fix("a", 100.0 + t))
        await asyncio.sleep(0.05)
        assert (one.line.acknowledged, one.intake.dropped) == (299, 0)
        # beyond what a broker may have on the line it is not QoS 1: the newest is dropped and counted
        for t in range(400, 700):
            one.deliver(*fix("a", 100.0 + t))
        assert (len(one.intake), one.intake.dropped) == (600, 100)
        await one.settle()
        await one.until(lambda: one.line.acknowledged == 700)
        one.crash()

    run(work())


def test_a_disk_that_does_not_take_the_log_is_said_and_does_not_make_us_deaf(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        one = Run(tmp_path)
        await one.begin()

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(one.memory._log, "append", full)
        one.deliver(*fix("a", 100.0))
        await one.until(lambda: one.line.acknowledged == 1)
        assert one.memory.health() == ["input log not written: No space left on device"]
        await one.settle()
        assert one.memory.pipeline.samples["gps"] == 1
        monkeypatch.undo()
        one.deliver(*fix("a", 101.0))
        await one.until(lambda: one.line.acknowledged == 2)
        assert one.memory.health() == []
        assert one.memory.keeper.unkept == 1
        one.crash()

    run(work())


def story(seconds: int) -> list[tuple[str, bytes]]:
    """Drones of which one after the other falls silent for ten seconds, one message after the other."""
    return [
        fix(name, 100.0 + t, t * 0.5)
        for t in range(seconds)
        for i, name in enumerate(("a", "b", "c"))
        if not 20 * (i + 1) <= t % 90 < 20 * (i + 1) + 10
    ]


async def undisturbed(messages: list[tuple[str, bytes]], folder: Path) -> list[tuple[str, str, float]]:
    one = Run(folder)
    await one.begin()
    for message in messages:
        one.deliver(*message)
        await one.settle()
    one.crash()
    return [(e.id, e.state, e.t) for e in one.told]


@pytest.mark.parametrize("seed", range(4))
def test_crashes_and_stops_anywhere_tell_the_same_alarms_as_an_undisturbed_run(tmp_path: Path, seed: int) -> None:
    async def work() -> None:
        messages = story(180)
        (tmp_path / "calm").mkdir()
        (tmp_path / "state").mkdir()
        wanted = await undisturbed(messages, tmp_path / "calm")
        assert len(wanted) > 8
        rng = random.Random(seed)
        newest = tmp_path / "state" / "snapshot.msgpack"
        told: list[tuple[str, str, float]] = []
        at = ends = 0
        while at < len(messages):
            one = Run(tmp_path / "state")
            await one.begin()
            first = at
            stop = min(len(messages), at + rng.randrange(1, 60))
            for message in messages[first:stop]:
                one.deliver(*message)
                if rng.random() < 0.3:
                    await one.settle()
                if rng.random() < 0.1:
                    await one.memory.save()
                if rng.random() < 0.1:
                    await asyncio.sleep(0.002)
            if rng.random() < 0.3:
                # in order: everything that was delivered is judged, saved and acknowledged
                await one.settle()
                await one.memory.save()
                assert one.line.acknowledged == stop - first
            # what the broker was not told that we have, it delivers again
            at = first + one.line.acknowledged
            told += [(e.id, e.state, e.t) for e in one.told]
            one.crash()
            ends += 1
            if ends == 5 and newest.exists():
                # the newest snapshot is damaged: the one before it will do, with the input since then
                newest.write_bytes(newest.read_bytes()[:-1])
        one = Run(tmp_path / "state")
        await one.begin()
        await one.settle()
        told += [(e.id, e.state, e.t) for e in one.told]
        one.crash()
        assert ends > 8
        assert told == wanted

    run(work())


def test_a_stop_while_the_log_is_read_leaves_everything_as_it_was(tmp_path: Path) -> None:
    async def work() -> None:
        one = Run(tmp_path)
        await one.begin(session_kept=False)
        for message in story(30):
            one.deliver(*message)
        await one.until(lambda: one.line.acknowledged == one.line.received)
        one.crash()
        files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        two = Run(tmp_path)
        assert await two.memory.relive(lambda: True) == []
        assert not two.memory.complete
        assert two.memory.health() == ["reading the input of the run before"]
        two.crash()
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files
        three = Run(tmp_path)
        await three.begin()
        assert three.memory.pipeline.samples["gps"] == one.line.received
        three.crash()

    run(work())


def test_a_write_that_takes_long_is_said_when_it_is_on_and_when_it_is_over(tmp_path: Path) -> None:
    async def work() -> None:
        one = Run(tmp_path)
        keeper, stalls = one.memory.keeper, []
        # before anything is written: a write that began on the machine's clock would have lasted since it was started
        keeper._now = lambda: one.now_s
        keeper.on_stall = lambda: stalls.append(one.now_s)
        await one.begin()
        for expected in ([], [1010.0]):
            one.deliver(*fix("a", 100.0 + one.now_s))
            keeper._hurry()
            assert not keeper.stalled
            one.now_s += 10.0 * len(expected)
            assert keeper.stalled == bool(expected)
            await one.until(lambda: one.line.acknowledged == one.line.received)
            assert stalls == expected
            assert not keeper.stalled
        one.crash()

    run(work())


def test_a_wall_clock_that_is_set_while_the_broker_is_away_hides_no_outage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        one = Run(tmp_path)
        await one.begin()
        told: list[float] = []

        def returned(away_s: float, *, kept: bool) -> None:
            assert kept
            told.append(away_s)

        monkeypatch.setattr(one.memory._pump, "returned", returned)
        one.memory.disconnected()
        monkeypatch.setattr(time, "time", lambda: 0.0)
        one.memory.connected(session_kept=True)
        assert len(told) == 1
        assert 0.0 <= told[0] < 60.0
        monkeypatch.undo()
        one.crash()

    run(work())


@pytest.mark.parametrize("known", [True, False])
def test_a_broker_that_knows_us_though_we_know_nothing_has_a_backlog(tmp_path: Path, known: bool) -> None:
    async def work() -> None:
        one = Run(tmp_path)
        await one.begin(session_kept=known)
        # one sender after the other sends what it has saved up
        for name in "abcd":
            for t in range(10):
                one.deliver(*fix(name, 100.0 + t))
            await one.settle() if not known else await asyncio.wait_for(one.pump._drain(), PATIENCE_S)
        await one.settle()
        judged = one.memory.pipeline.samples["gps"]
        assert judged == 40 if known else judged < 40
        one.crash()

    run(work())
