"""What really was dangerous: predicted conflicts, losses of separation, and the least separation; NM and steps."""

from __future__ import annotations

import math
from itertools import combinations

from second.geometry import State, tcpa_dcpa, vertically_apart
from second.log import Log


def conflict_steps(log: Log) -> list[bool]:
    """`g`: whether any pair of aircraft that are still under way is predicted below the separation minimum."""
    arrivals = {name: log.first_arrival(name) for name in log.names}
    flags = []
    for t in range(log.steps):
        under_way = [s for name, s in log.states(t).items() if not _has_arrived(arrivals[name], t)]
        flags.append(any(in_conflict(log, one, other) for one, other in combinations(under_way, 2)))
    return flags


def _has_arrived(first_arrival: int | None, t: int) -> bool:
    return first_arrival is not None and first_arrival <= t


def in_conflict(log: Log, one: State, other: State) -> bool:
    settings = log.settings
    if "conflict" in settings.vertical_for and vertically_apart(one, other, settings.vertical_ft):
        return False
    _, dcpa_nm = tcpa_dcpa(one, other, settings.horizon_s, settings.plane_radius_km)
    return dcpa_nm < settings.separation_nm


def least_separation_nm(log: Log, start: int, end: int, *, level: bool = True) -> float:
    """The least distance of any pair in the steps [start, end); infinite where there is no pair.

    With `level`, a pair with the vertical minimum between them is no pair.
    """
    vertical = level and "los" in log.settings.vertical_for
    return min(
        (
            log.distance_nm(one, other)
            for t in range(start, end)
            for one, other in log.pairs(t)
            if not (vertical and vertically_apart(one, other, log.settings.vertical_ft))
        ),
        default=math.inf,
    )


def loss_steps(log: Log) -> list[bool]:
    """Whether any pair, arrived or not, is nearer than the threshold of a loss of separation."""
    return [least_separation_nm(log, t, t + 1) < log.settings.los_threshold_nm for t in range(log.steps)]


def loss_duration(runs: list[tuple[int, int]], how: str) -> int:
    """Steps in all events together; `runs` are half-open. "span" is last step less first step."""
    return sum(end - start - (how == "span") for start, end in runs)
