"""How far the aircraft flew, compared with the direct way, and which of them arrived; NM and seconds."""

from __future__ import annotations

import math
from itertools import pairwise

from second.geometry import haversine_nm
from second.log import Log


def points(log: Log, name: str) -> list[tuple[float, float]]:
    """The positions of one aircraft in the steps in which it is there."""
    return [(step[name][0], step[name][1]) for step in log.positions if name in step]


def length_nm(log: Log, name: str) -> float:
    return math.fsum(haversine_nm(*a, *b, log.settings.earth_radius_km) for a, b in pairwise(points(log, name)))


def arrived(log: Log, name: str) -> bool:
    """By the completion column, else by the last recorded status, else by the distance of the last position."""
    completion = (log.trajectory.get("csv_waypoint_completion") or {}).get(name)
    if completion is not None and completion > 0:
        return True
    status = log.status(name)
    if status and status[max(status)]:
        return True
    last_step = max(t for t in range(log.steps) if name in log.positions[t])
    return log.near_waypoint(name, last_step)


def path_metrics(log: Log) -> dict[str, float]:
    lengths_nm = {name: length_nm(log, name) for name in log.names}
    extra_nm, ratio = [], []
    for name in log.names:
        waypoint = log.waypoint(name)
        if waypoint is None:
            continue
        direct_nm = haversine_nm(*points(log, name)[0], *waypoint, log.settings.earth_radius_km)
        extra_nm.append(max(0.0, lengths_nm[name] - direct_nm))
        ratio.append(lengths_nm[name] / max(1e-6, direct_nm) - 1.0)
    flight_time_s = log.flight_time_s()
    return {
        "flight_time_s": flight_time_s,
        "total_path_length_nm": math.fsum(lengths_nm.values()),
        "path_efficiency": min(1.0, log.settings.expected_time_s / max(1.0, flight_time_s)),
        "waypoint_reached_ratio": sum(arrived(log, name) for name in log.names) / max(1, len(log.names)),
        "total_extra_path_nm": math.fsum(extra_nm),
        # Without a waypoint there is no direct way, so no detour to speak of.
        "avg_extra_path_nm": math.fsum(extra_nm) / len(extra_nm) if extra_nm else math.nan,
        "avg_extra_path_ratio": math.fsum(ratio) / len(ratio) if ratio else math.nan,
    }
