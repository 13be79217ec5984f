"""What `intent` knows of every vehicle at one step: where it is, what was last commanded, and whether it has arrived.

A vehicle takes part with a position and a velocity not older than `max_age_s`; its position is carried along its
geodesic to the step's time. It is controlled once a command or a waypoint for it has been heard. The command of a step
is the last one since the step before. The evaluation reads recordings by the same rules (evaluation/conflicts/log.py).
"""

from __future__ import annotations

import math

import numpy as np

from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.kernels.approach import STATE, state_of
from watchkeeper.detectors.kernels.pairs import ARRIVED_NM, bearing_deg, haversine_nm
from watchkeeper.streams.batch import F8, I4, I8, Bool
from watchkeeper.streams.geo import KT_MS, direct
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import COLUMN, Kind

_LAT, _LON, _ALT, _GS, _TRK, _GROUND = (
    COLUMN[Kind.ADSB][name] for name in ("lat", "lon", "alt_ft", "gs_kt", "trk_deg", "on_ground")
)
_TURN, _FASTER = (COLUMN[Kind.ACTION][name] for name in ("heading_delta_deg", "speed_delta_kt"))
_WAY_LAT, _WAY_LON, _REACHED = (COLUMN[Kind.ROUTE][name] for name in ("lat", "lon", "reached"))
# Columns of the memory per slot: the waypoint last seen, and whether the vehicle has arrived there.
WAY_LAT, WAY_LON, ARRIVED = range(3)
MEMORY = 3


@njit(cache=True)
def arrives(before: bool, same_waypoint: bool, reached: float, near: bool) -> bool:
    """Whether a vehicle has arrived, by what the route says (NaN: nothing), by distance, or because it had before."""
    if not math.isnan(reached):
        return reached == 1.0
    return near or (same_waypoint and before)


class Present:
    """The vehicles of one step, in rows 0 … n-1 in order of their slots. The arrays are made once and reused."""

    def __init__(self, capacity: int) -> None:
        self.n = 0
        self.slot: I4 = np.zeros(capacity, np.int32)
        self.state: F8 = np.zeros((capacity, STATE))
        self.alt_ft: F8 = np.zeros(capacity)
        self.heading_deg: F8 = np.zeros(capacity)
        self.towards_deg: F8 = np.zeros(capacity)
        self.turn_deg: F8 = np.zeros(capacity)
        self.faster_kt: F8 = np.zeros(capacity)
        self.speed_ms: F8 = np.zeros(capacity)
        self.controlled: Bool = np.zeros(capacity, bool)
        self.arrived: Bool = np.zeros(capacity, bool)

    def gather(self, fleet: Fleet, t: float, since_t: float, max_age_s: float, memory: F8) -> None:
        """Everybody who takes part at t, with commands newer than since_t."""
        self.n = _gather(
            t, since_t, max_age_s, fleet.high,
            fleet.value[Kind.ADSB], fleet.value_t[Kind.ADSB], fleet.value[Kind.ACTION], fleet.value_t[Kind.ACTION],
            fleet.value[Kind.ROUTE], fleet.value_t[Kind.ROUTE], memory,
            self.slot, self.state, self.alt_ft, self.heading_deg, self.towards_deg, self.turn_deg, self.faster_kt,
            self.speed_ms, self.controlled, self.arrived,
        )  # fmt: skip

    def flying(self) -> I8:
        """The rows that have not arrived, sorted by the third coordinate, as `look` wants them."""
        rows = np.flatnonzero(~self.arrived[: self.n])
        order: I8 = rows[np.argsort(self.state[rows, 2], kind="stable")]
        return order


@njit(cache=True)
def _gather(
    t: float, since_t: float, max_age_s: float, high: int,
    adsb: F8, adsb_t: F8, action: F8, action_t: F8, route: F8, route_t: F8, memory: F8,
    slot: I4, state: F8, alt_ft: F8, heading: F8, towards: F8, turn: F8, faster: F8,
    speed_ms: F8, controlled: Bool, arrived: Bool,
) -> int:  # fmt: skip
    n = 0
    oldest = t - max_age_s
    for s in range(high):
        fresh = adsb_t[_LAT, s] >= oldest and adsb_t[_GS, s] >= oldest and adsb_t[_TRK, s] >= oldest
        fresh = fresh and not (adsb_t[_GROUND, s] >= oldest and adsb[_GROUND, s] == 1.0)
        lat, lon, gs_ms, age_s = math.nan, math.nan, 0.0, 0.0
        heading_now = math.nan
        if fresh:
            age_s, gs_ms = t - adsb_t[_LAT, s], adsb[_GS, s] * KT_MS
            lat, lon, heading_now = direct(adsb[_LAT, s], adsb[_LON, s], adsb[_TRK, s], gs_ms * age_s)
        way_lat, way_lon = route[_WAY_LAT, s], route[_WAY_LON, s]
        has_way = route_t[_WAY_LAT, s] > -math.inf
        if has_way:
            # a flag counts if it came with the newest waypoint
            reached = route[_REACHED, s] if route_t[_REACHED, s] == route_t[_WAY_LAT, s] else math.nan
            near = fresh and haversine_nm(lat, lon, way_lat, way_lon) <= ARRIVED_NM
            same = way_lat == memory[s, WAY_LAT] and way_lon == memory[s, WAY_LON]
            there = arrives(memory[s, ARRIVED] == 1.0, same, reached, near)
            memory[s, WAY_LAT], memory[s, WAY_LON], memory[s, ARRIVED] = way_lat, way_lon, 1.0 if there else 0.0
        if not fresh:
            continue
        slot[n] = s
        state_of(lat, lon, heading_now, gs_ms, 0.0, state[n])
        alt_ft[n] = adsb[_ALT, s] if adsb_t[_ALT, s] >= oldest else math.nan
        heading[n], speed_ms[n] = heading_now, gs_ms
        towards[n] = bearing_deg(lat, lon, way_lat, way_lon) if has_way else math.nan
        commanded = action_t[_TURN, s] > since_t
        turn[n] = action[_TURN, s] if commanded else math.nan
        faster[n] = action[_FASTER, s] if commanded else math.nan
        controlled[n] = has_way or action_t[_TURN, s] > -math.inf
        arrived[n] = has_way and memory[s, ARRIVED] == 1.0
        n += 1
    return n
