"""Gateways by number: those that are declared first, then those that samples name as their `via`, as they come.

A number stays what it is for the life of the pipeline. At most `limit` names; samples through further ones count as
having come through none.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from watchkeeper.streams.batch import I4


class Gateways:
    """`number[name]` of each, counted from 0."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.number: dict[str, int] = {name: i for i, name in enumerate(names)}

    def know(self, names: Iterable[str], limit: int) -> None:
        """Number those that have no number yet."""
        for name in names:
            if name not in self.number and len(self.number) < limit:
                self.number[name] = len(self.number)

    def translate(self, vias: list[str], via: I4) -> I4:
        """Our numbers for indices into a batch's names; -1 is none."""
        if not vias:
            return via
        numbers = np.array([self.number.get(name, -1) for name in vias] + [-1], np.int32)
        mapped: I4 = numbers[via]  # -1 picks the last entry: none
        return mapped
