"""At the start: what earlier runs took in after their last snapshot goes through the same decoder and pipeline again.

The steps in the input log repeat what the pump did, slice by slice, so the pipeline comes out as it was at the crash,
with the same alarms. The journal knows which of them were told already, and lets only the others through. What waited
for senders that were not back yet waits again.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from watchkeeper.daemon.intake.inputlog import (
    ACCEPTED,
    ADVANCED,
    AWAY,
    FED,
    PAUSED,
    SETTLED,
    STALLED,
    Block,
    InputLog,
    Position,
)
from watchkeeper.daemon.intake.kept import Keeper
from watchkeeper.daemon.intake.pump import Pump
from watchkeeper.daemon.intake.recent import Recent
from watchkeeper.daemon.logs import kv
from watchkeeper.streams.edge import Arrival

log = logging.getLogger(__name__)


async def relive(
    pump: Pump,
    keeper: Keeper,
    input_log: InputLog,
    since: Position,
    stopping: Callable[[], bool],
    waiting: bytes = b"",
) -> float | None:
    """Put everything that the log has after `since` through the pump; None when `stopping` cut it short.

    `waiting`: what the snapshot has of that itself, see `pack_waiting`.

    Returns when the last item arrived, in wall time; 0: the log does not know.
    """
    began = time.monotonic()
    again, lost = _Again(pump, since), (0, 0)
    # the log's items have wall times: monotonic clocks of earlier runs mean nothing now
    offset_s, pump.edge.wall_offset_s = pump.edge.wall_offset_s, 0.0
    input_log.on_block = partial(_see, pump.intake.recent, again)
    for block in input_log.blocks(since, waiting):
        if (input_log.missing, input_log.gaps) != lost:
            # nobody was silent in what is lost
            lost = input_log.missing, input_log.gaps
            pump.pipeline.away()
        await again.repeat(block)
        await asyncio.sleep(0)
        if stopping():
            return None
    if (input_log.missing, input_log.gaps) != lost:
        pump.pipeline.away()
    rest = await again.feed(min(input_log.end.items, again.paused_after))
    await pump.settle()
    pump.edge.wall_offset_s = offset_s
    left = again.left(offset_s)
    pump.put_back(left)
    keeper.begin(input_log.end, len(left))
    pump.intake.recent.look()
    if rest:
        keeper.step(FED)
    notes = input_log.notes()
    if again.items or notes:
        seconds = round(time.monotonic() - began, 2)
        log.info("input log read", extra=kv(items=again.items, seconds=seconds, torn=input_log.torn))
    if notes:
        log.error("input log damaged: what is missing was acknowledged and is lost", extra=kv(problem="; ".join(notes)))
    return again.heard_s


def _see(recent: Recent, again: _Again, block: Block) -> None:
    """The broker may deliver these again; and the last of them may wait."""
    for topic, payload, _ in block.items:
        if topic:
            recent.note(topic, payload)
    again.look(block)


class _Again:
    """Items that wait for the step that they belong to."""

    def __init__(self, pump: Pump, since: Position) -> None:
        self.items = 0
        self.heard_s = 0.0
        # the items after this one wait for senders that are not back
        self.paused_after = sys.maxsize
        self._pump = pump
        self._since = since
        self._waiting: deque[tuple[int, Arrival]] = deque()

    def look(self, block: Block) -> None:
        """Whether the last run had paused, and since when; also from what a snapshot contains."""
        for step in block.steps:
            if step.what == PAUSED:
                self.paused_after = min(self.paused_after, step.after)
            elif step.what in (FED, SETTLED) and step.after > self.paused_after:
                self.paused_after = sys.maxsize

    def left(self, wall_s: float) -> list[Arrival]:
        """What was not fed, with arrival times in a clock that is so far from wall time."""
        return [(topic, payload, arrived_s - wall_s) for _, (topic, payload, arrived_s) in self._waiting]

    async def repeat(self, block: Block) -> None:
        """Do again what a block tells."""
        for number, (topic, payload, arrived_s) in enumerate(block.items, block.first_item):
            self.heard_s = arrived_s + block.wall_s
            if number > self._since.items and (topic or payload):
                self._waiting.append((number, (topic, payload, arrived_s + block.wall_s)))
        for number, step in enumerate(block.steps, block.first_step):
            if number <= self._since.steps:
                continue
            if step.what in (FED, SETTLED):
                await self.feed(step.after, settled_t=step.t if step.what == SETTLED else None)
            elif step.what == ADVANCED:
                self._pump.advance(step.t)
            elif step.what == AWAY:
                self._pump.pipeline.away()
            elif step.what == STALLED:
                self._pump.edge.resume()
            elif step.what == ACCEPTED:
                self._pump.accept(step.vehicle)

    async def feed(self, up_to: int, *, settled_t: float | None = None) -> int:
        """Feed what waits, up to an item's number, as one slice; how many."""
        arrivals: list[Arrival] = []
        while self._waiting and self._waiting[0][0] <= up_to:
            arrivals.append(self._waiting.popleft()[1])
        if arrivals:
            self.items += len(arrivals)
            await self._pump.repeat(arrivals, settled_t=settled_t)
        return len(arrivals)
