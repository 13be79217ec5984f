"""The snapshot of the whole pipeline, in the state directory.

    snapshot.msgpack  a checked line (format, fingerprint, size, checksum, the journal's last number), then the state
    snapshot.old      the one before it, for when the newest is damaged

A snapshot only saves time: without one the daemon learns its fleet again within a minute. So a snapshot that is
damaged, from another format or from a differently shaped configuration is ignored, and never stops a start.
The state itself is written as streams/foreign/states.py says.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.config.schema import Config
from watchkeeper.daemon.state.checked import is_sealed, replace_file, seal, unseal
from watchkeeper.streams.foreign.states import decode_state
from watchkeeper.streams.messages import FIELDS

FORMAT = 8
HEADER_MAX_BYTES = 4096
PIECE_BYTES = 256 * 1024


class SnapshotError(Exception):
    """A snapshot that cannot be used, with the reason for people; `damaged`: nothing that we did explains it."""

    def __init__(self, reason: str, *, damaged: bool = False) -> None:
        super().__init__(reason)
        self.damaged = damaged


class _Format(msgspec.Struct, frozen=True):
    watchkeeper_snapshot: int


class Header(_Format, frozen=True):
    """First line of a snapshot file."""

    fingerprint: str
    bytes: int
    crc32: int
    journal: int
    """The journal's last number when it was taken: it knows of every event up to that one."""


def fingerprint(config: Config, *, spread: bool = False) -> str:
    """What the shape of the state depends on. Thresholds are not part of it: they change without losing state.

    `spread`: it is that of several processes, however many. A version whose streams have other fields has its own.
    """
    fields = [[kind.word, *(field.name for field in columns)] for kind, columns in FIELDS.items()]
    shape = [FORMAT, config.fleet, config.frames, config.time.tick_s, fields, *(["spread"] if spread else [])]
    return blake2b(msgspec.json.encode(shape), digest_size=8).hexdigest()


def previous(path: Path) -> Path:
    """Where the snapshot before the newest is."""
    return path.with_suffix(".old")


def write_snapshot(path: Path, payload: bytes | bytearray, mark: str, journal: int = 0) -> None:
    """Replace the snapshot in one step; the one before it stays as `previous`. OSError: the disk does not take it."""
    header = Header(FORMAT, mark, len(payload), zlib.crc32(payload), journal)

    def pieces() -> Iterator[bytes | memoryview]:
        yield seal(msgspec.json.encode(header))
        with memoryview(payload) as view:
            for start in range(0, len(view), PIECE_BYTES):
                with view[start : start + PIECE_BYTES] as piece:
                    yield piece

    replace_file(path, pieces(), keep=previous(path))


def read_snapshot(path: Path, mark: str) -> tuple[dict[str, Any], int] | None:
    """The saved state and its journal number; None when there is none. Raises SnapshotError when it cannot be used."""
    found = checked_snapshot(path, mark)
    if found is None:
        return None
    payload, header = found
    try:
        return decode_state(payload), header.journal
    except (msgspec.MsgspecError, TypeError, ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise SnapshotError(f"damaged: {error}", damaged=True) from error


def checked_snapshot(path: Path, mark: str) -> tuple[bytes, Header] | None:
    """The bytes of a snapshot that is whole. Raises as `read_snapshot` does."""
    try:
        with path.open("rb") as file:
            line = file.readline(HEADER_MAX_BYTES)
            payload = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SnapshotError(f"unreadable: {error.strerror}", damaged=True) from error
    body = unseal(line)
    try:
        # one of an earlier version has no checksum on its first line
        header = msgspec.json.decode(line, type=_Format)
        if body is None and (header.watchkeeper_snapshot == FORMAT or is_sealed(line)):
            raise SnapshotError("damaged", damaged=True)
        if body is None or header.watchkeeper_snapshot != FORMAT:
            raise SnapshotError(f"format {header.watchkeeper_snapshot}, this version reads {FORMAT}")
        header = msgspec.json.decode(body, type=Header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SnapshotError("not a snapshot of ours", damaged=True) from error
    if header.fingerprint != mark:
        raise SnapshotError("saved by another version, or under a configuration of another shape")
    if header.bytes != len(payload) or header.crc32 != zlib.crc32(payload):
        raise SnapshotError("damaged", damaged=True)
    return payload, header
