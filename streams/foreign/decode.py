"""The one way in which bytes from outside are decoded: MQTT payloads, files, requests, lines of a process.

    read = json_decoder(Shape)          for many documents of one shape
    from_json(data), from_json(data, Shape), from_msgpack(…), from_toml(…)

All of them raise ForeignError and nothing else. msgspec itself raises DecodeError and ValidationError,
UnicodeDecodeError for text that is not UTF-8, RecursionError for deep nesting, and OverflowError for a number that does
not fit: four families, of which a caller that lists them by hand forgets one. tools/foreign.py keeps every other module
from calling a decoder directly.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar, overload

import msgspec

from watchkeeper.streams.messages import Drop

T = TypeVar("T")
Bytes = bytes | bytearray | memoryview | str | msgspec.Raw
# ValueError: msgspec's own errors and UnicodeDecodeError. MemoryError: a length that a few bytes claim.
_RAISED = (ValueError, RecursionError, OverflowError, MemoryError)


class ForeignError(ValueError):
    """Bytes that are not what they should be. `reason` is one of messages.Drop."""

    def __init__(self, reason: str, problem: str) -> None:
        super().__init__(problem)
        self.reason = reason


def refusal(error: Exception) -> ForeignError:
    """What a decoder raised, in our words."""
    if isinstance(error, msgspec.ValidationError):
        missing = "missing required field" in str(error)
        return ForeignError(Drop.MISSING if missing else Drop.TYPE, str(error))
    if isinstance(error, RecursionError):
        return ForeignError(Drop.DEPTH, "nested too deeply")
    if isinstance(error, UnicodeDecodeError):
        return ForeignError(Drop.SYNTAX, f"text that is not UTF-8 ({error.reason} at byte {error.start:,} of it)")
    if isinstance(error, MemoryError):
        return ForeignError(Drop.SIZE, "too large for the memory")
    return ForeignError(Drop.SYNTAX, str(error))


def _guarded(decode: Callable[[Any], T]) -> Callable[[Bytes], T]:
    def read(data: Bytes) -> T:
        try:
            return decode(data)
        except _RAISED as error:
            raise refusal(error) from error

    return read


def json_decoder(shape: type[T]) -> Callable[[Bytes], T]:
    """A function that makes `shape` of JSON."""
    return _guarded(msgspec.json.Decoder(shape).decode)


def msgpack_decoder(shape: type[T]) -> Callable[[Bytes], T]:
    """A function that makes `shape` of MessagePack."""
    return _guarded(msgspec.msgpack.Decoder(shape).decode)


@overload
def from_json(data: Bytes) -> Any: ...
@overload
def from_json(data: Bytes, shape: type[T]) -> T: ...
def from_json(data: Bytes, shape: Any = Any) -> Any:
    """One JSON document."""
    return _guarded(lambda raw: msgspec.json.decode(raw, type=shape))(data)


@overload
def from_msgpack(data: Bytes) -> Any: ...
@overload
def from_msgpack(data: Bytes, shape: type[T]) -> T: ...
def from_msgpack(data: Bytes, shape: Any = Any) -> Any:
    """One MessagePack document."""
    return _guarded(lambda raw: msgspec.msgpack.decode(raw, type=shape))(data)


def from_python_json(data: Bytes) -> Any:
    """One JSON document as Python's json module writes it: NaN and Infinity are numbers there."""
    return _guarded(json.loads)(data)


def from_toml(data: Bytes, shape: type[T]) -> T:
    """One TOML document."""
    return _guarded(lambda raw: msgspec.toml.decode(raw, type=shape))(data)
