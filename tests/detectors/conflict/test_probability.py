"""The probability of losing separation: what must be certain, what must be impossible, and what moves it which way."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from geographiclib.geodesic import Geodesic
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.detectors.conflict.futures import End, Motion, ends, futures
from watchkeeper.detectors.conflict.probability import Asked, Needed, Outlook, chance, judge
from watchkeeper.detectors.conflict.search import Pair
from watchkeeper.detectors.kernels import approach as cpa
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.geo import KT_MS, NM_M

WGS84 = Geodesic.WGS84
HORIZON_S, VERTICAL_FT = 120.0, 1000.0
NEEDED = Needed(5.0 * NM_M, 5.0 * NM_M, VERTICAL_FT)


def aircraft(
    bearing: float, distance_nm: float, trk_deg: float, *, gs_kt: float = 400.0, alt_ft: float = 30_000.0,
    vs_fpm: float = 0.0, level_ft: float = math.nan, at: tuple[float, float] = (50.0, 8.0),
) -> Any:  # fmt: skip
    """The state of an aircraft seen from a reference point."""
    here = WGS84.Direct(*at, bearing, distance_nm * NM_M)
    out = blank(cpa.State, 1)[0]
    # the track is meant at the reference point: meridians converge
    turned = here["azi2"] - bearing
    cpa.state_of(here["lat2"], here["lon2"], trk_deg + turned, gs_kt * KT_MS, 0.5 * HORIZON_S, out)
    out["alt_ft"], out["climb_fts"] = alt_ft, vs_fpm / 60.0
    out["level_s"] = math.inf if math.isnan(level_ft) else (level_ft - alt_ft) / (vs_fpm / 60.0)
    return out


def motion(turn_dps: float = 0.0, age_s: float = 0.0, free: bool = False) -> Any:
    out = blank(Motion, 1)[0]
    out["turn_rads"], out["age_s"], out["free"] = math.radians(turn_dps), age_s, free
    return out


def p(
    a: Any, b: Any, ma: Any = None, mb: Any = None, *, level_off: float = 0.5, turn_hold_s: float = 20.0,
    limit_ft: float = VERTICAL_FT, step_ft: float = 0.0,
) -> float:  # fmt: skip
    still = motion()
    ma, mb = still if ma is None else ma, still if mb is None else mb
    outlook = Outlook(HORIZON_S, turn_hold_s, level_off, step_ft)
    return chance(a, b, ma, mb, NEEDED._replace(vertical_ft=limit_ft), outlook, futures())[0]


def test_head_on_is_certain_and_parallel_is_impossible() -> None:
    assert p(aircraft(0.0, 3.5, 180.0), aircraft(180.0, 3.5, 0.0)) > 0.99
    # a minute ahead one flight in forty does what nothing tells
    assert 0.97 < p(aircraft(0.0, 10.0, 180.0), aircraft(180.0, 10.0, 0.0)) < 0.98
    assert p(aircraft(90.0, 5.0, 0.0), aircraft(270.0, 5.0, 0.0)) < 0.01


@pytest.mark.parametrize("lat", [0.0, 50.0, 89.9, -89.95])
@pytest.mark.parametrize("lon", [8.0, 180.0])
def test_it_is_the_same_everywhere(lat: float, lon: float) -> None:
    def there(**place: tuple[float, float]) -> float:
        return p(aircraft(0.0, 12.0, 175.0, **place), aircraft(180.0, 12.0, 10.0, **place))  # type: ignore[arg-type]

    assert there(at=(lat, lon)) == pytest.approx(there(at=(40.0, 0.0)), abs=0.01)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_it_is_symmetric_and_a_probability(data: st.DataObject) -> None:
    def draw(low: float, high: float) -> float:
        return data.draw(st.floats(low, high))

    a, b = (
        aircraft(draw(0, 360), draw(0, 20), draw(0, 360), alt_ft=30_000.0 + draw(-2000, 2000), vs_fpm=draw(-3000, 3000))
        for _ in range(2)
    )
    ma, mb = (motion(draw(-3, 3), draw(0, 15), data.draw(st.booleans())) for _ in range(2))
    one, other = p(a, b, ma, mb), p(b, a, mb, ma)
    assert one == pytest.approx(other, abs=1e-9)
    assert 0.0 <= one <= 1.0


def test_exactly_the_minimum_is_never_probable() -> None:
    abreast = p(aircraft(90.0, 2.5, 0.0), aircraft(270.0, 2.5, 0.0))
    assert abreast < 0.5
    assert p(aircraft(180.0, 1.0, 90.0), aircraft(0.0, 0.0, 90.0, alt_ft=31_000.0)) < 0.5


def test_a_turn_away_makes_it_less_and_a_turn_towards_makes_it_more_probable() -> None:
    north, south = aircraft(0.0, 8.0, 180.0), aircraft(180.0, 8.0, 0.0)
    assert p(north, south, motion(3.0), motion(3.0)) < 0.7 * p(north, south)
    east, west = aircraft(90.0, 5.0, 0.0), aircraft(270.0, 5.0, 0.0)
    assert p(east, west, motion(-2.0), motion(0.0)) > p(east, west) + 0.3


def test_a_turn_beyond_its_hold_time_does_not_go_on() -> None:
    east, west = aircraft(90.0, 5.0, 0.0), aircraft(270.0, 5.0, 0.0)
    assert p(east, west, motion(-2.0), turn_hold_s=0.0) < p(east, west, motion(-2.0), turn_hold_s=20.0)


def test_levelling_off_below_keeps_them_apart_and_at_the_same_level_does_not() -> None:
    level = aircraft(0.0, 8.0, 180.0)
    through = aircraft(180.0, 8.0, 0.0, alt_ft=27_000.0, vs_fpm=3000.0)
    stops = aircraft(180.0, 8.0, 0.0, alt_ft=27_000.0, vs_fpm=3000.0, level_ft=28_500.0)
    joins = aircraft(180.0, 8.0, 0.0, alt_ft=27_000.0, vs_fpm=3000.0, level_ft=30_000.0)
    assert p(level, stops) < 0.02
    assert p(level, through) > 0.6
    assert p(level, joins) > 0.9


def ways_to_end(state: Any, other: Any, *, free: bool = True, level_off: float = 0.0) -> dict[float, float]:
    """Altitudes at which a climb may end, with their weights; infinite for going on."""
    found = blank(End, 4)
    count = ends(state, free, other, VERTICAL_FT, level_off, found)
    return {float(state["alt_ft"] + state["climb_fts"] * row["level_s"]): row["weight"] for row in found[:count]}


@pytest.mark.parametrize("up", [1.0, -1.0])
def test_a_climb_may_end_at_each_of_the_next_levels_or_go_on(up: float) -> None:
    climbing, high = aircraft(0, 0, 0, alt_ft=10_500.0, vs_fpm=up * 1200.0), aircraft(0, 0, 0, alt_ft=60_000.0)
    found = ways_to_end(climbing, high)
    levels = [11_000.0, 12_000.0, 13_000.0] if up > 0 else [10_000.0, 9_000.0, 8_000.0]
    assert list(found) == pytest.approx([*levels, up * math.inf])
    assert sum(found.values()) == pytest.approx(1.0)
    # one in ten at each level that it comes to
    assert list(found.values()) == pytest.approx([0.1, 0.09, 0.081, 0.729])
    cruise = aircraft(0, 0, 0, alt_ft=33_500.0, vs_fpm=up * 1200.0)
    assert next(iter(ways_to_end(cruise, high).values())) == pytest.approx(0.4)
    # known, or captured already: one end
    assert ways_to_end(climbing, high, free=False) == {up * math.inf: 1.0}


def test_a_climb_towards_another_ends_below_it_rather_than_elsewhere_until_it_is_too_late() -> None:
    level = aircraft(0.0, 2.0, 0.0)
    stopped = [
        ways_to_end(aircraft(0, 0, 0, alt_ft=29_000.0 - room_ft, vs_fpm=2000.0), level, level_off=0.6)
        for room_ft in (900.0, 500.0, 300.0, 50.0)
    ]
    weights = [next(iter(found.values())) for found in stopped]
    assert weights[0] == pytest.approx(0.6)
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] < 0.1


def test_old_reports_and_far_losses_are_less_certain() -> None:
    a, b = aircraft(0.0, 14.0, 178.0), aircraft(180.0, 14.0, 0.0)
    assert p(a, b, motion(age_s=15.0), motion(age_s=15.0)) < p(a, b)
    near, far = aircraft(180.0, 4.0, 0.0), aircraft(180.0, 16.0, 0.0)
    assert p(aircraft(0.0, 4.0, 180.0), near) > p(aircraft(0.0, 8.0, 180.0), far)


def test_aircraft_on_levels_a_thousand_feet_apart_keep_them_and_those_that_read_less_come_back_to_them() -> None:
    def levels(one_ft: float, other_ft: float, distance_nm: float) -> float:
        a, b = aircraft(0.0, distance_nm, 180.0, alt_ft=one_ft), aircraft(180.0, distance_nm, 0.0, alt_ft=other_ft)
        return p(a, b, limit_ft=975.0, step_ft=11.25)

    # with altitudes in steps of 25 ft, as config has it; near is 9 s to 5 NM, far 90 s
    near, far = 3.5, 12.5
    assert levels(30_000.0, 31_000.0, near) < 0.2 > levels(30_000.0, 31_000.0, far)
    assert levels(30_000.0, 30_950.0, near) > 0.75
    assert 0.2 < levels(30_000.0, 30_950.0, far) < 0.6
    assert levels(30_000.0, 31_050.0, near) < levels(30_000.0, 31_050.0, far) < 0.5
    # between the levels of cruise, and below where these are all that is flown, nothing brings it back
    assert levels(30_500.0, 30_000.0, far) > 0.9
    assert levels(9_000.0, 9_950.0, near) > 0.6


@pytest.mark.parametrize(("alt_ft", "near", "act_s"), [(10_000.0, 0.6, 80.0), (30_000.0, 0.54, 300.0)])
def test_the_further_ahead_a_loss_is_the_more_probable_it_must_be(alt_ft: float, near: float, act_s: float) -> None:
    asked = Asked(near=0.6, high_ratio=0.9, far=0.9, act_s=80.0, act_high_s=300.0)
    state, still = blank(cpa.State, 2), blank(Motion, 2)
    still["turn_rads"], still["age_s"] = 0.0, 0.0
    found = []
    for distance_nm in (3.5, 5.0, 8.0, 12.0):
        state[0] = aircraft(0.0, distance_nm, 180.0, alt_ft=alt_ft)
        state[1] = aircraft(180.0, distance_nm, 0.0, alt_ft=alt_ft)
        pairs = blank(Pair, 1)
        pairs["a"], pairs["b"] = 0, 1
        pairs["reach_m"], pairs["apart_m"], pairs["level_ft"] = NEEDED
        judge(pairs, np.arange(2, dtype=np.int32), state, still, Outlook(HORIZON_S, 20.0, 0.5), asked, futures())
        (pair,) = pairs
        assert pair["asked"] == pytest.approx(min(0.9, near * math.exp(pair["when_s"] / act_s)))
        found.append(float(pair["asked"]))
    assert found == sorted(found)
    assert near < found[0] < 0.7 < found[-1]


def test_it_says_when() -> None:
    a, b = aircraft(0.0, 10.0, 180.0), aircraft(180.0, 10.0, 0.0)
    _, when_s = chance(a, b, motion(), motion(), NEEDED, Outlook(HORIZON_S, 20.0, 0.5), futures())
    assert when_s == pytest.approx((20.0 - 5.0) / 800.0 * 3600.0, abs=6.0)
