"""The way of a message: how often control goes from one of our folders to another before an alarm is handed over.

Counted are moves of control between the top-level folders config, streams, detectors and daemon, of one ADS-B message,
from the call of `Intake.put` (the transport's callback) to the call of `submit` with the alarm that it raises: calls
into another folder and returns from it, each as one. A frame belongs to the folder of its module; frames of libraries
in between (asyncio, msgspec, NumPy, Numba's dispatcher) belong to none and are looked through.
"""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import pairwise
from types import FrameType
from typing import Any

from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.intake.deadletter import DeadLetters
from watchkeeper.daemon.intake.pump import Pump
from watchkeeper.daemon.intake.queue import Intake
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.warmup import warm_up

FOLDERS = ("config", "streams", "detectors", "daemon")
AT_MOST = 8
# Half a second of flight at 450 kt along the equator, in degrees.
STEP_DEG = 0.5 * 450.0 / 3600.0 / 60.0


def folder(frame: FrameType | None) -> str | None:
    """The folder of the innermost frame of ours."""
    while frame is not None:
        package, _, rest = frame.f_globals.get("__name__", "").partition(".")
        if package == "watchkeeper" and (top := rest.partition(".")[0]) in FOLDERS:
            return str(top)
        frame = frame.f_back
    return None


class Way:
    """Notes in which folder control is, at each call and return."""

    def __init__(self) -> None:
        self.folders: list[str] = []
        self.alarm: AlarmEvent | None = None
        self.taken: list[str] = []

    def __call__(self, frame: FrameType, event: str, _arg: Any) -> None:
        if event in ("call", "return"):
            now = folder(frame if event == "call" else frame.f_back)
            if now is not None:
                self.folders.append(now)

    def submit(self, events: list[AlarmEvent], _arrived_s: float | None) -> None:
        if self.alarm is None:
            self.alarm, self.taken = events[0], list(self.folders)


def head_on(k: int) -> tuple[str, bytes]:
    """The k-th report of two aircraft that fly towards each other."""
    lon, trk_deg = (k // 2 * STEP_DEG, 90.0) if k % 2 == 0 else (0.5 - k // 2 * STEP_DEG, 270.0)
    report = {"t": 1000.0 + k * 0.25, "lat": 0.0, "lon": lon, "trk_deg": trk_deg}
    report |= {"alt_ft": 30_000, "gs_kt": 450, "vs_fpm": 0}
    return f"telemetry/adsb/a{k % 2}", json.dumps(report).encode()


async def fly(way: Way) -> None:
    intake = Intake(1000)
    pump = Pump(DEFAULT, Pipeline(DEFAULT), intake, DeadLetters(DEFAULT.topics), way.submit)
    for k in range(200):
        way.folders.clear()
        sys.setprofile(way)
        try:
            intake.put(*head_on(k))
            await pump._drain()
        finally:
            sys.setprofile(None)
        if way.alarm is not None:
            return


def test_a_message_crosses_folders_at_most_eight_times_on_its_way_to_an_alarm() -> None:
    warm_up(DEFAULT)
    way = Way()
    asyncio.run(fly(way))
    assert way.alarm is not None
    assert way.alarm.kind == "conflict"
    assert way.taken[0] == way.taken[-1] == "daemon"
    crossings = [(a, b) for a, b in pairwise(way.taken) if a != b]
    assert 0 < len(crossings) <= AT_MOST, crossings
