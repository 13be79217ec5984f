"""All stages in one process, with the face of a Pipeline: Front, n operators of vehicles, one of the fleet, Merge.

For tests, for engines of others, and to try a number of shards; it is no faster than one Pipeline. `through_bytes`
sends every turn through wire.py, as it goes between processes.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.part import FLEET, of_vehicles
from watchkeeper.engines.front import Front
from watchkeeper.engines.merge import Merge
from watchkeeper.engines.operator import Operator
from watchkeeper.engines.regroup import regroup
from watchkeeper.engines.steps import Clock, Turn
from watchkeeper.engines.wire import pack_clocks, pack_steps, unpack_answers, unpack_clocks
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.foreign.decode import msgpack_decoder


class Dump(msgspec.Struct):
    """The state of all stages: operators of vehicles first, the fleet's last."""

    front: bytes
    operators: list[bytes]
    merge: bytes


undumped = msgpack_decoder(Dump)


class Sharded:
    """See the module's docstring."""

    def __init__(self, config: Config, shards: int, *, through_bytes: bool = False) -> None:
        self.front, self.merge = Front(config, shards), Merge(config)
        self.operators = [*(Operator(config, of_vehicles(i, shards)) for i in range(shards)), Operator(config, FLEET)]
        self._through_bytes = through_bytes

    def feed(self, batch: Batch) -> list[AlarmEvent]:
        """See Pipeline."""
        return self._run(self.front.feed(batch))

    def reach(self, t: float) -> list[AlarmEvent]:
        """See Pipeline."""
        return self._run(self.front.reach(t))

    def advance(self, t: float) -> list[AlarmEvent]:
        """See Pipeline."""
        return self._run(self.front.advance(t))

    def finish(self) -> list[AlarmEvent]:
        """See Pipeline."""
        return self._run(self.front.finish())

    def accept(self, vehicle: str) -> list[AlarmEvent]:
        """See Pipeline."""
        return self._run(self.front.accept(vehicle))

    def retune(self, config: Config) -> None:
        """See Pipeline."""
        self.front.retune(config)
        self.merge.retune(config)
        for operator in self.operators:
            operator.pipeline.retune(config)

    def _run(self, turn: Turn) -> list[AlarmEvent]:
        steps = turn.split()
        if self._through_bytes:
            asks = [pack_steps([step[i] for step in steps]) for i in range(len(self.operators))]
            answers = [unpack_answers(operator.answer(ask)) for operator, ask in zip(self.operators, asks, strict=True)]
            clocks: Sequence[Clock] = unpack_clocks(pack_clocks(turn.clocks))
        else:
            answers = [[o.do(step[i]) for step in steps] for i, o in enumerate(self.operators)]
            clocks = turn.clocks
        events = self.merge.take(clocks, list(zip(*answers, strict=True)))
        if events:
            self.front.roster.spared = self.merge.alarmed
        return events

    def dump(self) -> bytes:
        """The state of all stages."""
        states = Dump(self.front.dump(), [operator.dump() for operator in self.operators], self.merge.dump())
        return msgspec.msgpack.encode(states)

    def load(self, dump: bytes) -> None:
        """Take over a dump, of whatever number of shards."""
        states = undumped(dump)
        *vehicles, fleet = states.operators
        if len(vehicles) != self.front.shards:
            vehicles = regroup(vehicles, self.front.shards)
        self.front.load(states.front)
        for operator, state in zip(self.operators, [*vehicles, fleet], strict=True):
            operator.load(state)
        self.merge.load(states.merge)
