"""The input log: everything that went into the pipeline since the last snapshot, on disk and in order.

    input-00000007.log   a segment: two slots (state/checked.py) that say where it ends, a header frame with the
                         schema, then INPT frames, as in streams/logs/wkframe.py

A frame carries items (a message with its topic, or an adapter's batch, each with its arrival time) and steps. A step
says what the pump did once it had taken the items up to a number: it fed them to the pipeline (FED), let event time go
on without samples (ADVANCED, with the time), noted that nobody was listening (AWAY), fed what senders had saved up
during an outage in the order of its own time (SETTLED; PAUSED: items wait for that from here on), learned that what
comes next was late because of us (STALLED), or took a person's word that the lasting state of a vehicle is normal
(ACCEPTED, with the vehicle). Reading items and steps again repeats
the earlier run exactly. Items and steps are numbered 1, 2, 3 … for as long as the state directory lives. When another
directory is in its place (it could not be read at the start, was deleted, or mounted over), it may have a log and a
snapshot with numbers that this run does not know: its own go on from far above (`renumber`), and who reads both knows
that something is missing between them.

Every frame has a checksum. A damaged one is skipped and counted, and so are the items that are missing. The slots name
the segment's size and its last numbers once a frame is written (with `fsync`: on the disk), so an end that was cut off
later is known; what a crash left of a frame lies behind them. Each start begins a segment of its own, so nothing old is
ever written to.
Segments that lie before the older of the two snapshots are deleted. When all segments together exceed `max_bytes`, the
oldest is deleted without a snapshot, and `overwritten` counts it.

`append` and `trim` may wait for the disk: call them from one worker thread, never in parallel.
"""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.msgpack import Ext

from watchkeeper.daemon.state.checked import Slots, read_slots, replace_file, same_file
from watchkeeper.daemon.state.folder import StateFolder
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.edge import Arrival
from watchkeeper.streams.foreign.decode import from_msgpack, msgpack_decoder
from watchkeeper.streams.logs.chunks import numbered
from watchkeeper.streams.logs.wkframe import (
    HEAD_BYTES,
    HEADER,
    VERSION,
    DamageError,
    Header,
    decode_data,
    encode_data,
    our_columns,
    pack_frame,
    read_head,
    read_payload,
)
from watchkeeper.streams.messages import FIELDS, Kind

INPUT = b"INPT"
# Small enough that a snapshot lets go of most of the log, large enough that a second of heavy traffic fits into one.
SEGMENT_BYTES = 8 * 1024 * 1024
# Nobody counts so far: with a million messages a second it takes twelve days. `renumber` goes further than that.
FAR = 10**12
FED, PAUSED, SETTLED = "fed", "paused", "settled"
ADVANCED, AWAY, ACCEPTED, STALLED = "advanced", "away", "accepted", "stalled"
_NAME = re.compile(r"^input-(\d{8,})\.log$")
_BATCH = 1
Packed = bytes


class Position(NamedTuple):
    """How much of the input a state contains: all items and steps up to these numbers."""

    items: int = 0
    steps: int = 0


class Step(NamedTuple):
    """What the pump did after the item with this number; `vehicle`: that of ACCEPTED.

    `t` is the time of ADVANCED, and the newest time that is expected in what is SETTLED.
    """

    after: int
    what: str
    t: float = 0.0
    vehicle: str = ""


class Block(msgspec.Struct, array_like=True):
    """Payload of a frame: items and steps that belong together. `wall_s` turns arrival times into wall time."""

    first_item: int
    first_step: int
    wall_s: float
    items: list[tuple[str, Any, float]]
    steps: list[Step]


@dataclass(slots=True)
class _Segment:
    number: int
    path: Path
    bytes: int
    last: Position


_decode = msgpack_decoder(Block)


_encode = msgspec.msgpack.Encoder().encode


class InputLog:
    """One directory's input log. Read `blocks` to the end before the first `append`.

    With `folder` nothing is begun in a directory that is not ours, or before `renumber` when it was not for a while.
    """

    def __init__(self, state_dir: Path, *, max_bytes: int, fsync: bool, folder: StateFolder | None = None) -> None:
        self.max_bytes = max_bytes
        self.fsync = fsync
        self.end = Position()
        self.torn = 0
        self.damaged = 0
        self.missing = 0
        # places where nobody knows how much is missing
        self.gaps = 0
        self.overwritten = 0
        # gets every block that is read, also those that a snapshot contains
        self.on_block: Callable[[Block], None] = lambda _block: None
        self._dir = state_dir
        self._folder = folder
        self._returns = 0
        self._file: int | None = None
        self._slots = Slots(-1)
        self._segments = deque(_segments(state_dir))
        self._next = self._segments[-1].number + 1 if self._segments else 1

    @property
    def bytes(self) -> int:
        """Size of all segments."""
        return sum(segment.bytes for segment in list(self._segments))

    def notes(self) -> list[str]:
        """What is wrong with what was read, in words."""
        damaged = [f"{self.damaged} parts are damaged"] if self.damaged else []
        missing = [f"{self.missing} items are missing"] if self.missing else []
        gaps = ["what was heard while the directory was away is missing"] if self.gaps else []
        return damaged + missing + gaps

    # -- reading --------------------------------------------------------------------------------------------

    def blocks(self, since: Position, waiting: Packed = b"") -> Iterator[Block]:
        """What was written by earlier runs after this position, oldest first. Numbers go on from its end.

        `waiting`: what a snapshot has of it besides (`pack_waiting`), because the log was lost.
        """
        self.end = since
        if waiting:
            block = _with_batches(_decode(waiting), our_columns(_header()))
            self.on_block(block)
            self.end = Position(block.first_item + len(block.items) - 1, since.steps)
            yield block
        for segment in list(self._segments):
            for block in self._read(segment):
                self.on_block(block)
                last = Position(block.first_item + len(block.items) - 1, block.first_step + len(block.steps) - 1)
                if last.items > self.end.items or last.steps > self.end.steps:
                    self._miss(block.first_item - self.end.items - 1)
                    known = max(self.end.items + 1 - block.first_item, 0)
                    block.items, block.first_item = block.items[known:], block.first_item + known
                    self.end = Position(max(last.items, self.end.items), max(last.steps, self.end.steps))
                    yield block
            # what was written and is not there any more
            self._miss(segment.last.items - self.end.items)
            self.end = segment.last = Position(*map(max, self.end, segment.last))
        # a frame that was torn off had numbers too; nobody has seen them
        for segment in self._segments:
            segment.last = self.end

    def _miss(self, items: int) -> None:
        self.gaps += items >= FAR
        self.missing += items if 0 < items < FAR else 0

    def _read(self, segment: _Segment) -> Iterator[Block]:
        """The blocks of a segment that are whole. Its last numbers are then those that the slots name."""
        try:
            with segment.path.open("rb", buffering=0) as file:
                at, written = self._read_slots(file, segment)
                columns = our_columns(_header())
                while at < segment.bytes:
                    file.seek(at)
                    stop = at + HEAD_BYTES
                    try:
                        head = read_head(file)
                        stop += head.length
                        payload = read_payload(file, head)
                        if head.tag == HEADER:
                            columns = our_columns(from_msgpack(payload, Header))
                        else:
                            yield _with_batches(_decode(payload), columns)
                        at = stop
                    except (DamageError, ValueError):
                        if stop > segment.bytes and at >= written:
                            self.torn += 1
                        else:
                            self.damaged += 1
                        at = _next_frame(file, at + 1)
                if at < written:
                    self.damaged += 1
        except OSError:
            self.damaged += 1

    def _read_slots(self, file: FileIO, segment: _Segment) -> tuple[int, int]:
        """Where the frames begin, and where they ended when the last of them was written."""
        begin = file.read(Slots.BYTES)
        if begin.startswith(HEADER):
            # a segment of an older version
            return 0, 0
        noted, damaged = read_slots(begin)
        self.damaged += damaged
        segment.last = Position(noted.get("items", 0), noted.get("steps", 0))
        return Slots.BYTES, noted.get("bytes", 0)

    # -- writing --------------------------------------------------------------------------------------------

    @property
    def is_elsewhere(self) -> bool:
        """Whether the directory is not the one that the numbers belong to."""
        return self._folder is not None and self._folder.returns != self._returns

    def renumber(self) -> int:
        """Go on with numbers that no log in this directory has; by how much they are higher. Not during `append`."""
        assert self._folder is not None
        self._returns = self._folder.returns
        shift = max(int(time.time() * 1e6), max(self.end) + FAR) - max(self.end)
        self.end = Position(self.end.items + shift, self.end.steps + shift)
        return shift

    def append(self, items: Sequence[Arrival], steps: Sequence[Step], wall_s: float) -> None:
        """Add these at the end. Raises OSError; then they have their numbers but are not in the log."""
        first = Position(self.end.items + 1, self.end.steps + 1)
        self.end = Position(self.end.items + len(items), self.end.steps + len(steps))
        frame = pack_frame(INPUT, _encode((*first, wall_s, _plain(items), steps)), len(items))
        file = self._open(len(frame))
        segment = self._segments[-1]
        size = segment.bytes + len(frame)
        try:
            _write(file, frame, segment.bytes)
            if self.fsync:
                os.fdatasync(file)
            # not synced: after a power cut an older end is named, which hides no loss and claims none
            self._slots.write(bytes=size, items=self.end.items, steps=self.end.steps)
        except OSError:
            # half a frame would hide what comes after it
            os.ftruncate(file, segment.bytes)
            raise
        segment.bytes, segment.last = size, self.end
        while len(self._segments) > 1 and self.bytes > self.max_bytes:
            self._segments[0].path.unlink(missing_ok=True)
            self._segments.popleft()
            self.overwritten += 1

    def _open(self, size: int) -> int:
        """The segment to write to."""
        current = self._file is not None and same_file(self._file, self._segments[-1].path)
        if self._file is not None and current and self._segments[-1].bytes + size <= SEGMENT_BYTES:
            return self._file
        if self._folder is not None and (self.is_elsewhere or not self._folder.is_ours):
            raise OSError(0, "the state directory is away")
        self._find_others()
        path = self._dir / f"input-{self._next:08d}.log"
        head = pack_frame(HEADER, msgspec.msgpack.encode(_header()))
        size = Slots.BYTES + len(head)
        begin = Slots.fresh(bytes=size, items=0, steps=0)
        replace_file(path, [begin + head], sync=self.fsync)
        file = os.open(path, os.O_RDWR)
        self.close()
        self._file, self._slots, self._next = file, Slots(file), self._next + 1
        self._slots.read()
        self._segments.append(_Segment(self._next - 1, path, size, self.end))
        return file

    def _find_others(self) -> None:
        """Segments of another log, if we are in another directory: the next snapshot makes them obsolete."""
        ours = {segment.number for segment in self._segments}
        others = [segment for segment in _segments(self._dir) if segment.number not in ours]
        self._segments.extendleft(reversed(others))
        self._next = max([self._next, *(segment.number + 1 for segment in others)])

    def trim(self, to: Position) -> None:
        """A snapshot contains everything up to this position: delete the segments before it."""
        current = self._segments[-1] if self._file is not None else None
        while self._segments and self._segments[0] is not current:
            last = self._segments[0].last
            if last.items > to.items or last.steps > to.steps:
                break
            self._segments[0].path.unlink(missing_ok=True)
            self._segments.popleft()

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def pack_waiting(at: Position, items: Sequence[Arrival], wall_s: float, *, paused: bool) -> bytes:
    """The items after this position, for a snapshot; `paused`: they wait for senders that are not back."""
    steps = [Step(at.items, PAUSED)] if paused else []
    return _encode((at.items + 1, at.steps, wall_s, _plain(items), steps)) if items or steps else b""


def _segments(state_dir: Path) -> list[_Segment]:
    """What earlier runs left; nothing when the directory cannot be read."""
    try:
        found = sorted((int(m[1]), path) for path in state_dir.iterdir() if (m := _NAME.match(path.name)))
        return [_Segment(number, path, path.stat().st_size, Position()) for number, path in found]
    except OSError:
        return []


def _header() -> Header:
    return Header(VERSION, {kind.word: [(f.name, f.unit) for f in FIELDS[kind]] for kind in Kind})


def _plain(items: Sequence[Arrival]) -> Sequence[tuple[str, Any, float]]:
    """Batches, which have no topic, as bytes."""
    if all(topic for topic, _, _ in items):
        return items
    return [(topic, _packed(payload) if isinstance(payload, Batch) else payload, at) for topic, payload, at in items]


def _packed(batch: Batch) -> Ext | bytes:
    try:
        return Ext(_BATCH, encode_data(numbered(batch)))
    except ValueError:
        # a name with half a character in it cannot be written; such samples are refused anyway
        return b""


def _with_batches(block: Block, columns: dict[str, list[int]]) -> Block:
    if any(isinstance(payload, Ext) for _, payload, _ in block.items):
        block.items = [
            (topic, decode_data(_aligned(payload.data), columns) if isinstance(payload, Ext) else payload, at)
            for topic, payload, at in block.items
        ]
    return block


def _aligned(data: Any) -> memoryview:
    """The same bytes in memory that ends on a multiple of 8, as decode_data likes them."""
    lead = -len(data) % 8
    room = memoryview(np.empty((lead + len(data)) // 8, np.float64).view(np.uint8))[lead:]  # type: ignore[arg-type]
    room[:] = data
    return room


def _next_frame(file: FileIO, at: int) -> int:
    """Where the next whole frame begins; the end of the file when there is none."""
    file.seek(0)
    data = file.read()
    while (at := data.find(INPUT, at)) >= 0:
        file.seek(at)
        try:
            read_payload(file, read_head(file))
        except DamageError:
            at += 1
        else:
            return at
    return len(data)


def _write(file: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(file, view, at)
        view, at = view[written:], at + written
