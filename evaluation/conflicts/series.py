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

from watchkeeper.detectors.kernels.approach import State, state_of
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

# A command after which the closest approach is wider by more than this was an escape.
ESCAPE_NM = 0.3


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
    cause: I8
    """[step, 2]: the first agent whose command is deliberate, and its threat, who comes nearest; -1: there is none."""
    cause_nm: F8
    """DCPA of the two, NaN without a cause."""
    cause_s: F8
    """The time to it."""
    escaped: Bool
    """One step later the DCPA of the two is wider by more than ESCAPE_NM."""


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
    pair, cause = np.full((2, steps, 2), -1, np.int64)
    acting_agent, escaped = np.zeros((steps, agents), bool), np.zeros(steps, bool)
    dcpa_nm, separation, level_nm = np.full((3, steps), np.inf)
    cause_nm, cause_s = np.full((2, steps), np.nan)
    nearest, violations = np.full((steps, agents), np.inf), np.zeros((steps, agents), np.int64)
    _look_at_all(
        flown_of(e),
        Reach(horizon_s, vertical_ft, math.inf, share_b),
        Limits(separation_nm * NM_M, threat_m(separation_nm), *action_thresh),
        Seen(conflict, dcpa_nm, pair, intervening, acting_agent, cause, cause_nm, cause_s, escaped),
    )  # fmt: skip
    minima = Minima(separation_nm, vertical_ft)
    separations(e.lat, e.lon, e.alt_ft, e.controlled, minima, Apart(separation, level_nm, nearest, violations))
    np.any(acting_agent, axis=1, out=acting)
    return Series(
        conflict, dcpa_nm, pair, intervening, acting, acting_agent, separation, level_nm < separation_nm, level_nm,
        nearest, violations, cause, cause_nm, cause_s, escaped,
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


def flown_of(e: Episode) -> Flown:
    """The columns of this episode."""
    return Flown(
        e.lat, e.lon, e.alt_ft, e.heading_deg, e.speed_kt, e.turn_deg, e.faster_kt, e.way_lat, e.way_lon,
        e.arrived, e.controlled,
    )  # fmt: skip


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
    cause: I8
    cause_nm: F8
    cause_s: F8
    escaped: Bool


def _look_at_all(flown: Flown, reach: Reach, limits: Limits, seen: Seen) -> None:
    agents = flown.lat.shape[1]
    state = blank(State, agents)
    _look_with(flown, reach, limits, seen, state, blank(Nearest, agents))
    _look_back(flown, reach, seen, state)


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
            if seen.cause[k, 0] < 0:
                seen.cause[k, 0], seen.cause[k, 1] = a, nearest[a].threat
                seen.cause_nm[k], seen.cause_s[k] = threat_dcpa_m / NM_M, nearest[a].threat_tcpa_s


@njit(cache=True)
def _look_back(flown: Flown, reach: Reach, seen: Seen, state: NDArray[Any]) -> None:
    """Whether the cause of each step had parted from its threat one step later."""
    for k in range(len(seen.escaped) - 1):
        a, b = min(seen.cause[k]), max(seen.cause[k])
        if a < 0 or math.isnan(flown.lat[k + 1, a]) or math.isnan(flown.lat[k + 1, b]):
            continue
        for i in (a, b):
            speed_ms = flown.speed_kt[k + 1, i] * KT_MS
            state_of(flown.lat[k + 1, i], flown.lon[k + 1, i], flown.heading_deg[k + 1, i], speed_ms, 0.0, state[i])
        dcpa_m = closest(state[a], state[b], reach.horizon_s, reach.share_b)[1]
        seen.escaped[k] = dcpa_m / NM_M - seen.cause_nm[k] > ESCAPE_NM
