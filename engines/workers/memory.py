"""Memory that two processes share: blocks that are written here and read there, in turns, without a copy between.

    block.write(pieces) -> length     parent
    block.view(length) -> memoryview  child, which opened the parent's block by `block.path`

A block is a file without a name (memfd): it is gone when both processes are, however they ended.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence

from watchkeeper.engines.columns import Buffer, size_of

# Blocks grow to a multiple of this, in bytes.
GRAIN = 1 << 20


class Block:
    """The writer's end."""

    def __init__(self, name: str) -> None:
        self._file = os.memfd_create(name)
        self._map: mmap.mmap | None = None
        self._size = 0
        self.path = f"/proc/{os.getpid()}/fd/{self._file}"

    def write(self, pieces: Sequence[Buffer]) -> int:
        """Put these, one after the other, in place of what was there; their length."""
        length = size_of(pieces)
        if self._map is None or length > self._size:
            self._size = -(-length // GRAIN) * GRAIN + GRAIN
            os.ftruncate(self._file, self._size)
            self._map = mmap.mmap(self._file, self._size)
        at = 0
        for piece in pieces:
            self._map[at : at + len(piece)] = piece
            at += len(piece)
        return length

    def close(self) -> None:
        """Give it back."""
        os.close(self._file)


class View:
    """The reader's end."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR)
        self._whole: memoryview = memoryview(b"")

    def view(self, length: int) -> memoryview:
        """What was written."""
        if length > len(self._whole):
            self._whole = memoryview(mmap.mmap(self._file, os.fstat(self._file).st_size))
        return self._whole[:length]
