"""Samples gathered one by one until they are taken as a batch. For adapters whose input comes message by message."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan

import numpy as np

from watchkeeper.streams.batch import Batch, Columns
from watchkeeper.streams.messages import COLUMN, FIELDS, Kind
from watchkeeper.streams.signals import name_numbers


class _Part:
    """The rows of one kind: time and fields, and for each its number in order of arrival and its vehicle's."""

    def __init__(self) -> None:
        self.rows: list[list[float]] = []
        self.seq: list[int] = []
        self.vid: list[int] = []


class Rows:
    """What was added since the last take. `via` names the gateway of all of it, if it has one."""

    def __init__(self, via: str = "") -> None:
        self._via = via
        self._reset()

    def _reset(self) -> None:
        self._vid: dict[str, int] = {}
        self._parts: dict[Kind, _Part] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, name: str) -> bool:
        return name in self._vid

    def add(self, kind: Kind, name: str, t: float, values: Mapping[str, float]) -> None:
        """One sample; fields that are not given are absent."""
        column = COLUMN[kind]
        row = [nan] * (1 + len(FIELDS[kind]))
        row[0] = t
        for field, value in values.items():
            row[1 + column[field]] = value
        part = self._parts.setdefault(kind, _Part())
        part.rows.append(row)
        part.seq.append(self._count)
        part.vid.append(self._vid.setdefault(name, len(self._vid)))
        self._count += 1

    def add_signals(self, name: str, t: float, values: Mapping[str, float]) -> None:
        """Named numbers of one time, a sample of the stream `signal` each."""
        part = self._parts.setdefault(Kind.SIGNAL, _Part())
        for signal, value in values.items():
            part.rows.append([t, value, *name_numbers(signal)])
            part.seq.append(self._count)
            part.vid.append(self._vid.setdefault(name, len(self._vid)))
            self._count += 1

    def take(self, callsigns: dict[str, str] | None = None) -> Batch | None:
        """Everything as one batch; None when there is nothing."""
        if not self._count:
            return None
        kinds: dict[Kind, Columns] = {}
        for kind, part in sorted(self._parts.items()):
            table = np.array(part.rows, np.float64).T
            via = np.full(len(part.rows), 0 if self._via else -1, np.int32)
            seq, vid = np.array(part.seq, np.int64), np.array(part.vid, np.int32)
            kinds[kind] = Columns(seq, vid, via, table[0].copy(), table[1:].copy())
        batch = Batch(list(self._vid), kinds, [self._via] if self._via else [], callsigns or {})
        self._reset()
        return batch
