"""The journal as the first stage of every alarm event: written here, and only then handed on to the other sinks.

    AlarmRouter.submit ─▶ JournalSink ─ a worker thread writes ─▶ hand_on: all other sinks

A crash after that loses nothing: the event is read again at the next start. An event that the disk does not take, or
has not taken within PATIENCE_S, is handed on all the same, because people must hear of it; it is tried again with the
next event and every RETRY_S, and until it is written the daemon is not ready. Every RETRY_S the journal also looks
after its files: one that was deleted or replaced is written again.

Each step calls the next one instead of waking a task: behind a backlog every turn of the event loop is long, and an
alarm must not wait for three of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from watchkeeper.config.schema import Config, Sinks
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.outputs.base import Context, Declaration
from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.daemon.outputs.journal_file import Numbered
from watchkeeper.daemon.outputs.journal_past import ENDED_MAX
from watchkeeper.detectors.alarms.events import AlarmEvent

log = logging.getLogger(__name__)

RETRY_S = 2.0
# A disk that takes longer (a network share whose server is gone) must not hold up an alarm.
PATIENCE_S = 2.0

# An event, and when the message that caused it arrived (monotonic), if one did.
Arrived = tuple[AlarmEvent, float | None]
# The same with the event's number in the journal.
Recorded = tuple[int, AlarmEvent, float | None]
# Takes events that are in the journal.
HandOn = Callable[[Sequence[Recorded]], None]


class JournalSink:
    """One journal. `hand_on` is set by the router; `close` gives the files back."""

    name = "journal"
    refused = 0

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.hand_on: HandOn = lambda _recorded: None
        self.repeats = 0
        # journal calls may wait for the disk, and must not overlap
        self._disk = ThreadPoolExecutor(1, "journal")
        self._inbox: deque[Recorded] = deque()
        self._writing = 0
        self._busy = False
        # the disk does not answer: what came since, the latest of each alarm
        self._stuck = False
        self._late: dict[str, Numbered] = {}
        self._replaced = 0
        # events written, waiting and replaced in the journal, as of the worker's last answer
        self._counts = self._count()
        # the last number that is confirmed, and whether a worker will note it
        self._confirmed = 0
        self._noting = False
        # set while `run` is on: what ends it
        self._failure: asyncio.Future[None] | None = None

    @property
    def delivered(self) -> int:
        """Events in the file."""
        return self._counts[0]

    @property
    def failures(self) -> int:
        """Writes that failed."""
        return self.journal.errors

    @property
    def dropped(self) -> int:
        """Events that were not written because a later one of the same alarm came before the disk was back."""
        return self._counts[2] + self._replaced

    @property
    def waiting(self) -> int:
        """Events that are not in the file."""
        return len(self._inbox) + self._writing + len(self._late) + self._counts[1]

    def health(self) -> list[str]:
        """What the disk last said, if it was no."""
        stuck = ["not written: the disk does not answer"] if self._stuck else []
        return stuck or [f"{what}: {error}" for what, error in sorted(self.journal.troubles.copy().items())]

    def put(self, event: AlarmEvent) -> None:
        """One event that no message caused."""
        self.submit([(event, None)])

    def submit(self, arrived: Iterable[Arrived]) -> None:
        """Take over these events; returns at once. They have their numbers, which a snapshot tells, from now on."""
        for event, arrived_s in arrived:
            if self.journal.is_repeat(event):
                self.repeats += 1
            else:
                [(number, _)] = self.journal.take([event])
                self._inbox.append((number, event, arrived_s))
        self._write()

    def confirm(self, number: int) -> None:
        """The confirming sink's receiver has every event up to this one."""
        self._confirmed = max(self._confirmed, number)
        if not self._noting:
            self._noting = True
            self._disk.submit(self._note_confirmed)

    def _note_confirmed(self) -> None:
        self._noting = False
        self.journal.confirm(self._confirmed)

    async def run(self) -> None:
        """Task: write, and see to the files; what goes wrong further down, where no task looks, ends it."""
        self._failure = asyncio.get_running_loop().create_future()
        self._write()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_S):
                    await asyncio.shield(self._failure)
            if not self._busy:
                self._ask(self.journal.tend, [])

    async def flush(self) -> None:
        """Return when every event has been written and handed on, or could not be written."""
        while self._inbox or (self._busy and not self._stuck):
            await asyncio.sleep(0.005)

    def close(self) -> None:
        """Wait for the disk, unless it does not answer, and release the files."""
        self._disk.shutdown(wait=not self._stuck)
        if not self._stuck:
            self.journal.close()

    def _write(self) -> None:
        """Have the journal take what is in the inbox, unless it is still busy."""
        if self._failure is None or (self._busy and not self._stuck) or not (self._inbox or self._late):
            return
        fresh = list(self._inbox)
        self._inbox.clear()
        numbered = [(number, event) for number, event, _ in fresh]
        if self._stuck:
            self._put_off(numbered)
            self.hand_on(fresh)
            return
        events, self._late = [*self._late.values(), *numbered], {}
        self._writing = len(events)
        self._ask(partial(self.journal.put, events), fresh)

    def _ask(self, work: Callable[[], Sequence[AlarmEvent]], taken: list[Recorded]) -> None:
        """Have the worker do this, and hand these events on when it is done or takes too long."""
        self._busy = True
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._disk, work)
        patience = loop.call_later(PATIENCE_S, self._out_of_patience, taken)
        done.add_done_callback(partial(self._answered, taken, patience))

    def _count(self) -> tuple[int, int, int]:
        return self.journal.written, self.journal.missed, self.journal.replaced

    def _put_off(self, numbered: list[Numbered]) -> None:
        """Write these when the disk answers again."""
        for one in numbered:
            self._replaced += self._late.pop(one[1].id, None) is not None
            self._late[one[1].id] = one
        while len(self._late) > ENDED_MAX + len(self.journal.active):
            del self._late[next(iter(self._late))]
            self._replaced += 1

    def _out_of_patience(self, taken: list[Recorded]) -> None:
        self._stuck = True
        log.error("journal not written", extra=kv(what="not written", error="the disk does not answer"))
        self._then(lambda: self.hand_on(taken))

    def _answered(
        self,
        taken: list[Recorded],
        patience: asyncio.TimerHandle,
        done: asyncio.Future[Sequence[AlarmEvent]],
    ) -> None:
        patience.cancel()
        was_stuck, self._stuck, self._busy, self._writing = self._stuck, False, False, 0
        self._counts = self._count()
        if done.cancelled():
            return
        if was_stuck:
            log.info("journal written again", extra=kv(what="not written"))

        def step() -> None:
            if taken and not was_stuck:
                self.hand_on(taken)
            self.submit([(event, None) for event in done.result()])

        self._then(step)

    def _then(self, step: Callable[[], None]) -> None:
        """Take a step, and go on writing."""
        try:
            step()
            self._write()
        except Exception as error:  # nobody awaits a callback: `run` must end with what went wrong here
            if self._failure is not None and not self._failure.done():
                self._failure.set_exception(error)


def _asked(config: Config) -> list[Sinks]:
    return [config.sinks] if config.sinks.state_dir else []


def make(settings: Sinks, context: Context) -> JournalSink:
    """The journal in the state directory."""
    assert context.state_dir is not None, "without a state directory there is no journal"
    check = context.state.check if context.state is not None else lambda: ""
    return JournalSink(Journal(context.state_dir, fsync=settings.journal_fsync, check=check))


JOURNAL = Declaration(
    name="journal",
    help="every event in a file of the state directory, before any other sink has it",
    settings=Sinks,
    make=make,
    asked=_asked,
)
