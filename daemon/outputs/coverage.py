"""Who is watched, on the broker: one retained message per vehicle, published when it changes.

    <output>/watch/<id>   QoS 1, retained: {"id", "t", "watched": {detector: since_t},
                          "partly": [{"detector", "since_t", "reason", "say"}], "not_watched": [the same]}

Detectors that judge nothing of what the vehicle sends are left out. A vehicle's message follows at most every AGAIN_S,
and at most PER_ROUND go out in a second, so that alarms never wait behind them. The message is removed when the vehicle
is forgotten; after each connect all of them go out again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.fleet.reasons import CODE_OF, Code, words
from watchkeeper.streams.batch import F8, U1
from watchkeeper.streams.messages import escape_id
from watchkeeper.streams.mqtt.transport import Transport

ROUND_S = 1.0
PER_ROUND = 50
AGAIN_S = 5.0
# No reason has this code: nothing was published.
NOTHING = 255


class CoverageTopics:
    """The retained messages of one daemon. `run` is a task, `connected` is called when there is a connection."""

    def __init__(self, pipeline: Pipeline, transport: Transport, output: Callable[[], str]) -> None:
        self._pipeline = pipeline
        self._transport = transport
        self._output = output
        self._round = 0
        self._forget_all()

    def _forget_all(self) -> None:
        table = self._pipeline.guard.coverage
        self._table = table
        self._names: dict[int, str] = {}
        self._said: U1 = np.full(table.code.shape, NOTHING, np.uint8)
        self._said_at: F8 = np.full(table.code.shape[1], -np.inf)

    def connected(self) -> None:
        """Perhaps to a broker without memory: everything goes out again."""
        self._said[:] = NOTHING

    @property
    def places(self) -> tuple[str, ...]:
        """What our topics begin with."""
        return (f"{self._output()}/watch/",)

    def shown(self) -> dict[str, str]:
        """The topics of the vehicles that are known now."""
        return {self._topic(name): "" for name in self._pipeline.fleet.slot_of}

    def is_over(self, _alarm_id: str) -> bool:
        """There are no alarms here."""
        return False

    def remove(self, topic: str, _event: AlarmEvent | None) -> None:
        """Take away what is retained about a vehicle that is forgotten."""
        self._transport.post(topic, b"", retain=True)

    async def run(self) -> None:
        """Task: publish what changed, until cancelled."""
        while True:
            await asyncio.sleep(ROUND_S)
            if self._transport.connected:
                self.publish()

    def publish(self) -> None:
        """One round."""
        self._round += 1
        if self._pipeline.guard.coverage is not self._table:
            # time went back for good: it is another fleet
            for name in self._names.values():
                self._post(name, b"")
            self._forget_all()
        fleet, table = self._pipeline.fleet, self._table
        n = fleet.high
        for slot, name in [(slot, name) for slot, name in self._names.items() if fleet.ids[slot] != name]:
            self._post(name, b"")
            del self._names[slot]
            self._said[:, slot] = NOTHING
            self._said_at[slot] = -np.inf
        code = table.code[:, :n]
        due = (code != self._said[:, :n]).any(axis=0) & (code != Code.NOT_APPLICABLE).any(axis=0)
        due &= self._round * ROUND_S - self._said_at[:n] >= AGAIN_S
        slots = np.flatnonzero(due)
        for slot in slots[np.argsort(self._said_at[slots], kind="stable")][:PER_ROUND].tolist():
            if name := fleet.ids[slot]:
                self._names[slot] = name
                self._said[:, slot], self._said_at[slot] = code[:, slot], self._round * ROUND_S
                self._post(name, msgspec.json.encode(coverage_of(self._pipeline, slot)))

    def _post(self, name: str, payload: bytes) -> None:
        self._transport.post(self._topic(name), payload, retain=True)

    def _topic(self, name: str) -> str:
        return f"{self._output()}/watch/{escape_id(name)}"


def coverage_of(pipeline: Pipeline, slot: int) -> dict[str, Any]:
    """What is watched of one vehicle and what is not, ready for JSON."""
    rows = pipeline.guard.coverage.of(slot)

    def said(*, judged: bool) -> list[dict[str, Any]]:
        return [
            {"detector": name, "since_t": row["since_t"], "reason": row["reason"], "say": words(CODE_OF[row["reason"]])}
            for name, row in rows.items()
            if row["watched"] is judged and row["reason"] not in {"watched", "not_applicable"}
        ]

    return {
        "id": pipeline.fleet.ids[slot],
        "t": pipeline.watermark if np.isfinite(pipeline.watermark) else None,
        "watched": {name: row["since_t"] for name, row in rows.items() if row["reason"] == "watched"},
        "partly": said(judged=True),
        "not_watched": said(judged=False),
    }
