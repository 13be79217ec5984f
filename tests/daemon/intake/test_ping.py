"""Gateways are pinged, their answers become round trips, and what arrives is timed; an incident has its own topic."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from waiting import PATIENCE_S, until

from watchkeeper.config.schema import DEFAULT, Config
from watchkeeper.daemon.app import App
from watchkeeper.daemon.intake.deadletter import DeadLetters
from watchkeeper.daemon.intake.pump import Pump
from watchkeeper.daemon.intake.queue import Intake
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.messages import COLUMN, Kind


def test_a_ping_and_its_answer_make_a_round_trip(broker: Any, listener: Any, configure: Callable[..., Config]) -> None:
    config = configure(broker.url, diagnosis={"enabled": True, "ping_s": 1.0})

    async def main() -> float:
        app = App(config)
        running = asyncio.create_task(app.run(signals=False))
        await until(lambda: not app.condition.not_ready())
        fix = {"t": 1000, "gps_x": 0, "gps_y": 0, "gps_z": 0, "via": "gw/1"}
        await asyncio.to_thread(listener.send, "telemetry/gps/a", fix)
        pings = lambda: [p for topic, p, _ in listener.messages if topic == "watchkeeper/ping/gw%2F1"]  # noqa: E731
        await until(pings)
        sent_t = json.loads(pings()[-1])["t"]
        assert abs(time.time() - sent_t) < PATIENCE_S
        answer = {"t": 1000.5, "echo_t": sent_t, "load": 0.2}
        await asyncio.to_thread(listener.send, "telemetry/link/gw%2F1", answer)
        await asyncio.to_thread(listener.send, "telemetry/gps/a", {**fix, "t": 1002})
        slot = await until(lambda: app.pipeline.fleet.slot_of.get("gw/1"))
        rtt = app.pipeline.fleet.value[Kind.LINK][COLUMN[Kind.LINK]["rtt_s"]]
        await until(lambda: np.isfinite(rtt[slot]))
        app.stop()
        await running
        return float(rtt[slot])

    assert 0.0 < asyncio.run(main()) < PATIENCE_S


def test_an_incident_is_published_under_its_id_and_taken_back_when_it_is_over(
    broker: Any, listener: Any, configure: Callable[..., Config]
) -> None:
    config = configure(broker.url, diagnosis={"enabled": True})

    def incidents() -> list[tuple[str, bytes]]:
        return [(topic, p) for topic, p, _ in listener.messages if topic.startswith("watchkeeper/incident/")]

    async def main() -> None:
        app = App(config)
        running = asyncio.create_task(app.run(signals=False))
        await until(lambda: not app.condition.not_ready())
        await asyncio.to_thread(listener.fixes, "quiet loud", 1000, 1010)
        await asyncio.to_thread(listener.fixes, "loud", 1011, 1022)
        await until(incidents)
        await asyncio.to_thread(listener.fixes, "quiet loud", 1023, 1030)
        await until(lambda: incidents()[-1][1] == b"")
        app.stop()
        await running

    asyncio.run(main())
    topic, payload = incidents()[0]
    event = json.loads(payload)
    assert topic == f"watchkeeper/incident/{event['id']}"
    assert (event["kind"], event["state"], event["subjects"]) == ("incident", "raised", ["quiet"])
    assert event["diagnosis"]["location"] in {"quiet/gps", "quiet", "broker~quiet", "quiet~quiet/gps"}
    silence = next(a for a in listener.alarms() if a["diagnosis"] is not None)
    assert silence["id"] in event["evidence"]["alarms"]


def test_the_pump_times_what_arrives() -> None:
    now = [5000.0]
    letters = DeadLetters(DEFAULT.topics)
    intake = Intake(1000, now=lambda: now[0])
    pipeline = Pipeline(DEFAULT)
    pump = Pump(DEFAULT, pipeline, intake, letters, lambda _events, _arrived: None, now=lambda: now[0])

    async def main() -> None:
        for i in range(100):
            now[0] = 5000.0 + 0.2 * i
            payload = {"t": 1000.0 + 0.2 * i, "gps_x": 0, "gps_y": 0, "gps_z": 0}
            intake.put("telemetry/gps/a", json.dumps(payload).encode())
            await pump._drain()

    asyncio.run(main())
    assert 10 <= pipeline.samples["link"] <= 20
    stats = next(d for d in pipeline.detectors if d.declaration.name == "link").stats
    # clocks are years apart, but the difference does not change
    assert abs(stats.latency_excess_s()[0]) < 1e-3
