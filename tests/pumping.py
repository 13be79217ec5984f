"""A pump on a clock that the test steps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

from waiting import PATIENCE_S

from watchkeeper.config.loader import load
from watchkeeper.config.schema import Config
from watchkeeper.daemon.intake.deadletter import DeadLetters
from watchkeeper.daemon.intake.pump import Pump
from watchkeeper.daemon.intake.queue import Intake
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline

CONFIG = load(
    None,
    env={},
    overrides={
        "fleet": {"max_vehicles": 100},
        "time": {"lateness_s": 0.0, "idle_timeout_s": 2.0},
        "detectors": {"conflict": {"max_pairs": 1000}, "silence": {"factor": 2.0}},
        "diagnosis": {"enabled": False},
    },
)


class Setup:
    def __init__(self, config: Config = CONFIG) -> None:
        self.now_s = 1000.0
        self.events: list[tuple[AlarmEvent, float | None]] = []
        self.intake = Intake(config.limits.queue_messages, now=lambda: self.now_s)
        self.letters = DeadLetters(config.topics)
        self.pipeline = Pipeline(config)
        self.pump = Pump(config, self.pipeline, self.intake, self.letters, self._submit, now=lambda: self.now_s)

    def _submit(self, events: list[AlarmEvent], arrived_s: float | None) -> None:
        self.events += [(event, arrived_s) for event in events]

    def fix(self, name: str, t: float) -> None:
        payload = {"t": t, "gps_x": 0, "gps_y": 0, "gps_z": 0}
        self.intake.put(f"telemetry/gps/{name}", json.dumps(payload).encode())

    def saved(self, names: str, first: int, last: int) -> None:
        """Each of these vehicles with all that it has saved up, one after the other; seconds of `fly`."""
        for name in names:
            for t in range(first, last):
                self.fix(name, 100.0 + t)

    async def fly(self) -> None:
        """Ten seconds of three vehicles."""
        for t in range(10):
            for name in "abc":
                self.fix(name, 100.0 + t)
        await self.settle()

    async def settle(self) -> None:
        await asyncio.wait_for(self.pump._drain(), PATIENCE_S)


def in_loop(work: Callable[[], object]) -> None:
    async def main() -> None:
        await work()  # type: ignore[misc]

    asyncio.run(main())
