"""Operators as process functions: one instance for each part of the vehicles, with one key for each of its buckets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

from watchkeeper.config.guests import discover
from watchkeeper.detectors.engine.part import FLEET as PART
from watchkeeper.detectors.engine.part import of_vehicles
from watchkeeper.engines.flink.messages import ASK, CLOCKS, FLEET, LOAD, ONLY, Plan
from watchkeeper.engines.flink.worker import Memory, follow_manager
from watchkeeper.engines.operator import Operator
from watchkeeper.engines.regroup import by_bucket, join
from watchkeeper.engines.wire import clocks_of

BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
# For Merge: its key, and what it is, number of the turn, number of the operator, payload.
ANSWER = Types.ROW([Types.INT(), Types.ROW([Types.INT(), Types.LONG(), Types.INT(), BYTES])])


class OperatorFunction(KeyedProcessFunction):  # type: ignore[misc]
    """What the operators of vehicles and that of the fleet have in common."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def open(self, runtime_context: RuntimeContext) -> None:
        """The operator gets its state when all of it is there, with LOAD."""
        discover()
        follow_manager()
        self.memory = Memory(self.plan.config.flink.worker_memory_mb)
        self._saved = runtime_context.get_state(ValueStateDescriptor("operator", BYTES))
        self.number = FLEET
        self._operator: Operator | None = None
        self._pieces: list[bytes] = []
        self._loaded = 0
        self._saving: tuple[int, dict[int, bytes]] = (-1, {})
        metrics = runtime_context.get_metrics_group().add_group("watchkeeper")
        metrics.gauge("vehicles", lambda: len(self._operator.pipeline.fleet.slot_of) if self._operator else 0)
        metrics.gauge("alarms", lambda: len(self._operator.pipeline.book.active) if self._operator else 0)
        metrics.gauge("memory_mb", lambda: int(self.memory.used_mb))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Row]:
        """A message of Front."""
        what, turn, payload = value
        if what == ASK:
            yield from self.ask(turn, payload)
        elif what == LOAD:
            self._load(ctx.get_current_key())
        else:
            self._save(ctx.get_current_key(), turn)

    def ask(self, turn: int, payload: bytes) -> Iterator[Row]:
        """One turn."""
        self.memory.check()
        yield Row(ONLY, Row(ASK, turn, self.number, bytes(self.operator.answer(payload))))

    @property
    def operator(self) -> Operator:
        """The operator, once its state is loaded."""
        assert self._operator is not None
        return self._operator

    def _load(self, key: int) -> None:
        """The saved state of one key; with the last one the operator is whole."""
        if saved := self._saved.value():
            self._pieces.append(saved)
        self._loaded += 1
        if self._loaded == self.keys(key):
            operator = self.made()
            if self._pieces:
                operator.load(self._pieces[0] if len(self._pieces) == 1 else join(self._pieces))
            self._operator, self._pieces = operator, []

    def _save(self, key: int, turn: int) -> None:
        """The state of one key, as of this turn."""
        if self._saving[0] != turn:
            self._saving = turn, self.pieces()
        saved = self._saving[1].pop(key, None)
        if saved is None:
            self._saved.clear()
        else:
            self._saved.update(saved)

    def keys(self, key: int) -> int:
        """How many keys the operator has that this one is of; sets its number."""
        raise NotImplementedError

    def made(self) -> Operator:
        """A new operator, once its number is known."""
        raise NotImplementedError

    def pieces(self) -> dict[int, bytes]:
        """The state by key."""
        raise NotImplementedError


class FleetFunction(OperatorFunction):
    """The operator of the fleet, with one key. It passes on to Merge what Front has to say to it."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Row]:
        """See OperatorFunction."""
        yield from super().process_element(value, ctx)
        what, turn, payload = value
        yield Row(ONLY, Row(what, turn, CLOCKS, clocks_of(payload) if what == ASK else b""))

    def keys(self, key: int) -> int:  # noqa: ARG002
        """See OperatorFunction."""
        return 1

    def made(self) -> Operator:
        """See OperatorFunction."""
        return Operator(self.plan.config, PART)

    def pieces(self) -> dict[int, bytes]:
        """See OperatorFunction."""
        return {ONLY: self.operator.dump()}


class VehiclesFunction(OperatorFunction):
    """An operator of vehicles, with the keys of its buckets."""

    def keys(self, key: int) -> int:
        """See OperatorFunction. RuntimeError: Flink has brought keys of two operators together."""
        part = self.plan.keys.index(key) % self.plan.shards
        if self.number not in (FLEET, part):
            raise RuntimeError(f"keys of operators {self.number} and {part} in one subtask; is max-parallelism set?")
        self.number = part
        return len(self.plan.buckets(part))

    def made(self) -> Operator:
        """See OperatorFunction."""
        return Operator(self.plan.config, of_vehicles(self.number, self.plan.shards))

    def pieces(self) -> dict[int, bytes]:
        """See OperatorFunction."""
        pieces = by_bucket(self.operator.dump(), self.plan.buckets(self.number))
        return {self.plan.keys[bucket]: piece for bucket, piece in pieces.items()}
