"""The state directory: a lock so that one daemon owns it, and the snapshot of the whole pipeline.

    lock              held (flock) while a daemon runs
    snapshot.msgpack  a line of JSON (format, fingerprint, size, checksum), then the pipeline's state as MessagePack
    journal.jsonl     see outputs/journal.py

A snapshot only saves time: without one the daemon learns its fleet again within a minute. So a snapshot that is
damaged, from another format or from a differently shaped configuration is ignored, and never stops a start.
Arrays are maps of ARRAY to [dtype as in .npy files, shape, [bytes, …]]; everything else is plain MessagePack.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from ast import literal_eval
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.lib.format import descr_to_dtype, dtype_to_descr

from watchkeeper.config.schema import Config

FORMAT = 3
ARRAY = "\0nd"
HEADER_MAX_BYTES = 4096
PIECE_BYTES = 256 * 1024


class StateError(Exception):
    """The state directory cannot be used: the daemon must not start."""


class SnapshotError(Exception):
    """A snapshot that cannot be used, with the reason for people."""


class Header(msgspec.Struct, frozen=True):
    """First line of a snapshot file."""

    watchkeeper_snapshot: int
    fingerprint: str
    bytes: int
    crc32: int


class StateLock:
    """Exclusive ownership of a state directory for the life of the process, however it ends."""

    def __init__(self, state_dir: Path) -> None:
        try:
            # a snapshot is as trusted as the program: nobody else shall write one
            state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = (state_dir / "lock").open("a+")
        except OSError as error:
            raise StateError(f"state directory {state_dir}: {error.strerror}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.seek(0)
            holder = self._file.read(20).strip() or "unknown"
            self._file.close()
            raise StateError(f"state directory {state_dir} is in use by another daemon (pid {holder})") from error
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        """Let another daemon have it. The file stays: removing it would race with the next owner."""
        self._file.close()


def fingerprint(config: Config) -> str:
    """What the shape of the state depends on. Thresholds are not part of it: they change without losing state."""
    enabled = [name for name, section in config.detectors.sections().items() if getattr(section, "enabled", True)]
    shape = [FORMAT, config.fleet, config.frames, config.time.tick_s, enabled]
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


def write_snapshot(path: Path, payload: bytes | bytearray, mark: str) -> None:
    """Replace the snapshot in one step: a crash leaves the old one or the new one, whole.

    It goes to the disk in small pieces: the journal has the same disk, and must not wait for all of it.
    """
    header = Header(FORMAT, mark, len(payload), zlib.crc32(payload))
    fresh = path.with_suffix(".new")
    with fresh.open("wb", buffering=0) as file:
        file.write(msgspec.json.encode(header) + b"\n")
        view = memoryview(payload)
        for start in range(0, len(view), PIECE_BYTES):
            file.write(view[start : start + PIECE_BYTES])
            os.fdatasync(file.fileno())
        view.release()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_dir(path.parent)


def read_snapshot(path: Path, mark: str) -> dict[str, Any] | None:
    """The saved state; None when there is none. Raises SnapshotError when there is one that must not be used."""
    try:
        with path.open("rb") as file:
            line = file.readline(HEADER_MAX_BYTES)
            payload = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SnapshotError(f"unreadable: {error.strerror}") from error
    try:
        header = msgspec.json.decode(line, type=Header)
    except msgspec.MsgspecError as error:
        raise SnapshotError("not a snapshot of ours") from error
    if header.watchkeeper_snapshot != FORMAT:
        raise SnapshotError(f"format {header.watchkeeper_snapshot}, this version reads {FORMAT}")
    if header.fingerprint != mark:
        raise SnapshotError("saved under a configuration of another shape")
    if header.bytes != len(payload) or header.crc32 != zlib.crc32(payload):
        raise SnapshotError("damaged")
    try:
        return decode_state(payload)
    except (msgspec.MsgspecError, TypeError, ValueError, SyntaxError) as error:
        raise SnapshotError(f"damaged: {error}") from error


def sync_dir(directory: Path) -> None:
    """Make a rename in this directory survive a power cut."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
