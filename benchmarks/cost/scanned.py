"""What the search for pairs takes of the operator of the fleet: all that tiles could do elsewhere."""

from __future__ import annotations

import cProfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.config.schema import Config
from watchkeeper.detectors.conflict.futures import Motion
from watchkeeper.detectors.engine.part import FLEET
from watchkeeper.detectors.engine.warmup import warm_up
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.kernels.approach import State
from watchkeeper.detectors.kernels.records import layout
from watchkeeper.engines.front import Front
from watchkeeper.engines.operator import Operator
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.simulate import simulate

# The functions of detectors/conflict that look at pairs and keep nothing.
SCAN = {("search.py", "run"), ("probability.py", "judge")}


@dataclass(frozen=True, slots=True)
class Scanned:
    """Share of the operator's time; bytes of one aircraft that tiles would get and give, and of its recent reports."""

    share: float
    state_bytes: int
    ring_bytes: int


def scanned(aircraft: int, seconds: int) -> Scanned:
    """Run aircraft through an operator of the fleet; the first half is not counted."""
    config = Config()
    roomy = msgspec.structs.replace(config.fleet, max_vehicles=max(config.fleet.max_vehicles, 2 * aircraft))
    config = msgspec.structs.replace(config, fleet=roomy)
    warm_up(config)
    front, operator, profile = Front(config, 1), Operator(config, FLEET), cProfile.Profile()
    batches = list(simulate("random", seed=5, vehicles=aircraft, seconds=float(seconds)).batches())
    for number, batch in enumerate(batches):
        steps = [step[-1] for step in front.feed(batch).split()]
        if number == len(batches) // 2:
            profile.enable()
        for step in steps:
            operator.do(step)
    profile.disable()
    spent = _spent(profile)
    scan_s = sum(spent.get(name, 0.0) for name in SCAN)
    ring = Fleet(config.fleet).ring[Kind.ADSB]
    one = sum(array.nbytes for array in (ring.t[:1], ring.data[:, :1]))
    return Scanned(scan_s / spent["operator.py", "do"], layout(State).itemsize + layout(Motion).itemsize, one)


def _spent(profile: cProfile.Profile) -> dict[tuple[str, str], float]:
    """Seconds in each function and what it calls, by file and name."""
    profile.create_stats()
    stats: dict[tuple[str, int, str], tuple[Any, ...]] = profile.stats
    return {(Path(path).name, name): times[3] for (path, _, name), times in stats.items()}
