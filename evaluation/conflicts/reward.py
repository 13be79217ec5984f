"""The controller's reward, worked out again where none is recorded: nine parts with the documented coefficients.

An agent collects from its first step up to the one in which it arrives, and nothing afterwards. Its first step has no
step before it: no progress, no change of drift. Two things the coefficients leave open are settled here. The team's
potential is in NM and starts where the episode starts. An agent is responsible for twice the share of the others while
it has lost separation; shares average 1, so the sum over agents does not depend on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from watchkeeper.detectors.kernels.pairs import bearing_deg, drift_deg, haversine_nm
from watchkeeper.evaluation.conflicts.episode import Episode
from watchkeeper.evaluation.conflicts.series import Series
from watchkeeper.streams.batch import F8, Bool
from watchkeeper.streams.geo import NM_M
from watchkeeper.streams.kernels import njit

PARTS = (
    "progress", "drift", "violate_entry", "violate_step", "act_cost", "time", "reach", "terminal", "team",
)  # fmt: skip
# One unit of a normalised action: what the environment's largest command is.
TURN_UNIT_DEG, FASTER_UNIT_KT = 18.0, 10.0


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
    team_weight: float = 0.6
    team_gamma: float = 0.99
    team_ema: float = 0.05
    team_cap: float = 0.05


DOCUMENTED = Coefficients()


def recomputable(episode: Episode) -> bool:
    """Whether there are commands and waypoints to work with."""
    return bool((~np.isnan(episode.turn_deg)).any() and (~np.isnan(episode.way_lat)).any())


def reward_parts(episode: Episode, series: Series, separation_nm: float, c: Coefficients = DOCUMENTED) -> dict[str, F8]:
    """Each part by name, [step, agent], 0 where an agent collects nothing."""
    e = episode
    before = np.vstack((np.zeros((1, len(e.ids)), bool), e.arrived[:-1])) if len(e.t) else e.arrived
    collects = e.present & ~before
    parts = {name: np.zeros(e.lat.shape) for name in PARTS}
    last = len(e.t) - 1 - np.argmax(e.present[::-1], axis=0) if len(e.t) else np.zeros(len(e.ids), np.int64)
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
    parts["reach"] += c.reach * (collects & e.arrived)
    if len(e.t):
        missed = ~e.completed & ~np.isnan(e.way_lat).all(axis=0) & e.present.any(axis=0)
        parts["terminal"][last[missed], np.flatnonzero(missed)] = c.not_reached
    shaped = _team(np.where(collects & np.isfinite(series.nearest_nm), series.nearest_nm, 0.0).sum(axis=1), c)
    share = np.where(collects, 1.0 + lost, 0.0)
    each = share.sum(axis=1, keepdims=True) / np.maximum(collects.sum(axis=1, keepdims=True), 1)
    parts["team"] += c.team_weight * shaped[:, None] * share / np.maximum(each, 1e-9)
    return parts


def _team(potential: F8, c: Coefficients) -> F8:
    """The shaping term of each step: the potential's change, smoothed and capped."""
    before = np.concatenate((potential[:1], potential[:-1]))
    smooth, shaped = 0.0, np.zeros(len(potential))
    for k, change in enumerate((c.team_gamma * potential - before).tolist()):
        smooth = (1.0 - c.team_ema) * smooth + c.team_ema * change
        shaped[k] = min(max(smooth, -c.team_cap), c.team_cap)
    return shaped


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
