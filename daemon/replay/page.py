"""A replay with an audience: recorded logs through the pipeline into the history, and the live page to look at it.

The log is read at full speed; what the page shows is the history, played back at the wanted speed (playback.py): it can
be paused, and moved to any moment that has been read. Alarms and outputs are those of any replay, byte for byte. When
everything has been read the page stays, with the whole log to search and open, until Ctrl-C.
"""

from __future__ import annotations

import asyncio
import math
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from watchkeeper.daemon.background import end
from watchkeeper.daemon.history.history import FILE, History
from watchkeeper.daemon.history.reader import NoHistoryError, era_of
from watchkeeper.daemon.http.api.playback import Playback
from watchkeeper.daemon.http.api.served import Served
from watchkeeper.daemon.http.server import Site
from watchkeeper.daemon.live.view import Totals, Watched
from watchkeeper.daemon.replay.recorded import RecordedLive
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.replay import Replay
from watchkeeper.streams.batch import Batch, slice_batch
from watchkeeper.streams.logs.chunks import numbered

# As long as history.hours may be: a year.
MOST_HOURS = 8760.0
# How long one piece of a log should take: an answer over HTTP waits for some of them. A batch of a sparse log may be
# hours of flight, and took half a minute.
PIECE_S = 0.03
# Samples of a piece: at first, at least, and at most, which is what files are read by.
FIRST, LEAST, MOST = 256, 8, 8192


class Stage:
    """How a replay goes on, for the page; see live.view.Watched."""

    def __init__(self, pipeline: Pipeline, logs: list[str]) -> None:
        self.over = False
        self.playback: Playback | None = None
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
        return ["the log has ended"] if self.playback is not None and self.playback.at_end else []

    def feeds(self) -> list[dict[str, Any]]:
        """The logs."""
        return [{"name": name, "connected": not self.over, "type": "log"} for name in self._logs]


async def show(
    replay: Replay, batches: Iterable[Batch], speed: float, port: int, logs: list[str], kept: Path | None = None
) -> bool:
    """Read everything into the history, play it on the page, then wait for Ctrl-C; False if that came before the end.

    `kept` is the history's file; without it there is one that is gone afterwards. Raises OSError: the port is taken.
    """
    with ExitStack() as stack:
        path = kept or Path(stack.enter_context(TemporaryDirectory(prefix="watchkeeper-"))) / FILE
        # a log is kept from its beginning, however long it is; its size is limited as ever
        settings = msgspec.structs.replace(replay.pipeline.config.history, hours=MOST_HOURS)
        history = History(path, settings, replay.pipeline, patient=True)
        stack.callback(history.close)
        history.start()
        return await _show(replay, batches, speed, port, logs, history)


async def _show(
    replay: Replay, batches: Iterable[Batch], speed: float, port: int, logs: list[str], history: History
) -> bool:
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    pipeline = replay.pipeline
    stage = Stage(pipeline, logs)
    stage.playback = playback = Playback(partial(_extent, history), speed)
    settings = msgspec.structs.replace(pipeline.config.http, host="127.0.0.1", port=port, page=True)
    watched = Watched(
        pipeline,
        version("watchkeeper"),
        stage.totals,
        stage.turn_s,
        stage.not_ready,
        history.health,
        stage.feeds,
        recorded=True,
    )
    live = RecordedLive(watched, settings.viewers, history, playback)
    history.show_on(live)
    replay.watchers.append(history.recorder.take)
    replay.listeners += [history.put, live.put]
    site = Site(Served(live, lambda: pipeline.config, history, playback), settings)
    await site.start()
    print(f"look at it: {site.url}", file=sys.stderr, flush=True)
    playing = asyncio.create_task(_read(replay, batches, stage, history))
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


def _extent(history: History) -> tuple[float, float]:
    """How far the history reaches."""
    try:
        era = history.reader.use(lambda db: era_of(db, None))
    except NoHistoryError:
        era = None
    return (era.t_first, era.t_last) if era is not None else (-math.inf, -math.inf)


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


def _next_size(size: int, took_s: float) -> int:
    """How many samples the next piece has, when one of `size` took so long.

    >>> _next_size(256, 1.0), _next_size(256, 0.001), _next_size(256, 0.02), _next_size(LEAST, 9.0)
    (128, 512, 256, 8)
    """
    if took_s > PIECE_S:
        return max(LEAST, size // 2)
    return min(MOST, 2 * size) if took_s < PIECE_S / 4 else size


async def _read(replay: Replay, batches: Iterable[Batch], stage: Stage, history: History) -> None:
    size = FIRST
    for batch in map(numbered, batches):
        at = 0
        while at < len(batch):
            # everybody else has a turn after each piece
            await asyncio.sleep(0.0)
            began_s = time.perf_counter()
            replay.feed(slice_batch(batch, at, at + size))
            took_s = time.perf_counter() - began_s
            stage.worked(took_s)
            at += size
            size = _next_size(size, took_s)
    replay.finish()
    stage.over = True
    await history.flush()
    assert stage.playback is not None
    stage.playback.read = True
