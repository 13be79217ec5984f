"""The journal: every alarm event written before anybody hears of it, so that a crash loses and repeats nothing.

Its files are in journal_file.py. Read at the start (journal_past.py): the last event of each alarm that is not cleared
says what is active, and raised and cleared events that the broker never confirmed are sent again.

An event that the disk does not take waits in memory, the latest of each alarm, and is written with the next ones.
A file that was deleted or replaced, that is damaged, or of which a sync failed is written again as a whole.

Written means handed to the operating system: it survives whatever happens to this process. With `fsync` the disk is
told to keep each event as well, in parallel and not before it: a disk may take a second over that, and an alarm
must not wait for it. A power cut can lose what was written while the disk was busy with the sync before.

Rotation, at `max_bytes`: the new file starts with the last event of every active alarm, the unconfirmed raises and ends
and the ends of the last minute, so it stands alone; the old file stays for people. One of them is always whole under
the name, whenever the power goes.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.outputs.journal_file import JournalFile, Numbered
from watchkeeper.daemon.outputs.journal_past import ENDED_MAX, Past, identity, read_past
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, UPDATED, AlarmEvent
from watchkeeper.detectors.sentence import ended_as

log = logging.getLogger(__name__)

# About 100,000 events; with the file before it, the disk holds at most twice this.
MAX_BYTES = 64 * 1024 * 1024
# Without a snapshot, how much event time the broker may deliver to us again.
RELIVED_S = 60.0
# Times of events are rounded to the millisecond, that of a snapshot is not.
SAME_S = 1e-3

NOT_WRITTEN, NOT_ON_DISK, NOT_NOTED = "not written", "not on disk", "journal.sent not written"


class Journal:
    """The events of one daemon, in memory and on disk.

    `take`, `is_repeat` and `adopt` belong to the event loop and never wait. `put`, `confirm` and `tend` may wait for
    the disk: call them from one worker thread, never in parallel. `check` says why the directory cannot be used now.
    """

    def __init__(
        self, state_dir: Path, *, fsync: bool, max_bytes: int = MAX_BYTES, check: Callable[[], str] = lambda: ""
    ) -> None:
        self.fsync = fsync
        self.max_bytes = max_bytes
        self.errors = 0
        self.rotations = 0
        self.written = 0
        self.replaced = 0
        # what cannot be done now, and what the disk says
        self.troubles: dict[str, str] = {}
        self._check = check
        self._away = ""
        self._file = JournalFile(state_dir, self._synced)
        self.past = read_past(self._file.path, self._file.sent_path)
        self._file.stale = self.past.renew
        # of the event loop: what is active, and the number of the last event
        self.active = {event.id: event for event in self.past.active}
        self.number = self.past.last
        self._numbering = threading.Lock()
        # of the worker: events up to this one are in the file, or the disk did not take them
        self.tried = self.number
        # ended before the restart; the last event of each alarm that was up then
        self._over: frozenset[str] = frozenset()
        # ends at the very time of the snapshot, which may have been told after it was taken: a person accepted a state
        self._just_over: dict[str, AlarmEvent] = {}
        self._relived: dict[str, AlarmEvent] = {}
        # of the worker: the last event of each active alarm, raises and ends that are not confirmed, recent ends
        self._lines = {event.id: (self.past.numbers[event.id], event) for event in self.past.active}
        self._unsent: dict[int, AlarmEvent] = dict(self.past.unsent)
        self._ended: deque[Numbered] = deque(zip(self.past.ended_numbers, self.past.ended, strict=True), ENDED_MAX)
        self._t_last = self.past.t_last
        # the latest event of each alarm that the disk did not take
        self._missed: dict[str, Numbered] = {}
        self._sent = self.past.sent
        self._rotate_at = max_bytes
        self.tend()

    # -- the event loop's ---------------------------------------------------------------------------------------

    def resume(self, t: float | None) -> None:
        """Say from which event time on the pipeline lives again what the journal already tells; None: not known."""
        since = self.past.t_last - RELIVED_S if t is None else t
        self._over = frozenset(event.id for event in self.past.ended if event.t > since)
        self._just_over = {event.id: event for event in self.past.ended if abs(event.t - since) <= SAME_S}
        self._relived = {event.id: event for event in self.past.active}

    def is_repeat(self, event: AlarmEvent) -> bool:
        """True if this was told before the restart, or would raise an alarm that is up."""
        if event.id in self._over:
            return True
        if event.state == CLEARED and (told := self._just_over.get(event.id)) is not None:
            return event.t == told.t and event.ended == told.ended
        if event.state == RAISED:
            return event.id in self.active
        last = self._relived.get(event.id)
        return event.state == UPDATED and last is not None and (event.t < last.t or event == last)

    def take(self, events: Sequence[AlarmEvent]) -> list[Numbered]:
        """Number these events, in order; they count from now on, whether the disk takes them or not."""
        with self._numbering:
            first = self.number + 1
            self.number += len(events)
        for event in events:
            if event.state == CLEARED:
                self.active.pop(event.id, None)
            else:
                self.active[event.id] = event
                # raised once more, by a simulation that began again: it ends once more
                self._just_over.pop(event.id, None)
        return list(enumerate(events, first))

    def skip(self, number: int) -> None:
        """At the start: events up to this number were written once, though the journal has lost them."""
        self.number = self.tried = max(self.number, number)

    def adopt(self, events: Sequence[AlarmEvent]) -> None:
        """At the start: active alarms that the journal has lost and the snapshot still knows."""
        self.past.active += events
        if events:
            self.append(events)

    # -- the worker's -------------------------------------------------------------------------------------------

    def append(self, events: Sequence[AlarmEvent]) -> int:
        """Number and write these events; the number of the last."""
        self.write(self.take(events))
        return self.number

    def write(self, events: Sequence[Numbered]) -> None:
        """Write these events, all or none, after those that failed before.

        A disk that does not take them is counted and logged, never raised: such an alarm must still be heard.
        """
        for numbered in events:
            self._note(numbered)
        try:
            if self._away:
                raise OSError(0, self._away)
            self._put([*self._missed.values(), *events])
        except OSError as error:
            self._failed(NOT_WRITTEN, error)
            self._miss(events)
            return
        finally:
            self.tried = max(self.tried, *(seq for seq, _ in events), 0)
        self.written += len(events) + len(self._missed)
        self._missed = {}
        self._mended(NOT_WRITTEN)
        self._note_sent()

    def put(self, events: Sequence[Numbered]) -> Sequence[AlarmEvent]:
        """Write these events, into the file that has the journal's name now; what `tend` has to send."""
        self.write(events)
        return () if self._file.is_current else self.tend()

    def confirm(self, number: int) -> None:
        """The broker has every event up to this one."""
        self._sent = max(self._sent, number)
        while self._unsent and next(iter(self._unsent)) <= number:
            del self._unsent[next(iter(self._unsent))]
        self._note_sent()

    def tend(self) -> list[AlarmEvent]:
        """Look after the files: try again what failed, and write all again when they were deleted or replaced.

        Events to send: ends of alarms that a journal from before this run, found only now, has as active.
        """
        self._away = self._check()
        if self._away:
            # the directory has said so in the log
            self.troubles[NOT_WRITTEN] = self._away
            return []
        if not self._file.is_current:
            return self._reopen()
        if self._missed or self._file.stale or NOT_WRITTEN in self.troubles:
            self.write([])
        if NOT_NOTED in self.troubles or not self._file.is_sent_current:
            self._note_sent()
        return []

    def close(self) -> None:
        """Release the files; with `fsync`, what was appended is on disk."""
        self._file.close()

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._file.path

    @property
    def missed(self) -> int:
        """Events that wait for the disk."""
        return len(self._missed)

    @property
    def size_bytes(self) -> int:
        """Length of the present file."""
        return self._file.size

    def _note(self, numbered: Numbered) -> None:
        seq, event = numbered
        self._t_last = max(self._t_last, event.t)
        if event.state != UPDATED:
            self._unsent[seq] = event
            if len(self._unsent) > ENDED_MAX:
                del self._unsent[next(iter(self._unsent))]
        if event.state != CLEARED:
            self._lines[event.id] = numbered
            return
        self._lines.pop(event.id, None)
        self._ended.append(numbered)

    def _miss(self, events: Sequence[Numbered]) -> None:
        for numbered in events:
            self.replaced += self._missed.pop(numbered[1].id, None) is not None
            self._missed[numbered[1].id] = numbered
        while len(self._missed) > ENDED_MAX + len(self._lines):
            del self._missed[next(iter(self._missed))]
            self.replaced += 1

    def _put(self, events: Sequence[Numbered]) -> None:
        """Append, or begin a new file. OSError: none of them is written."""
        file = self._file
        if not file.is_open or file.stale:
            self._begin(events)
            return
        if file.size >= self._rotate_at:
            try:
                self._begin(events)
                return
            except OSError as error:
                # there may still be room for a line
                log.warning("journal not rotated", extra=kv(problem=error.strerror))
                self._rotate_at = file.size + self.max_bytes // 4
        if events:
            file.append(sorted(events, key=lambda numbered: numbered[0]))
            if self.fsync:
                file.sync_soon()

    def _begin(self, events: Sequence[Numbered]) -> None:
        recent = [numbered for numbered in self._ended if numbered[1].t >= self._t_last - RELIVED_S]
        first = not self._file.is_open
        self._file.write_again([*self._unsent.items(), *recent, *self._lines.values(), *events], self.past.spoilt)
        self.past.spoilt.clear()
        self.rotations += not first
        # many active alarms must not make every append a rotation
        self._rotate_at = max(self.max_bytes, 2 * self._file.size)
        self._mended(NOT_ON_DISK)

    def _reopen(self) -> list[AlarmEvent]:
        """Open or write the file, whatever is in its place now."""
        ends: list[AlarmEvent] = []
        if self._file.is_open or self.past.unread or identity(self._file.path) != self.past.identity:
            found = read_past(self._file.path, self._file.sent_path)
            if found.unread is not None and not self._put_away(found.unread):
                self._failed(NOT_WRITTEN, found.unread)
                return []
            ends = self._strange(found)
            with self._numbering:
                self.number = max(self.number, found.last)
            self.past.unread = None
            log.warning("journal was deleted, replaced or away; written again", extra=kv(active=len(self._lines)))
            self._file.stale = True
        elif not self._file.stale and self.past.identity[0]:
            try:
                self._file.go_on(self.past.last)
            except OSError as error:
                self._failed(NOT_WRITTEN, error)
                return []
        self.write([])
        return ends

    def _put_away(self, problem: OSError) -> bool:
        """Rename a file that the disk cannot read, so that another can take its place; False: not that kind."""
        if isinstance(problem, PermissionError):
            return False
        try:
            self._file.path.rename(self._file.path.with_name("journal.unreadable"))
        except OSError:
            return False
        log.error("journal cannot be read, renamed to journal.unreadable", extra=kv(problem=problem.strerror))
        return True

    def _strange(self, found: Past) -> list[AlarmEvent]:
        """Events about alarms that a file which this run did not write has as active: for us they are over."""
        over = {event.id for _, event in self._ended}
        strange = [event for event in found.active if event.id not in self._lines and event.id not in over]
        ends = [ended_as(event, "not_resumed") for event in strange]
        # an alarm of ours about the same subject is on the same topic, which the end removes
        places = {(event.kind, event.subjects) for event in strange}
        ours = [event for _, event in self._lines.values() if (event.kind, event.subjects) in places]
        unsent = [event for _, event in found.unsent if event.state == CLEARED and event.id not in over]
        return [*unsent, *ends, *(msgspec.structs.replace(event, state=UPDATED) for event in ours)]

    def _note_sent(self) -> None:
        # next to a journal that is not ours, deleted or mounted over, it would be wrong: `tend` writes both
        if self._away or (self._file.is_open and not self._file.is_current):
            return
        try:
            self._file.note_sent(self._sent)
            self._mended(NOT_NOTED)
        except OSError as error:
            self._failed(NOT_NOTED, error)

    def _synced(self, error: OSError | None) -> None:
        if error is None:
            self._mended(NOT_ON_DISK)
        else:
            self._failed(NOT_ON_DISK, error)

    def _failed(self, what: str, error: OSError) -> None:
        self.errors += 1
        said = error.strerror or str(error)
        # a disk that stays full is one line in the log
        if self.troubles.get(what) != said:
            log.error("journal not written", extra=kv(what=what, error=said))
        self.troubles[what] = said

    def _mended(self, what: str) -> None:
        if self.troubles.pop(what, ""):
            log.info("journal written again", extra=kv(what=what))
