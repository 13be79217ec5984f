"""Merge as a process function: the answers to a turn become events, each given out once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor

from watchkeeper.config.guests import discover
from watchkeeper.detectors.alarms.events import encode_event
from watchkeeper.engines.flink.messages import ASK, CLOCKS, FLEET, LOAD, SAVE, Plan
from watchkeeper.engines.flink.worker import follow_manager
from watchkeeper.engines.merge import Merge
from watchkeeper.engines.wire import unpack_answers, unpack_clocks

BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())


class MergeFunction(KeyedProcessFunction):  # type: ignore[misc]
    """See the module's docstring."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def open(self, runtime_context: RuntimeContext) -> None:
        """Merge itself is made with the first element: state belongs to its key."""
        discover()
        follow_manager()
        self._saved = runtime_context.get_state(ValueStateDescriptor("merge", BYTES))
        self._given = runtime_context.get_state(ValueStateDescriptor("given", Types.LONG()))
        self._merge = Merge(self.plan.config)
        self._loaded = False
        self._done = self._given_out = 0
        # what has come of turns that are not whole, and the turns after which to save
        self._pending: dict[int, dict[int, bytes]] = {}
        self._saves: set[int] = set()
        metrics = runtime_context.get_metrics_group().add_group("watchkeeper")
        self._events = metrics.counter("events")
        metrics.gauge("alarms", lambda: len(self._merge.book.active))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[str]:  # noqa: ARG002
        """A message of Front or an answer of an operator."""
        what, turn, number, payload = value
        if not self._loaded:
            self._load()
        if what == ASK:
            parts = self._pending.setdefault(turn, {})
            parts[number] = payload
            if len(parts) == self.plan.shards + 2:
                yield from self._take(turn, self._pending.pop(turn))
        elif what == SAVE:
            self._saves.add(turn)
        else:
            assert what == LOAD
        self._save(turn)

    def _load(self) -> None:
        self._loaded, self._given_out = True, self._given.value() or 0
        if saved := self._saved.value():
            self._merge.load(saved)

    def _take(self, turn: int, parts: dict[int, bytes]) -> Iterator[str]:
        answers = [unpack_answers(parts[number]) for number in (*range(self.plan.shards), FLEET)]
        events = self._merge.take(unpack_clocks(parts[CLOCKS]), list(zip(*answers, strict=True)))
        self._done = turn
        if turn > self._given_out:
            self._given_out = turn
            self._given.update(turn)
            self._events.inc(len(events))
            for event in events:
                yield encode_event(event).decode()

    def _save(self, turn: int) -> None:
        """Once the turn is done that the state is to be saved after."""
        if turn in self._saves and self._done == turn:
            self._saves.discard(turn)
            self._saved.update(self._merge.dump())
