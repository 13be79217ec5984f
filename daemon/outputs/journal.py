"""The journal: every alarm event written before anybody hears of it, so that a crash loses and repeats nothing.

    journal.jsonl    one line per event, exactly the bytes of encode_event and a newline; only ever appended to
    journal.1.jsonl  the file before the last rotation
    journal.sent     how far into journal.jsonl the broker has confirmed (file number and offset, twice)

Read at the start: the last event of each alarm that is not cleared says what is active, and cleared events that
the broker never confirmed are sent again. A last line without its newline is a write that the crash cut short; it
is cut off and counted. Lines that are no events (a damaged disk) are skipped and counted.

An event that the disk does not take waits in memory, the latest of each alarm, and is written with the next ones.

Written means handed to the operating system: it survives whatever happens to this process. With `fsync` the disk is
told to keep each event as well, in parallel and not before it: a disk may take a second over that, and an alarm
must not wait for it. A power cut can lose what was written while the disk was busy with the sync before.

Rotation, at `max_bytes`: the new file starts with the last event of every active alarm and the unconfirmed cleared
ones, so it stands alone; the old file stays for people. Both names always exist whole, whenever the power goes.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

import msgspec

from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.state.snapshot import sync_dir
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, AlarmEvent, encode_event

log = logging.getLogger(__name__)

# About 100,000 events; with the file before it, the disk holds at most twice this.
MAX_BYTES = 64 * 1024 * 1024
# Alarms of the earlier run whose end is remembered, so that after a restart none begins or ends a second time.
ENDED_MAX = 10_000
# Marks of events that are not confirmed.
PENDING_MAX = 100_000
# Without a snapshot, how much event time the broker may deliver to us again.
RELIVED_S = 60.0

_SENT = "{:020d} {:020d}\n"
_decode = msgspec.json.Decoder(AlarmEvent).decode


@dataclass(slots=True)
class Past:
    """What the journal of an earlier run says."""

    active: list[AlarmEvent] = field(default_factory=list)
    unsent: list[tuple[int, AlarmEvent]] = field(default_factory=list)
    ended: deque[AlarmEvent] = field(default_factory=lambda: deque(maxlen=ENDED_MAX))
    events: int = 0
    t_last: float = -inf


class Journal:
    """Append-only file of alarm events.

    `append` and `confirm` may wait for the disk: call them from one worker thread, never in parallel.
    """

    def __init__(self, state_dir: Path, *, fsync: bool, max_bytes: int = MAX_BYTES) -> None:
        self.path = state_dir / "journal.jsonl"
        self.fsync = fsync
        self.max_bytes = max_bytes
        self.active: dict[str, AlarmEvent] = {}
        self.torn = 0
        self.damaged = 0
        self.errors = 0
        self.rotations = 0
        self.written = 0
        self.replaced = 0
        # what cannot be done now, and what the disk says
        self.troubles: dict[str, str] = {}
        # the latest event of each alarm that the disk did not take
        self._missed: dict[str, AlarmEvent] = {}
        self._ended: frozenset[str] = frozenset()
        self._syncer = ThreadPoolExecutor(1, "journal-sync")
        self._sync_asked = False
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._sent_file = os.open(state_dir / "journal.sent", os.O_RDWR | os.O_CREAT, 0o644)
        sync_dir(state_dir)
        # events that are not yet confirmed: their numbers, and where each ends in the file
        self._number = 0
        self._pending: deque[tuple[int, int]] = deque()
        self._sent = self._read_sent()
        self.past = self._replay()
        self._rotate_at = max_bytes

    def _read_sent(self) -> int:
        """Offset that the broker has confirmed; everything, when the record is not about this file."""
        words = os.pread(self._sent_file, 2 * len(_SENT.format(0, 0)), 0).split()
        offsets = {int(a): int(b) for a, b in zip(words[::2], words[1::2], strict=False) if a.isdigit() and b.isdigit()}
        size = os.fstat(self._file).st_size
        return min(offsets.get(os.fstat(self._file).st_ino, size), size)

    def _replay(self) -> Past:
        past = Past()
        end = 0
        with self.path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    self.torn += 1
                    log.warning("journal ended in a torn line, cut off", extra=kv(bytes=len(line)))
                    break
                end += len(line)
                event = _parse(line)
                if event is None:
                    self.damaged += 1
                    continue
                past.events += 1
                past.t_last = max(past.t_last, event.t)
                self._note(event)
                if event.state == CLEARED:
                    past.ended.append(event)
                if event.state == CLEARED and end > self._sent:
                    self._number += 1
                    self._pending.append((self._number, end))
                    past.unsent.append((self._number, event))
        os.ftruncate(self._file, end)
        self._size = end
        self._sent = min(self._sent, end)
        self._write_sent((os.fstat(self._file).st_ino, self._sent))
        past.active = list(self.active.values())
        if self.damaged:
            log.warning("journal has damaged lines, skipped", extra=kv(lines=self.damaged))
        return past

    def _note(self, event: AlarmEvent) -> None:
        if event.state == CLEARED:
            self.active.pop(event.id, None)
        else:
            self.active[event.id] = event

    def resume(self, t: float | None) -> None:
        """Say from which event time on the pipeline lives again what the journal already tells; None: not known."""
        since = self.past.t_last - RELIVED_S if t is None else t
        self._ended = frozenset(event.id for event in self.past.ended if event.t > since)

    def is_repeat(self, event: AlarmEvent) -> bool:
        """True if this would raise an alarm that is up, or touch one that ended before the restart."""
        return event.id in self._ended or (event.state == RAISED and event.id in self.active)

    def append(self, events: Sequence[AlarmEvent]) -> int:
        """Write these events, all or none, after those that failed before; the number of the last, for `confirm`.

        A full disk is counted and logged, never raised: an alarm that cannot be written must still be heard.
        """
        lines = [encode_event(event) + b"\n" for event in events]
        missed = b"".join(encode_event(event) + b"\n" for event in self._missed.values())
        try:
            if self._size >= self._rotate_at:
                self._rotate()
            _write(self._file, missed + b"".join(lines))
            if self.fsync:
                self._ask_for_sync()
        except OSError as error:
            self._failed("not written", error)
            os.ftruncate(self._file, self._size)
            lines = [b"" for _ in lines]
            self._miss(events)
        else:
            self.written += len(events) + len(self._missed)
            self._size += len(missed)
            self._missed = {}
            self.troubles.pop("not written", None)
        for event, line in zip(events, lines, strict=True):
            self._note(event)
            self._number += 1
            self._size += len(line)
            self._pending.append((self._number, self._size))
        if len(self._pending) > PENDING_MAX:
            # the broker has been away for long: half the marks do, at the price of sending a few ends again
            self._pending = deque(list(self._pending)[1::2])
        return self._number

    @property
    def missed(self) -> int:
        """Events that wait for the disk."""
        return len(self._missed)

    def _miss(self, events: Sequence[AlarmEvent]) -> None:
        for event in events:
            self.replaced += self._missed.pop(event.id, None) is not None
            self._missed[event.id] = event
        while len(self._missed) > ENDED_MAX + len(self.active):
            del self._missed[next(iter(self._missed))]
            self.replaced += 1

    def retry(self) -> None:
        """Try again what failed."""
        self.append([])
        if "journal.sent not written" in self.troubles:
            self.confirm(0)

    def _failed(self, what: str, error: OSError) -> None:
        self.errors += 1
        said = error.strerror or str(error)
        # a disk that stays full is one line in the log
        if self.troubles.get(what) != said:
            log.error("journal not written", extra=kv(what=what, error=said))
        self.troubles[what] = said

    def _ask_for_sync(self) -> None:
        """Have the file on disk soon; one sync serves every append before it starts."""
        if not self._sync_asked:
            self._sync_asked = True
            # a handle of its own: rotation may close ours meanwhile
            self._syncer.submit(self._sync, os.dup(self._file))

    def _sync(self, handle: int) -> None:
        self._sync_asked = False
        try:
            os.fdatasync(handle)
            self.troubles.pop("not on disk", None)
        except OSError as error:
            self._failed("not on disk", error)
        finally:
            os.close(handle)

    def confirm(self, number: int) -> None:
        """The broker has every event up to this one."""
        while self._pending and self._pending[0][0] <= number:
            self._sent = self._pending.popleft()[1]
        try:
            self._write_sent((os.fstat(self._file).st_ino, self._sent))
            self.troubles.pop("journal.sent not written", None)
        except OSError as error:
            self._failed("journal.sent not written", error)

    def _write_sent(self, *records: tuple[int, int]) -> None:
        # two records, because during a rotation either file may be the one that a crash leaves in place
        text = "".join(_SENT.format(*r) for r in (records * 2)[:2])
        os.pwrite(self._sent_file, text.encode(), 0)

    def _unsent_cleared(self) -> bytes:
        tail = os.pread(self._file, self._size - self._sent, self._sent)
        events = [event for event in map(_parse, tail.split(b"\n")) if event and event.state == CLEARED]
        return b"".join(encode_event(event) + b"\n" for event in events[-ENDED_MAX:])

    def _rotate(self) -> None:
        """Start a new file with what still matters; see the module's docstring."""
        kept = b"".join(encode_event(event) + b"\n" for event in self.active.values())
        cleared = self._unsent_cleared()
        fresh_path = self.path.with_suffix(".new")
        fresh_path.unlink(missing_ok=True)
        fresh = os.open(fresh_path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            _write(fresh, kept + cleared)
            os.fsync(fresh)
            self._write_sent((os.fstat(self._file).st_ino, self._sent), (os.fstat(fresh).st_ino, len(kept)))
            spare = self.path.with_suffix(".old")
            spare.unlink(missing_ok=True)
            os.link(self.path, spare)
            spare.replace(self.path.with_name("journal.1.jsonl"))
            fresh_path.replace(self.path)
            sync_dir(self.path.parent)
        except OSError:
            os.close(fresh)
            raise
        os.close(self._file)
        self._sync_asked = False
        self._file, self._size, self._sent = fresh, len(kept) + len(cleared), len(kept)
        # the cleared ones that were carried over count as unsent until the last event before them is confirmed
        numbers = [number for number, _ in self._pending]
        self._pending = deque((n, self._size if n == numbers[-1] else len(kept)) for n in numbers)
        # many active alarms must not make every append a rotation
        self._rotate_at = max(self.max_bytes, 2 * self._size)
        self.rotations += 1

    @property
    def size_bytes(self) -> int:
        """Length of the present file."""
        return self._size

    def close(self) -> None:
        """Release the files; with `fsync`, what was appended is on disk."""
        self._syncer.shutdown()
        os.close(self._file)
        os.close(self._sent_file)


def _parse(line: bytes) -> AlarmEvent | None:
    try:
        return _decode(line)
    except msgspec.MsgspecError:
        return None


def _write(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
