"""The snapshot of the whole pipeline, in the state directory.

    snapshot.msgpack  a checked line (format, fingerprint, size, checksum, the journal's last number), then the state
    snapshot.old      the one before it, for when the newest is damaged

A snapshot only saves time: without one the daemon learns its fleet again within a minute. So a snapshot that is
damaged, from another format or from a differently shaped configuration is ignored, and never stops a start.
Arrays are maps of ARRAY to [dtype as in .npy files, shape, [bytes, …]]; everything else is plain MessagePack.
"""

from __future__ import annotations

import zlib
from ast import literal_eval
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.lib.format import descr_to_dtype, dtype_to_descr

from watchkeeper.config.schema import Config
from watchkeeper.daemon.state.checked import is_sealed, replace_file, seal, unseal

FORMAT = 4
ARRAY = "\0nd"
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


def fingerprint(config: Config) -> str:
    """What the shape of the state depends on. Thresholds are not part of it: they change without losing state."""
    shape = [FORMAT, config.fleet, config.frames, config.time.tick_s]
    return blake2b(msgspec.json.encode(shape), digest_size=8).hexdigest()


def size_of(state: Any) -> int:
    """About how many bytes a state takes."""
    if isinstance(state, np.ndarray):
        return state.nbytes
    if isinstance(state, dict):
        return sum(map(size_of, state.values()))
    return 16 * len(state) if isinstance(state, (list, str)) else 16


class StateEncoder:
    """Turns states into MessagePack, in a buffer that is used again: fresh memory costs ten times the copying.

    The result holds until the next call. Every array is copied, so the caller may go on changing them.
    """

    def __init__(self) -> None:
        self._encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
        self._buffer = bytearray()
        self.reserved = 0

    def reserve(self, size: int) -> None:
        """Get memory for states up to this size; from a worker thread, so that `encode` itself is quick."""
        self._buffer = bytearray(size)
        # memory is only real once it is written to; NumPy lets other threads run meanwhile
        np.frombuffer(self._buffer, np.uint8)[:] = 0
        self.reserved = size

    def encode(self, state: dict[str, Any]) -> bytearray:
        """The state as MessagePack."""
        self._encoder.encode_into(state, self._buffer)
        return self._buffer


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError("arrays of Python objects are not state")
        # a slice such as table[:, :n] is not contiguous, but its rows are: no copy but the one into the buffer
        parts = [value] if value.flags.c_contiguous else list(value)
        flat = [np.ascontiguousarray(part).reshape(-1).view(np.uint8).data for part in parts]
        return {ARRAY: [repr(dtype_to_descr(value.dtype)), list(value.shape), flat]}
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not state")


def decode_state(payload: bytes) -> dict[str, Any]:
    """The inverse of StateEncoder.encode; tuples come back as lists."""
    state: dict[str, Any] = _arrays(msgspec.msgpack.decode(payload, strict=False))
    return state


def _arrays(value: Any) -> Any:
    if isinstance(value, dict):
        if ARRAY in value:
            dtype, shape, parts = value[ARRAY]
            return np.frombuffer(bytearray().join(parts), descr_to_dtype(literal_eval(dtype))).reshape(shape)
        return {key: _arrays(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_arrays(item) for item in value]
    return value


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
        raise SnapshotError("saved under a configuration of another shape")
    if header.bytes != len(payload) or header.crc32 != zlib.crc32(payload):
        raise SnapshotError("damaged", damaged=True)
    return payload, header
