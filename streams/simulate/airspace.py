"""Random en-route traffic: aircraft that enter, cruise, turn, change level, climb out, descend and leave.

Nobody separates them, so conflicts happen at the rate that chance gives. Flight levels follow the semicircular rule
(odd eastbound, even westbound), tracks cluster along a few airway directions, one wind blows over the whole area.
"""

from __future__ import annotations

import math

import numpy as np

from watchkeeper.streams.batch import F8, I4, I8, Bool
from watchkeeper.streams.geo import GRAVITY_MS2, KT_MS
from watchkeeper.streams.simulate.traffic import Traffic

# Busy core-area airspace at midday, all levels together; the area is as large as the number of aircraft asks for.
DENSITY_PER_NM2 = 0.002
# Of the square area: a handful of aircraft still have room to fly, and very many become denser instead of polar.
MIN_SIDE_NM, MAX_SIDE_NM = 60.0, 3000.0
CENTRE_LAT, CENTRE_LON = 48.0, 9.0
AIRWAYS_DEG = (55.0, 125.0, 235.0, 305.0)
AIRWAY_SPREAD_DEG = 20.0
LOW_FT = 10_000.0  # where departures appear and arrivals vanish
LOW_TAS_KT = 290.0
CRUISE_FT = 35_000.0
# Mean times between decisions of one aircraft in cruise, in seconds.
TURN_EVERY_S, LEVEL_EVERY_S, DESCEND_EVERY_S = 500.0, 800.0, 2000.0
SHARE_CLIMBING, SHARE_DESCENDING = 0.15, 0.15
BANK_DEG = 22.0


class Airspace:
    """The Pilot of random traffic."""

    def __init__(self, rng: np.random.Generator, n: int) -> None:
        self.traffic = Traffic(n, int(rng.integers(1 << 24)))
        self._rng = rng
        half_nm = min(max(math.sqrt(n / DENSITY_PER_NM2), MIN_SIDE_NM), MAX_SIDE_NM) / 2.0
        self._half_lat = half_nm / 60.0
        self._half_lon = min(half_nm / 60.0 / math.cos(math.radians(CENTRE_LAT)), 179.0)
        self._cruise_tas_kt: F8 = np.zeros(n)
        self._arriving: Bool = np.zeros(n, bool)
        self._wake_s: I8 = np.zeros(n, np.int64)
        wind_kt, wind_deg = rng.uniform(10.0, 60.0), rng.normal(90.0, 30.0)
        self._wind_east_kt = wind_kt * math.sin(math.radians(wind_deg))
        self._wind_north_kt = wind_kt * math.cos(math.radians(wind_deg))

    def decide(self, s: int) -> None:
        """See Pilot."""
        if s == 0:
            self._populate()
        else:
            self._leave(s)
            self._enter(s)
        self._manoeuvre()
        accel_kt = 1.0
        tr = self.traffic
        tr.gs_kt = tr.gs_kt + np.clip(self._wanted_gs_kt() - tr.gs_kt, -accel_kt, accel_kt)

    def _populate(self) -> None:
        rows = np.arange(self.traffic.n, dtype=np.int32)
        share = self._rng.random(len(rows))
        self._begin(rows, self._scatter(len(rows)), self._draw_tracks(len(rows)))
        climbing, descending = share < SHARE_CLIMBING, share > 1.0 - SHARE_DESCENDING
        tr = self.traffic
        tr.alt_ft[climbing | descending] = self._rng.uniform(LOW_FT, 30_000.0, int((climbing | descending).sum()))
        tr.vs_fpm[climbing] = tr.climb_fpm[climbing]
        self._descend(np.flatnonzero(descending).astype(np.int32))
        tr.vs_fpm[descending] = -tr.climb_fpm[descending]
        tr.gs_kt = self._wanted_gs_kt()

    def _leave(self, s: int) -> None:
        tr = self.traffic
        outside = (np.abs(tr.lat - CENTRE_LAT) > self._half_lat) | (np.abs(tr.lon - CENTRE_LON) > self._half_lon)
        landed = self._arriving & (tr.alt_ft < LOW_FT + 1.0)
        gone = np.flatnonzero(tr.active & (outside | landed))
        tr.active[gone] = False
        # a pause, because what the old aircraft sent may still be on its way under its name
        self._wake_s[gone] = s + self._rng.integers(3, 30, len(gone))

    def _enter(self, s: int) -> None:
        rows = np.flatnonzero(~self.traffic.active & (self._wake_s <= s)).astype(np.int32)
        n = len(rows)
        if not n:
            return
        where, tracks = self._scatter(n), self._draw_tracks(n)
        climbing = self._rng.random(n) < SHARE_CLIMBING / (SHARE_CLIMBING + 0.5)
        # the others come in over the edge that lies behind them
        east, north = np.sin(np.radians(tracks)), np.cos(np.radians(tracks))
        over_side = ~climbing & (np.abs(east) > np.abs(north))
        over_end = ~climbing & ~over_side
        edge = 0.999
        where[0][over_end] = CENTRE_LAT - edge * self._half_lat * np.sign(north[over_end])
        where[1][over_side] = CENTRE_LON - edge * self._half_lon * np.sign(east[over_side])
        self._begin(rows, where, tracks)
        self.traffic.alt_ft[rows[climbing]] = LOW_FT
        self.traffic.gs_kt[rows] = self._wanted_gs_kt()[rows]

    def _begin(self, rows: I4, where: tuple[F8, F8], tracks: F8) -> None:
        """New aircraft in level cruise."""
        tr, n = self.traffic, len(rows)
        tr.spawn(rows, "traffic")
        tr.lat[rows], tr.lon[rows] = where
        tr.trk_deg[rows] = tracks
        tr.alt_ft[rows] = tr.sel_alt_ft[rows] = self._draw_levels(tracks)
        self._cruise_tas_kt[rows] = np.clip(self._rng.normal(445.0, 22.0, n), 380.0, 500.0)
        tr.climb_fpm[rows] = self._rng.uniform(900.0, 2600.0, n)
        self._arriving[rows] = False

    def _manoeuvre(self) -> None:
        tr, rng = self.traffic, self._rng
        chance = rng.random((3, tr.n))
        steady = tr.active & ~self._arriving & (np.abs(tr.turn_left_deg) < 0.01)
        level = steady & (np.abs(tr.alt_ft - tr.sel_alt_ft) < 1.0) & (tr.alt_ft > LOW_FT + 10_000.0)
        turning = np.flatnonzero(steady & (chance[0] < 1.0 / TURN_EVERY_S))
        tr.turn_left_deg[turning] = np.clip(rng.normal(0.0, 25.0, len(turning)), -90.0, 90.0)
        speed_mps = np.maximum(tr.gs_kt[turning], 100.0) * KT_MS
        tr.turn_rate_dps[turning] = np.degrees(GRAVITY_MS2 * math.tan(math.radians(BANK_DEG)) / speed_mps)
        changing = np.flatnonzero(level & (chance[1] < 1.0 / LEVEL_EVERY_S))
        tr.sel_alt_ft[changing] = self._draw_levels(tr.trk_deg[changing])
        self._descend(np.flatnonzero(level & (chance[2] < 1.0 / DESCEND_EVERY_S)).astype(np.int32))

    def _descend(self, rows: I4) -> None:
        self.traffic.sel_alt_ft[rows] = LOW_FT
        self._arriving[rows] = True

    def _wanted_gs_kt(self) -> F8:
        """True airspeed for the altitude, plus the wind along the track."""
        tr = self.traffic
        up = np.clip((tr.alt_ft - LOW_FT) / (CRUISE_FT - LOW_FT), 0.0, 1.0)
        tas = LOW_TAS_KT + (self._cruise_tas_kt - LOW_TAS_KT) * up
        rad = np.radians(tr.trk_deg)
        wanted: F8 = tas + self._wind_east_kt * np.sin(rad) + self._wind_north_kt * np.cos(rad)
        return wanted

    def _scatter(self, n: int) -> tuple[F8, F8]:
        lat = CENTRE_LAT + self._half_lat * self._rng.uniform(-0.99, 0.99, n)
        lon = CENTRE_LON + self._half_lon * self._rng.uniform(-0.99, 0.99, n)
        return lat, lon

    def _draw_tracks(self, n: int) -> F8:
        along = self._rng.choice(AIRWAYS_DEG, n) + self._rng.normal(0.0, AIRWAY_SPREAD_DEG, n)
        anywhere = self._rng.uniform(0.0, 360.0, n)
        tracks: F8 = np.where(self._rng.random(n) < 0.75, along, anywhere) % 360.0
        return tracks

    def _draw_levels(self, tracks: F8) -> F8:
        level = np.clip(np.round(self._rng.normal(35.0, 3.0, len(tracks))), 25.0, 41.0)
        eastbound = tracks < 180.0
        wrong = (level % 2 == 1) != eastbound
        levels: F8 = (level - wrong) * 1000.0
        return levels
