"""Deep comparison of two objects by what they are made of: every attribute, every array, every value. For tests."""

from __future__ import annotations

import random
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec
import numpy as np

PLAIN = (type(None), bool, int, float, str, bytes, np.generic)


def differences(a: Any, b: Any, skip: frozenset[str] = frozenset(), path: str = "") -> Iterator[str]:
    """Paths of what differs; `skip` are paths that are left out. NaN equals NaN, and order does not count in a set."""
    yield from _Walk(skip).differences(a, b, path)


class _Walk:
    def __init__(self, skip: frozenset[str]) -> None:
        self._skip = skip
        self._seen: set[tuple[int, int]] = set()

    def differences(self, a: Any, b: Any, path: str) -> Iterator[str]:
        if path in self._skip or a is b or (id(a), id(b)) in self._seen:
            return
        if type(a) is not type(b):
            yield f"{path}: {type(a).__name__} and {type(b).__name__}"
        elif isinstance(a, np.ndarray):
            if a.dtype != b.dtype or a.shape != b.shape or not _same_array(a, b):
                yield f"{path}: {a.dtype} {a.shape} and {b.dtype} {b.shape} differ"
        elif isinstance(a, PLAIN):
            if a != b and not (a != a and b != b):
                yield f"{path}: {a!r} and {b!r}"
        elif isinstance(a, random.Random):
            yield from self.differences(a.getstate(), b.getstate(), path)
        elif isinstance(a, types.FunctionType | types.BuiltinFunctionType | types.MethodType | type):
            return
        else:
            self._seen.add((id(a), id(b)))
            ours, theirs = parts(a), parts(b)
            if list(ours) != list(theirs):
                yield f"{path}: has {list(ours)[:9]} and {list(theirs)[:9]}"
            for name in ours.keys() & theirs.keys():
                yield from self.differences(ours[name], theirs[name], f"{path}{name}")


def parts(value: Any) -> dict[str, Any]:
    """What a value is made of, by how one gets there."""
    if isinstance(value, Mapping):
        return {f"[{key!r}]": item for key, item in value.items()}
    if isinstance(value, list | tuple):
        return {f"[{i}]": item for i, item in enumerate(value)}
    if isinstance(value, set | frozenset):
        return {f"[{i}]": item for i, item in enumerate(sorted(value))}
    if isinstance(value, msgspec.Struct):
        return {f".{name}": getattr(value, name) for name in value.__struct_fields__}
    if is_dataclass(value):
        return {f".{field.name}": getattr(value, field.name) for field in fields(value)}
    names = [*getattr(value, "__dict__", ()), *(n for c in type(value).__mro__ for n in getattr(c, "__slots__", ()))]
    if not names and hasattr(value, "__getstate__"):
        return {".state": value.__getstate__()}
    return {f".{name}": getattr(value, name) for name in dict.fromkeys(names) if hasattr(value, name)}


def _same_array(a: Any, b: Any) -> bool:
    if a.dtype.names:
        return all(_same_array(a[name], b[name]) for name in a.dtype.names)
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))
