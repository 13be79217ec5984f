"""A log that is read whole when it is opened and kept as columns: for formats that cannot be read in pieces.

Adapters make the columns of each kind; TableLog puts them into one line by time and hands them out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from watchkeeper.streams.batch import F8, I4, Batch, Columns, columns_of, slice_batch
from watchkeeper.streams.logs.base import SourceInfo
from watchkeeper.streams.logs.chunks import arrival_times
from watchkeeper.streams.logs.told import NOTHING, Told
from watchkeeper.streams.messages import Kind

# Times, the number of each row's vehicle, and its fields by name.
Table = tuple[F8, I4, Mapping[str, F8]]


class TableLog:
    """Samples of any kinds, by time; rows of one time in the order of the tables."""

    def __init__(
        self,
        path: Path,
        format_name: str,
        ids: Sequence[str],
        tables: Mapping[Kind, Table],
        *,
        callsigns: Mapping[str, str] | None = None,
        problems: Sequence[str] = (),
        bad_rows: int = 0,
        told: Told = NOTHING,
    ) -> None:
        self.path = path
        self.told = told
        self.position = 0
        # ROS 2 keeps a recording in a folder
        self._size = sum(f.stat().st_size for f in path.iterdir()) if path.is_dir() else path.stat().st_size
        self._batch = _by_time(ids, tables, dict(callsigns or {}))
        self._t = arrival_times(self._batch)
        self._info = SourceInfo(path, format_name, self._size, tuple(problems), None, bad_rows)

    def info(self) -> SourceInfo:
        """Format, size, and what was wrong with it."""
        return self._info

    def batches(self, chunk: int = 8192, *, start: float = -math.inf, stop: float = math.inf) -> Iterator[Batch]:
        """Samples by time, at most `chunk` at once."""
        first, last = np.searchsorted(self._t, (start, stop)).tolist()
        for a in range(first, last, chunk):
            b = min(a + chunk, last)
            self.position = self._size * b // len(self._t)
            yield slice_batch(self._batch, a, b)
        self.position = self._size


def _by_time(ids: Sequence[str], tables: Mapping[Kind, Table], callsigns: dict[str, str]) -> Batch:
    t = np.concatenate([table[0] for table in tables.values()]) if tables else np.empty(0)
    rank = np.empty(len(t), np.int64)
    rank[np.argsort(t, kind="stable")] = np.arange(len(t))
    kinds: dict[Kind, Columns] = {}
    at = 0
    for kind, (times, vid, fields) in tables.items():
        seq = rank[at : at + len(times)]
        at += len(times)
        if len(times):
            kinds[kind] = columns_of(kind, vid, times, dict(fields), seq=seq).take(np.argsort(seq))
    return Batch(list(ids), kinds, [], callsigns)
