"""The journal's files: a chain of checked lines that is appended to or written again, and the record next to it.

    journal.jsonl    numbered lines, see state/checked.py
    journal.1.jsonl  the file before the last that was written again
    journal.sent     two numbers: the last event that the broker has confirmed, the last that was written
    journal.damaged  lines that were found damaged, as they were

Used by journal.py, from one worker thread. Every method that writes raises OSError when the disk does not take it; then
nothing of it is in the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from watchkeeper.daemon.state.checked import (
    FILE_MODE,
    Slots,
    keep_as,
    replace_file,
    same_file,
    seal_in_chain,
    write_all,
)
from watchkeeper.detectors.alarms.events import AlarmEvent, encode_event

# No more is set aside in journal.damaged.
DAMAGED_MAX_BYTES = 1024 * 1024

# An event and its number.
Numbered = tuple[int, AlarmEvent]


class JournalFile:
    """`stale` says that the file must be written again before it is appended to."""

    def __init__(self, state_dir: Path, synced: Callable[[OSError | None], None]) -> None:
        self.path = state_dir / "journal.jsonl"
        self.sent_path = state_dir / "journal.sent"
        self.size = 0
        self.stale = False
        # number of the last line
        self.last = 0
        # told, in a thread of its own, how a sync went
        self._synced = synced
        self._file: int | None = None
        self._sent_file: int | None = None
        self._slots = Slots(-1)
        self._syncer = ThreadPoolExecutor(1, "journal-sync")
        self._sync_asked = False

    @property
    def is_open(self) -> bool:
        """False before the first success of `go_on` or `write_again`."""
        return self._file is not None

    @property
    def is_current(self) -> bool:
        """True while the open file is the one that its name says: not deleted, moved or mounted over."""
        return self._file is not None and same_file(self._file, self.path)

    @property
    def is_sent_current(self) -> bool:
        """The same of the record of what is confirmed."""
        return self._sent_file is not None and same_file(self._sent_file, self.sent_path)

    def go_on(self, last: int) -> None:
        """Open a file that is whole, to append to it."""
        handle = os.open(self.path, os.O_RDWR | os.O_APPEND)
        self._file, self.size, self.last = handle, os.fstat(handle).st_size, last
        with suppress(OSError):
            os.fchmod(handle, FILE_MODE)

    def append(self, events: Sequence[Numbered]) -> None:
        """Add these at the end."""
        assert self._file is not None
        data = _sealed(events, self.last)
        try:
            write_all(self._file, data)
        except OSError:
            try:
                os.ftruncate(self._file, self.size)
            except OSError:
                # half a line may be left
                self.stale = True
            raise
        self.size += len(data)
        self.last = events[-1][0]

    def write_again(self, events: Iterable[Numbered], spoilt: Iterable[bytes]) -> None:
        """Begin a new file with these; what has its name now becomes journal.1.jsonl."""
        kept = sorted(dict(events).items())
        data = _sealed(kept, 0)
        self._set_aside(spoilt)
        keep_as(self.path, self.path.with_name("journal.1.jsonl"))
        replace_file(self.path, [data])
        fresh = os.open(self.path, os.O_RDWR | os.O_APPEND)
        if self._file is not None:
            os.close(self._file)
        self._sync_asked = self.stale = False
        self._file, self.size, self.last = fresh, len(data), kept[-1][0] if kept else 0

    def note_sent(self, sent: int) -> None:
        """Note the last event that is confirmed, and the last that is written."""
        if not self.is_sent_current and not (self._sent_file is None and self._open_sent()):
            replace_file(self.sent_path, [Slots.fresh(sent=sent, last=self.last)], sync=False)
            self._open_sent()
        self._slots.write(sent=sent, last=self.last)

    def _open_sent(self) -> bool:
        """Open the record as it is; False when it is not there or damaged."""
        try:
            handle = os.open(self.sent_path, os.O_RDWR)
        except FileNotFoundError:
            return False
        slots = Slots(handle)
        if slots.read()[1]:
            os.close(handle)
            return False
        if self._sent_file is not None:
            os.close(self._sent_file)
        self._sent_file, self._slots = handle, slots
        return True

    def sync_soon(self) -> None:
        """Have the file on disk soon; one sync serves every append before it starts."""
        if not self._sync_asked and self._file is not None:
            self._sync_asked = True
            # a handle of its own: ours may be closed meanwhile
            self._syncer.submit(self._sync, os.dup(self._file))

    def close(self) -> None:
        """Wait for a sync that was asked for, and release the files."""
        self._syncer.shutdown()
        for handle in (self._file, self._sent_file):
            if handle is not None:
                os.close(handle)
        self._file = self._sent_file = None

    def _sync(self, handle: int) -> None:
        self._sync_asked = False
        try:
            os.fdatasync(handle)
            self._synced(None)
        except OSError as error:
            # the system may have dropped what it could not write
            self.stale = True
            self._synced(error)
        finally:
            os.close(handle)

    def _set_aside(self, spoilt: Iterable[bytes]) -> None:
        with suppress(OSError):
            for raw in spoilt:
                path = self.path.with_name("journal.damaged")
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE)
                try:
                    if os.fstat(handle).st_size + len(raw) < DAMAGED_MAX_BYTES:
                        write_all(handle, raw.rstrip(b"\n") + b"\n")
                finally:
                    os.close(handle)


def _sealed(events: Iterable[Numbered], last: int) -> bytes:
    lines = []
    for seq, event in events:
        lines.append(seal_in_chain(encode_event(event), seq, last))
        last = seq
    return b"".join(lines)
