"""Well clear with a tau: against the definition of DO-365B, evaluated in small steps of time, and as an alarm."""

from __future__ import annotations

import math

import numpy as np
import pytest
from geographiclib.geodesic import Geodesic
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from watchkeeper.config.detectors import Detectors
from watchkeeper.config.detectors.conflict import Conflict, Zone
from watchkeeper.config.detectors.volumes import VOLUMES
from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.kernels.approach import State, approach, passing, reach, scratch, state_of
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.geo import KT_MS, NM_M
from watchkeeper.streams.messages import Kind

HORIZON_S = 120.0
DMOD_M, ZTHR_FT, TAU_S = VOLUMES["daa-well-clear"].separation_nm * NM_M, 450.0, 35.0
STEP_S = 0.05


def at(east_m: float, north_m: float, trk_deg: float, gs_ms: float, alt_ft: float, climb_fts: float) -> np.ndarray:
    bearing, away_m = math.degrees(math.atan2(east_m, north_m)), math.hypot(east_m, north_m)
    place = Geodesic.WGS84.Direct(45.0, 7.0, bearing, away_m)
    state = blank(State, 1)[0]
    state_of(place["lat2"], place["lon2"], trk_deg, gs_ms, 0.5 * HORIZON_S, state)
    state["alt_ft"], state["climb_fts"] = alt_ft, climb_fts
    return state


def by_definition(east_m: float, north_m: float, u: float, v: float, dz_ft: float, dz_fts: float) -> float:
    """The first time at which they are not well clear, on a plane: tau_mod, DMOD, HMD and ZTHR as they are defined."""
    t = np.arange(0.0, HORIZON_S, STEP_S)
    x, y = east_m + u * t, north_m + v * t
    r2, closing = x * x + y * y, x * u + y * v
    with np.errstate(divide="ignore", invalid="ignore"):
        tau = np.where(
            r2 <= DMOD_M**2, 0.0, np.where(closing < 0.0, (DMOD_M**2 - r2) / np.minimum(closing, -1e-9), np.inf)
        )
    speed2 = u * u + v * v
    miss2 = east_m**2 + north_m**2 - (east_m * u + north_m * v) ** 2 / speed2
    hmd = np.where(closing < 0.0, math.sqrt(max(miss2, 0.0)), np.sqrt(r2))
    lost = (tau <= TAU_S) & (hmd <= DMOD_M) & (np.abs(dz_ft + dz_fts * t) < ZTHR_FT)
    return float(t[lost][0]) if lost.any() else math.nan


@settings(max_examples=300, deadline=None)
@given(
    st.floats(-12_000, 12_000), st.floats(-12_000, 12_000), st.floats(0, 360), st.floats(20, 120), st.floats(0, 360),
    st.floats(20, 120), st.floats(-1500, 1500), st.floats(-20, 20),
)  # fmt: skip
def test_the_loss_begins_when_the_definition_says(
    east_m: float, north_m: float, trk1: float, gs1: float, trk2: float, gs2: float, dz_ft: float, dz_fts: float
) -> None:
    one, other = at(0.0, 0.0, trk1, gs1, 5000.0, 0.0), at(east_m, north_m, trk2, gs2, 5000.0 + dz_ft, dz_fts)
    (u1, v1), (u2, v2) = (
        (gs * math.sin(math.radians(trk)), gs * math.cos(math.radians(trk))) for trk, gs in ((trk1, gs1), (trk2, gs2))
    )
    u, v = u2 - u1, v2 - v1
    assume(math.hypot(u, v) > 5.0)
    wanted = by_definition(east_m, north_m, u, v, dz_ft, dz_fts)
    # what is decided by centimetres is not looked at
    for more_m, more_ft in ((20.0, 5.0), (-20.0, -5.0)):
        near = approach(one, other, HORIZON_S, DMOD_M + more_m, ZTHR_FT + more_ft, scratch())
        plain = approach(one, other, HORIZON_S, DMOD_M, ZTHR_FT, scratch())
        assume((near.dcpa_m < DMOD_M + more_m) == (plain.dcpa_m < DMOD_M))
    reach_m = reach(one, other, HORIZON_S, DMOD_M, TAU_S)
    assume(near.tcpa_s < HORIZON_S - 1.0)
    way = passing(one, other, HORIZON_S, DMOD_M, ZTHR_FT, reach_m, scratch())
    edges = [
        abs(dz_ft + dz_fts * t) - ZTHR_FT
        for t in (
            0.0,
            wanted if not math.isnan(wanted) else 0.0,
            way.tcpa_s,
            way.t_in_s if way.t_in_s == way.t_in_s else 0,
        )
    ]
    assume(min(abs(edge) for edge in edges) > 10.0)
    if math.isnan(wanted):
        assert math.isnan(way.t_in_s)
    else:
        assert way.t_in_s == pytest.approx(wanted, abs=0.6)


def test_without_a_tau_nothing_changes() -> None:
    one, other = at(0.0, 0.0, 90.0, 100.0, 5000.0, 0.0), at(9000.0, 300.0, 270.0, 100.0, 5000.0, 0.0)
    assert reach(one, other, HORIZON_S, DMOD_M, 0.0) == DMOD_M
    plain = approach(one, other, HORIZON_S, DMOD_M, ZTHR_FT, scratch())
    assert passing(one, other, HORIZON_S, DMOD_M, ZTHR_FT, DMOD_M, scratch()) == plain


def test_aircraft_that_part_need_the_distance_only() -> None:
    one, other = at(0.0, 0.0, 270.0, 100.0, 5000.0, 0.0), at(2000.0, 0.0, 90.0, 100.0, 5000.0, 0.0)
    assert reach(one, other, HORIZON_S, DMOD_M, TAU_S) == DMOD_M


def test_an_alarm_of_a_zone_with_a_tau_says_lost_half_a_minute_before_the_distance_is() -> None:
    """Two at 200 kt each, head on."""
    lost_t = {}
    for name, tau_s in (("timed", None), ("plain", 0.0)):
        zone = Zone(name=name, preset="daa-well-clear", tau_s=tau_s)
        config = Config(
            fleet=FleetLimits(max_vehicles=10), detectors=Detectors(conflict=Conflict(zones=(zone,), max_pairs=100))
        )
        pipeline = Pipeline(config)
        events = []
        for s in range(120):
            along_m = 200.0 * KT_MS * s
            places = [Geodesic.WGS84.Direct(45.0, 7.0, 90.0, d) for d in (along_m, 25_000.0 - along_m)]
            values = {
                "lat": np.array([p["lat2"] for p in places]), "lon": np.array([p["lon2"] for p in places]),
                "alt_ft": np.full(2, 5000.0), "gs_kt": np.full(2, 200.0), "trk_deg": np.array([90.0, 270.0]),
                "vs_fpm": np.zeros(2), "on_ground": np.zeros(2),
            }  # fmt: skip
            columns = columns_of(Kind.ADSB, np.array([0, 1], np.int32), np.full(2, 1000.0 + s), values)
            events += pipeline.feed(Batch(["a", "b"], {Kind.ADSB: columns}, [], {}))
        lost_t[name] = next(event.t_onset for event in events if event.kind == "los")
    # head on tau_mod is 35 s where s^2 - 35 V s - DMOD^2 = 0
    speed_ms = 400.0 * KT_MS
    way_m = 0.5 * (TAU_S * speed_ms + math.sqrt((TAU_S * speed_ms) ** 2 + 4.0 * DMOD_M**2))
    assert lost_t["plain"] - lost_t["timed"] == pytest.approx((way_m - DMOD_M) / speed_ms, abs=1.5)
