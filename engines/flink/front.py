"""Front as a process function: reads the input, gives every operator its asks, and decides when state is saved.

Input is a number for each frame of a log (it says no more than "the next one"), or the bytes of a frame from Kafka.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, OutputTag, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor

from watchkeeper.config.guests import discover
from watchkeeper.engines.flink.frames import Frames, frame_of
from watchkeeper.engines.flink.messages import ASK, LOAD, ONLY, SAVE, Plan
from watchkeeper.engines.flink.worker import follow_manager
from watchkeeper.engines.front import Front
from watchkeeper.engines.steps import Turn
from watchkeeper.engines.wire import pack_steps
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.foreign.decode import msgpack_decoder
from watchkeeper.streams.logs.wkframe import DamageError

log = logging.getLogger(__name__)
BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
# A message: key, and what it is, number of the turn, payload.
MESSAGE = Types.ROW([Types.INT(), Types.ROW([Types.INT(), Types.LONG(), BYTES])])
TO_FLEET = OutputTag("fleet", MESSAGE)
NOTHING = b""
# In a folder without new frames: how long to wait before looking again. Short, as a checkpoint waits as well.
POLL_S = 0.05


class Input(msgspec.Struct, array_like=True):
    """For one message: frames from a place of a log, a frame itself, time that goes on without samples, or the end."""

    place: tuple[str, int] | None = None
    frames: int = 0
    frame: bytes | None = None
    t: float | None = None


class Saved(msgspec.Struct, array_like=True):
    """Front's state, and where it goes on reading."""

    place: tuple[str, int]
    front: bytes


_input, _saved = msgpack_decoder(Input), msgpack_decoder(Saved)


class FrontFunction(KeyedProcessFunction):  # type: ignore[misc]
    """`paths` are as in frames.py, () for Kafka; `speed` is as in `replay`, 0: as fast as it goes."""

    def __init__(self, plan: Plan, paths: tuple[str, ...], speed: float = 0.0) -> None:
        self.plan, self.paths, self.speed = plan, paths, speed

    def open(self, runtime_context: RuntimeContext) -> None:
        """Nothing can be read before the first element: state belongs to its key."""
        discover()
        follow_manager()
        self._saved = runtime_context.get_state(ValueStateDescriptor("front", BYTES))
        self._redo = runtime_context.get_list_state(ListStateDescriptor("since", BYTES))
        self._front = Front(self.plan.config, self.plan.shards)
        self._frames = Frames(self.paths)
        self._started = False
        self._redo_bytes = 0
        # by this machine's clock: when to save, when to go on without samples, when a frame came, where the pace began
        self._save_at = self._advance_at = self._heard_at = 0.0
        self._pace: tuple[float, float] | None = None
        self._batches: list[Batch] = []
        metrics = runtime_context.get_metrics_group().add_group("watchkeeper")
        self._damaged = metrics.counter("damaged")
        self._turns = metrics.counter("turns")
        metrics.gauge("samples", lambda: sum(self._front.samples.values()))
        metrics.gauge("dropped", lambda: sum(self._front.drops.values()))
        metrics.gauge("vehicles", lambda: len(self._front.roster))
        metrics.gauge("event_time_s", lambda: int(max(self._front.clock.t_max, 0.0)))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:  # noqa: ARG002
        """The next input."""
        if not self._started:
            yield from self._start()
        found = self._next(value)
        if found is None:
            return
        raw = msgspec.msgpack.encode(found)
        self._redo.add(raw)
        self._redo_bytes += len(raw)
        turn = self._feed(found)
        yield from self._asks(turn)
        plan = self.plan.config.flink
        if time.monotonic() >= self._save_at or self._redo_bytes > plan.redo_mb << 20:
            yield from self._save(turn.number)

    # -- input ----------------------------------------------------------------------------------------------

    def _next(self, value: Any) -> Input | None:
        """What comes next; None: nothing yet."""
        if not self.paths:
            try:
                self._batches = [frame_of(value)]
            except DamageError as damage:
                # bad input is counted and never stops the stream
                self._damaged.inc()
                log.warning("a message that is no frame: %s", damage)
                return None
            return Input(frame=value)
        place = self._frames.place
        self._read(self.plan.config.flink.frames)
        if self._batches:
            self._heard_at = time.monotonic()
            self._wait(self._batches[-1].t_max)
            return Input(place, len(self._batches))
        if not self._frames.endless:
            return Input()
        time.sleep(POLL_S)
        idle_s = time.monotonic() - self._heard_at
        config = self.plan.config.time
        if idle_s < config.idle_timeout_s or self._front.clock.t_max < 0 or time.monotonic() < self._advance_at:
            return None
        self._advance_at = time.monotonic() + config.tick_s
        return Input(t=self._front.clock.t_max + idle_s)

    def _read(self, most: int) -> None:
        """The next frames, as far as there are any."""
        found = islice(iter(self._frames.next, None), most)
        self._batches = list(found)

    def _feed(self, found: Input, *, again: bool = False) -> Turn:
        """The turns of one input, as one."""
        self._turns.inc()
        if found.t is not None:
            return self._front.advance(found.t)
        if found.place is None and found.frame is None:
            return self._front.finish()
        if again and found.frame is not None:
            self._batches = [frame_of(found.frame)]
        elif again and found.place is not None:
            self._frames.place = found.place
            self._read(found.frames)
        turns = [self._front.feed(batch) for batch in self._batches]
        return Turn(turns[-1].number, self.plan.shards, [spread for turn in turns for spread in turn.spreads])

    def _wait(self, t: float) -> None:
        """Keep the pace that was asked for."""
        if self.speed <= 0:
            return
        now = time.monotonic()
        if self._pace is None:
            self._pace = (now, t)
        began, began_t = self._pace
        time.sleep(min(max(0.0, began + (t - began_t) / self.speed - now), 1.0))

    # -- output ---------------------------------------------------------------------------------------------

    def _asks(self, turn: Turn) -> Iterator[Any]:
        steps = turn.split()
        for part in range(self.plan.shards):
            ask = pack_steps([step[part] for step in steps])
            yield Row(self.plan.keys[part], Row(ASK, turn.number, ask))
        yield TO_FLEET, Row(ONLY, Row(ASK, turn.number, pack_steps([step[-1] for step in steps])))

    def _to_all(self, what: int, number: int) -> Iterator[Any]:
        for key in self.plan.keys:
            yield Row(key, Row(what, number, NOTHING))
        yield TO_FLEET, Row(ONLY, Row(what, number, NOTHING))

    # -- state ----------------------------------------------------------------------------------------------

    def _start(self) -> Iterator[Any]:
        """Take over what was saved, have all others do so, and send them all input since then."""
        self._started, self._heard_at = True, time.monotonic()
        if saved := self._saved.value():
            state = _saved(saved)
            self._frames.place = state.place
            self._front.load(state.front)
        yield from self._to_all(LOAD, 0)
        for raw in self._redo.get():
            self._redo_bytes += len(raw)
            yield from self._asks(self._feed(_input(raw), again=True))
        self._save_at = time.monotonic() + self.plan.config.flink.checkpoint_s

    def _save(self, number: int) -> Iterator[Any]:
        self._saved.update(msgspec.msgpack.encode(Saved(self._frames.place, self._front.dump())))
        self._redo.clear()
        self._redo_bytes = 0
        self._save_at = time.monotonic() + self.plan.config.flink.checkpoint_s
        yield from self._to_all(SAVE, number)
