"""The journal as the first stage of every alarm event: written here, and only then handed on to the other sinks.

    AlarmRouter.submit ─▶ JournalSink ─ a worker thread writes ─▶ hand_on: all other sinks

A crash after that loses nothing: the event is read again at the next start. An event that the disk does not take is
handed on all the same, because people must hear of it; it is tried again with the next event and every RETRY_S, and
until it is written the daemon is not ready.

Each step calls the next one instead of waking a task: behind a backlog every turn of the event loop is long, and an
alarm must not wait for three of them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from watchkeeper.config.schema import Config, Sinks
from watchkeeper.daemon.outputs.base import Context, Declaration
from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.detectors.alarms.events import AlarmEvent

RETRY_S = 2.0

# An event, and when the message that caused it arrived (monotonic), if one did.
Arrived = tuple[AlarmEvent, float | None]
# Takes events that are in the journal, and the number of the last of them.
HandOn = Callable[[Sequence[Arrived], int], None]


class JournalSink:
    """One journal. `hand_on` is set by the router; `close` gives the files back."""

    name = "journal"
    refused = 0

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.hand_on: HandOn = lambda _arrived, _last: None
        self.repeats = 0
        # journal calls may wait for the disk, and must not overlap
        self._disk = ThreadPoolExecutor(1, "journal")
        self._inbox: deque[Arrived] = deque()
        self._writing = 0
        self._busy = False
        # set while `run` is on: what ends it
        self._failure: asyncio.Future[None] | None = None

    @property
    def delivered(self) -> int:
        """Events in the file."""
        return self.journal.written

    @property
    def failures(self) -> int:
        """Writes that failed."""
        return self.journal.errors

    @property
    def dropped(self) -> int:
        """Events that were not written because a later one of the same alarm came before the disk was back."""
        return self.journal.replaced

    @property
    def waiting(self) -> int:
        """Events that are not in the file."""
        return len(self._inbox) + self._writing + self.journal.missed

    def health(self) -> list[str]:
        """What the disk last said, if it was no."""
        return [f"{what}: {error}" for what, error in sorted(self.journal.troubles.copy().items())]

    def put(self, event: AlarmEvent) -> None:
        """One event that no message caused."""
        self.submit([(event, None)])

    def submit(self, arrived: Iterable[Arrived]) -> None:
        """Take over these events; returns at once."""
        self._inbox.extend(arrived)
        self._write()

    def confirm(self, number: int) -> None:
        """The confirming sink's receiver has every event up to this one."""
        self._disk.submit(self.journal.confirm, number)

    async def run(self) -> None:
        """Task: write; what goes wrong further down, where no task looks, ends it."""
        self._failure = asyncio.get_running_loop().create_future()
        self._write()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_S):
                    await asyncio.shield(self._failure)
            if self.journal.troubles and not self._busy:
                await asyncio.get_running_loop().run_in_executor(self._disk, self.journal.retry)

    async def flush(self) -> None:
        """Return when every event has been written and handed on, or could not be written."""
        while self._inbox or self._busy:
            await asyncio.sleep(0.005)

    def close(self) -> None:
        """Wait for the disk and release the files."""
        self._disk.shutdown()
        self.journal.close()

    def _write(self) -> None:
        """Have the journal take what is in the inbox, unless it is still busy."""
        if self._failure is None or self._busy or not self._inbox:
            return
        taken = list(self._inbox)
        self._inbox.clear()
        fresh = [pair for pair in taken if not self.journal.is_repeat(pair[0])]
        self.repeats += len(taken) - len(fresh)
        self._busy, self._writing = True, len(fresh)
        events = [event for event, _ in fresh]
        written = asyncio.get_running_loop().run_in_executor(self._disk, self.journal.append, events)
        written.add_done_callback(partial(self._written, fresh))

    def _written(self, taken: list[Arrived], written: asyncio.Future[int]) -> None:
        self._busy, self._writing = False, 0
        if written.cancelled():
            return
        try:
            self.hand_on(taken, written.result())
            self._write()
        except Exception as error:  # nobody awaits a callback: `run` must end with what went wrong here
            if self._failure is not None and not self._failure.done():
                self._failure.set_exception(error)


def _asked(config: Config) -> list[Sinks]:
    return [config.sinks] if config.sinks.state_dir else []


def make(settings: Sinks, context: Context) -> JournalSink:
    """The journal in the state directory; StateError or OSError: it cannot be opened."""
    assert context.state_dir is not None, "without a state directory there is no journal"
    return JournalSink(Journal(context.state_dir, fsync=settings.journal_fsync))


JOURNAL = Declaration(
    name="journal",
    help="every event in a file of the state directory, before any other sink has it",
    settings=Sinks,
    make=make,
    asked=_asked,
)
