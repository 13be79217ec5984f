"""A replay with an audience: recorded logs through the pipeline at their pace, and the live page to look at it.

Alarms and outputs are those of any replay, byte for byte: the page looks on. When the log has ended the page stays, to
scrub through the last minutes, until Ctrl-C.
"""

from __future__ import annotations

import asyncio
import math
import signal
import sys
import time
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

import msgspec

from watchkeeper.daemon.background import end
from watchkeeper.daemon.http.server import Site
from watchkeeper.daemon.live.view import Live, Totals, Watched
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.replay import Replay
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.pacing import Pacer, groups


class Stage:
    """How a replay goes on, for the page; see live.view.Watched."""

    def __init__(self, pipeline: Pipeline, logs: list[str]) -> None:
        self.over = False
        self._pipeline = pipeline
        self._logs = logs
        self._busy_s = self._turn_s = 0.0

    def worked(self, spent_s: float) -> None:
        """One turn took so long."""
        self._busy_s += spent_s
        self._turn_s = max(self._turn_s, spent_s)

    def totals(self) -> Totals:
        """A log has samples, not messages."""
        samples, drops = self._pipeline.samples, self._pipeline.drops
        return Totals(sum(samples.values()), sum(drops.values()), 0, self._busy_s)

    def turn_s(self) -> float:
        """The longest turn since the last time."""
        turn_s, self._turn_s = self._turn_s, 0.0
        return turn_s

    def not_ready(self) -> list[str]:
        """Nothing more comes after the end."""
        return ["the log has ended"] if self.over else []

    def feeds(self) -> list[dict[str, Any]]:
        """The logs."""
        return [{"name": name, "connected": not self.over, "type": "log"} for name in self._logs]


async def show(replay: Replay, batches: Iterable[Batch], pacer: Pacer, port: int, logs: list[str]) -> bool:
    """Play everything on the page, then wait for Ctrl-C; False if that came before the end.

    Raises OSError when the port is taken.
    """
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    pipeline = replay.pipeline
    stage = Stage(pipeline, logs)
    settings = msgspec.structs.replace(pipeline.config.http, host="127.0.0.1", port=port, page=True)
    watched = Watched(
        pipeline,
        version("watchkeeper"),
        stage.totals,
        stage.turn_s,
        stage.not_ready,
        feeds=stage.feeds,
        recorded=True,
    )
    live = Live(watched, settings.viewers)
    replay.listeners.append(live.put)
    site = Site(live, settings)
    await site.start()
    print(f"look at it: {site.url}", file=sys.stderr, flush=True)
    playing = asyncio.create_task(_play(replay, batches, pacer, stage))
    waiting = asyncio.create_task(_wait(interrupted))
    try:
        await asyncio.wait([playing, waiting], return_when=asyncio.FIRST_COMPLETED)
        if playing.done():
            playing.result()
            await waiting
    finally:
        over = stage.over
        await end(playing, waiting)
        await site.stop()
    return over


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


async def _play(replay: Replay, batches: Iterable[Batch], pacer: Pacer, stage: Stage) -> None:
    for due_t, group in groups(batches, pacer.speed):
        # at full speed too everybody else has a turn after each batch
        await asyncio.sleep(pacer.delay_s(due_t) if math.isfinite(pacer.speed) else 0.0)
        began_s = time.perf_counter()
        replay.feed(group)
        stage.worked(time.perf_counter() - began_s)
    replay.finish()
    stage.over = True
