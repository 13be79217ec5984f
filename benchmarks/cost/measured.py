"""What one vehicle costs in each stage, per second of its time: processor time and bytes, measured in this process."""

from __future__ import annotations

import time
from dataclasses import dataclass

from watchkeeper.config.schema import Config
from watchkeeper.detectors.engine.part import FLEET, of_vehicles
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.warmup import warm_up
from watchkeeper.engines.front import Front
from watchkeeper.engines.merge import Merge
from watchkeeper.engines.operator import Operator
from watchkeeper.engines.wire import pack_steps, unpack_answers
from watchkeeper.streams.check import checked
from watchkeeper.streams.simulate import simulate

# Operators of vehicles in the measured split.
SHARDS = 4


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one vehicle for one second: microseconds of processor time by stage, bytes between them, bytes of state."""

    vehicle: str
    samples: float
    single_us: float
    front_us: float
    operator_us: float
    fleet_us: float
    merge_us: float
    ask_bytes: float
    fleet_bytes: float
    answer_bytes: float
    state_bytes: float

    @property
    def ends_us(self) -> float:
        """What is not spread: Front and Merge."""
        return self.front_us + self.merge_us


def measure(name: str, scenario: str, vehicles: int, seconds: int, rate_hz: float | None = None) -> Cost:
    """Run a scenario through one Pipeline and through the stages; the first half is not counted."""
    config = Config()
    warm_up(config)
    made = simulate(scenario, seed=5, vehicles=vehicles, seconds=seconds, rate_hz=rate_hz)
    batches = [checked(batch) for batch in made.batches()]
    half = len(batches) // 2
    pipeline = Pipeline(config)
    for batch in batches[:half]:
        pipeline.feed(batch)
    began_s = time.process_time()
    for batch in batches[half:]:
        pipeline.feed(batch)
    single_s = time.process_time() - began_s
    front, merge = Front(config, SHARDS), Merge(config)
    operators = [*(Operator(config, of_vehicles(i, SHARDS)) for i in range(SHARDS)), Operator(config, FLEET)]
    spent = dict.fromkeys(("front", "operator", "fleet", "merge"), 0.0)
    asked = answered = for_fleet = 0
    for number, batch in enumerate(batches):
        if number == half:
            spent, asked, answered, for_fleet = dict.fromkeys(spent, 0.0), 0, 0, 0
        began_s = time.process_time()
        turn = front.feed(batch)
        steps = turn.split()
        asks = [pack_steps([step[i] for step in steps]) for i in range(len(operators))]
        spent["front"] += time.process_time() - began_s
        answers = []
        for i, (operator, ask) in enumerate(zip(operators, asks, strict=True)):
            began_s = time.process_time()
            answers.append(bytes(operator.answer(ask)))
            spent["operator" if i < SHARDS else "fleet"] += time.process_time() - began_s
        began_s = time.process_time()
        merge.take(turn.clocks, list(zip(*map(unpack_answers, answers), strict=True)))
        spent["merge"] += time.process_time() - began_s
        asked, for_fleet = asked + sum(map(len, asks[:SHARDS])), for_fleet + len(asks[-1])
        answered += sum(map(len, answers))
    heard = len(front.roster)
    lived = heard * (batches[-1].t_max - batches[half].t_min)
    state = sum(len(operator.dump()) for operator in operators) + len(merge.dump()) + len(front.dump())
    samples = sum(map(len, batches[half:])) / lived
    us = {stage: 1e6 * seconds_spent / lived for stage, seconds_spent in spent.items()}
    return Cost(
        name, samples, 1e6 * single_s / lived, us["front"], us["operator"], us["fleet"], us["merge"], asked / lived,
        for_fleet / lived, answered / lived, state / heard,
    )  # fmt: skip
