"""An episode as columns: what every agent did at every step. All conflict metrics are computed from this.

`from_trajectory` reads the documented trajectory structure (docs/evaluation/conflicts.md), as Python objects or as JSON
and MessagePack give it. Arrays are [step, agent], NaN where an agent is absent or a value unknown. Whatever is wrong is
an EpisodeError that names the field down to the step and the agent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from watchkeeper.detectors.kernels.pairs import ARRIVED_NM, bearing_deg, haversine_nm
from watchkeeper.evaluation.conflicts.fields import (
    EpisodeError,
    ascending,
    is_number,
    no_typos,
    pairs_at,
    part,
    per_step,
    series,
)
from watchkeeper.streams.batch import F8, Bool
from watchkeeper.streams.kernels import njit

# What is read of the structure; other fields are left alone.
FIELDS = (
    "positions", "actions", "timestamps", "agents", "waypoints", "waypoint_status", "scenario_metadata", "rewards",
)  # fmt: skip
AGENT_FIELDS = ("headings", "speeds", "altitudes")
TIMES = "timestamps"


@dataclass(frozen=True, slots=True)
class Episode:
    """Columns [step, agent] unless said otherwise."""

    ids: tuple[str, ...]
    t: F8
    """[step], s."""
    step_s: float
    lat: F8
    lon: F8
    alt_ft: F8
    heading_deg: F8
    speed_kt: F8
    turn_deg: F8
    """Commanded heading change, NaN: no command."""
    faster_kt: F8
    """Commanded speed change."""
    way_lat: F8
    way_lon: F8
    arrived: Bool
    """At this step the agent has reached its waypoint: it takes part in no conflict any more."""
    completed: Bool
    """[agent]: it has reached its waypoint at the end."""
    controlled: Bool
    """Somebody commands it; pairs without such an agent do not count."""
    reward: F8
    derived: tuple[str, ...] = ()
    """Which columns were worked out because the recording lacks them."""
    meta: dict[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    """What was wrong with the recording, if it could be used all the same."""

    @property
    def present(self) -> Bool:
        """Which agents have a position."""
        there: Bool = ~np.isnan(self.lat)
        return there


def from_trajectory(trajectory: Mapping[str, Any], action_period_s: float) -> Episode:
    """The episode in a trajectory; raises EpisodeError."""
    if not isinstance(trajectory, Mapping):
        raise EpisodeError("trajectory", f"expected an object, got {type(trajectory).__name__}")
    no_typos(trajectory.keys(), FIELDS)
    positions = trajectory.get("positions")
    if positions is None:
        raise EpisodeError("positions", "missing")
    column, at, places = pairs_at(positions, "positions", {}, grow=True)
    ids, steps = tuple(column), len(positions)
    shape = steps, len(ids)
    lat, lon = np.full((2, *shape), np.nan)
    lat.flat[at], lon.flat[at] = places.T
    _check_places(lat, lon, ids)
    times, step_s = _times(trajectory.get(TIMES), steps, action_period_s)
    turn, faster = np.full((2, *shape), np.nan)
    _, at, commands = pairs_at(per_step(trajectory, "actions", steps), "actions", column)
    turn.flat[at], faster.flat[at] = commands.T
    heading, speed, alt = _agent_series(part(trajectory, "agents"), column, ~np.isnan(lat))
    derived = derive_motion(times, lat, lon, heading, speed)
    if trajectory.get(TIMES) is None:
        derived = (TIMES, *derived)
    way_lat, way_lon = _waypoints(part(trajectory, "waypoints"), column, shape)
    status, flagged = _status(part(trajectory, "waypoint_status"), column, shape)
    near = within(lat, lon, way_lat, way_lon)
    reward = _rewards(per_step(trajectory, "rewards", steps), column, shape)
    return Episode(
        ids, times, step_s, lat, lon, alt, heading, speed, turn, faster, way_lat, way_lon,
        arrived=np.where(flagged, status, np.logical_or.accumulate(near, axis=0)),
        completed=(status[-1] if steps else np.zeros(len(ids), bool)) | last_of(near, ~np.isnan(lat)),
        controlled=np.ones(shape, bool),
        reward=reward,
        derived=derived,
        meta=dict(part(trajectory, "scenario_metadata")),
    )  # fmt: skip


def step_length(times: F8, otherwise_s: float) -> float:
    """The usual time between steps; a recording of one step has none of its own."""
    return float(np.median(np.diff(times))) if len(times) > 1 else otherwise_s


def within(lat: F8, lon: F8, way_lat: F8, way_lon: F8) -> Bool:
    """Who is at the waypoint; nobody without one."""
    return _within(lat.ravel(), lon.ravel(), way_lat.ravel(), way_lon.ravel()).reshape(lat.shape)


def last_of(flag: Bool, present: Bool) -> Bool:
    """[agent]: the flag at each agent's last step; False for one that never appears."""
    if not len(flag):
        return np.zeros(flag.shape[1], bool)
    last = len(flag) - 1 - np.argmax(present[::-1], axis=0)
    result: Bool = flag[last, np.arange(flag.shape[1])] & present.any(axis=0)
    return result


def derive_motion(times: F8, lat: F8, lon: F8, heading: F8, speed: F8) -> tuple[str, ...]:
    """Fill headings and speeds that are missing from the way between positions; which were."""
    there = ~np.isnan(lat)
    gaps = {"headings": (np.isnan(heading) & there).any(), "speeds": (np.isnan(speed) & there).any()}
    if any(gaps.values()):
        _derive(times, lat, lon, heading, speed)
    return tuple(name for name, missing in gaps.items() if missing)


@njit(cache=True)
def _within(lat: F8, lon: F8, way_lat: F8, way_lon: F8) -> Bool:
    found = np.zeros(lat.size, np.bool_)
    for i in range(lat.size):
        if not (math.isnan(way_lat[i]) or math.isnan(lat[i])):
            found[i] = haversine_nm(lat[i], lon[i], way_lat[i], way_lon[i]) <= ARRIVED_NM
    return found


@njit(cache=True)
def _derive(times: F8, lat: F8, lon: F8, heading: F8, speed: F8) -> None:
    """By the way from the position before; for the first by the way to the next; a single position stands still."""
    for a in range(lat.shape[1]):
        before = -1
        for k in range(lat.shape[0]):
            if math.isnan(lat[k, a]):
                continue
            p, q = before, k
            if before < 0:
                p = k
                while q + 1 < lat.shape[0] and (q == k or math.isnan(lat[q, a])):
                    q += 1
            moved_nm, course = 0.0, 0.0
            if p != q and not math.isnan(lat[q, a]):
                moved_nm = haversine_nm(lat[p, a], lon[p, a], lat[q, a], lon[q, a])
                course = bearing_deg(lat[p, a], lon[p, a], lat[q, a], lon[q, a])
            if math.isnan(speed[k, a]):
                speed[k, a] = moved_nm / (times[q] - times[p]) * 3600.0 if p != q else 0.0
            if math.isnan(heading[k, a]):
                heading[k, a] = course % 360.0
            before = k


def _check_places(lat: F8, lon: F8, ids: tuple[str, ...]) -> None:
    for name, values, low, high in (("latitude", lat, -90.0, 90.0), ("longitude", lon, -180.0, 360.0)):
        wrong = np.argwhere((values < low) | (values > high))
        if len(wrong):
            k, a = wrong[0].tolist()
            raise EpisodeError(f"positions[{k}].{ids[a]}", f"{name} is {values[k, a]:g}, expected {low:g} to {high:g}")


def _times(given: Sequence[float] | None, steps: int, action_period_s: float) -> tuple[F8, float]:
    if given is None:
        return np.arange(steps, dtype=np.float64) * action_period_s, action_period_s
    times = ascending(given, "timestamps", steps)
    return times, step_length(times, action_period_s)


def _agent_series(agents: Mapping[str, Any], column: Mapping[str, int], present: Bool) -> tuple[F8, F8, F8]:
    out = np.full((3, *present.shape), np.nan)
    for name, values in agents.items():
        if name not in column:
            raise EpisodeError(f"agents.{name}", "this agent has no position")
        if not isinstance(values, Mapping):
            raise EpisodeError(f"agents.{name}", f"expected an object with {', '.join(AGENT_FIELDS)}")
        no_typos(values.keys(), AGENT_FIELDS, f"agents.{name}.")
        at = column[name]
        for row, what in enumerate(AGENT_FIELDS):
            if values.get(what) is not None:
                out[row, :, at] = series(values[what], f"agents.{name}.{what}", present[:, at])
    return out[0], out[1], out[2]


def _waypoints(waypoints: Mapping[str, Any], column: Mapping[str, int], shape: tuple[int, int]) -> tuple[F8, F8]:
    lat, lon = np.full((2, *shape), np.nan)
    for name, place in waypoints.items():
        for key, out, limit in (("lat", lat, 90.0), ("lon", lon, 360.0)):
            where = f"waypoints.{name}.{key}"
            value: Any = place.get(key) if isinstance(place, Mapping) else None
            if not is_number(value) or not abs(value) <= limit:
                raise EpisodeError(where, "missing" if value is None else f"{value!r} is no angle in degrees")
            if name in column:
                out[:, column[name]] = value
    return lat, lon


def _status(status: Mapping[str, Any], column: Mapping[str, int], shape: tuple[int, int]) -> tuple[Bool, Bool]:
    """Whether each agent has arrived, which it has from the first step on that says so; and for whom there is one."""
    arrived, flagged = np.zeros((2, *shape), bool)
    for name, flags in status.items():
        if not isinstance(flags, Mapping):
            raise EpisodeError(f"waypoint_status.{name}", "expected an object from step to true or false")
        if name not in column or not flags:
            continue
        flagged[:, column[name]] = True
        for step, flag in flags.items():
            # JSON has no other keys than text
            if not str(step).isdecimal() or not isinstance(flag, (bool, int, np.bool_)):
                raise EpisodeError(f"waypoint_status.{name}.{step}", f"expected a step and true or false, got {flag!r}")
            if flag:
                arrived[int(step) :, column[name]] = True
    return arrived, flagged


def _rewards(rewards: Sequence[Mapping[str, float]], column: Mapping[str, int], shape: tuple[int, int]) -> F8:
    out = np.full(shape, np.nan)
    for k, step in enumerate(rewards):
        if not isinstance(step, Mapping):
            raise EpisodeError(f"rewards[{k}]", f"expected an object from agent to a number, got {step!r:.60}")
        for name, value in step.items():
            if name not in column or not is_number(value):
                raise EpisodeError(f"rewards[{k}].{name}", f"expected a number of a known agent, got {value!r}")
            out[k, column[name]] = value
    return out
