"""The pump with a clock that the test steps: order, bounds, slices, and time that goes on without messages."""

from __future__ import annotations

import asyncio
import json

import msgspec
import numpy as np
import pytest
from pumping import CONFIG, Setup, in_loop
from waiting import PATIENCE_S

from watchkeeper.config.loader import load
from watchkeeper.daemon.intake import pump as pump_module
from watchkeeper.daemon.intake import queue as queue_module
from watchkeeper.daemon.intake.queue import Intake
from watchkeeper.daemon.reload import merge
from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.codec.encode import encode_frame, frame_topic
from watchkeeper.streams.messages import FIELDS, Drop, Kind

# not on the clock of the first test
pytestmark = pytest.mark.usefixtures("_compiled")


def test_a_full_queue_takes_what_may_be_on_its_way_and_drops_what_comes_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue_module, "UNACKNOWLEDGED_MAX", 50)
    intake = Intake(100)
    for i in range(99):
        intake.put("t", str(i).encode())
    assert not intake.full
    for i in range(99, 250):
        intake.put("t", str(i).encode())
    assert (intake.full, len(intake), intake.dropped, intake.received) == (True, 150, 100, 150)
    assert [payload for _, payload, _ in intake.take(150)] == [str(i).encode() for i in range(150)]
    assert (intake.full, intake.head) == (False, 150)


def test_large_payloads_and_batches_fill_the_queue_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    cols = columns_of(Kind.GPS, np.zeros(10, np.int32), np.arange(10.0), {"gps_x": np.zeros(10)})
    batch = Batch(["a"], {Kind.GPS: cols})
    monkeypatch.setattr(queue_module, "QUEUE_BYTES", 3 * batch.nbytes)
    intake = Intake(100)
    for _ in range(20):
        intake.put_batch(batch)
        intake.put("t", bytes(batch.nbytes))
    assert (intake.full, len(intake), intake.dropped) == (True, 7, 33)
    intake.take(7)
    assert not intake.full
    # one that is larger than the whole queue is still let through, to be refused by name
    intake.put("t", bytes(100 * batch.nbytes))
    assert len(intake) == 1


def test_an_adapters_batches_and_messages_are_judged_together_and_what_is_bad_is_a_dead_letter() -> None:
    setup = Setup()
    good = columns_of(
        Kind.GPS, np.zeros(2, np.int32), np.array([100.0, 101.0]), {"gps_x": np.zeros(2), "gps_y": np.zeros(2)}
    )
    bad = columns_of(Kind.GPS, np.zeros(1, np.int32), np.array([102.0]), {"gps_x": np.zeros(1)})

    async def work() -> None:
        setup.intake.put_batch(Batch(["a"], {Kind.GPS: good}))
        setup.fix("b", 101.5)
        setup.intake.put_batch(Batch(["a"], {Kind.GPS: bad}))
        await setup.settle()

    in_loop(work)
    assert setup.pipeline.samples["gps"] == 3
    assert setup.letters.counts == {("gps", Drop.MISSING): 1}
    (letter,) = map(json.loads, setup.letters.take())
    assert (letter["topic"], letter["reason"]) == ("telemetry/gps/a", Drop.MISSING)
    assert json.loads(letter["payload"]) == {"t": 102.0, "gps_x": 0.0}


def test_messages_are_judged_in_order_and_events_carry_the_arrival_of_their_slice() -> None:
    setup = Setup()

    async def work() -> None:
        for t in range(10):
            setup.fix("quiet", 100.0 + t)
            setup.fix("busy", 100.0 + t)
        for t in range(10, 20):
            setup.now_s += 1.0
            setup.fix("busy", 100.0 + t)
            await setup.settle()

    in_loop(work)
    [(event, arrived_s)] = setup.events
    assert (event.kind, event.subjects, event.state) == ("silence", ("quiet",), "raised")
    # the busy drone's fix that closed the tick, one wall second per fix
    assert arrived_s == 1000.0 + event.t - 108.0
    assert setup.pipeline.samples["gps"] == 30


def test_garbage_among_good_messages_changes_nothing_and_is_counted() -> None:
    setup = Setup()

    async def work() -> None:
        for t in range(5):
            setup.fix("a", 100.0 + t)
            setup.intake.put("telemetry/gps/a", b"\xc1garbage")
            setup.intake.put("telemetry/other/a", b"{}")
        await setup.settle()

    in_loop(work)
    assert setup.pipeline.samples["gps"] == 5
    assert sum(setup.letters.counts.values()) == 10


def test_a_huge_frame_lets_others_take_their_turn() -> None:
    setup = Setup()
    rows = 5 * pump_module.FEED_SAMPLES
    turns = 0

    async def work() -> None:
        nonlocal turns
        ids = [f"v{i}" for i in range(50)]
        data = np.full((len(FIELDS[Kind.GPS]), rows), np.nan)
        data[:3] = 0.0
        t = 100.0 + np.repeat(np.arange(rows // 50), 50) * 0.01
        setup.intake.put(frame_topic(CONFIG.topics, Kind.GPS), encode_frame(Kind.GPS, ids * (rows // 50), t, data))
        draining = asyncio.create_task(setup.settle())
        while not draining.done():
            turns += 1
            await asyncio.sleep(0)

    in_loop(work)
    assert setup.pipeline.samples["gps"] == rows
    assert turns >= 5


@pytest.mark.parametrize("connected", [True, False])
def test_silence_is_noticed_by_the_wall_clock_only_while_we_can_hear(connected: bool) -> None:
    setup = Setup()

    async def work() -> None:
        setup.pump.online(connected)
        for t in range(10):
            setup.fix("a", 100.0 + t)
        await setup.settle()
        setup.now_s += 1.9
        setup.pump._idle()
        assert not setup.events
        setup.now_s += 60.0
        setup.pump._idle()

    in_loop(work)
    # next to it is the `watch` alarm: what is not heard is not judged
    raised = [(e.kind, at) for e, at in setup.events if e.state == "raised" and e.kind != "watch"]
    assert raised == ([("silence", None)] if connected else [])


def test_after_a_reconnect_silence_counts_from_the_reconnect() -> None:
    setup = Setup()

    async def work() -> None:
        setup.pump.online(True)
        for t in range(10):
            setup.fix("a", 100.0 + t)
        await setup.settle()
        setup.pump.online(False)
        setup.now_s += 3600.0
        setup.pump.online(True)
        setup.pump._idle()
        # what the broker kept for us while we were away is not late
        for t in range(10, 20):
            setup.fix("a", 100.0 + t)
        await setup.settle()

    in_loop(work)
    assert not setup.events
    assert setup.pipeline.samples["gps"] == 20
    assert not setup.pipeline.drops


def test_stop_judges_what_has_arrived_and_then_everything_up_to_the_newest_sample() -> None:
    config = msgspec.structs.replace(CONFIG, time=msgspec.structs.replace(CONFIG.time, lateness_s=60.0))
    setup = Setup(config)

    async def work() -> None:
        running = asyncio.create_task(setup.pump.run())
        await asyncio.sleep(0)
        for t in range(30):
            setup.fix("busy", 100.0 + t)
            if t < 10:
                setup.fix("quiet", 100.0 + t)
        setup.pump.stop()
        setup.fix("after", 500.0)
        await asyncio.wait_for(running, PATIENCE_S)

    in_loop(work)
    assert [e.subjects for e, _ in setup.events if e.state == "raised"] == [("quiet",)]
    assert len(setup.intake) == 1


def test_a_reload_takes_thresholds_and_names_what_needs_a_restart() -> None:
    wanted = {
        "detectors": {"silence": {"min_silence_s": 9.0, "enabled": False}, "gps_imu": {"threshold": 7.0}},
        "time": {"tick_s": 0.5, "idle_timeout_s": 4.0},
        "broker": {"url": "mqtt://elsewhere:1883", "password": "secret"},
        "log": {"level": "debug"},
    }
    old = load(None, env={})
    config, changed, waiting = merge(old, load(None, env={}, overrides=wanted))
    assert set(changed) == {
        "detectors.silence.min_silence_s", "detectors.gps_imu.threshold", "time.idle_timeout_s", "log.level",
    }  # fmt: skip
    assert set(waiting) == {"detectors.silence.enabled", "time.tick_s", "broker.url", "broker.password"}
    assert config.detectors.silence.min_silence_s == 9.0
    assert config.detectors.silence.enabled
    assert config.broker == old.broker
    assert config.time.tick_s == old.time.tick_s


def test_a_reload_of_the_same_file_changes_nothing() -> None:
    old = load(None, env={})
    assert merge(old, old) == (old, [], [])
