"""The alarms that a receiver knows as active, kept on disk so that a crash does not leave it behind.

    <name>.told   two slots with the number of the last line, then one checked line per change, see state/checked.py:
                  the event that the receiver has confirmed, without evidence; of an alarm that is over, its last one

A line is appended once the receiver has confirmed; the file is written again at the start, when it has grown, and when
it was deleted or could not be written. It is not synced: a power cut costs a repetition, which receivers must bear.
Where the file is damaged, `unsure` says so: the receiver may know alarms that are not in `known`.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterable, KeysView, Sequence
from io import BytesIO
from pathlib import Path

import msgspec

from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.state.checked import (
    Damage,
    Slots,
    read_chain,
    read_slots,
    replace_file,
    same_file,
    seal_in_chain,
    write_all,
)
from watchkeeper.daemon.state.folder import StateFolder
from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent, encode_event
from watchkeeper.detectors.sentence import ended_as
from watchkeeper.streams.foreign.decode import ForeignError

log = logging.getLogger(__name__)

# Lines beyond those that still matter before the file is written again.
SPARE_LINES = 5_000
# With a damaged list, this many ends are told again.
UNSURE_ENDS = 100

# What versions without checksums wrote.
_LEGACY = re.compile(rb"^([+-][0-9a-f]{1,64}\n)*([+-][0-9a-f]*)?$")


class Delivered:
    """The alarms that are active for a receiver, by id; in memory only when `path` is None.

    An alarm has its last event, or None when an earlier version wrote it down. `note` may wait for the disk.
    """

    def __init__(self, path: Path | None, state: StateFolder | None = None) -> None:
        self._path = path
        self._state = state
        self._mutex = threading.Lock()
        self._lines = 0
        self._last = 0
        self._file: int | None = None
        self._slots = Slots(-1)
        self.known: dict[str, AlarmEvent | None] = {}
        # alarms that the file has as over
        self.over: set[str] = set()
        self.unsure = False
        if path is not None:
            self._read(path)
            # what an earlier version wrote down waits for `learn`: ids alone cannot be written
            if None not in self.known.values():
                self._write_again()
            if state is not None:
                state.on_return.append(self.renew)

    def __contains__(self, alarm_id: object) -> bool:
        return alarm_id in self.known

    @property
    def ids(self) -> KeysView[str]:
        """The ids alone."""
        return self.known.keys()

    def note(self, event: AlarmEvent) -> None:
        """The receiver now knows this alarm as active, or as over."""
        with self._mutex:
            if (event.id in self.known) == (event.state != CLEARED):
                return
            event = msgspec.structs.replace(event, evidence={}, diagnosis=None)
            self._apply(event)
            if self._path is None:
                return
            self._lines += 1
            if self._lines > len(self.known) + SPARE_LINES or not self._append(event):
                self._write_again()

    def learn(self, active: Iterable[AlarmEvent]) -> None:
        """These are active: the events of alarms that only have an id."""
        with self._mutex:
            ids = [event for event in active if event.id in self.known and self.known[event.id] is None]
            for event in ids:
                self.known[event.id] = msgspec.structs.replace(event, evidence={}, diagnosis=None)
            if ids and self._path is not None:
                self._write_again()

    def forget(self, alarm_id: str) -> None:
        """Nobody knows anything of this alarm any more; the next writing leaves it out."""
        with self._mutex:
            self.known.pop(alarm_id, None)

    def missed(
        self, active: Sequence[AlarmEvent], ended: Iterable[AlarmEvent], *, raises: bool, ends: bool
    ) -> list[AlarmEvent]:
        """After a restart, with what the journal knows: what the receiver has to be told, ends first.

        `raises`: also active alarms that it does not know; `ends`: also of alarms that the journal has forgotten.
        """
        over = {event.id: event for event in ended}
        self.learn(active)
        missed = [over[alarm_id] for alarm_id in sorted(self.known.keys() & over.keys())]
        if self.unsure:
            # it may know them as active, and nothing says that it has heard their end
            unsure = [e for e in over.values() if e.id not in self.known and e.id not in self.over]
            missed += unsure[-UNSURE_ENDS:]
        if raises:
            missed += [event for event in active if event.id not in self.known]
        for alarm_id in sorted(self.known.keys() - over.keys() - {event.id for event in active}):
            if (event := self.known[alarm_id]) is None or not ends:
                self.forget(alarm_id)
            else:
                missed.append(ended_as(event, "not_known"))
        return missed

    def renew(self) -> None:
        """Write the file again: it may be gone."""
        with self._mutex:
            self._write_again()

    def _apply(self, event: AlarmEvent) -> None:
        if event.state == CLEARED:
            self.known.pop(event.id, None)
        else:
            self.known[event.id] = event

    # -- the file -----------------------------------------------------------------------------------------------

    def _read(self, path: Path) -> None:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            self._doubt(f"not read: {error.strerror}")
            return
        if data and _LEGACY.match(data):
            for word in data.decode().split():
                self.known.pop(word[1:], None)
                if word[0] == "+":
                    self.known[word[1:]] = None
            return
        numbers, damaged = read_slots(data[: Slots.BYTES])
        last = 0
        for line in read_chain(BytesIO(data[Slots.BYTES :])):
            event = None if isinstance(line, Damage) else _event(line.body)
            if event is None or isinstance(line, Damage):
                damaged = True
                continue
            last = line.seq
            self._apply(event)
            if event.state == CLEARED:
                self.over.add(event.id)
        if damaged or numbers.get("last", 0) > last:
            self._doubt("damaged")

    def _doubt(self, problem: str) -> None:
        assert self._path is not None
        self.unsure = True
        log.warning("list of delivered alarms damaged", extra=kv(file=self._path.name, problem=problem))
        if self._state is not None:
            words = f"{self._path.name} is {problem}: its receiver may be told something a second time"
            self._state.notes.append(words)

    def _append(self, event: AlarmEvent) -> bool:
        """False when the file must be written again."""
        assert self._path is not None
        if self._file is None or not same_file(self._file, self._path):
            return False
        try:
            # the slots are in the same file: it is not open for appending
            os.lseek(self._file, 0, os.SEEK_END)
            write_all(self._file, seal_in_chain(encode_event(event), self._last + 1, self._last))
            self._last += 1
            self._slots.write(last=self._last)
        except OSError:
            return False
        return True

    def _write_again(self) -> None:
        assert self._path is not None
        lines = [encode_event(event) for event in self.known.values() if event is not None]
        data = b"".join(seal_in_chain(line, seq, seq - 1) for seq, line in enumerate(lines, 1))
        what = f"{self._path.name} not written"
        try:
            replace_file(self._path, [Slots.fresh(last=len(lines)) + data], sync=False)
            handle = os.open(self._path, os.O_RDWR)
        except OSError as error:
            self._say(what, error.strerror or str(error))
            return
        self.close()
        self._file, self._slots = handle, Slots(handle)
        self._slots.read()
        self._lines = self._last = len(lines)
        self._say(what, "")

    def close(self) -> None:
        """Release the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _say(self, what: str, problem: str) -> None:
        if self._state is not None:
            self._state.fault(what, problem)


def _event(body: bytes) -> AlarmEvent | None:
    try:
        return AlarmEvent.of(body)
    except ForeignError:
        return None
