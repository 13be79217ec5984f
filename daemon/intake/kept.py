"""When the broker may forget a message: once the input log has it; without a log, once the pipeline has it.

    transport ─▶ Intake ─▶ Keeper ─ a worker thread writes ─▶ InputLog ─▶ acknowledge
                       └─▶ Pump ─ step ─▶ Keeper

What arrives is judged at once. The acknowledgement waits for the disk, and so do alarms: the log must have the input
that they follow from, or a restart would tell them otherwise. One write takes all that has arrived since the last one.
While the queue before the pipeline is full, nothing is acknowledged: a broker stops sending QoS 1 messages when enough
of them are unacknowledged, and keeps them.

A disk that does not take the log must not make us deaf: messages are then acknowledged as soon as they are queued, and
`health` says that a crash would lose them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import inf

from prometheus_client.core import Metric

from watchkeeper.daemon.families import gauge, total
from watchkeeper.daemon.intake.inputlog import FED, SETTLED, InputLog, Position, Step
from watchkeeper.daemon.intake.queue import Intake
from watchkeeper.daemon.logs import kv
from watchkeeper.streams.edge import Arrival

log = logging.getLogger(__name__)

# Items that may wait for a disk that does not answer; beyond that they are judged but not kept.
WAITING_MAX = 500_000
POLL_S = 0.002
# A write costs a change of threads, so a few messages wait this long for company. BUNCH of them are written at once: a
# broker may send no more until some are acknowledged, and mosquitto's own limit is 20.
GATHER_S = 0.012
BUNCH = 16
# A broker that waits this long for an acknowledgement may keep back what it has.
STALL_S = 0.25
NOT_WRITTEN = "not written"
OVERWRITTEN = "full"
# Stands for an item that is not in the log, so that the numbers of the others stay right.
_UNKEPT: Arrival = ("", b"", 0.0)


class Keeper:
    """Keeps what arrives and tells the broker so. All methods but `append` run on the event loop's thread."""

    def __init__(
        self,
        intake: Intake,
        input_log: InputLog | None,
        *,
        received: Callable[[], int],
        acknowledge: Callable[[int], None],
        wall_s: float = 0.0,
        bunch: int = BUNCH,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.troubles: dict[str, str] = {}
        self.errors = 0
        self.unkept = 0
        # called when the log is half full: a snapshot would make room
        self.on_pressure: Callable[[], None] = lambda: None
        # called when acknowledgements had to wait
        self.on_stall: Callable[[], None] = lambda: None
        self._intake = intake
        self._log = input_log
        self._received = received
        self._acknowledge = acknowledge
        self._wall_s = wall_s
        self._bunch = bunch
        self._now = now
        # while a few messages wait for company
        self._gathering: asyncio.TimerHandle | None = None
        self._disk = ThreadPoolExecutor(1, "input-log")
        self._fresh: list[Arrival] = []
        self._steps: list[Step] = []
        self._busy = False
        # when the disk was asked for what it has not answered yet
        self._asked_s = inf
        # the newest message that may be acknowledged, by the transport's count
        self._kept = 0
        # without a log: when the pipeline has this item, this message may be acknowledged
        self._mark = (0, 0)
        # what the pipeline contains, and the number of the last item of the runs before this one
        self.position = Position()
        self._before = 0
        # what the log contains
        self._on_disk = Position()

    def begin(self, at: Position, waiting: int = 0) -> None:
        """Numbers go on from here: the end of what earlier runs left, all in the pipeline but so many in the queue."""
        self._on_disk = at
        self._before = at.items - waiting
        self.position = Position(self._before, at.steps)
        self._intake.skip = self.other
        if self._log is not None:
            self._intake.keep = self._keep

    # -- what happens, from the intake and the pump ------------------------------------------------------------

    def _keep(self, arrival: Arrival) -> None:
        if len(self._fresh) >= WAITING_MAX:
            self.unkept += 1
            arrival = _UNKEPT
        self._fresh.append(arrival)
        if not self._busy:
            self._busy = True
            self._gathering = asyncio.get_running_loop().call_later(GATHER_S, self._write)
        if self._gathering is not None and len(self._fresh) >= self._bunch:
            self._gathering.cancel()
            self._gathering = None
            asyncio.get_running_loop().call_soon(self._write)

    def other(self) -> None:
        """A message was delivered that is not input: nothing to keep, but the broker waits for its acknowledgement."""
        if self._log is None:
            self._fed()
        elif not self._busy:
            self._busy = True
            asyncio.get_running_loop().call_soon(self._write)

    def step(self, what: str, t: float = 0.0, vehicle: str = "") -> None:
        """The pump has done this with all items that it has taken so far."""
        self.position = Position(self._before + self._intake.head, self.position.steps + 1)
        if self._log is None:
            self._fed()
            return
        self._steps.append(Step(self.position.items, what, t, vehicle))
        if what in (FED, SETTLED):
            # the next write will do for this one; there is room in the queue perhaps
            self._release()
        else:
            self._hurry()

    def _fed(self) -> None:
        item, message = self._mark
        if self._intake.head >= item:
            self._kept = max(self._kept, message)
            self._mark = (self._intake.received, self._received())
            self._release()

    def _release(self) -> None:
        if self._intake.full:
            self.on_stall()
        else:
            self._acknowledge(self._kept)

    # -- disk -------------------------------------------------------------------------------------------------

    def _write(self) -> None:
        self._gathering = None
        message = self._received()
        if not self._fresh and not self._steps:
            self._busy = False
            self._kept = message
            self._release()
            return
        assert self._log is not None
        self._renumber()
        items, steps = self._fresh.copy(), self._steps.copy()
        self._fresh.clear()
        self._steps.clear()
        written = asyncio.get_running_loop().run_in_executor(self._disk, self._log.append, items, steps, self._wall_s)
        self._asked_s = self._now()
        written.add_done_callback(partial(self._written, message, len(items), len(steps)))

    def _renumber(self) -> None:
        """Follow the log into another directory. Not while the disk is asked for something."""
        if self._log is None or not self._log.is_elsewhere:
            return
        shift = self._log.renumber()
        self._before += shift
        self.position, self._on_disk = (
            Position(at.items + shift, at.steps + shift) for at in (self.position, self._on_disk)
        )
        self._steps = [step._replace(after=step.after + shift) for step in self._steps]

    async def settled(self) -> None:
        """Return when `position` is one of the directory that is there now."""
        while self._log is not None and self._log.is_elsewhere:
            if self._asked_s == inf:
                self._renumber()
            else:
                await asyncio.sleep(POLL_S)

    @property
    def stalled(self) -> bool:
        """Whether the broker has waited for us for a while now."""
        return self._now() - self._asked_s >= STALL_S

    def _written(self, message: int, items: int, steps: int, written: asyncio.Future[None]) -> None:
        if self.stalled:
            self.on_stall()
        self._asked_s = inf
        if written.cancelled():
            return
        error = written.exception()
        if error is None:
            self._recovered(NOT_WRITTEN)
        else:
            self.errors += 1
            self.unkept += items
            self._failed(NOT_WRITTEN, getattr(error, "strerror", None) or str(error) or type(error).__name__)
        self._on_disk = Position(self._on_disk.items + items, self._on_disk.steps + steps)
        self._kept = message
        self._release()
        assert self._log is not None
        if self._log.bytes > self._log.max_bytes // 2:
            self.on_pressure()
        if self._log.overwritten:
            self._failed(
                OVERWRITTEN, "the oldest input was deleted before a snapshot had it; a crash now would lose it"
            )
        self._busy = bool(self._fresh)
        if self._busy:
            self._write()

    def _failed(self, what: str, said: str) -> None:
        # a disk that stays full is one line in the log
        if self.troubles.get(what) != said:
            log.error("input log", extra=kv(problem=f"{what}: {said}"))
        self.troubles[what] = said

    def _recovered(self, what: str) -> None:
        if self.troubles.pop(what, None) is not None:
            log.info("input log well again", extra=kv(was=what))

    async def written(self) -> None:
        """Return when the log has everything that the pipeline has or gets now, or when the disk does not take it."""
        wanted = Position(self._before + self._intake.head, self.position.steps)
        while self._log is not None and not self._has(wanted) and NOT_WRITTEN not in self.troubles:
            self._hurry()
            await asyncio.sleep(POLL_S)

    def _has(self, wanted: Position) -> bool:
        """Whether the log has these items and these steps: more of one does not make up for the other."""
        return self._on_disk.items >= wanted.items and self._on_disk.steps >= wanted.steps

    def _hurry(self) -> None:
        if self._gathering is not None:
            self._gathering.cancel()
            self._write()
        elif not self._busy:
            self._busy = True
            self._write()

    def saved(self, position: Position) -> None:
        """Everything up to this position is in the snapshots on disk, in each of them."""
        if self._log is not None:
            self._log.overwritten = 0
            self._recovered(OVERWRITTEN)
            # the disk is back, and what it did not take is in the snapshot
            self._recovered(NOT_WRITTEN)
            self._disk.submit(self._log.trim, position)

    async def flush(self) -> None:
        """Return when everything that has arrived is in the log and acknowledged; without a log, when it is fed."""
        if self._log is None:
            self._kept = self._received()
        while self._busy or self._fresh or self._steps:
            self._hurry()
            await asyncio.sleep(POLL_S)
        self._release()

    def close(self) -> None:
        """Wait for the disk and give the files back."""
        self._disk.shutdown()
        if self._log is not None:
            self._log.close()

    def health(self) -> list[str]:
        """Why what we hear would not survive a crash; empty when it would, or when nothing is to be kept."""
        return [f"{what}: {said}" for what, said in sorted(self.troubles.items())]

    def metrics(self) -> Iterator[Metric]:
        """For Prometheus; zeros without a log."""
        yield gauge("input_log_bytes", "Size of the input log", self._log.bytes if self._log else 0)
        yield total("input_log_errors", "Writes to the input log that failed", self.errors)
        yield total("input_unkept", "Messages that were judged but are not in the input log", self.unkept)
