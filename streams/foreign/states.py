"""The state of a pipeline or a part of it as MessagePack, and back: nested dicts of arrays and plain values.

Arrays are maps of ARRAY to [dtype as in .npy files, shape, [bytes, …]]; everything else is plain MessagePack. Used for
snapshots (daemon/state/snapshot.py), which have a checksum around it, and by engines, which move states between
processes.
"""

from __future__ import annotations

from ast import literal_eval
from typing import Any

import msgspec
import numpy as np
from numpy.lib.format import descr_to_dtype, dtype_to_descr

ARRAY = "\0nd"


def size_of(state: Any) -> int:
    """About how many bytes a state takes."""
    if isinstance(state, np.ndarray):
        return state.nbytes
    if isinstance(state, dict):
        return sum(map(size_of, state.values()))
    if isinstance(state, bytes):
        return len(state)
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
