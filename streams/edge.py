"""The edge: where samples enter, from the network's messages and adapters' batches to checked batches.

    edge.add([(topic, payload or batch, arrival time), …])      what has arrived, in order
    edge.take(20_000) -> [CheckedBatch, …]                      the samples in it, checked once, with link reports

The daemon's pump and `record` have one each: what is recorded is what a daemon would have judged. Arrival times are
known here and nowhere further in; the link meter makes samples of them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from watchkeeper.config.schema import Limits, Topics
from watchkeeper.streams.batch import F8, Batch, CheckedBatch
from watchkeeper.streams.codec.decode import Decoder, OnBad
from watchkeeper.streams.codec.encode import sample_topic
from watchkeeper.streams.linkmeter import LinkMeter
from watchkeeper.streams.logs.chunks import pieces, total_of
from watchkeeper.streams.messages import Drop, Kind

# Messages that arrived within so long share the arrival time of the last.
TOGETHER_S = 0.02
# Topic and payload of a message, or no topic and an adapter's batch; and the time of its arrival.
Arrival = tuple[str, bytes | Batch, float]


class Edge:
    """One edge. `on_bad` gets topic, reason and payload of what is refused.

    Arrival times are in any clock; `wall_offset_s` makes wall time of them.
    """

    def __init__(self, topics: Topics, limits: Limits, on_bad: OnBad, wall_offset_s: float = 0.0) -> None:
        self._decoder = Decoder(topics, limits, on_bad)
        self._meter = LinkMeter(lambda name: on_bad(sample_topic(topics, Kind.LINK, name), Drop.RANGE, b""))
        self.wall_offset_s = wall_offset_s
        # samples so far and the newest arrival time, after each group that was added
        self._marks: list[tuple[int, float]] = []

    def add(self, arrivals: Sequence[Arrival]) -> int:
        """Decode what has arrived; how many samples wait for `take`."""
        if arrivals[-1][2] - arrivals[0][2] > TOGETHER_S and len(arrivals) > 1:
            # they waited in our queue: that is nobody's latency
            half = len(arrivals) // 2
            self.add(arrivals[:half])
            return self.add(arrivals[half:])
        decoder = self._decoder
        if any(isinstance(payload, Batch) for _, payload, _ in arrivals):
            for topic, payload, _ in arrivals:
                if isinstance(payload, Batch):
                    decoder.add_batch(payload)
                else:
                    decoder.add(topic, payload)
        else:
            decoder.add_all(arrivals)
        pending = decoder.pending
        self._marks.append((pending, arrivals[-1][2]))
        return pending

    def take(self, at_most: int = sys.maxsize) -> list[CheckedBatch]:
        """All that was added since the last take, in batches of at most so many samples."""
        batch = self._decoder.take()
        marks, self._marks = self._marks, []
        if batch is None:
            return []
        batch = self._meter.add(batch, self._arrived_s(marks, total_of(batch)))
        return pieces(batch, at_most)

    def resume(self) -> None:
        """What `take` gives next has waited for us: its arrival says nothing about links."""
        self._meter.resume()

    def snapshot(self) -> dict[str, Any]:
        """What later batches depend on, between `take` and `add`."""
        return self._meter.snapshot()

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._meter.restore(state)

    def _arrived_s(self, marks: list[tuple[int, float]], total: int) -> F8:
        """When each sample arrived, by the wall clock."""
        ends, at = np.array(marks).T
        arrived: F8 = at[np.searchsorted(ends, np.arange(total), side="right")] + self.wall_offset_s
        return arrived
