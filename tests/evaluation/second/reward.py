"""The recorded reward, and the parts of it that a log gives back; points of the environment's own scale.

Eight of the nine parts are here. The team part is not: neither its potential nor its responsibility weight is given as
a formula. Its cap bounds it, so that a total with it can still be compared.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from second.geometry import KM_PER_NM, State, drift_deg, vertically_apart
from second.log import Log
from second.settings import Settings

PROGRESS_PER_KM = 0.04
DRIFT_PER_DEG = 0.01
DRIFT_DEAD_ZONE_DEG = 8.0
ENTRY = -25.0
VIOLATION = -1.0
DEEP_NM = 1.0
DEEP_BOOST = 1.5
ACTION = -0.01
TIME_PER_S = -0.0005
REACH = 10.0
NOT_REACHED = -10.0
TEAM_WEIGHT = 0.6
TEAM_CAP = 0.05


def recorded_total(trajectory: dict[str, Any]) -> float | None:
    """The sum of the recorded column over steps and aircraft; None where nothing is recorded."""
    recorded = trajectory.get("rewards")
    if not recorded:
        return None
    return math.fsum(value for step in recorded for value in step.values())


def reward_total(log: Log) -> float:
    """The recorded sum; without one, the sum of the parts of this module."""
    recorded = recorded_total(log.trajectory)
    if recorded is not None:
        return recorded
    if not (log.trajectory.get("actions") and log.trajectory.get("waypoints")):
        return math.nan
    return math.fsum(value for name, value in parts_of(log).items() if name != "team_bound")


def reward_parts(trajectory: dict[str, Any], **settings: Any) -> dict[str, float]:
    """Each part, summed over steps and aircraft; `team_bound` is the largest amount of the part that is missing."""
    return parts_of(Log(trajectory, Settings(**settings)))


def parts_of(log: Log) -> dict[str, float]:
    parts = dict.fromkeys(
        ["progress", "drift", "violate_entry", "violate_step", "action", "time", "reach", "terminal", "team_bound"], 0.0
    )
    for name in log.names:
        for part, value in _of_aircraft(log, name).items():
            parts[part] += value
    return parts


def _of_aircraft(log: Log, name: str) -> dict[str, float]:
    rows = [t for t in range(log.steps) if name in log.positions[t]]
    by_status = log.first_arrival(name)
    near = [t for t in rows if log.near_waypoint(name, t) or (by_status is not None and by_status <= t)]
    # up to the step in which it arrives
    rows = [t for t in rows if not near or t <= near[0]]
    has_waypoint = log.waypoint(name) is not None
    separations_nm = [nearest_nm(log, name, log.states(t)) for t in rows]
    return {
        "progress": progress([log.to_waypoint_nm(name, t) for t in rows]),
        "drift": drift([_drift_deg(log, name, t) for t in rows]),
        "violate_entry": ENTRY * entries(separations_nm, log.settings.separation_nm),
        "violate_step": math.fsum(severity(nm, log.settings.separation_nm) for nm in separations_nm),
        "action": math.fsum(action_cost(log, name, t) for t in rows),
        "time": TIME_PER_S * log.step_s * len(rows),
        "reach": REACH if near else 0.0,
        "terminal": NOT_REACHED if has_waypoint and not near else 0.0,
        "team_bound": TEAM_WEIGHT * TEAM_CAP * len(rows),
    }


def progress(distances_nm: list[float | None]) -> float:
    return math.fsum(
        (before - after) * KM_PER_NM * PROGRESS_PER_KM
        for before, after in pairwise(distances_nm)
        if before is not None and after is not None
    )


def drift(drifts_deg: list[float | None]) -> float:
    return math.fsum(
        DRIFT_PER_DEG * max(0.0, (before - after) - DRIFT_DEAD_ZONE_DEG)
        for before, after in pairwise(drifts_deg)
        if before is not None and after is not None
    )


def entries(separations_nm: list[float], minimum_nm: float) -> int:
    """How often a violation begins."""
    inside = [False, *(nm < minimum_nm for nm in separations_nm)]
    return sum(now and not before for before, now in pairwise(inside))


def severity(separation_nm: float, minimum_nm: float) -> float:
    if separation_nm >= minimum_nm:
        return 0.0
    depth = (minimum_nm - separation_nm) / minimum_nm
    return VIOLATION * depth * (1.0 + DEEP_BOOST * max(0.0, (DEEP_NM - separation_nm) / DEEP_NM))


def action_cost(log: Log, name: str, t: int) -> float:
    """From the command in the log; the environment charges the one that was asked for, before clipping."""
    heading_deg, speed_kt = log.commands(t).get(name, (0.0, 0.0))
    return ACTION * (abs(heading_deg / log.settings.full_heading_deg) + abs(speed_kt / log.settings.full_speed_kt))


def nearest_nm(log: Log, name: str, states: dict[str, State]) -> float:
    """To the nearest other aircraft that is not separated vertically."""
    own, settings = states[name], log.settings
    level = "los" not in settings.vertical_for
    others = [state for other, state in states.items() if other != name]
    near = [state for state in others if level or not vertically_apart(own, state, settings.vertical_ft)]
    return min((log.distance_nm(own, state) for state in near), default=math.inf)


def _drift_deg(log: Log, name: str, t: int) -> float | None:
    waypoint = log.waypoint(name)
    if waypoint is None:
        return None
    state = log.states(t)[name]
    return drift_deg(state.heading_deg, state.lat, state.lon, waypoint)
