"""A GNSS jammer among random traffic: what it does to accuracy reports, when, and to whom.

The reach grows from nothing at `t_on` to RADIUS_KM at `t_full`, stays, shrinks from `t_fade` and is gone at `t_off`.
An aircraft within reach and above the jammer's horizon reports NACp and NIC of 0 or little more. Some receivers are
immune, and some aircraft have poor categories all the time and everywhere. Times are seconds since the start.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from watchkeeper.streams.batch import F8, I4, Bool
from watchkeeper.streams.geo import EARTH_M, FT_M
from watchkeeper.streams.messages import COLUMN, Kind
from watchkeeper.streams.simulate.airspace import CENTRE_LAT, CENTRE_LON
from watchkeeper.streams.simulate.traffic import Pilot

RADIUS_KM = 130.0
# Shares of the run at which it comes, has full reach, begins to go and is gone: aircraft have a past by then.
ON, FULL, FADE, OFF = 0.3, 0.5, 0.6, 0.8
IMMUNE_SHARE, POOR_SHARE = 0.1, 0.08
POOR_NACP, POOR_NIC = 4.0, 4.0
# Categories under jamming, drawn for each report: mostly unknown.
JAMMED = (0.0, 0.0, 0.0, 1.0, 3.0)
# The horizon is this many km per square root of a metre of height, refraction included.
HORIZON_KM = 4.12

_C = COLUMN[Kind.ADSB]


class Jamming:
    """The jammer and the receivers, one row per aircraft of the Traffic."""

    def __init__(self, rng: np.random.Generator, n: int, seconds: float) -> None:
        self.lat = CENTRE_LAT + float(rng.uniform(-0.5, 0.5))
        self.lon = CENTRE_LON + float(rng.uniform(-0.7, 0.7))
        self.t_on, self.t_full, self.t_fade, self.t_off = (share * seconds for share in (ON, FULL, FADE, OFF))
        drawn = rng.random(n)
        self.immune: Bool = drawn < IMMUNE_SHARE
        self.poor: Bool = drawn > 1.0 - POOR_SHARE
        self._rng = rng

    def radius_km(self, t: F8) -> F8:
        """The reach at each time."""
        times = [self.t_on, self.t_full, self.t_fade, self.t_off]
        reach: F8 = np.interp(t, times, [0.0, RADIUS_KM, RADIUS_KM, 0.0])
        return reach

    def reached(self, t: F8, lat: F8, lon: F8, alt_ft: F8) -> Bool:
        """Whether the jammer reaches aircraft at these times and places."""
        a, b = np.radians(lat), math.radians(self.lat)
        half = np.sin((a - b) / 2) ** 2 + np.cos(a) * math.cos(b) * np.sin(np.radians(lon - self.lon) / 2) ** 2
        away_km = 2.0 * EARTH_M / 1000.0 * np.arcsin(np.sqrt(np.minimum(half, 1.0)))
        horizon_km = HORIZON_KM * np.sqrt(np.maximum(alt_ft * FT_M, 0.0))
        reached: Bool = away_km < np.minimum(self.radius_km(t), horizon_km)
        return reached

    def spoil(self, data: F8, vid: I4, t: F8) -> None:
        """Change the categories in these reports as the receivers would."""
        poor = self.poor[vid]
        data[_C["nacp"], poor], data[_C["nic"], poor] = POOR_NACP, POOR_NIC
        jammed = self._rng.choice(JAMMED, (2, len(vid)))
        hit = self.reached(t, data[_C["lat"]], data[_C["lon"]], data[_C["alt_ft"]]) & ~self.immune[vid]
        data[_C["nacp"], hit], data[_C["nic"], hit] = jammed[0, hit], jammed[1, hit]

    def truth(self, pilot: Pilot, seconds: float, t0: float) -> dict[str, Any]:
        """What it really did, ready for JSON: where and when it was, and who was jammed from when to when."""
        traffic = pilot.traffic
        jammed: dict[str, list[list[float]]] = {}
        poor: set[str] = set()
        for s in range(math.ceil(seconds)):
            pilot.decide(s)
            traffic.steer()
            hit = self.reached(np.full(traffic.n, float(s)), traffic.lat, traffic.lon, traffic.alt_ft)
            for row in np.flatnonzero(traffic.active & hit & ~self.immune).tolist():
                spans = jammed.setdefault(traffic.names[row], [])
                if spans and spans[-1][1] == t0 + s:
                    spans[-1][1] = t0 + s + 1
                else:
                    spans.append([t0 + s, t0 + s + 1])
            poor.update(traffic.names[row] for row in np.flatnonzero(traffic.active & self.poor).tolist())
            traffic.step()
        return {
            "lat": self.lat, "lon": self.lon, "radius_km": RADIUS_KM, "t_on": t0 + self.t_on,
            "t_full": t0 + self.t_full, "t_fade": t0 + self.t_fade, "t_off": t0 + self.t_off,
            "jammed": jammed, "poor": sorted(poor),
        }  # fmt: skip
