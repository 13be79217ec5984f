"""What a journal says of the run before: active alarms, raises and ends that the broker never confirmed, and damage.

Read only, so that it works on a disk that cannot be written. A damaged or missing line does not stop it. It may have
been the end of an alarm, so every active alarm that it may have been about is in doubt (`Past.doubts`), and the
recovery asks the snapshot. Files of earlier versions have no checksums; they are read as they are.
"""

from __future__ import annotations

import logging
import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.state.checked import Damage, Good, is_sealed, read_chain, read_slots
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, UPDATED, AlarmEvent
from watchkeeper.streams.foreign.decode import ForeignError

log = logging.getLogger(__name__)

# Alarms of the earlier run whose end is remembered, so that after a restart none begins or ends a second time.
ENDED_MAX = 10_000
# Without a record of what the broker has confirmed, this many ends go out again; for a subscriber they are repetitions.
UNSURE_ENDS = 100
# Damaged lines that are named one by one in the log and in /readyz.
NAMED_MAX = 5

_ID = re.compile(rb'"id":"([0-9a-f]{16})"')


@dataclass(frozen=True, slots=True)
class Hole:
    """Events that were written and cannot be read: their numbers are above `after`, and `before` at most."""

    line: int
    after: int
    before: int
    ids: frozenset[str] | None
    """The alarms that they were about; None: not known."""


@dataclass(slots=True)
class Past:
    """What the journal of an earlier run says."""

    active: list[AlarmEvent] = field(default_factory=list)
    unsent: list[tuple[int, AlarmEvent]] = field(default_factory=list)
    # the last raises and ends in the file, confirmed or not: alarm and state by number
    changes: dict[int, tuple[str, str]] = field(default_factory=dict)
    ended: deque[AlarmEvent] = field(default_factory=lambda: deque(maxlen=ENDED_MAX))
    ended_numbers: deque[int] = field(default_factory=lambda: deque(maxlen=ENDED_MAX))
    events: int = 0
    t_last: float = -inf
    # the number of each active alarm's last event; of the last event; of the last that the broker has confirmed
    numbers: dict[str, int] = field(default_factory=dict)
    last: int = 0
    sent: int = 0
    torn: int = 0
    damaged: int = 0
    holes: list[Hole] = field(default_factory=list)
    # active alarms that have ended in a hole, as the snapshot tells
    over: list[AlarmEvent] = field(default_factory=list)
    # lines that are no events, as they are
    spoilt: list[bytes] = field(default_factory=list)
    # what is wrong, in words
    notes: list[str] = field(default_factory=list)
    # it is to be written again: by an earlier version, or damaged
    renew: bool = False
    # why it cannot be read, though it may be there: the disk is away
    unread: OSError | None = None
    # which file was read, see `identity`
    identity: tuple[int, int] = (0, 0)

    def doubts(self, event: AlarmEvent) -> list[Hole]:
        """The holes in which this active alarm's end may have been."""
        seq = self.numbers.get(event.id, 0)
        return [hole for hole in self.holes if hole.before > seq and (hole.ids is None or event.id in hole.ids)]

    def lose(self, last: int) -> None:
        """Somebody knows that events up to this one were written."""
        self.damaged += 1
        self.holes.append(Hole(self.events + self.damaged, self.last, last, None))
        self.notes.append(f"event {self.last} is the last of {last} that were written: the rest is lost")
        self.last = last


def read_past(path: Path, sent_path: Path) -> Past:
    """Read a journal and its record of what is confirmed; files that are not there are empty."""
    past = Past()
    try:
        sent_data = _bytes(sent_path)
        with path.open("rb") as file:
            found = list(read_chain(file))
            past.identity = _identity(os.fstat(file.fileno()))
    except FileNotFoundError:
        found = []
    except OSError as error:
        past.unread = error
        past.notes.append(f"not read: {error.strerror}")
        return past
    numbers, unsure = read_slots(sent_data) if sent_data is not None else ({}, bool(found))
    if found and not numbers and _is_legacy(found):
        past.renew, unsure = True, False
        found = list(_numbered(found))
        past.sent = _legacy_sent(sent_data or b"", *past.identity, found)
    else:
        past.sent = numbers.get("sent", 0)
    _take(past, found, numbers.get("last", 0))
    if unsure:
        past.notes.append("journal.sent is damaged or missing: ends of alarms may be published a second time")
        if not numbers:
            ends = [seq for seq, event in past.unsent if event.state == CLEARED]
            past.sent = ends[-UNSURE_ENDS - 1] if len(ends) > UNSURE_ENDS else 0
    past.changes = {seq: (event.id, event.state) for seq, event in past.unsent[-ENDED_MAX:]}
    past.unsent = [
        # when in doubt an end goes out again, which nobody minds; a raise would call people to an alarm that is old
        (seq, event)
        for seq, event in past.unsent
        if seq > past.sent and (numbers or event.state == CLEARED)
    ]
    past.renew |= bool(past.notes)
    for note in past.notes:
        log.warning("journal damaged", extra=kv(problem=note))
    return past


def _take(past: Past, found: list[Good | Damage], last_written: int) -> None:
    active: dict[str, AlarmEvent] = {}
    seen: set[str] = set()
    damage: list[Damage] = []
    for one in found:
        event = _event(one.body) if isinstance(one, Good) else None
        if isinstance(one, Damage) or event is None:
            damage.append(one if isinstance(one, Damage) else Damage(one.at, one.body + b"\n", one.seq - 1, one.seq))
            past.last = max(past.last, damage[-1].before)
            continue
        past.last = max(past.last, one.seq)
        past.events += 1
        past.t_last = max(past.t_last, event.t)
        seen.add(event.id)
        if event.state == CLEARED:
            active.pop(event.id, None)
            past.numbers.pop(event.id, None)
            past.ended.append(event)
            past.ended_numbers.append(one.seq)
        else:
            active[event.id] = event
            past.numbers[event.id] = one.seq
        if event.state != UPDATED:
            past.unsent.append((one.seq, event))
    past.active = list(active.values())
    for one in damage:
        _note_damage(past, one, seen)
    if past.damaged > NAMED_MAX:
        del past.notes[NAMED_MAX:]
        past.notes.append(f"{past.damaged - NAMED_MAX} more lines are damaged or missing")
    if last_written > past.last:
        past.lose(last_written)


def _note_damage(past: Past, damage: Damage, seen: set[str]) -> None:
    if damage.raw:
        past.spoilt.append(damage.raw)
    if damage.torn:
        # a write that the crash cut short: nobody was told of it
        past.torn += 1
        past.renew = True
        log.warning("journal ended in a torn line, cut off", extra=kv(bytes=len(damage.raw)))
        return
    past.damaged += 1
    ids = {found.decode() for found in _ID.findall(damage.raw)}
    # an id that no other line has may be damaged itself
    sure = len(ids) == 1 == damage.before - damage.after and ids <= seen
    if damage.before > damage.after:
        past.holes.append(Hole(damage.at, damage.after, damage.before, frozenset(ids) if sure else None))
    about = f": alarm {next(iter(ids))} may have ended there" if sure else ""
    what = "missing" if not damage.raw and damage.before > damage.after else "damaged"
    past.notes.append(f"line {damage.at} is {what}{about}")


def _event(body: bytes) -> AlarmEvent | None:
    try:
        event = AlarmEvent.of(body)
    except ForeignError:
        return None
    return event if event.state in (RAISED, UPDATED, CLEARED) else None


def identity(path: Path) -> tuple[int, int]:
    """What tells a file from another in its place, or from itself after a change; zeros when there is none."""
    try:
        return _identity(path.stat())
    except OSError:
        return 0, 0


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_ino, found.st_size


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


# -- before there were checksums --------------------------------------------------------------------------------


def _is_legacy(found: list[Good | Damage]) -> bool:
    return not any(isinstance(one, Good) or is_sealed(one.raw) for one in found)


def _numbered(found: list[Good | Damage]) -> Iterator[Good | Damage]:
    """The lines of an earlier version, numbered by their place; `end` is where each ends in the file."""
    end = 0
    for seq, damage in enumerate((one for one in found if isinstance(one, Damage)), 1):
        end += len(damage.raw)
        whole = damage.raw.endswith(b"\n") and _event(damage.raw) is not None
        yield (
            Good(seq, damage.raw, damage.at, end) if whole else Damage(damage.at, damage.raw, seq - 1, seq, damage.torn)
        )


def _legacy_sent(data: bytes, inode: int, size: int, found: list[Good | Damage]) -> int:
    """The last event that was confirmed, from pairs of file number and offset; all, when none is about this file."""
    words = data.split()
    offsets = {int(a): int(b) for a, b in zip(words[::2], words[1::2], strict=False) if a.isdigit() and b.isdigit()}
    offset = min(offsets.get(inode, size), size)
    return max((one.seq for one in found if isinstance(one, Good) and one.end <= offset), default=0)
