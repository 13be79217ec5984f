"""Random episodes in the structure of the specification: aircraft that meet, with commands of every habit.

`episode(seed)` is plain JSON. What one episode has, and what it lacks, is drawn first (`draw`), so that a test can also
ask for it: `episode(seed, step_s=10.0, status="none")`. Degrees, NM, knots, feet and seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from second.geometry import KM_PER_NM, bearing_deg, haversine_nm
from second.policy import Pilot
from second.settings import Settings

RADIUS_KM = Settings().earth_radius_km
NM_PER_DEG = math.radians(RADIUS_KM / KM_PER_NM)


@dataclass(frozen=True, slots=True)
class Plan:
    """What an episode is like."""

    aircraft: int
    steps: int
    step_s: float
    start_s: float
    has_timestamps: bool
    has_altitudes: bool
    has_rewards: bool
    waypoints: Literal["all", "some", "none"]
    # "changes": only the steps at which the status changes, as a sparse record would have it
    status: Literal["none", "every step", "changes"]
    unequal_starts: bool
    centre: tuple[float, float]


@dataclass(slots=True)
class Flying:
    """One aircraft while the episode is made."""

    name: str
    lat: float
    lon: float
    heading_deg: float
    speed_kt: float
    alt_ft: float
    climb_fpm: float
    first_step: int
    pilot: Pilot
    waypoint: tuple[float, float] | None = None
    arrived: bool = False


def draw(rng: np.random.Generator) -> Plan:
    return Plan(
        aircraft=int(rng.integers(2, 9)),
        steps=int(rng.integers(5, 121)),
        step_s=float(rng.choice([10.0, 5.0, 2.0, 15.0, 7.0, 30.0], p=[0.5, 0.15, 0.05, 0.1, 0.1, 0.1])),
        start_s=float(rng.choice([0.0, 10.0, 1234.5])),
        has_timestamps=bool(rng.random() < 0.9),
        has_altitudes=bool(rng.random() < 0.4),
        has_rewards=bool(rng.random() < 0.5),
        waypoints=str(rng.choice(["all", "some", "none"], p=[0.6, 0.3, 0.1])),  # type: ignore[arg-type]
        status=str(rng.choice(["none", "every step", "changes"], p=[0.5, 0.4, 0.1])),  # type: ignore[arg-type]
        unequal_starts=bool(rng.random() < 0.3),
        # Europe, the equator, the south, and the date line
        centre=[(52.0, 4.5), (0.0, 10.0), (-37.0, 145.0), (20.0, 179.9)][int(rng.choice(4, p=[0.7, 0.1, 0.1, 0.1]))],
    )


def episode(seed: int, **wanted: Any) -> dict[str, Any]:
    """One episode; `wanted` are fields of `Plan` that are not left to chance."""
    rng = np.random.default_rng(seed)
    plan = replace(draw(rng), **wanted)
    fleet = [_spawn(rng, plan, index) for index in range(plan.aircraft)]
    made: dict[str, Any] = {
        "positions": [],
        "actions": [],
        "agents": {f.name: {"headings": [], "speeds": []} for f in fleet},
        "waypoints": {f.name: {"lat": f.waypoint[0], "lon": f.waypoint[1]} for f in fleet if f.waypoint},
        "scenario_metadata": {"seed": seed, "num_agents": plan.aircraft, "num_steps": plan.steps},
    }
    if plan.has_timestamps:
        made["timestamps"] = [plan.start_s + plan.step_s * t for t in range(plan.steps)]
    if plan.has_altitudes:
        for flying in fleet:
            made["agents"][flying.name]["altitudes"] = []
    if plan.has_rewards:
        made["rewards"] = []
    if plan.status != "none":
        made["waypoint_status"] = {f.name: {} for f in fleet if f.waypoint}
    for t in range(plan.steps):
        _record(made, plan, fleet, t, rng)
    return made


def _spawn(rng: np.random.Generator, plan: Plan, index: int) -> Flying:
    """An aircraft that comes near the centre at some time of the episode: head-on, crossing, or overtaking another."""
    stream_deg = [0.0, 180.0, 90.0, 0.0, 270.0, 45.0][int(rng.integers(6))]
    heading_deg = (stream_deg + float(rng.normal(0.0, 8.0))) % 360.0
    speed_kt = float(rng.uniform(180.0, 480.0))
    duration_s = plan.steps * plan.step_s
    # Before the centre by what it flies in a part of the episode, and a little off its line.
    behind_nm = speed_kt * duration_s * float(rng.uniform(0.2, 0.7)) / 3600.0
    off_nm = float(rng.normal(0.0, 3.0))
    lat, lon = _moved(*plan.centre, heading_deg + 180.0, behind_nm)
    lat, lon = _moved(lat, lon, heading_deg + 90.0, off_nm)
    flying = Flying(
        name=f"A{index + 1}",
        lat=lat,
        lon=lon,
        heading_deg=heading_deg,
        speed_kt=speed_kt,
        alt_ft=float(rng.choice([30000.0, 30000.0, 30500.0, 31000.0, 32000.0])),
        climb_fpm=float(rng.choice([0.0, 0.0, 1000.0, -1000.0])),
        first_step=int(rng.integers(0, plan.steps // 2 + 1)) if plan.unequal_starts and index else 0,
        pilot=Pilot(rng),
    )
    if plan.waypoints == "all" or (plan.waypoints == "some" and rng.random() < 0.5):
        along_nm = behind_nm * float(rng.uniform(0.5, 2.5)) + 1.5
        flying.waypoint = _moved(lat, lon, heading_deg + float(rng.normal(0.0, 2.0)), along_nm)
    return flying


def _record(made: dict[str, Any], plan: Plan, fleet: list[Flying], t: int, rng: np.random.Generator) -> None:
    """Write one step down, then carry out its commands."""
    there = [f for f in fleet if f.first_step <= t]
    actions = {f.name: f.pilot.command(_off_course_deg(f), _intruder_side_deg(f, there)) for f in there}
    made["positions"].append({f.name: [f.lat, f.lon] for f in there})
    made["actions"].append(actions)
    if plan.has_rewards:
        made["rewards"].append({f.name: float(rng.normal(-0.1, 1.0)) for f in there})
    for flying in fleet:
        series = made["agents"][flying.name]
        series["headings"].append(flying.heading_deg)
        series["speeds"].append(flying.speed_kt)
        if plan.has_altitudes:
            # as a transponder reports it, so that a difference of 1000 ft is exactly that
            series["altitudes"].append(round(flying.alt_ft / 25.0) * 25.0)
        if plan.status != "none" and flying.waypoint:
            _write_status(made["waypoint_status"][flying.name], plan, flying, t)
    for flying in there:
        _fly(flying, actions[flying.name], plan.step_s)


def _write_status(status: dict[str, bool], plan: Plan, flying: Flying, t: int) -> None:
    assert flying.waypoint is not None
    before = flying.arrived
    distance_nm = haversine_nm(flying.lat, flying.lon, *flying.waypoint, RADIUS_KM)
    flying.arrived = before or (flying.first_step <= t and distance_nm <= 1.0)
    if plan.status == "every step" or t == 0 or flying.arrived != before:
        status[str(t)] = flying.arrived


def _fly(flying: Flying, command: list[float], step_s: float) -> None:
    flying.heading_deg = (flying.heading_deg + command[0]) % 360.0
    flying.speed_kt = min(max(flying.speed_kt + command[1], 120.0), 550.0)
    flying.alt_ft += flying.climb_fpm * step_s / 60.0
    flying.lat, flying.lon = _moved(flying.lat, flying.lon, flying.heading_deg, flying.speed_kt * step_s / 3600.0)


def _off_course_deg(flying: Flying) -> float | None:
    if flying.waypoint is None:
        return None
    return bearing_deg(flying.lat, flying.lon, *flying.waypoint) - flying.heading_deg


def _intruder_side_deg(flying: Flying, there: list[Flying]) -> float | None:
    near = [(haversine_nm(flying.lat, flying.lon, o.lat, o.lon, RADIUS_KM), o) for o in there if o is not flying]
    distance_nm, other = min(near, key=lambda found: found[0], default=(math.inf, flying))
    if distance_nm > 15.0:
        return None
    return bearing_deg(flying.lat, flying.lon, other.lat, other.lon) - flying.heading_deg


def _moved(lat: float, lon: float, heading_deg: float, distance_nm: float) -> tuple[float, float]:
    """Some miles on; flat, which is near enough to make traffic."""
    north_deg = distance_nm * math.cos(math.radians(heading_deg)) / NM_PER_DEG
    east_deg = distance_nm * math.sin(math.radians(heading_deg)) / NM_PER_DEG / math.cos(math.radians(lat))
    return lat + north_deg, (lon + east_deg + 180.0) % 360.0 - 180.0
