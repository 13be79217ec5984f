"""How aircraft move: exact steps along WGS84 geodesics, turns at a constant rate, climbs that level off.

State is struct-of-arrays, one row per aircraft, and holds for one whole second: within it, ground speed, turn rate
and vertical speed are constant, so a report at any time inside it can be computed from the state at its start.
A Pilot (airspace.py, encounters.py) changes the commands at whole seconds. Distances are on the ellipsoid.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from watchkeeper.streams.batch import F8, I4, I8, Bool
from watchkeeper.streams.geo import KT_MS, direct
from watchkeeper.streams.kernels import njit

# Levelling off: the climb rate falls with the height left to go, with this time constant, and changes this fast.
CAPTURE_S = 10.0
LEVEL_OFF_FPM_PER_S = 300.0
_AIRLINES = ("AUA", "AFR", "BAW", "DLH", "EZY", "FIN", "IBE", "KLM", "LOT", "RYR", "SAS", "SWR", "TAP", "WZZ")


class Traffic:
    """Aircraft by row. `turn_left_deg` is what remains of a commanded turn, `sel_alt_ft` the commanded altitude."""

    def __init__(self, n: int, salt: int) -> None:
        self.n = n
        self.lat: F8 = np.zeros(n)
        self.lon: F8 = np.zeros(n)
        self.trk_deg: F8 = np.zeros(n)
        self.gs_kt: F8 = np.zeros(n)
        self.alt_ft: F8 = np.zeros(n)
        self.vs_fpm: F8 = np.zeros(n)
        self.turn_dps: F8 = np.zeros(n)
        self.turn_left_deg: F8 = np.zeros(n)
        self.turn_rate_dps: F8 = np.full(n, 1.5)
        self.sel_alt_ft: F8 = np.zeros(n)
        self.climb_fpm: F8 = np.full(n, 1500.0)
        self.active: Bool = np.zeros(n, bool)
        # every aircraft that ever flies has its own number; names follow from it
        self.serial: I8 = np.full(n, -1, np.int64)
        self.names: list[str] = [""] * n
        self.callsigns: list[str] = [""] * n
        self.role: list[str] = [""] * n
        self._salt = salt
        self._born = 0

    def spawn(self, rows: I4, role: str) -> None:
        """Put new aircraft into these rows; the caller sets where they are."""
        for row in rows.tolist():
            self.serial[row] = self._born
            # an odd factor maps 24 bits onto themselves, so no address comes twice
            self.names[row] = f"{(self._born * 0x9E3779 + self._salt) & 0xFFFFFF:06x}"
            self.callsigns[row] = f"{_AIRLINES[self._born % len(_AIRLINES)]}{100 + self._born * 37 % 9900}"
            self.role[row] = role
            self._born += 1
        self.active[rows] = True
        self.vs_fpm[rows] = self.turn_left_deg[rows] = 0.0

    def steer(self) -> None:
        """From the commands, the turn rate and vertical speed of the coming second."""
        self.turn_dps = np.clip(self.turn_left_deg, -self.turn_rate_dps, self.turn_rate_dps)
        left_ft = self.sel_alt_ft - self.alt_ft
        want = np.clip(left_ft * (60.0 / CAPTURE_S), -self.climb_fpm, self.climb_fpm)
        change = np.clip(want - self.vs_fpm, -LEVEL_OFF_FPM_PER_S, LEVEL_OFF_FPM_PER_S)
        # the last foot is taken in one step, or level flight would never quite be level
        self.vs_fpm = np.where(np.abs(left_ft) < 1.0, left_ft * 60.0, self.vs_fpm + change)

    def step(self) -> None:
        """One second later."""
        rows = np.arange(self.n, dtype=np.int32)
        self.lat, self.lon, self.trk_deg, self.alt_ft = self.at(rows, np.ones(self.n))
        self.turn_left_deg = self.turn_left_deg - self.turn_dps

    def at(self, rows: I4, dt: F8) -> tuple[F8, F8, F8, F8]:
        """lat, lon, trk_deg and alt_ft of these rows, dt seconds after the start of the present second."""
        lat, lon, trk = np.empty(len(rows)), np.empty(len(rows)), np.empty(len(rows))
        now = Flight(self.lat, self.lon, self.trk_deg, self.gs_kt, self.turn_dps)
        _fly(rows, dt, now, lat, lon, trk)
        return lat, lon, trk, self.alt_ft[rows] + self.vs_fpm[rows] * dt / 60.0


class Pilot(Protocol):
    """Decides for all aircraft of a Traffic."""

    traffic: Traffic

    def decide(self, s: int) -> None:
        """Bring aircraft in, take them out and change commands for the second from s to s + 1."""
        ...


class Flight(NamedTuple):
    """What all aircraft do at the start of a second, by row."""

    lat: F8
    lon: F8
    trk_deg: F8
    gs_kt: F8
    turn_dps: F8


@njit(cache=True)
def _fly(rows: I4, dt: F8, now: Flight, out_lat: F8, out_lon: F8, out_trk: F8) -> None:
    for i in range(rows.size):
        r = rows[i]
        arc = now.gs_kt[r] * KT_MS * dt[i]
        half = math.radians(now.turn_dps[r] * dt[i]) / 2.0
        # a turn is a circular arc: its chord is flown at the mean heading
        chord = arc if abs(half) < 1e-12 else arc * math.sin(half) / half
        la, lo, az = direct(now.lat[r], now.lon[r], now.trk_deg[r] + math.degrees(half), chord)
        out_lat[i] = la
        out_lon[i] = lo
        out_trk[i] = (az + math.degrees(half)) % 360.0
