"""Front and Merge here, every operator in a process of its own: the face of a Pipeline, on as many cores as there are.

    with Workers(config, 4) as workers:
        events = workers.feed(batch) …          events of this or earlier batches, as soon as they are known
        events = workers.finish()               what is left

The workers judge while the next batch is admitted; at most DEPTH turns are under way, so memory is bounded. The events
are the same bytes in the same order as those of one Pipeline; only with which call they come depends on the machine.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from types import TracebackType

import msgspec

from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.part import FLEET, of_vehicles
from watchkeeper.engines.front import Front
from watchkeeper.engines.merge import Merge
from watchkeeper.engines.regroup import regroup
from watchkeeper.engines.sharded import Dump, undumped
from watchkeeper.engines.steps import Clock, Turn
from watchkeeper.engines.wire import pack_steps, unpack_answers
from watchkeeper.engines.workers.figures import Figures
from watchkeeper.engines.workers.link import Link
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.foreign.decode import msgpack_decoder

# Turns under way: enough that a worker finds the next one when it is done, few enough to stop soon.
DEPTH = 4
_figures = msgpack_decoder(Figures)


class Workers:
    """See the module's docstring. Raises WorkerError from every method when a worker has ended or failed."""

    def __init__(self, config: Config, workers: int) -> None:
        self.config = config
        self.front, self.merge = Front(config, workers), Merge(config)
        self.links = [Link(config, of_vehicles(i, workers), DEPTH + 1) for i in range(workers)]
        self.links.append(Link(config, FLEET, DEPTH + 1))
        self._under_way: deque[list[Clock]] = deque()
        for link in self.links:
            link.answer()

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the workers."""
        for link in self.links:
            link.close()

    # -- what drives it -------------------------------------------------------------------------------------

    def feed(self, batch: Batch) -> list[AlarmEvent]:
        """See Pipeline; events come with this or a later call."""
        return self._send(self.front.feed(batch))

    def advance(self, t: float) -> list[AlarmEvent]:
        """See Pipeline."""
        return self._send(self.front.advance(t))

    def reach(self, t: float) -> list[AlarmEvent]:
        """See Pipeline."""
        return self._send(self.front.reach(t))

    def finish(self) -> list[AlarmEvent]:
        """See Pipeline: everything that is left."""
        return self._send(self.front.finish()) + self.settle()

    def away(self) -> None:
        """See Pipeline."""
        self.front.away()

    def ready(self) -> list[AlarmEvent]:
        """The events of turns that all workers have answered by now."""
        events: list[AlarmEvent] = []
        while self._under_way and all(link.answered for link in self.links):
            events += self._take()
        return events

    def settle(self) -> list[AlarmEvent]:
        """Wait for everything that is under way."""
        events: list[AlarmEvent] = []
        while self._under_way:
            events += self._take()
        return events

    def _send(self, turn: Turn) -> list[AlarmEvent]:
        for i, link in enumerate(self.links):
            link.ask(b"T", pack_steps([step[i] for step in turn.steps]))
        self._under_way.append(turn.clocks)
        events: list[AlarmEvent] = []
        while len(self._under_way) > DEPTH:
            events += self._take()
        if self.front.roster.filling:
            # who has an alarm need not leave: what Front is told of that must not depend on who is fast
            events += self.settle()
            self.front.roster.spared = self.merge.alarmed
        return events + self.ready()

    def _take(self) -> list[AlarmEvent]:
        clocks = self._under_way.popleft()
        answers = [unpack_answers(link.answer()) for link in self.links]
        return self.merge.take(clocks, list(zip(*answers, strict=True)))

    # -- looking in from outside ----------------------------------------------------------------------------

    def figures(self) -> list[Figures]:
        """What the workers say of themselves; nothing may be under way."""
        for link in self.links:
            link.ask(b"F")
        return [_figures(link.answer()) for link in self.links]

    @property
    def failed(self) -> bool:
        """Whether a worker has ended or failed."""
        return any(link.failed for link in self.links)

    @property
    def active(self) -> dict[tuple[str, tuple[str, ...]], AlarmEvent]:
        """See Pipeline."""
        return self.merge.book.active

    @property
    def drops(self) -> Counter[tuple[str, str]]:
        """See Pipeline; repeated samples are known to the workers."""
        return self.front.drops

    @property
    def samples(self) -> Counter[str]:
        """See Pipeline."""
        return self.front.samples

    # -- life beyond one process ----------------------------------------------------------------------------

    def dump(self) -> bytes:
        """The state of all stages, as that of Sharded; nothing may be under way."""
        for link in self.links:
            link.ask(b"D")
        states: Sequence[bytes] = [link.answer() for link in self.links]
        return msgspec.msgpack.encode(Dump(self.front.dump(), list(states), self.merge.dump()))

    def load(self, dump: bytes) -> None:
        """Take over a dump, of whatever number of workers."""
        states = undumped(dump)
        *vehicles, fleet = states.operators
        if len(vehicles) != self.front.shards:
            vehicles = regroup(vehicles, self.front.shards)
        self.front.load(states.front)
        self.merge.load(states.merge)
        for link, state in zip(self.links, [*vehicles, fleet], strict=True):
            link.ask(b"L", state)
        for link in self.links:
            link.answer()
