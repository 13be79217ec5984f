"""Ways out of a conflict: the candidates that keep the minima are those that do when they are flown.

The oracle flies every candidate in steps of a second with GeographicLib's code in PROJ, and looks at the separation. A
loss that it sees is one. Where it sees none, not even with minima larger by what can happen between its steps, there is
none; in between it does not know.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod

from watchkeeper.config.schema import DEFAULT, Config
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.conflict.constants import (
    CLIMB_MOST_FPM,
    CLIMB_STEP_FPM,
    LEVEL_FPM,
    LEVEL_REACH_FT,
    LEVEL_STEP_FT,
    SPEED_SHARE,
    SPEED_STEP_KT,
    TRACK_STEP_DEG,
)
from watchkeeper.detectors.conflict.declaration import PairFacts
from watchkeeper.detectors.conflict.detector import Conflict
from watchkeeper.detectors.conflict.minima import Minima
from watchkeeper.detectors.conflict.ways import Ways
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.kernels.approach import ON_LIMIT_FT, ON_LIMIT_M, State, state_of
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.batch import F8
from watchkeeper.streams.geo import KT_MS, NM_M
from watchkeeper.streams.simulate import simulate

WGS84 = Geod(ellps="WGS84")
HORIZON_S = 120.0
NEEDED = Minima(HORIZON_S, 5.0 * NM_M, 1000.0)
TIMES = np.arange(0.0, HORIZON_S + 0.5)


class Flown(msgspec.Struct, frozen=True):
    """An aircraft now, and what it does from now on."""

    lat: float
    lon: float
    trk_deg: float
    gs_kt: float
    alt_ft: float
    vs_fpm: float
    level_ft: float = math.nan

    def path(self, times: F8 = TIMES) -> tuple[F8, F8, F8]:
        n = len(times)
        lon, lat, _ = WGS84.fwd(
            np.full(n, self.lon), np.full(n, self.lat), np.full(n, self.trk_deg), self.gs_kt * KT_MS * times
        )
        alt_ft = self.alt_ft + self.vs_fpm / 60.0 * times
        if not math.isnan(self.level_ft):
            alt_ft = np.minimum(alt_ft, self.level_ft) if self.vs_fpm > 0 else np.maximum(alt_ft, self.level_ft)
        return lat, lon, alt_ft


def apart(one: Flown, other: Flown) -> bool | None:
    """Whether two aircraft keep the minima for the horizon; None where steps of a second cannot tell."""
    (lat, lon, alt_ft), (lat2, lon2, alt2_ft) = one.path(), other.path()
    _, _, distance_m = WGS84.inv(lon, lat, lon2, lat2)
    apart_ft = np.abs(alt_ft - alt2_ft)
    between_m = 0.5 * (one.gs_kt + other.gs_kt) * KT_MS
    between_ft = 0.5 * (abs(one.vs_fpm) + abs(other.vs_fpm)) / 60.0
    # on the limit is kept
    limit_m, limit_ft = NEEDED.separation_m - ON_LIMIT_M, NEEDED.vertical_ft - ON_LIMIT_FT
    if ((distance_m < limit_m) & (apart_ft < limit_ft)).any():
        return False
    near = (distance_m < NEEDED.separation_m + between_m) & (apart_ft < NEEDED.vertical_ft + between_ft)
    return None if near.any() else True


def candidates(one: Flown) -> dict[str, list[tuple[float, Flown]]]:
    """The grid, as the documentation describes it."""

    def multiples(low: float, high: float, step: float) -> list[float]:
        return [k * step for k in range(math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6) + 1)]

    replace = msgspec.structs.replace

    def to_level(level_ft: float) -> Flown:
        up = 1.0 if level_ft > one.alt_ft else -1.0
        return replace(one, vs_fpm=up * max(LEVEL_FPM, up * one.vs_fpm), level_ft=level_ft)

    speeds = multiples(one.gs_kt * (1.0 - SPEED_SHARE), one.gs_kt * (1.0 + SPEED_SHARE), SPEED_STEP_KT)
    levels = multiples(max(0.0, one.alt_ft - LEVEL_REACH_FT), one.alt_ft + LEVEL_REACH_FT, LEVEL_STEP_FT)
    climbs = multiples(-CLIMB_MOST_FPM, CLIMB_MOST_FPM, CLIMB_STEP_FPM)
    return {
        "trk_deg": [(v, replace(one, trk_deg=v)) for v in multiples(0.0, 359.9, TRACK_STEP_DEG)],
        "gs_kt": [(v, replace(one, gs_kt=v)) for v in speeds],
        "alt_ft": [(v, to_level(v)) for v in levels],
        "vs_fpm": [(v, replace(one, vs_fpm=v)) for v in climbs],
    }


def ways(*aircraft: Flown, separation_m: float = math.nan, tau_s: float = 0.0) -> list[dict[str, Any]]:
    state = blank(State, 2)
    for row, one in zip(state, aircraft, strict=True):
        state_of(one.lat, one.lon, one.trk_deg, one.gs_kt * KT_MS, 0.5 * HORIZON_S, row)
        row["alt_ft"], row["climb_fts"] = one.alt_ft, one.vs_fpm / 60.0
        row["separation_m"], row["tau_s"] = separation_m, tau_s
    return Ways().of(0, 1, ("a", "b"), state, NEEDED)


def free(band: dict[str, Any], value: float) -> bool:
    return any(low <= value <= high if low <= high else not high < value < low for low, high in band["free"])


def meeting(lat: float, lon: float, track: float, other_track: float, other: dict[str, float], **own: float) -> Any:
    """Two aircraft that would be at one place in 90 s, the second off by some seconds."""
    gs, late_s = own.get("gs_kt", 450.0), other.pop("late_s", 0.0)
    gs2 = other.get("gs_kt", 450.0)
    lon1, lat1, back1 = WGS84.fwd(lon, lat, track + 180.0, gs * KT_MS * 90.0)
    lon2, lat2, back2 = WGS84.fwd(lon, lat, other_track + 180.0, gs2 * KT_MS * (90.0 + late_s))
    usual = {"alt_ft": 30_000.0, "vs_fpm": 0.0}
    return (
        Flown(**{"lat": lat1, "lon": lon1, "trk_deg": back1 % 360.0, "gs_kt": gs, **usual, **own}),
        Flown(**{"lat": lat2, "lon": lon2, "trk_deg": back2 % 360.0, "gs_kt": gs2, **usual, **other}),
    )


@given(
    lat=st.floats(-89.0, 89.0),
    lon=st.floats(-180.0, 180.0),
    tracks=st.tuples(st.floats(0.0, 360.0), st.floats(0.0, 360.0)),
    speeds=st.tuples(st.floats(60.0, 600.0), st.floats(60.0, 600.0)),
    late_s=st.floats(-40.0, 40.0),
    alts=st.tuples(st.floats(500.0, 40_000.0), st.floats(-2500.0, 2500.0)),
    climbs=st.tuples(st.sampled_from([0.0, 1800.0, -900.0]), st.sampled_from([0.0, -1200.0, 2200.0])),
)
@settings(max_examples=25, deadline=None)
def test_what_is_free_keeps_the_minima_when_it_is_flown(
    lat: float, lon: float, tracks: tuple[float, float], speeds: tuple[float, float], late_s: float,
    alts: tuple[float, float], climbs: tuple[float, float],
) -> None:  # fmt: skip
    pair = meeting(
        lat, lon, *tracks, {"gs_kt": speeds[1], "late_s": late_s, "alt_ft": sum(alts), "vs_fpm": climbs[1]},
        gs_kt=speeds[0], alt_ft=alts[0], vs_fpm=climbs[0],
    )  # fmt: skip
    found = ways(*pair)
    for k in (0, 1):
        one, other = pair[k], pair[1 - k]
        for name, tried in candidates(one).items():
            for value, flown in tried:
                kept = apart(flown, other)
                assert kept is None or free(found[k][name], value) == kept, (k, name, value)
            for edge in np.ravel(found[k][name]["free"]):
                assert any(edge % 360.0 == v or edge == v for v, _ in tried), "ranges end at candidates"


def test_head_on_each_may_turn_or_change_level_but_not_speed() -> None:
    a, b = ways(*meeting(50.0, 8.0, 90.0, 270.0, {}))
    assert [round(way["trk_deg"]["now"]) for way in (a, b)] == [90, 270]
    for way, off in ((a, 0.0), (b, 180.0)):
        ((low, high),) = way["trk_deg"]["free"]
        # clockwise from the right of the present track, around to its left
        assert (low - off) % 360.0 == pytest.approx(115.0, abs=5.0)
        assert (high - off) % 360.0 == pytest.approx(65.0, abs=5.0)
        assert way["gs_kt"]["free"] == []
        assert way["alt_ft"]["free"] == [[27_000.0, 29_000.0], [31_000.0, 33_000.0]]
        assert way["vs_fpm"]["free"] == [[-3000.0, -1000.0], [1000.0, 3000.0]]


def test_far_apart_everything_is_free() -> None:
    one, other = meeting(50.0, 8.0, 90.0, 270.0, {})
    (way, _) = ways(one, msgspec.structs.replace(other, lat=10.0))
    assert way["trk_deg"]["free"] == [[0.0, 360.0]]
    assert way["gs_kt"]["free"] == [[340.0, 560.0]]
    assert way["alt_ft"]["free"] == [[27_000.0, 33_000.0]]
    assert way["vs_fpm"]["free"] == [[-3000.0, 3000.0]]


def test_what_is_not_known_is_said() -> None:
    one, other = meeting(50.0, 8.0, 90.0, 270.0, {})
    (way, _) = ways(msgspec.structs.replace(one, alt_ft=math.nan), other)
    assert way["alt_ft"] == {"now": None, "free": None}
    assert way["vs_fpm"]["free"] is None
    assert way["trk_deg"]["free"]
    (_, hovering) = ways(one, msgspec.structs.replace(other, gs_kt=0.0))
    assert hovering["trk_deg"] == {"now": None, "free": None}
    assert hovering["gs_kt"] == {"now": 0.0, "free": None}
    assert hovering["alt_ft"]["free"]


def events(config: Config = DEFAULT) -> list[AlarmEvent]:
    pipeline = Pipeline(config)
    batches = simulate("head-on", seed=1, seconds=200.0).batches()
    return [event for batch in batches for event in pipeline.feed(batch)] + pipeline.finish()


def test_alarms_of_conflicts_have_them_until_separation_is_lost() -> None:
    told = [event for event in events() if event.kind == "conflict" and event.state != "cleared"]
    assert any(event.evidence["los"] for event in told)
    assert any(not event.evidence["los"] for event in told)
    for event in told:
        facts = msgspec.convert(event.evidence, PairFacts)
        assert [way.id for way in facts.ways] == ([] if facts.los else list(event.subjects))
        for way in facts.ways:
            assert way.trk_deg.free, "two aircraft that are still apart can turn away"
            assert way.alt_ft.now is not None


def test_one_that_fails_leaves_the_alarm_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ArithmeticError("no way out")

    monkeypatch.setattr(Ways, "of", fail)
    pipeline = Pipeline(DEFAULT)
    found = [e for batch in simulate("head-on", seed=1, seconds=60.0).batches() for e in pipeline.feed(batch)]
    assert any(event.kind == "conflict" for event in found)
    assert not any("ways" in event.evidence for event in found)
    (fence,) = [fence for fence in pipeline.guard.fences if isinstance(fence.detector, Conflict)]
    asked = [event for event in found if event.kind == "conflict" and not event.evidence["los"]]
    assert fence.failures["further"] == len(asked) > 0
    assert "no way out" in fence.remark


def well_clear(one: Flown, other: Flown, tau_s: float, limit_m: float) -> bool:
    """Whether two aircraft stay well clear after DO-365B, by distances in steps of a second alone."""
    times = np.arange(0.0, 3.0 * HORIZON_S)
    (lat, lon, alt_ft), (lat2, lon2, alt2_ft) = one.path(times), other.path(times)
    _, _, distance_m = WGS84.inv(lon, lat, lon2, lat2)
    closing_ms = -np.gradient(distance_m, times)
    tau = (distance_m**2 - limit_m**2) / np.maximum(distance_m * closing_ms, 1e-9)
    soon = (closing_ms > 0.0) & (tau <= tau_s) & (distance_m.min() < limit_m)
    lost = ((distance_m < limit_m) | soon) & (np.abs(alt_ft - alt2_ft) < NEEDED.vertical_ft)
    return not bool(lost[: len(TIMES)].any())


@pytest.mark.parametrize("track", [270.0, 200.0, 110.0, 5.0])
def test_with_a_tau_what_is_free_stays_well_clear_when_it_is_flown(track: float) -> None:
    limit_m, tau_s = 0.66 * NM_M, 35.0
    pair = meeting(50.0, 8.0, 90.0, track, {"gs_kt": 320.0}, gs_kt=250.0)
    found = ways(*pair, separation_m=limit_m, tau_s=tau_s)
    plain = ways(*pair, separation_m=limit_m)
    decided = 0
    for k in (0, 1):
        for name, tried in candidates(pair[k]).items():
            for value, flown in tried:
                assert free(plain[k][name], value) or not free(found[k][name], value), "a tau only takes away"
                # between these two, steps of a second cannot tell
                near, far = (well_clear(flown, pair[1 - k], tau_s * s, limit_m * s) for s in (1.05, 0.95))
                if near == far:
                    decided += 1
                    assert free(found[k][name], value) == near, (k, name, value)
    assert decided > 150
