"""The controller's reward, worked out again where none is recorded: nine parts with the documented coefficients.

An agent collects from its first step up to the one in which it arrives, and nothing afterwards. Its first step has no
step before it: no progress, no change of drift. There is one notion of arrival: the bonus is for the first step within
1 NM of the waypoint (or at which a recorded status says so), and the penalty for those that had no such step. Called by
metrics.py and findings.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from watchkeeper.detectors.kernels.pairs import bearing_deg, drift_deg, haversine_nm
from watchkeeper.evaluation.conflicts.episode import Episode, last_of, within
from watchkeeper.evaluation.conflicts.series import Series
from watchkeeper.evaluation.conflicts.team import Shaping, team_part
from watchkeeper.streams.batch import F8, Bool
from watchkeeper.streams.geo import NM_M
from watchkeeper.streams.kernels import njit

PARTS = (
    "progress", "drift", "violate_entry", "violate_step", "act_cost", "time", "reach", "terminal", "team",
)  # fmt: skip
# What the environment knew and a log does not say, by the part that it changes.
NOT_IN_A_LOG = "act_cost (commands as executed; the requests before clipping are not in the log)"
# One unit of a normalised action: what the environment's largest command is.
TURN_UNIT_DEG, FASTER_UNIT_KT = 18.0, 10.0
DOCUMENTED_TEAM = Shaping(weight=0.6, gamma=0.99, ema=0.05, cap=0.05)


@dataclass(frozen=True, slots=True)
class Coefficients:
    """As documented."""

    progress_per_km: float = 0.04
    drift_gain: float = 0.01
    drift_deadzone_deg: float = 8.0
    violation_entry: float = -25.0
    violation_step: float = -1.0
    deep_breach_nm: float = 1.0
    deep_boost: float = 1.5
    action_per_unit: float = -0.01
    time_per_s: float = -0.0005
    reach: float = 10.0
    not_reached: float = -10.0
    team: Shaping = DOCUMENTED_TEAM


DOCUMENTED = Coefficients()


def recomputable(episode: Episode) -> bool:
    """Whether there are commands and waypoints to work with."""
    return bool((~np.isnan(episode.turn_deg)).any() and (~np.isnan(episode.way_lat)).any())


def reward_parts(
    episode: Episode, series: Series, separation_nm: float, team_potential: str, c: Coefficients = DOCUMENTED
) -> dict[str, F8]:
    """Each part by name, [step, agent], 0 where an agent collects nothing."""
    e = episode
    arrived = _arrived(e)
    before = np.vstack((np.zeros((1, len(e.ids)), bool), arrived[:-1])) if len(e.t) else arrived
    collects = e.present & ~before
    parts = {name: np.zeros(e.lat.shape) for name in PARTS}
    lost = series.nearest_nm < separation_nm
    gains = Gains(c.progress_per_km * NM_M / 1000.0, c.drift_gain, c.drift_deadzone_deg)
    way = Way(e.lat, e.lon, e.heading_deg, e.way_lat, e.way_lon)
    _own_way(way, collects, gains, parts["progress"], parts["drift"])
    _entries(lost, collects, c.violation_entry, parts["violate_entry"])
    inside = np.where(collects & lost, series.nearest_nm, separation_nm)
    deep = 1.0 + c.deep_boost * np.maximum(0.0, (c.deep_breach_nm - inside) / c.deep_breach_nm)
    parts["violate_step"] += c.violation_step * (separation_nm - inside) / separation_nm * deep
    units = np.abs(np.nan_to_num(e.turn_deg)) / TURN_UNIT_DEG + np.abs(np.nan_to_num(e.faster_kt)) / FASTER_UNIT_KT
    parts["act_cost"] += c.action_per_unit * np.where(collects, units, 0.0)
    parts["time"] += c.time_per_s * e.step_s * collects
    parts["reach"] += c.reach * (collects & arrived)
    if len(e.t):
        missed = ~last_of(arrived, e.present) & ~np.isnan(e.way_lat).all(axis=0) & e.present.any(axis=0)
        last = len(e.t) - 1 - np.argmax(e.present[::-1], axis=0)
        parts["terminal"][last[missed], np.flatnonzero(missed)] = c.not_reached
    parts["team"] += team_part(series, collects, separation_nm, team_potential, c.team)
    return parts


def _arrived(e: Episode) -> Bool:
    """[step, agent]: within 1 NM of its waypoint at this step or before, or arrived by the recorded status."""
    once = within(e.lat, e.lon, e.way_lat, e.way_lon)
    _hold(once, e.way_lat, e.way_lon)
    result: Bool = once | e.arrived
    return result


@njit(cache=True)
def _hold(near: Bool, way_lat: F8, way_lon: F8) -> None:
    """Near once is near until the waypoint is another."""
    for k in range(1, near.shape[0]):
        for a in range(near.shape[1]):
            if way_lat[k, a] == way_lat[k - 1, a] and way_lon[k, a] == way_lon[k - 1, a]:
                near[k, a] = near[k, a] or near[k - 1, a]


class Way(NamedTuple):
    """Where the agents are, where they head and where they should go, [step, agent]."""

    lat: F8
    lon: F8
    heading_deg: F8
    way_lat: F8
    way_lon: F8


class Gains(NamedTuple):
    """What progress and drift are worth."""

    per_nm: float
    drift: float
    deadzone_deg: float


@njit(cache=True)
def _own_way(way: Way, collects: Bool, gains: Gains, progress: F8, drift: F8) -> None:
    lat, lon, way_lat, way_lon = way.lat, way.lon, way.way_lat, way.way_lon
    for a in range(lat.shape[1]):
        far_before = off_before = math.nan
        for k in range(lat.shape[0]):
            if not collects[k, a] or math.isnan(way_lat[k, a]):
                continue
            far = haversine_nm(lat[k, a], lon[k, a], way_lat[k, a], way_lon[k, a])
            off = drift_deg(way.heading_deg[k, a], bearing_deg(lat[k, a], lon[k, a], way_lat[k, a], way_lon[k, a]))
            if not math.isnan(far_before):
                progress[k, a] = (far_before - far) * gains.per_nm
                drift[k, a] = gains.drift * max(0.0, off_before - off - gains.deadzone_deg)
            far_before, off_before = far, off


@njit(cache=True)
def _entries(lost: Bool, collects: Bool, penalty: float, out: F8) -> None:
    for a in range(lost.shape[1]):
        inside = False
        for k in range(lost.shape[0]):
            if not collects[k, a]:
                continue
            if lost[k, a] and not inside:
                out[k, a] = penalty
            inside = lost[k, a]
