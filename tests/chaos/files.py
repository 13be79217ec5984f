"""Files of the model disk: content in the page cache and on the platters, open handles, and `io` on top of them."""

from __future__ import annotations

import io
from random import Random
from typing import TYPE_CHECKING, Any

from chaos.timeline import Owner

if TYPE_CHECKING:
    from chaos.disk import Disk


class Node:
    """A file: what everybody reads, what is on the platters, and the changes between the two, in order."""

    def __init__(self, number: int, mode: int) -> None:
        self.number = number
        self.mode = mode
        self.links = 1
        self.data = bytearray()
        self.durable = b""
        # (offset, bytes), or (size, None) for a cut
        self.pending: list[tuple[int, bytes | None]] = []
        self.locked_by: Handle | None = None

    def write(self, offset: int, data: bytes) -> None:
        if offset > len(self.data):
            self.data.extend(bytes(offset - len(self.data)))
        self.data[offset : offset + len(data)] = data
        self.pending.append((offset, data))

    def cut(self, size: int) -> None:
        if size < len(self.data):
            del self.data[size:]
        else:
            self.data.extend(bytes(size - len(self.data)))
        self.pending.append((size, None))

    def sync(self) -> None:
        self.durable = bytes(self.data)
        self.pending.clear()

    def lose_power(self, random: Random) -> int:
        """Go back to the platters and a part of what was on the way there; how many writes are lost."""
        kept = random.randint(0, len(self.pending))
        lost = self.pending[kept:]
        self.data = bytearray(self.durable)
        for offset, data in self.pending[:kept]:
            self._again(offset, data)
        if lost and lost[0][1] and random.random() < 0.5:
            offset, data = lost[0]
            assert data is not None
            torn = data[: random.randint(0, len(data))]
            # the length may be on disk before the content is
            self._again(offset, torn if random.random() < 0.7 else bytes(len(torn)))
        self.sync()
        return len(lost)

    def _again(self, offset: int, data: bytes | None) -> None:
        if data is None:
            self.cut(offset)
        else:
            self.write(offset, data)


class Handle:
    """An open file of one process."""

    def __init__(self, node: Node, owner: Owner | None, flags: int) -> None:
        self.node = node
        self.owner = owner
        self.flags = flags
        self.at = 0


class Raw(io.RawIOBase):
    """An open file of the model, as io wants it."""

    def __init__(self, disk: Disk, number: int, *, readable: bool, writable: bool) -> None:
        self._disk = disk
        self._number = number
        self._readable, self._writable = readable, writable

    def readable(self) -> bool:
        return self._readable

    def writable(self) -> bool:
        return self._writable

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def readinto(self, buffer: Any) -> int:
        data = self._disk.read(self._number, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def write(self, data: Any) -> int:
        return self._disk.write(self._number, data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._disk.lseek(self._number, offset, whence)

    def truncate(self, size: int | None = None) -> int:
        size = self.tell() if size is None else size
        self._disk.ftruncate(self._number, size)
        return size

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._disk.close(self._number)


def number_of(file: Any) -> int:
    return file if isinstance(file, int) else file.fileno()
