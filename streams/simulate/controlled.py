"""A controller that commands aircraft and says so, on the action and route streams: to try `intent` and its metrics.

Four encounters far apart, each with its own fault of judgement, or none:
- `answered`: a pair meets head-on and is turned away in time;
- `missed`: a pair meets head-on and nobody is told anything;
- `ghost`: one aircraft, alone in the sky, is turned off its way and back again;
- `wary`: one of a pair that would pass 5.2 NM apart is turned away from a conflict that is none.
Every aircraft has a waypoint ahead of it. Each of them is given a command every STEP_S, most of them "go on". The
commands are a fixed plan: the controller does not react to what happens, also not to a Shift of one aircraft.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from watchkeeper.streams.batch import F8, I4
from watchkeeper.streams.geo import KT_MS, NM_M, direct
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.simulate.arrival import Chunk
from watchkeeper.streams.simulate.encounters import Meeting, place, place_neutrals
from watchkeeper.streams.simulate.shift import Shift
from watchkeeper.streams.simulate.traffic import Traffic

STEP_S = 10
TURN_RATE_DPS = 2.0
# Waypoints lie this far behind the point where an aircraft would meet the other.
BEYOND_NM = 8.0


@dataclass(frozen=True, slots=True)
class Plan:
    """One encounter: where and when it would happen, how near, who is commanded, and how (right is positive)."""

    lat: float
    lon: float
    tcpa_s: float
    miss_nm: float
    aircraft: int
    commanded: int
    turns_deg: dict[int, float]
    """By the second a command is given at, to each of the commanded ones."""


# Hundreds of miles apart, and one after the other, so that each has a window of its own.
PLANS = {
    "answered": Plan(46.0, 4.0, 200.0, 0.5, 2, 2, {70: 4.0, 80: 4.0, 90: 4.0, 100: 4.0, 180: -16.0}),
    "ghost": Plan(54.0, 14.0, 200.0, 1.0, 1, 1, {100: 12.0, 110: 12.0, 120: 12.0, 170: -36.0}),
    # small turns of one aircraft at short range: the pair stays near enough for a threat
    "wary": Plan(46.0, 14.0, 300.0, 5.2, 2, 1, {240: 3.0, 250: 3.0, 260: 3.0, 310: -9.0}),
    "missed": Plan(50.0, 9.0, 500.0, 1.0, 2, 0, {}),
}


class Controller:
    """The Pilot of scenario `controlled`, and the source of its commands."""

    NAMES = tuple(f"{role}-{k}" for role, plan in PLANS.items() for k in range(1, plan.aircraft + 1))
    """The commanded aircraft, in the order of their rows; the same for every seed, unlike their addresses."""
    COMMANDED = len(NAMES)

    def __init__(self, rng: np.random.Generator, n: int, shift: Shift | None = None) -> None:
        self.traffic = Traffic(n, int(rng.integers(1 << 24)))
        self._first: dict[str, int] = {}
        self._turn_deg: F8 = np.zeros(self.COMMANDED)
        self._waypoints: F8 = np.full((3, self.COMMANDED), np.nan)
        first = 0
        for role, plan in PLANS.items():
            track = float(rng.uniform(0.0, 360.0))
            speeds = float(rng.uniform(420.0, 480.0)), float(rng.uniform(420.0, 480.0))
            meeting = Meeting(plan.lat, plan.lon, (track, track + 180.0), speeds, 35_000.0, plan.miss_nm)
            place(self.traffic, first, meeting, plan.tcpa_s, role)
            self._first[role] = first
            first += plan.aircraft
        for role, plan in PLANS.items():
            for row in range(self._first[role], self._first[role] + plan.aircraft):
                tr = self.traffic
                ahead_m = tr.gs_kt[row] * KT_MS * plan.tcpa_s + BEYOND_NM * NM_M
                self._waypoints[:2, row] = direct(tr.lat[row], tr.lon[row], tr.trk_deg[row], ahead_m)[:2]
        neutral = PLANS["missed"]
        place_neutrals(
            self.traffic, first, Meeting(neutral.lat, neutral.lon, (0.0, 180.0), (450.0, 450.0), 35_000.0, 1.0)
        )
        if shift is not None:
            self._begin_otherwise(shift)

    def _begin_otherwise(self, shift: Shift) -> None:
        row, tr = self.NAMES.index(shift.aircraft), self.traffic
        column = {
            "speed": tr.gs_kt, "heading": tr.trk_deg, "position_lat": tr.lat, "position_lon": tr.lon,
            "waypoint_lat": self._waypoints[0], "waypoint_lon": self._waypoints[1],
        }[shift.kind]  # fmt: skip
        column[row] += shift.size
        tr.trk_deg[row] %= 360.0

    def decide(self, s: int) -> None:
        """See Pilot."""
        self._turn_deg[:] = 0.0
        for role, plan in PLANS.items():
            rows = slice(self._first[role], self._first[role] + plan.commanded)
            self._turn_deg[rows] = plan.turns_deg.get(s, 0.0)
        told = np.flatnonzero(self._turn_deg)
        self.traffic.turn_left_deg[told] += self._turn_deg[told]
        self.traffic.turn_rate_dps[told] = TURN_RATE_DPS

    def commands(self, s: int) -> list[Chunk]:
        """What is said in the second from s on: a command to everyone each STEP_S, the waypoints at the beginning."""
        if s % STEP_S:
            return []
        rows: I4 = np.arange(self.COMMANDED, dtype=np.int32)
        t = np.full(self.COMMANDED, float(s))
        said = [Chunk(Kind.ACTION, rows, t, t, np.vstack((self._turn_deg, np.zeros(self.COMMANDED))))]
        if s == 0:
            said.append(Chunk(Kind.ROUTE, rows, t, t, self._waypoints.copy()))
        return said
