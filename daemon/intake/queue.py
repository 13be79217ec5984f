"""The queue between the network and the pump: messages and adapters' batches, with their arrival times.

`Intake.put` is all that happens when a message arrives, `put_batch` when an adapter has samples: they join a bounded
queue. While that is full, nothing is acknowledged (kept.py), so that the broker holds back what it can: QoS 1 messages,
of which at most UNACKNOWLEDGED_MAX are on their way. What comes beyond those is dropped and counted.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from math import inf

from prometheus_client.core import Metric

from watchkeeper.daemon.families import gauge, total
from watchkeeper.daemon.intake.deadletter import NO_STREAM
from watchkeeper.daemon.intake.recent import Recent
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.edge import Arrival
from watchkeeper.streams.messages import Drop

# The queue is bounded by number (limits.queue_messages) and, because frames and batches may be large, by their size.
QUEUE_BYTES = 256 * 1024 * 1024
# So many more may wait while senders come back after an outage: what they have kept comes all at once.
SETTLING_MESSAGES = 50_000
# Nothing for so long is a pause: the line may be cut though nobody has said so.
PAUSE_S = 2.0
# MQTT's packet ids allow so many QoS 1 messages without acknowledgement: they must fit when the queue is full.
UNACKNOWLEDGED_MAX = 65_535


class Intake:
    """Bounded queue between the network and the pump: messages and adapters' batches, with their arrival times."""

    def __init__(self, limit: int, now: Callable[[], float] = time.monotonic) -> None:
        self.arrived = asyncio.Event()
        # gets each item that joins the queue; see kept.py
        self.keep: Callable[[Arrival], None] | None = None
        # messages that were taken in before, and who is told that one was skipped
        self.recent = Recent()
        self.skip: Callable[[], None] = lambda: None
        self.repeated = 0
        self.received = 0
        self.dropped = 0
        self._settling = False
        # when the newest arrived, and the first after the last pause
        self.newest_s = self.resumed_s = -inf
        self._limit = limit
        # so many may wait
        self._room = limit
        self._bytes = 0
        self._now = now
        self._queue: deque[Arrival] = deque()

    def put(self, topic: str, payload: bytes) -> None:
        """The transport's callback for each message: it must cost next to nothing."""
        if self.recent.looking and self.recent.is_repeat(topic, payload):
            self.repeated += 1
            self.skip()
            return
        self.recent.note(topic, payload)
        self._join(topic, payload, len(payload))

    def put_batch(self, batch: Batch) -> None:
        """An adapter's samples, as one message: no detour by way of bytes."""
        self._join("", batch, batch.nbytes)

    def _join(self, topic: str, payload: bytes | Batch, size: int) -> None:
        if len(self._queue) >= self._room + UNACKNOWLEDGED_MAX or self._bytes > 2 * QUEUE_BYTES:
            self.dropped += 1
            return
        now_s = self._now()
        if now_s - self.newest_s > PAUSE_S:
            self.resumed_s = now_s
        self.newest_s = now_s
        arrival = (topic, payload, now_s)
        self._queue.append(arrival)
        self.received += 1
        self._bytes += size
        if self.keep is not None:
            self.keep(arrival)
        self.arrived.set()

    @property
    def full(self) -> bool:
        """More waits than should; what arrives now is taken in, but not acknowledged."""
        return len(self._queue) >= self._room or self._bytes > QUEUE_BYTES

    @property
    def settling(self) -> bool:
        """While senders come back: nothing is taken from the queue for a moment."""
        return self._settling

    @settling.setter
    def settling(self, settling: bool) -> None:
        self._settling, self._room = settling, self._limit + settling * SETTLING_MESSAGES

    def __len__(self) -> int:
        return len(self._queue)

    def put_back(self, arrivals: Sequence[Arrival]) -> None:
        """What the run before had kept and not judged yet; called before anything arrives."""
        self._queue.extend(arrivals)
        self.received += len(arrivals)
        self._bytes += _size(arrivals)
        self.arrived.set()

    def waiting(self) -> list[Arrival]:
        """All of it, oldest first."""
        return list(self._queue)

    def arrived_s(self, number: int) -> float | None:
        """When the message with this number arrived, or the oldest if that is newer; None: it is not here yet."""
        i = max(number - self.head, 0)
        return self._queue[i][2] if i < len(self._queue) else None

    def arrived_by(self, at_s: float) -> int:
        """One more than the number of the last message that had arrived by then."""
        return self.head + sum(1 for _ in takewhile(lambda arrival: arrival[2] <= at_s, self._queue))

    def take(self, n: int) -> list[Arrival]:
        """The n oldest."""
        taken = [self._queue.popleft() for _ in range(n)]
        self._bytes -= _size(taken)
        return taken

    @property
    def oldest_s(self) -> float:
        """When the oldest arrived; of a queue that is not empty."""
        return self._queue[0][2]

    @property
    def head(self) -> int:
        """The number of the oldest message in the queue, counted from 0."""
        return self.received - len(self._queue)

    @property
    def drops(self) -> dict[tuple[str, str], int]:
        """What left the queue unread, as (stream, reason): nobody knows what it was."""
        return {(NO_STREAM, Drop.QUEUE_FULL): self.dropped, (NO_STREAM, Drop.DUPLICATE): self.repeated}

    def metrics(self) -> Iterator[Metric]:
        """For Prometheus."""
        yield total(
            "messages",
            "Messages from the broker, and batches from sources next to it",
            self.received + self.dropped + self.repeated,
        )
        yield gauge("queue_depth", "Messages waiting for the pipeline", len(self))
        yield total("queue_dropped", "Messages dropped unread because the queue was full", self.dropped)


def _size(arrivals: Sequence[Arrival]) -> int:
    return sum(p.nbytes if isinstance(p, Batch) else len(p) for _, p, _ in arrivals)
