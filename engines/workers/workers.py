"""Front and Merge here, every operator in a process of its own: the face of a Pipeline, on as many cores as there are.

    with Workers(config, 4) as workers:
        events = workers.feed(batch) …          events of this or earlier batches, as soon as they are known
        events = workers.finish()               what is left

The workers judge while the next batch is admitted; at most DEPTH turns are under way, so memory is bounded. The events
are the same bytes in the same order as those of one Pipeline; only with which call they come depends on the machine.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from multiprocessing.reduction import ForkingPickler
from types import TracebackType
from typing import Any

import msgspec

from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.part import FLEET, of_vehicles
from watchkeeper.engines.columns import Buffer, size_of
from watchkeeper.engines.front import Front
from watchkeeper.engines.merge import Merge
from watchkeeper.engines.regroup import regroup
from watchkeeper.engines.sharded import Dump, undumped
from watchkeeper.engines.steps import Clock, Turn
from watchkeeper.engines.wire import unpack_answers
from watchkeeper.engines.workers.child import DUMP, FIGURES, RETUNE, TAKE_OVER, TURN, VIEW
from watchkeeper.engines.workers.figures import Figures
from watchkeeper.engines.workers.link import Link
from watchkeeper.engines.workers.memory import NOWHERE, Blocks
from watchkeeper.engines.workers.whole import laid_out_turn
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.foreign.decode import msgpack_decoder
from watchkeeper.streams.foreign.states import decode_state

# Turns under way: so many that a worker finds the next one when it is done, though only some of them close a tick and
# take long; few enough to stop soon.
DEPTH = 8
# Under way: what there is to see, not a turn.
LOOK = None
_figures = msgpack_decoder(Figures)


class Workers:
    """See the module's docstring. Raises WorkerError from every method when a worker has ended or failed."""

    def __init__(self, config: Config, workers: int, *, start: bool = True) -> None:
        self.config = config
        self.front, self.merge = Front(config, workers), Merge(config)
        self.links: list[Link] = []
        # more than there are turns under way: what a worker reads is not written to
        self._blocks = Blocks(DEPTH + 2)
        # turns that ran ticks, or may have
        self.ticks = 0
        # what the workers show when they are asked to look; and time that went back for good
        self.on_views: Callable[[list[dict[str, Any]]], None] = lambda _views: None
        self.on_end: Callable[[], None] = lambda: None
        # what every worker has been asked and not all have answered: the clocks of a turn, or LOOK
        self._under_way: deque[list[Clock] | None] = deque()
        self._loaded: list[bytes] = []
        if start:
            self.start()

    def start(self) -> None:
        """Start the workers, with what was loaded before; returns when all are ready."""
        parts = [*(of_vehicles(i, self.front.shards) for i in range(self.front.shards)), FLEET]
        # one after the other would take the time of all
        self.links = [Link(self.config, part, DEPTH + 2) for part in parts]
        for link in self.links:
            link.answer()
        if self._loaded:
            self._all(TAKE_OVER, self._loaded)
            self._loaded = []

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
        self._blocks.close()

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

    def accept(self, vehicle: str) -> list[AlarmEvent]:
        """See Pipeline."""
        return self._send(self.front.accept(vehicle))

    def away(self) -> None:
        """See Pipeline."""
        self.front.away()

    def look(self) -> list[AlarmEvent]:
        """Ask the workers what there is to see; `on_views` gets it when all have answered."""
        for link in self.links:
            link.ask(VIEW)
        self._under_way.append(LOOK)
        return self._keep_up()

    def ready(self) -> list[AlarmEvent]:
        """The events of turns that all workers have answered by now."""
        events: list[AlarmEvent] = []
        while self._under_way and all(link.answered for link in self.links):
            events += self._take()
        return events

    @property
    def under_way(self) -> bool:
        """Whether a worker has still to answer."""
        return bool(self._under_way)

    def settle(self) -> list[AlarmEvent]:
        """Wait for everything that is under way."""
        events: list[AlarmEvent] = []
        while self._under_way:
            events += self._take()
        return events

    def _send(self, turn: Turn) -> list[AlarmEvent]:
        heads, arrays = laid_out_turn(turn)
        self._ask_all(TURN, heads, arrays)
        self._under_way.append(turn.clocks)
        self.ticks += any(clock.tick is not None for clock in turn.clocks)
        events = self._keep_up()
        if self.front.roster.filling:
            # who has an alarm need not leave: what Front is told of that must not depend on who is fast
            events += self.settle()
            self.front.roster.spared = self.merge.alarmed
        return events + self.ready()

    def _keep_up(self) -> list[AlarmEvent]:
        events: list[AlarmEvent] = []
        while len(self._under_way) > DEPTH:
            events += self._take()
        return events

    def _take(self) -> list[AlarmEvent]:
        clocks = self._under_way.popleft()
        found = [link.answer() for link in self.links]
        if clocks is LOOK:
            self.on_views([decode_state(view) for view in found])
            return []
        answers = [unpack_answers(answer) for answer in found]
        events = self.merge.take(clocks, list(zip(*answers, strict=True)))
        if any(clock.end_t is not None for clock in clocks):
            self.on_end()
        return events

    def _all(self, kind: str, bodies: Sequence[bytes] = ()) -> list[bytes]:
        """Ask every worker, with a body of its own, and wait for all of them; nothing may be under way."""
        if self._under_way:
            raise RuntimeError(f"{len(self._under_way)} turns are under way: settle first")
        self._ask_all(kind, bodies)
        return [link.answer() for link in self.links]

    def _ask_all(self, kind: str, bodies: Sequence[bytes], shared: Sequence[Buffer] = ()) -> None:
        """Ask every worker, with a body of its own, if any, behind what is for all of them."""
        place = self._blocks.write([*shared, *bodies]) if bodies else NOWHERE
        stop = size_of(shared)
        for i, link in enumerate(self.links):
            start, stop = stop, stop + (len(bodies[i]) if bodies else 0)
            link.ask(kind, place, start, stop)

    # -- looking in from outside ----------------------------------------------------------------------------

    def figures(self) -> list[Figures]:
        """What the workers say of themselves; nothing may be under way."""
        return [_figures(found) for found in self._all(FIGURES)]

    def check(self) -> None:
        """WorkerError: a worker has ended or failed."""
        for link in self.links:
            link.check()

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

    def retune(self, config: Config) -> None:
        """See Pipeline; nothing may be under way."""
        self.config = config
        self.front.retune(config)
        self.merge.retune(config)
        if self.links:
            self._all(RETUNE, [bytes(ForkingPickler.dumps(config))] * len(self.links))

    def dump(self) -> bytes:
        """The state of all stages, as that of Sharded; nothing may be under way."""
        states = self._all(DUMP) if self.links else self._loaded
        return msgspec.msgpack.encode(Dump(self.front.dump(), states, self.merge.dump()))

    def load(self, dump: bytes) -> None:
        """Take over a dump, of whatever number of workers."""
        states = undumped(dump)
        *vehicles, fleet = states.operators
        if len(vehicles) != self.front.shards:
            vehicles = regroup(vehicles, self.front.shards)
        self.front.load(states.front)
        self.merge.load(states.merge)
        if self.links:
            self._all(TAKE_OVER, [*vehicles, fleet])
        else:
            self._loaded = [*vehicles, fleet]
