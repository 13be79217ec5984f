"""A model file system: what the state directory of the simulated machine stands on.

Writes land in a page cache. A process that is killed loses nothing of it; a power cut loses what was not synced: of
each file a random suffix of the writes since its last fsync (the first of the lost ones may be torn), and of the names
(created, renamed, removed) a random suffix since the last fsync of the folder. Only a synced folder keeps names for
certain, as POSIX has it.

Faults: `full` (ENOSPC, after a part), `read_only` (EROFS), `broken` (EIO for everything), `remove` (the folder is gone,
open files live on without a name). `fuse` ends the running process at the n-th operation from now, before or after it.

Only paths below ROOT are ours; interpose.py sends everything else to the real functions.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from random import Random
from types import SimpleNamespace
from typing import Any

from watchkeeper.daemon.state.recovery import SNAPSHOT

from chaos.files import Handle, Node, Raw, number_of
from chaos.timeline import Killed, Owner, Timeline

ROOT = "/chaos"
STATE = f"{ROOT}/state"
FIRST_HANDLE = 1 << 20
# never the same twice, also not in another world: a file object of a dead process may be closed late
_handle_numbers = count(FIRST_HANDLE)
BLOCK = 4096


class Disk:
    """One disk with one folder tree."""

    def __init__(self, timeline: Timeline, random: Random) -> None:
        self._timeline = timeline
        self._random = random
        self._numbers = 100
        self._handles: dict[int, Handle] = {}
        self.folders = {ROOT}
        self.names: dict[str, Node] = {}
        self._durable: tuple[set[str], dict[str, Node]] = ({ROOT}, {})
        self._pending: list[Callable[[set[str], dict[str, Node]], None]] = []
        self.full = self.read_only = self.broken = False
        self.fuse = 0
        self.fuse_after = False
        self.blown: Callable[[str], None] = lambda _what: None
        self.operations = 0
        self._removed = False

    # -- what happens to it ---------------------------------------------------------------------------------

    def process_ended(self, owner: Owner) -> None:
        """Its handles and locks are gone, however it ended."""
        for number in [n for n, h in self._handles.items() if h.owner is owner]:
            self._release(self._handles.pop(number))

    def lose_power(self) -> int:
        """Everything is as the platters have it; how many writes and names are lost."""
        kept = self._random.randint(0, len(self._pending))
        folders, names = set(self._durable[0]), dict(self._durable[1])
        for change in self._pending[:kept]:
            change(folders, names)
        lost = len(self._pending) - kept
        self._pending.clear()
        self.folders, self.names = folders, names
        self._durable = (set(folders), dict(names))
        for node in dict.fromkeys(names.values()):
            lost += node.lose_power(self._random)
        self._handles.clear()
        return lost

    def remove(self) -> None:
        """Somebody deletes the state directory."""
        self.names = {path: node for path, node in self.names.items() if not path.startswith(STATE)}
        self.folders.discard(STATE)
        self._removed = True
        self._sync_names()

    @property
    def trouble(self) -> bool:
        """A fault is on that a daemon can notice."""
        return self.full or self.read_only or self.broken

    @property
    def deleted(self) -> bool:
        """The state directory was there, and what was in it is not, or not all of it."""
        if self._removed and f"{STATE}/{SNAPSHOT}" in self.names:
            self._removed = False
        return STATE not in self.folders or self._removed

    # -- checks at the door of each operation ---------------------------------------------------------------

    def _door(self, what: str, *, writes: bool) -> None:
        owner = self._timeline.current
        if owner is not None and not owner.alive:
            raise Killed
        self.operations += 1
        if self.fuse and owner is not None:
            self.fuse -= 1
            if not self.fuse and not self.fuse_after:
                self.blown(what)
                raise Killed
        if self.broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if writes and self.read_only:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def _done(self, what: str) -> None:
        if not self.fuse and self.fuse_after and self._timeline.current is not None:
            self.fuse_after = False
            self.blown(what)
            raise Killed

    def _handle(self, number: int) -> Handle:
        handle = self._handles.get(number)
        if handle is None:
            owner = self._timeline.current
            if owner is None or not owner.alive:
                raise Killed
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        if handle.owner is not None and not handle.owner.alive:
            raise Killed
        return handle

    def _name(self, change: Callable[[set[str], dict[str, Node]], None]) -> None:
        change(self.folders, self.names)
        self._pending.append(change)

    def _sync_names(self) -> None:
        self._durable = (set(self.folders), dict(self.names))
        self._pending.clear()

    def _release(self, handle: Handle) -> None:
        if handle.node.locked_by is handle:
            handle.node.locked_by = None

    # -- as os has it ---------------------------------------------------------------------------------------

    def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        name = os.fspath(path)
        writes = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC))
        self._door(f"open {name}", writes=False)
        if name in self.folders:
            if writes:
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), name)
            return self._opened(Node(0, stat.S_IFDIR | 0o700), flags, name)
        node = self.names.get(name)
        if writes and self.read_only:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), name)
        if node is None:
            if not flags & os.O_CREAT or name.rpartition("/")[0] not in self.folders:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
            if self.full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
            self._numbers += 1
            node = Node(self._numbers, stat.S_IFREG | mode & 0o777)
            self._name(lambda _f, names, node=node: names.update({name: node}))  # type: ignore[misc]
        elif flags & os.O_EXCL and flags & os.O_CREAT:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        if flags & os.O_TRUNC and node.data:
            node.cut(0)
        number = self._opened(node, flags, name)
        self._done(f"open {name}")
        return number

    def _opened(self, node: Node, flags: int, name: str) -> int:
        number = next(_handle_numbers)
        self._handles[number] = Handle(node, self._timeline.current, flags)
        return number

    def close(self, number: int) -> None:
        handle = self._handles.pop(number, None)
        if handle is not None:
            self._release(handle)

    def dup(self, number: int) -> int:
        handle = self._handle(number)
        return self._opened(handle.node, handle.flags, "")

    def read(self, number: int, size: int) -> bytes:
        handle = self._handle(number)
        data = self.pread(number, size, handle.at)
        handle.at += len(data)
        return data

    def pread(self, number: int, size: int, offset: int) -> bytes:
        handle = self._handle(number)
        self._door("read", writes=False)
        return bytes(handle.node.data[offset : offset + size])

    def write(self, number: int, data: Any) -> int:
        handle = self._handle(number)
        offset = len(handle.node.data) if handle.flags & os.O_APPEND else handle.at
        written = self.pwrite(number, data, offset)
        handle.at = offset + written
        return written

    def pwrite(self, number: int, data: Any, offset: int) -> int:
        handle = self._handle(number)
        what = f"write {len(data)} bytes"
        self._door(what, writes=True)
        content = bytes(data)
        if self.full and offset + len(content) > len(handle.node.data):
            room = -len(handle.node.data) % BLOCK
            content = content[: min(room, len(content))] if self._random.random() < 0.5 else b""
            if not content:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        handle.node.write(offset, content)
        self._done(what)
        return len(content)

    def lseek(self, number: int, offset: int, whence: int) -> int:
        handle = self._handle(number)
        handle.at = offset + (0, handle.at, len(handle.node.data))[whence]
        return handle.at

    def ftruncate(self, number: int, size: int) -> None:
        handle = self._handle(number)
        self._door("truncate", writes=True)
        if size != len(handle.node.data):
            handle.node.cut(size)
        self._done("truncate")

    def fsync(self, number: Any) -> None:
        handle = self._handle(number_of(number))
        self._door("fsync", writes=False)
        if self.full and handle.node.pending and self._random.random() < 0.2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if stat.S_ISDIR(handle.node.mode):
            self._sync_names()
        else:
            handle.node.sync()
        self._done("fsync")

    def fstat(self, number: int) -> os.stat_result:
        return self._stat(self._handle(number).node)

    def stat(self, path: Any, **_options: Any) -> os.stat_result:
        name = os.fspath(path)
        self._door(f"stat {name}", writes=False)
        if name in self.folders:
            return self._stat(Node(1, stat.S_IFDIR | 0o700))
        return self._stat(self._named(name))

    def _stat(self, node: Node) -> os.stat_result:
        size, now = len(node.data), int(self._timeline.now)
        return os.stat_result((node.mode, node.number, 1, node.links, os.geteuid(), os.getegid(), size, now, now, now))

    def _named(self, name: str) -> Node:
        node = self.names.get(name)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return node

    def replace(self, source: Any, target: Any, **_options: Any) -> None:
        old, new = os.fspath(source), os.fspath(target)
        self._door(f"rename {old}", writes=True)
        node = self._named(old)

        def rename(_folders: set[str], names: dict[str, Node]) -> None:
            names.pop(old, None)
            names[new] = node

        self._name(rename)
        self._done(f"rename {old}")

    def link(self, source: Any, target: Any, **_options: Any) -> None:
        new = os.fspath(target)
        self._door(f"link {new}", writes=True)
        node = self._named(os.fspath(source))
        if new in self.names:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
        self._name(lambda _folders, names: names.update({new: node}))
        self._done(f"link {new}")

    def unlink(self, path: Any, **_options: Any) -> None:
        name = os.fspath(path)
        self._door(f"unlink {name}", writes=True)
        self._named(name)
        self._name(lambda _folders, names: (names.pop(name, None), None)[1])
        self._done(f"unlink {name}")

    def mkdir(self, path: Any, mode: int = 0o777, **_options: Any) -> None:
        name = os.fspath(path)
        self._door(f"mkdir {name}", writes=True)
        if name in self.folders:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        self._name(lambda folders, _names: folders.add(name))
        self._done(f"mkdir {name}")

    def listdir(self, path: Any = STATE) -> list[str]:
        name = os.fspath(path)
        self._door(f"list {name}", writes=False)
        if name not in self.folders:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return [found[len(name) + 1 :] for found in self.names if found.rpartition("/")[0] == name]

    @contextmanager
    def scandir(self, path: Any = STATE) -> Iterator[list[Any]]:
        yield [SimpleNamespace(name=name, is_dir=lambda: False, is_file=lambda: True) for name in self.listdir(path)]

    def chmod(self, path: Any, mode: int, **_options: Any) -> None:
        name = os.fspath(path)
        self._door(f"chmod {name}", writes=True)
        if name not in self.folders:
            node = self._named(name)
            node.mode = stat.S_IFMT(node.mode) | mode

    def fchmod(self, number: int, mode: int) -> None:
        node = self._handle(number).node
        node.mode = stat.S_IFMT(node.mode) | mode

    def flock(self, file: Any, operation: int) -> None:
        handle = self._handle(number_of(file))
        node = handle.node
        if node.locked_by not in (None, handle):
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK))
        node.locked_by = handle

    # -- as io has it ---------------------------------------------------------------------------------------

    def open_file(
        self, path: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, errors: Any = None,
        newline: Any = None,
    ) -> Any:  # fmt: skip
        """`open`: a raw file of ours under the buffers of io."""
        kind = mode.replace("b", "").replace("t", "")
        flags = {
            "r": os.O_RDONLY, "r+": os.O_RDWR, "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
            "w+": os.O_RDWR | os.O_CREAT | os.O_TRUNC, "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
            "a+": os.O_RDWR | os.O_CREAT | os.O_APPEND, "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
        }[kind]  # fmt: skip
        number = path if isinstance(path, int) else self.open(path, flags, 0o644)
        raw = Raw(self, number, readable=kind[0] == "r" or "+" in kind, writable=kind != "r")
        if buffering == 0:
            return raw
        if "+" in kind:
            buffered: Any = io.BufferedRandom(raw)
        else:
            buffered = io.BufferedReader(raw) if kind == "r" else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding or "utf-8", errors, newline)
