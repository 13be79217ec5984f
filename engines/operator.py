"""One operator: a Pipeline with the detectors of its part, whose state is bytes.

feed(batch) -> events     samples; a part of a pipeline gets those that Front admitted, and lets them wait
reach(t) -> events        time has definitely reached t: every tick that ends at or before t runs
do(step) -> Answer        one step of a turn of Front; `answer(ask)` is the same for a whole turn in bytes (wire.py)
dump() -> bytes           the whole state; load(bytes) into a new operator of the same part and configuration
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.part import WHOLE, Part
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.incidents.incidents import DIAGNOSED, LOOK_S
from watchkeeper.engines.seen import nothing_sent, take, worth_seeing
from watchkeeper.engines.steps import Answer, Step, Told
from watchkeeper.engines.wire import pack_answers, unpack_steps
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.check import checked
from watchkeeper.streams.foreign.states import StateEncoder, decode_state
from watchkeeper.streams.periods import reaches


class Operator:
    """See the module's docstring."""

    def __init__(self, config: Config, part: Part = WHOLE) -> None:
        self.pipeline = Pipeline(config, part=part)
        self._sees = part.alone and not part.gathers
        self._sent = nothing_sent(config.fleet.max_vehicles)
        self._encoder = StateEncoder()

    # -- by itself ------------------------------------------------------------------------------------------

    def feed(self, batch: Batch) -> list[AlarmEvent]:
        """Take in samples. A part says nothing before `reach`."""
        if self.pipeline.part.gathers:
            return self.pipeline.feed(batch)
        self.pipeline.take(checked(batch))
        return []

    def reach(self, t: float) -> list[AlarmEvent]:
        """Run every tick that ends at or before t."""
        return self.pipeline.reach(t)

    # -- as one of several ----------------------------------------------------------------------------------

    def answer(self, ask: bytes | memoryview) -> bytearray:
        """The answers to the steps of one turn; they hold until the next call."""
        return self.answers(unpack_steps(ask))

    def answers(self, steps: Iterable[Step]) -> bytearray:
        """The same for steps; they hold until the next call."""
        return pack_answers([self.do(step) for step in steps], self._encoder)

    def do(self, step: Step) -> Answer:
        """Take the samples, run the ticks."""
        pipeline, clock, answer = self.pipeline, step.clock, Answer()
        if clock.away is not None:
            pipeline.fleet.away = clock.away
        if step.samples is not None:
            pipeline.take(step.samples, moved=step.moved)
        pipeline.hear(clock.notes)
        if clock.first is not None:
            pipeline.begin(clock.first)
        if clock.tick is not None:
            for tick, events, gap in pipeline.run(clock.tick, provisional=clock.provisional):
                answer.ticks.append(self._told(tick, events, gap=gap))
        if clock.forget:
            slots = [slot for name in clock.forget if (slot := pipeline.fleet.slot_of.get(name, -1)) >= 0]
            events = pipeline.forget(np.array(sorted(slots), np.int32), pipeline.watermark)
            if slots:
                answer.ticks.append(self._told(pipeline.done, events, gap=False))
        if clock.accept:
            answer.ended = pipeline.accept(clock.accept)
        if clock.end_t is not None:
            answer.ended = pipeline.end_era(clock.end_t)
            self._sent = nothing_sent(pipeline.fleet.capacity)
        return answer

    def _told(self, tick: int, events: list[AlarmEvent], *, gap: bool) -> Told:
        pipeline, fleet = self.pipeline, self.pipeline.fleet
        told = Told(tick, events, None, fleet.called(), pipeline.take_gone())
        if self._sees:
            if gap or reaches(tick * pipeline.clock.tick_s, pipeline.clock.tick_s, LOOK_S):
                slots = worth_seeing(pipeline)
            else:
                names = {event.subjects[0] for event in events if event.kind in DIAGNOSED}
                slots = np.array(sorted(fleet.slot_of[n] for n in names if n in fleet.slot_of), np.int32)
            # of a vehicle that was forgotten, and its slot given to another, nothing was sent
            for kind, sent in self._sent.items():
                np.minimum(sent[: fleet.high], fleet.ring[kind].count[: fleet.high], out=sent[: fleet.high])
            told.seen = take(pipeline, slots, self._sent)
        return told

    # -- life beyond one process ----------------------------------------------------------------------------

    def dump(self) -> bytes:
        """The whole state."""
        return bytes(self._encoder.encode(self.pipeline.snapshot()))

    def load(self, state: bytes) -> None:
        """Take over a dump. ValueError: of another tick length."""
        self.pipeline.restore(decode_state(state))
        self._sent = nothing_sent(self.pipeline.fleet.capacity)
