"""The conflict metrics the plain way: dictionaries, one pair after the other, as one would write them down first.

The baseline of `bench conflict-metrics`, and an independent second opinion for the tests: it shares no code with the
evaluation. Headings, speeds and timestamps must be given. Closest approach is worked out in east and north components
on a sphere, so near a limit it may disagree with the ellipsoid.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

EARTH_NM = 6371.0088 / 1.852
Step = dict[str, tuple[float, float]]


def haversine_nm(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Distance on the sphere."""
    lat1, lat2 = math.radians(a[0]), math.radians(b[0])
    dlon = math.radians(b[1] - a[1])
    h = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin(dlon / 2) ** 2
    return 2 * EARTH_NM * math.asin(min(1.0, math.sqrt(h)))


def bearing_deg(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Initial course from a to b."""
    lat1, lat2, dlon = math.radians(a[0]), math.radians(b[0]), math.radians(b[1] - a[1])
    y = math.sin(dlon) * math.cos(lat2)
    return math.degrees(
        math.atan2(y, math.cos(lat1) * math.sin(lat2) - math.sin(lat1) * math.cos(lat2) * math.cos(dlon))
    )


def off_deg(heading: float, towards: float) -> float:
    """Angle between two directions."""
    return abs((towards - heading + 180) % 360 - 180)


def dcpa_nm(p: tuple[float, float], q: tuple[float, float], hp: float, hq: float, vp: float, vq: float) -> float:
    """Distance at closest approach within 120 s, on a plane at the midpoint."""
    dlon = (q[1] - p[1] + 180) % 360 - 180
    mid = math.cos(math.radians((p[0] + q[0]) / 2))
    x, y = math.radians(dlon) * mid * EARTH_NM, math.radians(q[0] - p[0]) * EARTH_NM
    # meridians converge: the two headings are measured against different norths
    turn = dlon / 2 * math.sin(math.radians((p[0] + q[0]) / 2))
    ap, aq = math.radians(hp + turn), math.radians(hq - turn)
    u = (vq * math.sin(aq) - vp * math.sin(ap)) / 3600
    v = (vq * math.cos(aq) - vp * math.cos(ap)) / 3600
    speed2 = u * u + v * v
    t = min(max(-(x * u + y * v) / speed2, 0.0), 120.0) if speed2 > 1e-12 else 0.0
    return math.hypot(x + u * t, y + v * t)


def windows(flags: list[bool], margin: int) -> list[tuple[int, int]]:
    """Runs, widened."""
    found: list[tuple[int, int]] = []
    for k, flag in enumerate(flags):
        if not flag:
            continue
        start, end = max(0, k - margin), min(len(flags), k + 1 + margin)
        if k > 0 and flags[k - 1]:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def plain_metrics(trajectory: dict[str, Any]) -> dict[str, float]:
    """Most of the metrics, with the default settings and no recorded reward."""
    positions: list[Step] = trajectory["positions"]
    actions, times = trajectory["actions"], trajectory["timestamps"]
    waypoints, agents = trajectory["waypoints"], trajectory["agents"]
    steps = len(positions)
    arrived: dict[str, bool] = {}
    conflict, acting, intervening, lost, least = [], [], [], [], []
    min_separation = math.inf
    for k, step in enumerate(positions):
        for name, place in step.items():
            if name in waypoints:
                way = waypoints[name]["lat"], waypoints[name]["lon"]
                arrived[name] = arrived.get(name, False) or haversine_nm(place, way) <= 1.0
        near: dict[str, float] = {}
        threat: dict[str, float] = {}
        nearest = math.inf
        names = list(step)
        for i, a in enumerate(names):
            for b in names[i + 1 :]:
                nearest = min(nearest, haversine_nm(step[a], step[b]))
                d = dcpa_nm(
                    step[a], step[b], agents[a]["headings"][k], agents[b]["headings"][k],
                    agents[a]["speeds"][k], agents[b]["speeds"][k],
                )  # fmt: skip
                threat[a], threat[b] = min(threat.get(a, math.inf), d), min(threat.get(b, math.inf), d)
                if arrived.get(a) or arrived.get(b):
                    continue
                near[a], near[b] = min(near.get(a, math.inf), d), min(near.get(b, math.inf), d)
        min_separation = min(min_separation, nearest)
        least.append(nearest)
        lost.append(nearest < 5.0)
        conflict.append(min(near.values(), default=math.inf) < 5.0)
        large = {name: c for name, c in actions[k].items() if abs(c[0]) >= 3.0 or abs(c[1]) >= 5.0}
        intervening.append(bool(large))
        deliberate = False
        for name, (turn, _) in large.items():
            if threat.get(name, math.inf) > 6.0:
                continue
            if name in waypoints:
                towards = bearing_deg(step[name], (waypoints[name]["lat"], waypoints[name]["lon"]))
                heading = agents[name]["headings"][k]
                if off_deg(heading, towards) - off_deg(heading + turn, towards) > 1.0:
                    continue
            deliberate = True
        acting.append(deliberate)
    steady = [sum(acting[max(0, k - 2) : k + 1]) >= 2 for k in range(steps)]
    alert = [any(steady[max(0, k - 1) : k + 2]) for k in range(steps)]
    truth, alerts = windows(conflict, 3), windows(alert, 1)
    used: dict[int, int] = {}
    for g, (start, end) in enumerate(truth):
        best, at = 0.0, -1
        for i, (a0, a1) in enumerate(alerts):
            common = max(0, min(end, a1) - max(start, a0))
            iou = common / (end - start + a1 - a0 - common)
            if i not in used.values() and iou >= 0.1 and iou > best:
                best, at = iou, i
        if at >= 0:
            used[g] = at
    tp = len(used)
    path = dict.fromkeys(agents, 0.0)
    for before, after in pairwise(positions):
        for name in before.keys() & after.keys():
            path[name] += haversine_nm(before[name], after[name])
    right = sum(i and g and a for i, g, a in zip(intervening, conflict, alert, strict=True))
    failed = [min(least[truth[g][1] : truth[g][1] + 6] or least[-6:]) <= 5.0 for g in used]
    breached = [any(lost[slice(*truth[g])]) for g in used]
    leads = [(truth[g][0] - alerts[a][0]) * 10.0 for g, a in used.items()]
    return {
        "tp": tp,
        "fp": len(alerts) - tp,
        "fn": len(truth) - tp,
        "tn": sum(not g and not a for g, a in zip(conflict, alert, strict=True)),
        "min_separation_nm": min_separation,
        "total_los_duration": sum(lost),
        "num_los_events": sum(now and not before for before, now in zip([False, *lost], lost, strict=False)),
        "num_conflict_steps": sum(conflict),
        "alert_duty_cycle": sum(alert) / steps,
        "avg_lead_time_s": sum(leads) / len(leads) if leads else 0.0,
        "flight_time_s": times[-1] - times[0],
        "total_path_length_nm": sum(path.values()),
        "num_interventions": sum(intervening),
        "num_interventions_matched": right,
        "resolution_fail_rate": sum(failed) / len(failed) if failed else math.nan,
        "los_failure_rate": sum(breached) / len(breached) if breached else math.nan,
    }
