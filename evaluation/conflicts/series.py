"""What is true at each step of an episode: conflict, deliberate commands, separation. Vectorised over steps and pairs.

One kernel runs over all steps. Who takes part in a conflict, how near two will come and what a deliberate command is
are decided by the functions that `intent` uses live (detectors/kernels/pairs.py). Separation now is the haversine
distance of every pair, arrived or not, because two aircraft at one waypoint are still close.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.kernels.approach import ON_LIMIT_M, State, state_of
from watchkeeper.detectors.kernels.pairs import (
    Nearest,
    Reach,
    bearing_deg,
    closest,
    conflicting,
    look,
    navigation,
    significant,
    threat_m,
)
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.evaluation.conflicts.distances import Apart, Minima, separations
from watchkeeper.evaluation.conflicts.episode import Episode
from watchkeeper.streams.batch import F8, I8, Bool
from watchkeeper.streams.geo import KT_MS, NM_M
from watchkeeper.streams.kernels import njit


@dataclass(frozen=True, slots=True)
class Series:
    """Per step unless said otherwise."""

    conflict: Bool
    """Some pair will come closer than the minimum within the horizon."""
    dcpa_nm: F8
    """Smallest DCPA of any pair; inf: there is none."""
    pair: I8
    """[step, 2]: that pair; -1: there is none."""
    intervening: Bool
    """Some command is at or over the thresholds."""
    acting: Bool
    """Some command is deliberate: over the thresholds, no navigation, and there is a threat."""
    acting_agent: Bool
    """The same, [step, agent]."""
    separation_nm: F8
    """Smallest horizontal distance of any pair; inf: there is none."""
    lost: Bool
    """Some pair is closer than both minima."""
    level_nm: F8
    """Smallest horizontal distance of a pair that is not separated vertically; inf: there is none."""
    nearest_nm: F8
    """[step, agent]: to the nearest other agent that is not separated vertically; inf: there is none."""
    violations: I8
    """[step, agent]: how many others are closer than both minima."""
    threat_nm: F8
    """[step, agent]: smallest DCPA to any other agent, arrived or not; inf: there is none."""
    threat_s: F8
    """[step, agent]: the time to it."""
    escaping: Bool
    """[step, agent]: the deliberate command, once flown, makes that DCPA larger."""


def series_of(
    episode: Episode,
    *,
    horizon_s: float,
    separation_nm: float,
    vertical_ft: float,
    action_thresh: tuple[float, float],
    share_b: float = 1.0,
) -> Series:
    """Look at every step."""
    e, (steps, agents) = episode, episode.lat.shape
    conflict, intervening, acting = np.zeros((3, steps), bool)
    pair = np.full((steps, 2), -1, np.int64)
    acting_agent, escaping = np.zeros((2, steps, agents), bool)
    dcpa_nm, separation, level_nm = np.full((3, steps), np.inf)
    nearest, threat_nm = np.full((2, steps, agents), np.inf)
    threat_s, violations = np.full((steps, agents), np.nan), np.zeros((steps, agents), np.int64)
    _look_at_all(
        Flown(
            e.lat, e.lon, e.alt_ft, e.heading_deg, e.speed_kt, e.turn_deg, e.faster_kt, e.way_lat, e.way_lon,
            e.arrived, e.controlled,
        ),
        Reach(horizon_s, vertical_ft, math.inf, share_b),
        Limits(separation_nm * NM_M, threat_m(separation_nm), *action_thresh),
        Seen(conflict, dcpa_nm, pair, intervening, acting_agent, threat_nm, threat_s, escaping),
    )  # fmt: skip
    minima = Minima(separation_nm, vertical_ft)
    separations(e.lat, e.lon, e.alt_ft, e.controlled, minima, Apart(separation, level_nm, nearest, violations))
    np.any(acting_agent, axis=1, out=acting)
    return Series(
        conflict, dcpa_nm, pair, intervening, acting, acting_agent, separation, level_nm < separation_nm, level_nm,
        nearest, violations, threat_nm, threat_s, escaping,
    )  # fmt: skip


class Flown(NamedTuple):
    """The columns of an episode that the kernel reads, [step, agent]."""

    lat: F8
    lon: F8
    alt_ft: F8
    heading_deg: F8
    speed_kt: F8
    turn_deg: F8
    faster_kt: F8
    way_lat: F8
    way_lon: F8
    arrived: Bool
    controlled: Bool


class Limits(NamedTuple):
    """What is a conflict, what a threat, and what more than trimming."""

    separation_m: float
    threat_m: float
    min_turn_deg: float
    min_faster_kt: float


class Seen(NamedTuple):
    """The columns of a Series that the kernel fills."""

    conflict: Bool
    dcpa_nm: F8
    pair: I8
    intervening: Bool
    acting_agent: Bool
    threat_nm: F8
    threat_s: F8
    escaping: Bool


def _look_at_all(flown: Flown, reach: Reach, limits: Limits, seen: Seen) -> None:
    agents = flown.lat.shape[1]
    # one state more than agents: that of an agent that has flown its command
    _look_with(flown, reach, limits, seen, blank(State, agents + 1), blank(Nearest, agents))


@njit(cache=True)
def _look_with(
    flown: Flown, reach: Reach, limits: Limits, seen: Seen, state: NDArray[Any], nearest: NDArray[Any]
) -> None:
    lat, lon, heading, turn, faster = flown.lat, flown.lon, flown.heading_deg, flown.turn_deg, flown.faster_kt
    steps, agents = lat.shape
    order = np.empty(agents, np.int64)
    for k in range(steps):
        n = 0
        for a in range(agents):
            if significant(turn[k, a], faster[k, a], limits.min_turn_deg, limits.min_faster_kt):
                seen.intervening[k] = True
            if math.isnan(lat[k, a]):
                continue
            state_of(lat[k, a], lon[k, a], heading[k, a], flown.speed_kt[k, a] * KT_MS, 0.0, state[a])
            state[a].alt_ft = flown.alt_ft[k, a]
            order[n] = a
            n += 1
        look(order[:n], state, flown.controlled[k], flown.arrived[k], reach, nearest)
        for m in range(n):
            a = order[m]
            dcpa_m, threat_dcpa_m = nearest[a].dcpa_m, nearest[a].threat_dcpa_m
            seen.threat_nm[k, a], seen.threat_s[k, a] = threat_dcpa_m / NM_M, nearest[a].threat_tcpa_s
            if dcpa_m / NM_M < seen.dcpa_nm[k]:
                seen.dcpa_nm[k] = dcpa_m / NM_M
                seen.pair[k, 0], seen.pair[k, 1] = a, nearest[a].other
            if conflicting(dcpa_m, limits.separation_m):
                seen.conflict[k] = True
            acts = significant(turn[k, a], faster[k, a], limits.min_turn_deg, limits.min_faster_kt)
            if not acts or threat_dcpa_m > limits.threat_m:
                continue
            towards = bearing_deg(lat[k, a], lon[k, a], flown.way_lat[k, a], flown.way_lon[k, a])
            if navigation(turn[k, a], heading[k, a], towards):
                continue
            seen.acting_agent[k, a] = True
            seen.escaping[k, a] = (
                _flown_dcpa_m(flown, k, a, reach, state, nearest[a].threat) > threat_dcpa_m + ON_LIMIT_M
            )


@njit(cache=True)
def _flown_dcpa_m(flown: Flown, k: int, a: int, reach: Reach, state: NDArray[Any], threat: int) -> float:
    """DCPA to the threat if the command is flown at once and the threat goes on as it does."""
    turn, faster = flown.turn_deg[k, a], flown.faster_kt[k, a]
    heading = flown.heading_deg[k, a] + (0.0 if math.isnan(turn) else turn)
    speed = max(0.0, flown.speed_kt[k, a] + (0.0 if math.isnan(faster) else faster))
    changed, other = state[state.size - 1], state[threat]
    state_of(flown.lat[k, a], flown.lon[k, a], heading, speed * KT_MS, 0.0, changed)
    if a < threat:
        return closest(changed, other, reach.horizon_s, reach.share_b)[1]
    return closest(other, changed, reach.horizon_s, reach.share_b)[1]
