"""Memory that two processes share: blocks that are written here and read there, in turns, without a copy between.

    place = Blocks(10).write(pieces)     parent: into the next block, in place of what was there
    whole = views.of(place)               child: what was written

A block is a file without a name (memfd): it is gone when both processes are, however they ended.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import NamedTuple

from watchkeeper.engines.columns import Buffer, size_of

# Blocks grow to a multiple of this, in bytes.
GRAIN = 1 << 20


class Place(NamedTuple):
    """Where something is: the file, and how many bytes of it there are."""

    path: str
    length: int


NOWHERE = Place("", 0)


class Blocks:
    """The writer's end: so many blocks, one after the other, and then the first again."""

    def __init__(self, count: int) -> None:
        self._blocks = [_Block(f"watchkeeper {i}") for i in range(count)]
        self._next = 0

    def write(self, pieces: Sequence[Buffer]) -> Place:
        """Put these, one after the other, into the next block."""
        block = self._blocks[self._next]
        self._next = (self._next + 1) % len(self._blocks)
        return block.write(pieces)

    def close(self) -> None:
        """Give them back."""
        for block in self._blocks:
            block.close()
        self._blocks = []


class _Block:
    def __init__(self, name: str) -> None:
        self._file = os.memfd_create(name)
        self._map: mmap.mmap | None = None
        self._size = 0
        self._path = f"/proc/{os.getpid()}/fd/{self._file}"

    def write(self, pieces: Sequence[Buffer]) -> Place:
        length = size_of(pieces)
        if self._map is None or length > self._size:
            self._size = -(-length // GRAIN) * GRAIN + GRAIN
            os.ftruncate(self._file, self._size)
            self._map = mmap.mmap(self._file, self._size)
        at = 0
        for piece in pieces:
            self._map[at : at + len(piece)] = piece
            at += len(piece)
        return Place(self._path, length)

    def close(self) -> None:
        os.close(self._file)


class Views:
    """The reader's end of all blocks that it is told of."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}
        self._wholes: dict[str, memoryview] = {}

    def of(self, place: Place) -> memoryview:
        """What was written there."""
        path, length = place
        if not length:
            return memoryview(b"")
        if path not in self._files:
            self._files[path] = os.open(path, os.O_RDWR)
        if length > len(self._wholes.get(path, b"")):
            file = self._files[path]
            self._wholes[path] = memoryview(mmap.mmap(file, os.fstat(file).st_size))
        return self._wholes[path][:length]
