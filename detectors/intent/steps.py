"""What `intent` knows of every vehicle at one step: where it is, what was last commanded, and whether it has arrived.

A vehicle takes part with a position and a velocity not older than `max_age_s`; its position is carried along its
geodesic to the step's time. It is controlled once a command or a waypoint for it has been heard. The command of a step
is the last one since the step before. The evaluation reads recordings by the same rules (evaluation/conflicts/log.py).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.kernels.approach import State, state_of
from watchkeeper.detectors.kernels.pairs import ARRIVED_NM, bearing_deg, haversine_nm
from watchkeeper.detectors.kernels.records import Int4, blank
from watchkeeper.streams.batch import F8, I8
from watchkeeper.streams.geo import KT_MS, direct
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import ACTION, ADSB, ROUTE, Kind


class Waypoint:
    """What is remembered of a slot (kernels/records.py): the waypoint last seen, and whether it has been reached."""

    lat_deg: float = math.nan
    lon_deg: float = math.nan
    arrived: bool = False


class Vehicle:
    """A vehicle of one step, in addition to its state."""

    slot: Int4
    heading_deg: float
    towards_deg: float
    """Where its waypoint is; NaN: it has none."""
    turn_deg: float
    faster_kt: float
    """The command of this step; NaN: none."""
    speed_ms: float
    controlled: bool
    arrived: bool


class Latest(NamedTuple):
    """The newest values of the fleet and when they were measured, [field, slot]."""

    adsb: F8
    adsb_t: F8
    action: F8
    action_t: F8
    route: F8
    route_t: F8


class Moment(NamedTuple):
    """The time of a step, of the step before, and from when on reports count."""

    t: float
    since_t: float
    oldest_t: float


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
        self._rows: NDArray[Any] = blank(Vehicle, capacity)
        self.state: NDArray[Any] = blank(State, capacity)

    @property
    def rows(self) -> NDArray[Any]:
        """The vehicles, one record each."""
        return self._rows[: self.n]

    def gather(self, fleet: Fleet, t: float, since_t: float, max_age_s: float, waypoints: NDArray[Any]) -> None:
        """Everybody who takes part at t, with commands newer than since_t."""
        latest = Latest(
            *(f[kind] for kind in (Kind.ADSB, Kind.ACTION, Kind.ROUTE) for f in (fleet.value, fleet.value_t))
        )
        moment = Moment(t, since_t, t - max_age_s)
        self.n = _gather(moment, latest, waypoints[: fleet.high], self._rows, self.state)

    def order(self) -> I8:
        """The rows, sorted by the third coordinate, as `look` wants them."""
        order: I8 = np.argsort(self.state["z_m"][: self.n], kind="stable")
        return order


@njit(cache=True)
def _gather(moment: Moment, latest: Latest, waypoints: NDArray[Any], rows: NDArray[Any], state: NDArray[Any]) -> int:
    n = 0
    t, oldest = moment.t, moment.oldest_t
    adsb, adsb_t, route, route_t = latest.adsb, latest.adsb_t, latest.route, latest.route_t
    for s in range(waypoints.size):
        fresh = adsb_t[ADSB.lat, s] >= oldest and adsb_t[ADSB.gs_kt, s] >= oldest and adsb_t[ADSB.trk_deg, s] >= oldest
        fresh = fresh and not (adsb_t[ADSB.on_ground, s] >= oldest and adsb[ADSB.on_ground, s] == 1.0)
        lat, lon, gs_ms, age_s = math.nan, math.nan, 0.0, 0.0
        heading_now = math.nan
        if fresh:
            age_s, gs_ms = t - adsb_t[ADSB.lat, s], adsb[ADSB.gs_kt, s] * KT_MS
            lat, lon, heading_now = direct(adsb[ADSB.lat, s], adsb[ADSB.lon, s], adsb[ADSB.trk_deg, s], gs_ms * age_s)
        waypoint = waypoints[s]
        way_lat, way_lon = route[ROUTE.lat, s], route[ROUTE.lon, s]
        has_way = route_t[ROUTE.lat, s] > -math.inf
        if has_way:
            # a flag counts if it came with the newest waypoint
            reached = route[ROUTE.reached, s] if route_t[ROUTE.reached, s] == route_t[ROUTE.lat, s] else math.nan
            near = fresh and haversine_nm(lat, lon, way_lat, way_lon) <= ARRIVED_NM
            same = way_lat == waypoint.lat_deg and way_lon == waypoint.lon_deg
            waypoint.arrived = arrives(waypoint.arrived, same, reached, near)
            waypoint.lat_deg, waypoint.lon_deg = way_lat, way_lon
        if not fresh:
            continue
        row = rows[n]
        row.slot = s
        state_of(lat, lon, heading_now, gs_ms, 0.0, state[n])
        state[n].alt_ft = adsb[ADSB.alt_ft, s] if adsb_t[ADSB.alt_ft, s] >= oldest else math.nan
        row.heading_deg, row.speed_ms = heading_now, gs_ms
        row.towards_deg = bearing_deg(lat, lon, way_lat, way_lon) if has_way else math.nan
        commanded_t = latest.action_t[ACTION.heading_delta_deg, s]
        row.turn_deg = row.faster_kt = math.nan
        if commanded_t > moment.since_t:
            row.turn_deg = latest.action[ACTION.heading_delta_deg, s]
            row.faster_kt = latest.action[ACTION.speed_delta_kt, s]
        row.controlled = has_way or commanded_t > -math.inf
        row.arrived = has_way and waypoint.arrived
        n += 1
    return n
