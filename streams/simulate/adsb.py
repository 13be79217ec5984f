"""What aircraft report: ADS-B as a receiver network delivers it, from the exact state of a Traffic.

With noise, a report has what real ones have: position error by the aircraft's accuracy category and the grid of
compact position reporting (17 bits, about 5 m), altitude in steps of 25 ft, velocity components in steps of 1 kt
(so the track steps by 0.1 to 0.7 degrees), vertical rate in steps of 64 ft/min, jitter and latency. Without noise
every value is exact, everybody reports at the same moment, and nothing is late.
"""

from __future__ import annotations

import math

import numpy as np

from watchkeeper.streams.batch import F8, I4, Bool
from watchkeeper.streams.messages import COLUMN, FIELDS, Kind
from watchkeeper.streams.simulate.arrival import Chunk
from watchkeeper.streams.simulate.controlled import Controller
from watchkeeper.streams.simulate.jamming import Jamming
from watchkeeper.streams.simulate.traffic import Pilot

# Navigation accuracy category -> (share of aircraft, position error per axis in m, well inside its 95 % bound).
NACP = {8: (0.08, 12.0), 9: (0.37, 4.0), 10: (0.50, 1.5), 11: (0.05, 0.6)}
NIC = {7: 0.1, 8: 0.8, 9: 0.1}
POSITION_ERROR_TAU_S = 60.0
VELOCITY_NOISE_KT = 0.3
JITTER_SHARE = 0.1  # of the report interval
LATENCY_S = (0.03, 0.28)  # spread stays under 0.3 s, so no sample is overtaken by one 0.3 s younger
LOST, NO_VELOCITY, NO_ALTITUDE = 0.03, 0.01, 0.002  # shares of reports, where losses are asked for

_C = COLUMN[Kind.ADSB]


class AdsbSource:
    """The reports of all aircraft under one pilot: the Source for the arrival queue."""

    def __init__(self, pilot: Pilot, rng: np.random.Generator, *, rate_hz: float, noise: bool, losses: bool) -> None:
        self._pilot = pilot
        self._rng = rng
        self._rate_hz = rate_hz
        self._noise = noise
        self._losses = losses
        n = pilot.traffic.n
        self._phase_s: F8 = rng.uniform(0.0, 1.0 / rate_hz, n) if noise else np.zeros(n)
        self._nacp: F8 = rng.choice(list(NACP), n, p=[share for share, _ in NACP.values()]).astype(np.float64)
        self._nic: F8 = rng.choice(list(NIC), n, p=list(NIC.values())).astype(np.float64)
        self._sigma_m: F8 = np.array([NACP[int(c)][1] for c in self._nacp])
        self._error_m: F8 = rng.standard_normal((2, n)) * self._sigma_m
        # what is done to their receivers; set by a scenario that does
        self.jamming: Jamming | None = None
        # who commands them and says so; set by a scenario that has a controller
        self.controller: Controller | None = None
        self.names = pilot.traffic.names
        self.callsigns = pilot.traffic.callsigns

    def second(self, s: int) -> list[Chunk]:
        """See Source. Moves the traffic on by one second."""
        traffic = self._pilot.traffic
        self._pilot.decide(s)
        traffic.steer()
        if self._noise:
            keep = math.exp(-1.0 / POSITION_ERROR_TAU_S)
            fresh = self._rng.standard_normal(self._error_m.shape) * self._sigma_m
            self._error_m = keep * self._error_m + math.sqrt(1.0 - keep * keep) * fresh
        vid, t = self._when(s)
        chunk = self._report(vid, t, s)
        commands = self.controller.commands(s) if self.controller else []
        traffic.step()
        return [chunk, *commands]

    def _when(self, s: int) -> tuple[I4, F8]:
        """Whose report is due at which time in this second; time-major."""
        first = np.ceil((s - self._phase_s) * self._rate_hz - 1e-9)
        k = first[None, :] + np.arange(math.ceil(self._rate_hz))[:, None]
        due = k / self._rate_hz + self._phase_s
        mask = self._pilot.traffic.active[None, :] & (due < s + 1 - 1e-9)
        _, vid = np.nonzero(mask)
        t = due[mask]
        if self._noise:
            t = t + self._rng.uniform(0.0, JITTER_SHARE / self._rate_hz, len(t))
        return vid.astype(np.int32), t

    def _report(self, vid: I4, t: F8, s: int) -> Chunk:
        traffic = self._pilot.traffic
        lat, lon, trk, alt = traffic.at(vid, t - s)
        data = np.full((len(FIELDS[Kind.ADSB]), len(t)), np.nan)
        data[_C["gs_kt"]], data[_C["trk_deg"]], data[_C["alt_ft"]] = traffic.gs_kt[vid], trk, alt
        data[_C["lat"]], data[_C["lon"]], data[_C["vs_fpm"]] = lat, lon, traffic.vs_fpm[vid]
        data[_C["nacp"]], data[_C["nic"]] = self._nacp[vid], self._nic[vid]
        data[_C["sel_alt_ft"]], data[_C["on_ground"]] = traffic.sel_alt_ft[vid], 0.0
        if self.jamming is not None:
            self.jamming.spoil(data, vid, t)
        if not self._noise:
            return Chunk(Kind.ADSB, vid, t, t, data)
        self._blur(data, vid)
        chunk = Chunk(Kind.ADSB, vid, t, t + self._rng.uniform(*LATENCY_S, len(t)), data)
        return self._lose(chunk) if self._losses else chunk

    def _blur(self, data: F8, vid: I4) -> None:
        """Measurement errors, then the steps of the message format."""
        east_m, north_m = self._error_m[:, vid]
        lat = data[_C["lat"]] + north_m / 111_200.0
        lon = data[_C["lon"]] + east_m / (111_320.0 * np.maximum(np.cos(np.radians(lat)), 0.01))
        odd = self._rng.random(len(vid)) < 0.5
        data[_C["lat"]], data[_C["lon"]] = cpr_grid(lat, lon, odd)
        rad = np.radians(data[_C["trk_deg"]])
        noise = self._rng.standard_normal((2, len(vid))) * VELOCITY_NOISE_KT
        east_kt = np.round(data[_C["gs_kt"]] * np.sin(rad) + noise[0])
        north_kt = np.round(data[_C["gs_kt"]] * np.cos(rad) + noise[1])
        data[_C["gs_kt"]] = np.round(np.hypot(east_kt, north_kt))
        data[_C["trk_deg"]] = np.degrees(np.arctan2(east_kt, north_kt)) % 360.0
        data[_C["alt_ft"]] = np.round(data[_C["alt_ft"]] / 25.0) * 25.0
        # + 0.0 turns the -0.0 of a level aircraft into 0.0
        data[_C["vs_fpm"]] = np.round(data[_C["vs_fpm"]] / 64.0) * 64.0 + 0.0

    def _lose(self, chunk: Chunk) -> Chunk:
        chance = self._rng.random((3, len(chunk.t)))
        no_velocity, no_altitude = chance[1] < NO_VELOCITY, chance[2] < NO_ALTITUDE
        for name in ("gs_kt", "trk_deg", "vs_fpm"):
            chunk.data[_C[name], no_velocity] = np.nan
        chunk.data[_C["alt_ft"], no_altitude] = np.nan
        return chunk.take(chance[0] >= LOST)


def cpr_grid(lat_deg: F8, lon_deg: F8, odd: Bool) -> tuple[F8, F8]:
    """The nearest position that an airborne position message, even or odd, can carry."""
    lat_step = np.where(odd, 360.0 / 59.0, 6.0) / 131_072.0
    lat = np.round(lat_deg / lat_step) * lat_step
    zones = np.maximum(longitude_zones(lat) - odd, 1.0)
    lon_step = 360.0 / zones / 131_072.0
    return lat, np.round(lon_deg / lon_step) * lon_step


def longitude_zones(lat_deg: F8) -> F8:
    """NL of DO-260: into how many longitude zones the circle at this latitude is cut, 59 at the equator, 1 at poles."""
    cos2 = np.maximum(np.cos(np.radians(lat_deg)) ** 2, 1e-12)
    x = np.clip(1.0 - (1.0 - math.cos(math.pi / 30.0)) / cos2, -1.0, 1.0)
    # the clip above gives 2 past 87 degrees, where one zone is left
    zones: F8 = np.where(np.abs(lat_deg) > 87.0, 1.0, np.floor(2.0 * math.pi / np.maximum(np.arccos(x), 0.1)))
    return zones
