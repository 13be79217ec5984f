"""Dumps for another number of operators; see the package's docstring."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from watchkeeper.engines.regroup.cut import cut
from watchkeeper.engines.regroup.joined import joined
from watchkeeper.streams.foreign.states import StateEncoder, decode_state
from watchkeeper.streams.split import BUCKETS

State = dict[str, Any]


def regroup(dumps: Sequence[bytes], parts: int) -> list[bytes]:
    """Dumps of all operators of vehicles for so many. ValueError: more than there can be."""
    if not 0 < parts <= BUCKETS:
        raise ValueError(f"{parts} operators of vehicles: there can be 1 to {BUCKETS}")
    states = [decode_state(dump) for dump in dumps]
    # with so many before and after, only these can have vehicles in common
    sources = [[i for i in range(len(states)) if _meet(i, len(states), part, parts)] for part in range(parts)]
    counted = [min(part for part in range(parts) if i in sources[part]) for i in range(len(states))]
    return [
        _bytes(joined([cut(states[i], part, parts, counts=counted[i] == part) for i in sources[part]]))
        for part in range(parts)
    ]


def by_bucket(dump: bytes, buckets: Iterable[int]) -> dict[int, bytes]:
    """An operator's dump as one for each of its buckets, those without vehicles included: they know the time."""
    state, own = decode_state(dump), sorted(buckets)
    return {bucket: _bytes(cut(state, bucket, BUCKETS, counts=bucket == own[0])) for bucket in own}


def join(dumps: Sequence[bytes]) -> bytes:
    """One dump of several whose vehicles are to be in one operator."""
    return _bytes(joined([decode_state(dump) for dump in dumps]))


def _meet(i: int, before: int, part: int, parts: int) -> bool:
    return any(bucket % before == i and bucket % parts == part for bucket in range(BUCKETS))


def _bytes(state: State) -> bytes:
    return bytes(StateEncoder().encode(state))
