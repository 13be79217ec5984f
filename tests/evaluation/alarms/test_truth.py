"""Losses of separation: those that a log shows, no others, and when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from geographiclib.geodesic import Geodesic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from watchkeeper.config.detectors.conflict import Zone
from watchkeeper.evaluation.alarms.flights import Reports, Sky
from watchkeeper.evaluation.alarms.truth import Loss, losses, lost_seconds
from watchkeeper.streams.batch import columns_of, slice_batch
from watchkeeper.streams.check import checked
from watchkeeper.streams.messages import Kind


def sky_of(scenes: Any, tracks: list[Any], min_alt_ft: float = 0.0) -> Sky:
    reports = Reports(min_alt_ft)
    reports.add(scenes.batch_of(tracks))
    return reports.sky(min_gs_kt=30.0)


def found(scenes: Any, tracks: list[Any], min_alt_ft: float = 0.0) -> list[Loss]:
    return losses(sky_of(scenes, tracks, min_alt_ft), 5.0, 1000.0)


def spans(scenes: Any, tracks: list[Any]) -> list[tuple[float, float]]:
    return [(loss.t_start - scenes.t0, loss.t_end - scenes.t0) for loss in found(scenes, tracks)]


@pytest.mark.parametrize("every_s", [1, 10])
def test_two_that_meet_lose_separation_when_geometry_says(scenes: Any, every_s: int) -> None:
    # a quarter of a mile a second from 60.1 NM: under 5 NM after 220.4 s, over it again after 260.4 s
    (loss,) = found(scenes, scenes.facing(60.1, every_s=every_s))
    assert loss.pair == ("aa0001", "bb0002")
    assert (loss.t_start - scenes.t0, loss.t_end - scenes.t0) == (221.0, 260.0)
    assert loss.min_sep_nm == pytest.approx(0.1, abs=0.002)
    assert loss.min_vsep_ft == 0.0
    assert loss.eligible


@pytest.mark.parametrize(("distance_nm", "lost"), [(5.0 - 1e-7, True), (5.0 + 1e-7, False)])
def test_the_horizontal_minimum_is_exact_to_a_fifth_of_a_millimetre(
    scenes: Any, distance_nm: float, lost: bool
) -> None:
    assert bool(found(scenes, scenes.abreast(distance_nm))) == lost


@pytest.mark.parametrize(("apart_ft", "lost"), [(999.0, True), (1000.0, False), (1001.0, False)])
def test_exactly_the_vertical_minimum_is_separated(scenes: Any, apart_ft: float, lost: bool) -> None:
    low, high = scenes.abreast(2.0)
    assert bool(found(scenes, [low, replace(high, alt_ft=high.alt_ft + apart_ft)])) == lost


@pytest.mark.parametrize(("apart_ft", "marginal"), [(949.0, False), (950.0, True), (975.0, True)])
def test_what_altitude_steps_can_explain_is_marginal(scenes: Any, apart_ft: float, marginal: bool) -> None:
    low, high = scenes.abreast(2.0)
    (loss,) = found(scenes, [low, replace(high, alt_ft=high.alt_ft + apart_ft)])
    assert loss.marginal == marginal


@pytest.mark.parametrize(
    ("zone", "lost"),
    [
        ({}, False),  # everywhere 3 NM
        ({"lat": 0.0, "lon": 8.5, "radius_nm": 60.0}, False),
        ({"lat": 0.0, "lon": 8.5, "radius_nm": 20.0}, True),  # they fly out of it
        ({"lat": 0.1, "lon": 8.5, "radius_nm": 20.0, "floor_ft": 36_000.0}, True),
        ({"ceiling_ft": 35_000.0}, True),  # below it, not at it
        ({"floor_ft": 35_000.0}, False),
    ],
)
def test_a_zone_has_its_own_minima(scenes: Any, zone: dict[str, float], lost: bool) -> None:
    sky = sky_of(scenes, scenes.abreast(4.0))
    assert bool(losses(sky, 5.0, 1000.0, [Zone(name="terminal", separation_nm=3.0, **zone)])) == lost


def test_of_a_pair_the_larger_minima_count_and_of_zones_the_first(scenes: Any) -> None:
    near, far = scenes.abreast(4.0)
    sky = sky_of(scenes, [near, replace(far, alt_ft=far.alt_ft + 600.0)])
    low = Zone(name="low", ceiling_ft=35_500.0, separation_nm=3.0, vertical_ft=500.0)
    whole = Zone(name="all", separation_nm=3.0, vertical_ft=500.0)
    wide = Zone(name="wide", separation_nm=8.0, vertical_ft=2000.0)
    assert losses(sky, 5.0, 1000.0, [low])  # the upper one is not in it
    assert not losses(sky, 5.0, 1000.0, [whole, wide])
    assert losses(sky, 5.0, 500.0, [wide, whole])


def test_an_unknown_altitude_is_no_loss(scenes: Any) -> None:
    low, high = scenes.abreast(2.0)
    assert not found(scenes, [low, replace(high, alt_ft=np.full_like(high.t, np.nan))])


@pytest.mark.parametrize(("seconds", "lost"), [(2, False), (3, True)])
def test_a_loss_lasts_three_seconds_at_least(scenes: Any, seconds: int, lost: bool) -> None:
    low, high = scenes.abreast(2.0)
    high = replace(high, alt_ft=high.alt_ft + 1100.0)
    high = high.at((high.t >= 100) & (high.t < 100 + seconds), alt_ft=35_900.0)
    assert spans(scenes, [low, high]) == ([(100.0, 99.0 + seconds)] if lost else [])


@pytest.mark.parametrize(("pause_s", "expected"), [(59, [(50.0, 259.0)]), (60, [(50.0, 100.0), (160.0, 260.0)])])
def test_runs_less_than_a_minute_apart_are_one_loss(
    scenes: Any, pause_s: int, expected: list[tuple[float, float]]
) -> None:
    low, high = scenes.abreast(2.0)
    apart = replace(high, alt_ft=high.alt_ft + 2000.0)
    close = ((high.t >= 50) & (high.t <= 100)) | ((high.t >= 100 + pause_s) & (high.t <= 200 + pause_s))
    assert spans(scenes, [low, apart.at(close, alt_ft=35_000.0)]) == expected


@pytest.mark.parametrize("seconds", [3, 9])
def test_an_altitude_spike_is_no_loss_however_often_it_is_repeated(scenes: Any, seconds: int) -> None:
    low, high = scenes.abreast(2.0)
    high = replace(high, alt_ft=high.alt_ft + 2000.0)
    spiked = high.at((high.t >= 100) & (high.t < 100 + seconds), alt_ft=35_000.0)
    assert not found(scenes, [low, spiked])


def test_ten_seconds_at_another_level_are_no_spike(scenes: Any) -> None:
    low, high = scenes.abreast(2.0)
    high = replace(high, alt_ft=high.alt_ft + 2000.0)
    level = high.at((high.t >= 100) & (high.t <= 110), alt_ft=35_000.0)
    assert spans(scenes, [low, level]) == [(100.0, 110.0)]


def test_a_single_altitude_of_a_slow_reporter_is_a_spike(scenes: Any) -> None:
    low, high = scenes.abreast(2.0, every_s=10)
    high = replace(high, alt_ft=high.alt_ft + 2000.0)
    assert not found(scenes, [low, high.at(high.t == 100, alt_ft=35_000.0)])


@pytest.mark.parametrize("at", [0, 100, 400])
def test_a_position_that_nobody_can_fly_to_is_dropped(scenes: Any, at: int) -> None:
    left, right = scenes.abreast(20.0, every_s=10)
    assert not found(scenes, [left, right.at(right.t == at, lat=0.0)])


def test_a_climb_is_not_a_row_of_spikes(scenes: Any) -> None:
    low, climbing = scenes.abreast(2.0, every_s=10)
    climbing = replace(climbing, alt_ft=33_000.0 + 60.0 * climbing.t)
    # 3,600 ft/min from 2,000 ft below: within 1,000 ft from 16.7 s to 50 s, the ends excluded
    assert spans(scenes, [low, climbing]) == [(17.0, 49.0)]


def test_who_is_on_the_ground_loses_nothing(scenes: Any) -> None:
    left, right = scenes.abreast(2.0)
    assert not found(scenes, [left, replace(right, on_ground=np.ones_like(right.t))])
    parked = replace(right, on_ground=np.full_like(right.t, np.nan), gs_kt=np.full_like(right.t, 12.0))
    assert not found(scenes, [left, parked])


def test_what_happens_below_the_limit_does_not_count(scenes: Any) -> None:
    pair = [replace(track, alt_ft=2000.0 + 10.0 * track.t) for track in scenes.abreast(2.0)]
    (loss,) = found(scenes, pair, min_alt_ft=3000.0)
    assert loss.t_start - scenes.t0 == 100.0
    assert sky_of(scenes, pair, 3000.0).hours == pytest.approx(2 * 301 / 3600)
    assert sky_of(scenes, pair).hours == pytest.approx(2 * 401 / 3600)


def test_an_unknown_altitude_is_below_any_limit_and_above_none(scenes: Any) -> None:
    left, right = scenes.abreast(2.0)
    unknown = replace(right, alt_ft=np.full_like(right.t, np.nan))
    assert sky_of(scenes, [left, unknown], 3000.0).ids == ["aa0001"]
    assert sky_of(scenes, [left, unknown]).ids == ["aa0001", "bb0002"]


def test_nobody_is_on_the_line_across_a_dip_below_the_limit(scenes: Any) -> None:
    left, right = (replace(track, alt_ft=np.full_like(track.t, 3100.0)) for track in scenes.abreast(2.0))
    dip = (right.t >= 100) & (right.t < 120)
    dipped = right.at(dip, alt_ft=2900.0)
    # 20 s: reports this far apart would otherwise be joined, as they are where nothing is known of the time between
    assert sky_of(scenes, [dipped], 3000.0).hours == pytest.approx(381 / 3600)
    assert sky_of(scenes, [right.without(dip)], 3000.0).hours == pytest.approx(401 / 3600)
    assert sky_of(scenes, [right.at(dip, alt_ft=np.nan)], 3000.0).hours == pytest.approx(401 / 3600)
    # and the truth is the same from one batch as from many
    reports = Reports(3000.0)
    for start in range(0, 802, 7):
        reports.add(slice_batch(scenes.batch_of([left, dipped]), start, start + 7))
    assert reports.sky(min_gs_kt=30.0).hours == pytest.approx((401 + 381) / 3600)


def test_what_is_too_low_is_taken_out_of_the_batch_and_the_rest_is_as_it_was(scenes: Any) -> None:
    left, right = scenes.abreast(2.0, seconds=9)
    left = replace(left, alt_ft=np.array([np.nan, 0.0, 2999.0, 3000.0, 3001.0, 2000.0, 4000.0, np.nan, 5000.0, -50.0]))
    batch = scenes.batch_of([left, right])
    turn = {"heading_delta_deg": np.array([5.0]), "speed_delta_kt": np.zeros(1)}
    orders = columns_of(Kind.ACTION, np.zeros(1, np.int32), np.array([scenes.t0]), turn, seq=np.array([20]))
    batch.kinds[Kind.ACTION] = orders
    (passed,) = Reports(3000.0).passing([batch])
    before, after = batch.kinds[Kind.ADSB], passed.kinds[Kind.ADSB]
    expected = [i for i in range(20) if i % 2 or i // 2 in (3, 4, 6, 8)]  # the two report in turn, aa0001 first
    assert after.seq.tolist() == expected
    for name in ("vid", "via", "t"):
        assert np.array_equal(getattr(after, name), getattr(before, name)[expected])
    assert np.array_equal(after.data, before.data[:, expected], equal_nan=True)
    assert passed.kinds[Kind.ACTION] is orders
    assert (passed.ids, len(before)) == (batch.ids, 20)
    whole = checked(batch)
    assert next(Reports().passing([whole])) is whole  # no limit: untouched


def test_between_reports_far_apart_an_aircraft_is_nowhere(scenes: Any) -> None:
    left, right = scenes.abreast(2.0)
    silent = right.without((right.t > 100) & (right.t < 131))
    # 31 s without a report: the loss pauses, but not for so long that it would be two
    assert sky_of(scenes, [left, silent]).hours == pytest.approx((401 + 401 - 30) / 3600)
    assert spans(scenes, [left, silent]) == [(0.0, 400.0)]
    heard = right.without((right.t > 100) & (right.t < 130))
    assert sky_of(scenes, [left, heard]).hours == pytest.approx((401 + 401) / 3600)


def test_a_repeated_position_is_no_report(scenes: Any) -> None:
    left, right = scenes.abreast(2.0)
    held = right.at(right.t > 100, lat=float(right.lat[100]), lon=float(right.lon[100]))
    # the receiver went on repeating the last position, while the other flew on
    assert spans(scenes, [left, held]) == [(0.0, 100.0)]


def gone(track: Any, name: str, start: float, stop: float) -> Any:
    return track.at((track.t > start) & (track.t < stop), **{name: np.nan})


@pytest.mark.parametrize(
    ("spoil", "eligible"),
    [
        (lambda a: a, True),
        (lambda a: a.without(a.t < 191), True),
        (lambda a: a.without(a.t < 192), False),  # not heard 30 s before
        (lambda a: a.without((a.t > 200) & (a.t < 210)), True),
        (lambda a: a.without((a.t > 200) & (a.t < 211)), False),
        (lambda a: a.without((a.t > 210) & (a.t < 222)), False),  # silent right up to the loss
        (lambda a: a.without((a.t > 170) & (a.t < 190)), True),  # that silence was over by then
        (lambda a: gone(a, "gs_kt", 200, 211), False),
        (lambda a: gone(a, "trk_deg", 200, 211), False),
        (lambda a: gone(a, "alt_ft", 200, 211), True),
    ],
)
def test_a_loss_is_eligible_if_both_reported_for_half_a_minute_before(scenes: Any, spoil: Any, eligible: bool) -> None:
    first, second = scenes.facing(60.1)
    for tracks in ([spoil(first), second], [first, spoil(second)]):
        (loss,) = found(scenes, tracks)
        assert loss.t_start - scenes.t0 == 221.0
        assert loss.eligible == eligible


def test_where_reports_come_every_ten_seconds_one_may_be_a_little_late(scenes: Any) -> None:
    first, second = scenes.facing(60.1, every_s=10)
    delayed = replace(first, t=np.where(first.t == 200, 204.0, first.t))
    (loss,) = found(scenes, [delayed, second])
    assert loss.eligible
    (loss,) = found(scenes, [first.without(first.t == 200), second])
    assert not loss.eligible


def test_nothing_in_the_log_is_nothing_lost(scenes: Any) -> None:
    assert losses(Reports().sky(min_gs_kt=30.0), 5.0, 1000.0) == []
    assert found(scenes, [scenes.straight("aa0001", 50.0, 8.0, 90.0)]) == []


places = st.tuples(st.floats(-89.9, 89.9), st.floats(-180.0, 179.9)) | st.sampled_from([(90.0, 0.0), (60.0, 180.0)])
wishes = st.lists(
    st.tuples(st.floats(0, 360), st.floats(0, 20), st.floats(0, 360), st.floats(100, 600), st.floats(-1200, 1200)),
    min_size=2, max_size=6,
)  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=places, aircraft=wishes, every_s=st.sampled_from([1, 10]))
def test_the_lost_seconds_are_those_of_brute_force_on_geodesics(
    scenes: Any, place: tuple[float, float], aircraft: list[tuple[float, ...]], every_s: int
) -> None:
    line = Geodesic.WGS84
    tracks, truth = [], []
    for i, (bearing, distance_nm, trk, gs_kt, above_ft) in enumerate(aircraft):
        start = line.Direct(*place, bearing, distance_nm * 1852.0)
        tracks.append(
            scenes.straight(
                f"a{i}", start["lat2"], start["lon2"], trk,
                gs_kt=gs_kt, alt_ft=30_000.0 + above_ft, seconds=60, every_s=every_s,
            )
        )  # fmt: skip
        speed_mps = gs_kt * 1852.0 / 3600.0
        truth.append([line.Direct(start["lat2"], start["lon2"], trk, speed_mps * t) for t in range(61)])
    a, b, t, sep_nm, _, _ = lost_seconds(sky_of(scenes, tracks), 5.0, 1000.0)
    got = {(int(i), int(k), int(at - scenes.t0)): s for i, k, at, s in zip(a, b, t, sep_nm, strict=True)}
    # between reports the chord is straight and the line is not: over 10 s that is a metre, far less than an aircraft
    tolerance_m = 0.001 if every_s == 1 else 1.5
    for i in range(len(tracks)):
        for k in range(i + 1, len(tracks)):
            level = abs(aircraft[i][4] - aircraft[k][4]) < 1000.0
            for second in range(61):
                p, q = truth[i][second], truth[k][second]
                s_m = line.Inverse(p["lat2"], p["lon2"], q["lat2"], q["lon2"])["s12"]
                if abs(s_m - 5 * 1852.0) < tolerance_m:
                    continue
                key = (i, k, second)
                assert (key in got) == (level and s_m < 5 * 1852.0)
                if key in got:
                    assert got[key] * 1852.0 == pytest.approx(s_m, abs=tolerance_m)
