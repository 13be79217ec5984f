"""The trajectory of an episode, as the specification writes it and as JSON gives it back, read step by step.

A step of the episode is an index into `positions`; every module that computes metrics asks this one for the facts.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from statistics import median
from typing import Any

from second.geometry import State, haversine_nm
from second.settings import Settings

DEFAULT_STEP_S = 10.0


class Log:
    """One episode; `settings` are those with which it is judged."""

    def __init__(self, trajectory: dict[str, Any], settings: Settings) -> None:
        self.trajectory = trajectory
        self.settings = settings
        self.positions: list[dict[str, Any]] = trajectory["positions"]
        self.steps = len(self.positions)
        if not self.steps:
            raise ValueError("positions: an episode has at least one step")
        self.names = sorted({name for step in self.positions for name in step})
        self.timestamps: list[float] = trajectory.get("timestamps") or []
        self.step_s = self._step_s()

    def _step_s(self) -> float:
        if self.settings.step_s is not None:
            return self.settings.step_s
        gaps = [later - earlier for earlier, later in pairwise(self.timestamps)]
        return float(median(gaps)) if gaps else DEFAULT_STEP_S

    def in_steps(self, seconds: float) -> int:
        return int(self.settings.steps_of(seconds / self.step_s))

    def flight_time_s(self) -> float:
        if not self.timestamps and self.settings.time_without_timestamps == "steps":
            return (self.steps - 1) * self.step_s
        return self.timestamps[-1] - self.timestamps[0] if len(self.timestamps) > 1 else 0.0

    def states(self, t: int) -> dict[str, State]:
        """The aircraft that are there at step t, by name."""
        states = {}
        for name, position in sorted(self.positions[t].items()):
            series = self.trajectory["agents"][name]
            altitudes = series.get("altitudes")
            states[name] = State(
                lat=position[0],
                lon=position[1],
                heading_deg=series["headings"][t],
                speed_kt=series["speeds"][t],
                alt_ft=altitudes[t] if altitudes else None,
            )
        return states

    def pairs(self, t: int) -> list[tuple[State, State]]:
        return list(combinations(self.states(t).values(), 2))

    def commands(self, t: int) -> dict[str, tuple[float, float]]:
        """Heading (deg) and speed (kt) command of each aircraft that has one at step t."""
        actions = self.trajectory.get("actions") or []
        return {name: (a[0], a[1]) for name, a in sorted(actions[t].items())} if t < len(actions) else {}

    def distance_nm(self, one: State, other: State) -> float:
        return haversine_nm(one.lat, one.lon, other.lat, other.lon, self.settings.earth_radius_km)

    def waypoint(self, name: str) -> tuple[float, float] | None:
        waypoint = (self.trajectory.get("waypoints") or {}).get(name)
        return (waypoint["lat"], waypoint["lon"]) if waypoint else None

    def to_waypoint_nm(self, name: str, t: int) -> float | None:
        """Distance to the waypoint at step t; None without waypoint or position."""
        waypoint, position = self.waypoint(name), self.positions[t].get(name)
        if waypoint is None or position is None:
            return None
        return haversine_nm(position[0], position[1], *waypoint, self.settings.earth_radius_km)

    def near_waypoint(self, name: str, t: int) -> bool:
        distance_nm = self.to_waypoint_nm(name, t)
        return distance_nm is not None and distance_nm <= self.settings.waypoint_nm

    def status(self, name: str) -> dict[int, bool]:
        """The recorded arrival by step; JSON has strings for steps."""
        recorded = (self.trajectory.get("waypoint_status") or {}).get(name) or {}
        return {int(step): bool(value) for step, value in recorded.items()}

    def first_arrival(self, name: str) -> int | None:
        """The first step at which an aircraft has reached its waypoint; from then on it has."""
        status = self.status(name)
        if status:
            return min((step for step, reached in status.items() if reached), default=None)
        return next((t for t in range(self.steps) if self.near_waypoint(name, t)), None)
