"""Encounters of two aircraft with a known geometry, with neutral aircraft that come near nobody.

The pair is set up backwards from its closest approach: where the two are then, with which speeds and tracks; each
is then flown back along its geodesic to the start. Neutral aircraft fly parallel tracks, 40 NM or more apart and
above the pair: only one that is about to descend through the other's level begins as high, and far from them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from watchkeeper.streams.batch import I4
from watchkeeper.streams.geo import KT_MS, NM_M, direct
from watchkeeper.streams.simulate.traffic import Traffic

GEOMETRIES = ("head-on", "crossing", "overtaking", "vertical", "formation")
# Closest approach comes after this share of the run, but not later than this: pairs do not start continents apart.
CPA_SHARE, CPA_MAX_S = 0.6, 600.0
# In `vertical` one aircraft climbs or descends all the time before: 6,000 ft at most, or it would start too high.
CPA_MAX_VERTICAL_S = 150.0
NEUTRAL_SPACING_NM = 30.0  # scale of a spiral with about equal distances between neighbours
NEUTRAL_MAX = 1000  # on the spiral; more would reach too far round the Earth


@dataclass(frozen=True, slots=True)
class Meeting:
    """Two aircraft at their closest approach: a at the given point, b `miss_nm` away across the relative motion."""

    lat: float
    lon: float
    trk_deg: tuple[float, float]
    gs_kt: tuple[float, float]
    alt_ft: float
    miss_nm: float
    vs_fpm: float = 0.0  # of b, which passes a's level at that moment


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn commanded at a whole second."""

    s: int
    row: int
    angle_deg: float
    rate_dps: float


class Encounter:
    """The Pilot of one geometric scenario."""

    def __init__(self, geometry: str, rng: np.random.Generator, n: int, seconds: float) -> None:
        self.traffic = Traffic(n, int(rng.integers(1 << 24)))
        meeting = draw_meeting(geometry, rng)
        latest_s = CPA_MAX_VERTICAL_S if geometry == "vertical" else CPA_MAX_S
        place(self.traffic, 0, meeting, min(CPA_SHARE * seconds, latest_s), "pair")
        self._turns: list[Turn] = []
        if geometry == "formation":
            angle = float(rng.uniform(20.0, 50.0))
            self._turns = [Turn(int(0.4 * seconds), row, angle, 1.0) for row in (0, 1)]
        place_neutrals(self.traffic, 2, meeting)

    def decide(self, s: int) -> None:
        """See Pilot."""
        for turn in self._turns:
            if turn.s == s:
                self.traffic.turn_left_deg[turn.row] = turn.angle_deg
                self.traffic.turn_rate_dps[turn.row] = turn.rate_dps


class DemoEncounters:
    """The Pilot of the demo: once in each cycle a pair flies at each other, sees the alarm, and turns away in time."""

    CYCLE_S, APPEAR_S, TURN_S, VANISH_S = 90, 0, 18, 80
    TCPA_S = 100.0  # at first sight, within the default look-ahead of 120 s

    def __init__(self, rng: np.random.Generator, n: int) -> None:
        self.traffic = Traffic(n, int(rng.integers(1 << 24)))
        self._rng = rng
        place_neutrals(self.traffic, 2, draw_meeting("head-on", rng))

    def decide(self, s: int) -> None:
        """See Pilot."""
        phase = s % self.CYCLE_S
        if phase == self.APPEAR_S:
            place(self.traffic, 0, draw_meeting("head-on", self._rng), self.TCPA_S, "pair")
        elif phase == self.TURN_S:
            # both to the right, as the rules of the air ask for; 40 degrees open 10 NM by the time they pass
            self.traffic.turn_left_deg[:2] = 40.0
            self.traffic.turn_rate_dps[:2] = 2.0
        elif phase == self.VANISH_S:
            self.traffic.active[:2] = False


def draw_meeting(geometry: str, rng: np.random.Generator) -> Meeting:
    """A closest approach of the wanted kind."""
    lat, lon, track = rng.uniform(44.0, 54.0), rng.uniform(2.0, 16.0), rng.uniform(0.0, 360.0)
    gs_a, gs_b = rng.uniform(400.0, 480.0, 2)
    alt = float(rng.choice((33_000.0, 34_000.0, 35_000.0)))
    side = float(rng.choice((-1.0, 1.0)))
    miss, vs = rng.uniform(0.0, 2.0), 0.0
    if geometry == "head-on":
        turn = 180.0 + rng.uniform(-8.0, 8.0)
    elif geometry == "crossing":
        turn = side * rng.uniform(60.0, 120.0)
    elif geometry == "overtaking":
        turn, gs_b, miss = rng.uniform(-3.0, 3.0), gs_a - rng.uniform(50.0, 90.0), miss / 2.0
    elif geometry == "vertical":
        turn, vs = side * rng.uniform(20.0, 160.0), float(rng.choice((-1.0, 1.0))) * rng.uniform(1200.0, 2400.0)
    else:
        turn, gs_b, miss = 0.0, gs_a, rng.uniform(0.3, 1.0)
    return Meeting(
        float(lat), float(lon), (float(track), float(track + turn)), (float(gs_a), float(gs_b)), alt, float(miss), vs
    )


def place(traffic: Traffic, row: int, meeting: Meeting, tcpa_s: float, role: str) -> None:
    """Put the pair into two rows, tcpa_s before its meeting."""
    rows: I4 = np.array((row, row + 1), np.int32)
    traffic.spawn(rows, role)
    rad = np.radians(meeting.trk_deg)
    ve, vn = np.sin(rad) * meeting.gs_kt, np.cos(rad) * meeting.gs_kt
    east, north = ve[1] - ve[0], vn[1] - vn[0]
    if math.hypot(east, north) < 1e-6:
        # no relative motion: abreast
        east, north = ve[0], vn[0]
    across = math.degrees(math.atan2(east, north)) + 90.0
    lat_b, lon_b, _ = direct(meeting.lat, meeting.lon, across, meeting.miss_nm * NM_M)
    points = ((meeting.lat, meeting.lon), (lat_b, lon_b))
    for k in (0, 1):
        back_m = meeting.gs_kt[k] * KT_MS * tcpa_s
        lat, lon, azimuth = direct(*points[k], meeting.trk_deg[k] + 180.0, back_m)
        traffic.lat[row + k], traffic.lon[row + k] = lat, lon
        traffic.trk_deg[row + k] = (azimuth + 180.0) % 360.0
    traffic.gs_kt[rows] = meeting.gs_kt
    traffic.alt_ft[rows] = traffic.sel_alt_ft[rows] = meeting.alt_ft
    if meeting.vs_fpm:
        climber = row + 1
        traffic.alt_ft[climber] = meeting.alt_ft - meeting.vs_fpm * tcpa_s / 60.0
        traffic.sel_alt_ft[climber] = meeting.alt_ft + math.copysign(3000.0, meeting.vs_fpm)
        traffic.climb_fpm[climber] = abs(meeting.vs_fpm)
        traffic.vs_fpm[climber] = meeting.vs_fpm


def place_neutrals(traffic: Traffic, first: int, meeting: Meeting) -> None:
    """Fill the rows from `first` on with aircraft that keep away from everybody."""
    rows: I4 = np.arange(first, traffic.n, dtype=np.int32)
    traffic.spawn(rows, "neutral")
    for k, row in enumerate(rows.tolist()):
        golden_deg, reach_m = 137.50776 * k, NEUTRAL_SPACING_NM * NM_M * math.sqrt(k + 8.0)
        traffic.lat[row], traffic.lon[row], _ = direct(meeting.lat, meeting.lon, golden_deg, reach_m)
    traffic.trk_deg[rows] = meeting.trk_deg[0] % 360.0
    traffic.gs_kt[rows] = 450.0
    traffic.alt_ft[rows] = traffic.sel_alt_ft[rows] = 41_000.0
