"""Reshapes streams of batches without changing what is in them: join, cut, select, and merge several logs by time.

Used by the log writer (many small batches become one frame), by `replay` (`--chunk`, several logs, pacing) and by
every source that selects a span of time. The order of arrival is never changed inside one source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from watchkeeper.streams.batch import F8, I4, I8, B, Batch, CheckedBatch, Columns, concat, later_calls, slice_batch
from watchkeeper.streams.messages import Kind

# A log's own time is a running median of its sample times. On sorted times a median changes nothing, gaps
# included; up to four wild timestamps among nine neighbours do not move it.
MEDIAN_REACH = 4


def numbered(batch: B) -> B:
    """The batch with its samples numbered 0, 1, 2 … without holes (refused samples leave holes)."""
    total = len(batch)
    if all(not len(c) or c.seq[-1] < total for c in batch.kinds.values()):
        return batch
    order = np.sort(np.concatenate([c.seq for c in batch.kinds.values()]))
    kinds = {kind: Columns(np.searchsorted(order, c.seq), c.vid, c.via, c.t, c.data) for kind, c in batch.kinds.items()}
    return batch.having(kinds)


def join(batches: Sequence[Batch]) -> Batch:
    """Several batches as one, in the order given. Names that no sample uses are left out."""
    ids: dict[str, int] = {}
    vias: dict[str, int] = {}
    callsigns: dict[str, str] = {}
    called_t: dict[str, float] = {}
    parts: dict[Kind, list[Columns]] = {}
    offset = 0
    for batch in map(numbered, batches):
        columns = list(batch.kinds.values())
        id_table = _renumber(batch.ids, [c.vid for c in columns], ids)
        via_table = _renumber(batch.vias, [c.via for c in columns], vias)
        for kind, c in batch.kinds.items():
            if len(c):
                moved = Columns(c.seq + offset, id_table[c.vid], via_table[c.via], c.t, c.data)
                parts.setdefault(kind, []).append(moved)
        news = {name: sign for name, sign in batch.callsigns.items() if callsigns.get(name) != sign}
        if news:
            # a piece has the callsigns of all it was cut from: those without a sample in it come with another piece
            first_t = {name: t for name, t in zip(batch.ids, batch.first_t().tolist(), strict=True) if t < np.inf}
            called_t |= {name: batch.called_t.get(name, first_t[name]) for name in news if name in first_t}
            callsigns |= {name: sign for name, sign in news.items() if name in first_t}
        offset += len(batch)
    kinds = {kind: blocks[0] if len(blocks) == 1 else concat(blocks) for kind, blocks in sorted(parts.items())}
    make = CheckedBatch if all(isinstance(batch, CheckedBatch) for batch in batches) else Batch
    signs = {name: callsigns[name] for name in ids if name in callsigns}
    return make(list(ids), kinds, list(vias), signs, later_calls(list(ids), kinds, called_t))


def _renumber(names: list[str], used: list[I4], index: dict[str, int]) -> I4:
    """A table from a batch's numbers to those of `index`, which learns the names in use; -1 stays -1."""
    seen = np.zeros(len(names) + 1, bool)
    for numbers in used:
        seen[numbers] = True
    table = np.full(len(names) + 1, -1, np.int32)
    for number in np.flatnonzero(seen[:-1]).tolist():
        table[number] = index.setdefault(names[number], len(index))
    return table


def cut(batch: B, edges: Sequence[int]) -> Iterator[B]:
    """Pieces of a batch numbered without holes: samples edges[0] to edges[1], edges[1] to edges[2] and so on.

    Like slice_batch for many pieces at once: places are looked up once, and times and numbers are views.
    """
    places = {kind: np.searchsorted(c.seq, edges).tolist() for kind, c in batch.kinds.items()}
    for i, start in enumerate(edges[:-1]):
        kinds: dict[Kind, Columns] = {}
        for kind, c in batch.kinds.items():
            lo, hi = places[kind][i : i + 2]
            if hi > lo:
                # kernels are compiled for whole, not for strided arrays
                data = np.ascontiguousarray(c.data[:, lo:hi])
                kinds[kind] = Columns(c.seq[lo:hi] - start, c.vid[lo:hi], c.via[lo:hi], c.t[lo:hi], data)
        yield batch.having(kinds)


def total_of(batch: Batch) -> int:
    """One more than the last sample's number: refused samples leave holes."""
    return 1 + max(int(cols.seq[-1]) for cols in batch.kinds.values())


def pieces(batch: B, at_most: int) -> list[B]:
    """The batch in pieces of at most so many samples."""
    total = total_of(batch)
    return [batch] if total <= at_most else list(cut(batch, [*range(0, total, at_most), total]))


def rechunk(batches: Iterable[Batch], size: int) -> Iterator[Batch]:
    """The same samples in batches of exactly `size` (the last may be smaller)."""
    held: list[Batch] = []
    missing = size
    for whole in batches:
        batch = numbered(whole)
        n = len(batch)
        edges = [0, *range(missing, n, size), n] if n else []
        for piece, (start, stop) in zip(cut(batch, edges), pairwise(edges), strict=True):
            held.append(piece)
            missing -= stop - start
            if not missing:
                yield held[0] if len(held) == 1 else join(held)
                held, missing = [], size
    if held:
        yield join(held)


def select_time(batch: B, start: float, stop: float) -> B:
    """The samples with start <= t < stop."""
    kinds = {kind: c.take((c.t >= start) & (c.t < stop)) for kind, c in batch.kinds.items()}
    return numbered(batch.having(kinds))


def arrival_times(batch: Batch) -> F8:
    """The time of every sample in the order of arrival (of a batch numbered without holes)."""
    t = np.empty(len(batch))
    for c in batch.kinds.values():
        t[c.seq] = c.t
    return t


def timed(batches: Iterable[Batch]) -> Iterator[tuple[Batch, F8]]:
    """Each batch with the log's own time at each of its samples, which never falls inside a batch.

    One batch behind its input: the median looks a few samples ahead.
    """
    before: F8 = np.empty(0)
    held: tuple[Batch, F8] | None = None
    for whole in batches:
        if not len(whole):
            continue
        batch = numbered(whole)
        t = arrival_times(batch)
        if held is not None:
            yield held[0], _running_median(before, held[1], t[:MEDIAN_REACH])
            before = np.concatenate((before, held[1]))[-MEDIAN_REACH:]
        held = batch, t
    if held is not None:
        yield held[0], _running_median(before, held[1], np.empty(0))


def _running_median(before: F8, t: F8, after: F8) -> F8:
    # as if sorted at both ends of the log, so that there too a median changes nothing
    earlier = np.full(MEDIAN_REACH - len(before), -np.inf)
    later = np.full(MEDIAN_REACH - len(after), np.inf)
    near = np.concatenate((earlier, before, t, after, later))
    windows = np.lib.stride_tricks.sliding_window_view(near, 2 * MEDIAN_REACH + 1)
    median = np.partition(windows, MEDIAN_REACH, axis=1)[:, MEDIAN_REACH]
    rising: F8 = np.maximum.accumulate(median)
    return rising


@dataclass(slots=True)
class _Feed:
    """One log on its way into the merge: the batch at hand and how much of it has gone."""

    source: Iterator[tuple[Batch, F8]]
    batch: Batch
    t: F8
    at: int = 0

    def cut(self, until: float, side: str) -> Batch | None:
        start = self.at
        self.at = start + int(np.searchsorted(self.t[start:], until, side=side))  # type: ignore[call-overload]
        return slice_batch(self.batch, start, self.at) if self.at > start else None


def merge_by_time(logs: Sequence[Iterable[Batch]]) -> Iterator[Batch]:
    """One stream from several logs: the sample whose log is earliest comes first, ties in the order of the logs.

    Holds two batches per log, whatever their length. One log passes through untouched.
    """
    if len(logs) == 1:
        yield from logs[0]
        return
    feeds: list[_Feed] = []
    for log in logs:
        source = timed(log)
        first = next(source, None)
        if first is not None:
            feeds.append(_Feed(source, *first))
    while feeds:
        # Everything up to the newest sample of the log that is furthest behind is complete.
        last = min(range(len(feeds)), key=lambda i: (feeds[i].t[-1], i))
        until = float(feeds[last].t[-1])
        parts: list[Batch] = []
        keys: list[F8] = []
        for i, feed in enumerate(feeds):
            start = feed.at
            part = feed.cut(until, "right" if i <= last else "left")
            if part is not None:
                parts.append(part)
                keys.append(feed.t[start : feed.at])
        yield reordered(join(parts), np.concatenate(keys))
        following = next(feeds[last].source, None)
        if following is None:
            del feeds[last]
        else:
            feeds[last].batch, feeds[last].t = following
            feeds[last].at = 0


def reordered(batch: B, keys: F8) -> B:
    """A batch numbered without holes with its samples in the order of these keys; ties stay as they are."""
    rank: I8 = np.empty(len(keys), np.int64)
    rank[np.argsort(keys, kind="stable")] = np.arange(len(keys))
    kinds = {}
    for kind, c in batch.kinds.items():
        seq = rank[c.seq]
        order = np.argsort(seq)
        kinds[kind] = Columns(seq[order], c.vid[order], c.via[order], c.t[order], np.take(c.data, order, axis=1))
    return batch.having(kinds)
