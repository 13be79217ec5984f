"""conflict and los: who takes part, what the evidence says, and that it is exact for reports of any age."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from geographiclib.geodesic import Geodesic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from watchkeeper.config.schema import DEFAULT, Config
from watchkeeper.detectors.base import Evidence
from watchkeeper.detectors.conflict.detector import Conflict
from watchkeeper.streams.geo import KT_MS, NM_M

WGS84 = Geodesic.WGS84
MEETING_T = 100.0  # everyone below meets at 50 N 8 E at this time


def configured(**conflict: Any) -> Config:
    return msgspec.convert({"detectors": {"conflict": conflict}}, Config)


def report(name: str, t: float, *, bearing: float = 0.0, gs_kt: float = 450.0, **fields: float) -> dict[str, Any]:
    """A report at t of an aircraft that comes from this bearing and is over the meeting point at MEETING_T."""
    at = WGS84.Direct(50.0, 8.0, bearing, gs_kt * KT_MS * (MEETING_T - t))
    row = {"id": name, "t": t, "lat": at["lat2"], "lon": at["lon2"], "alt_ft": 30_000.0, "gs_kt": gs_kt}
    return {**row, "trk_deg": (at["azi2"] + 180.0) % 360.0, "vs_fpm": 0.0, **fields}


def pairs(bench: Any, evidence: Evidence) -> list[tuple[str, str]]:
    assert evidence.b is not None
    return [(bench.fleet.ids[a], bench.fleet.ids[b]) for a, b in zip(evidence.a, evidence.b, strict=True)]


def step(b: Any, t: float, rows: list[dict[str, Any]]) -> tuple[Evidence, Evidence]:
    conflict, los = b.tick(t, adsb=rows)
    assert (conflict.kind, los.kind) == ("conflict", "los")
    assert conflict.sparse
    assert los.sparse
    return conflict, los


def meet(b: Any, *rows_of: dict[str, Any], t: float = 40.0) -> tuple[Evidence, Evidence]:
    """Each aircraft reports twice, at t - 2 and just before t, with the given differences from the usual."""
    first = [report(**{"name": f"ac{i}", "t": t - 2.0, "bearing": 180.0 * i, **r}) for i, r in enumerate(rows_of)]
    b.tick(t - 2.0, adsb=first)
    return step(b, t, [report(**{"name": f"ac{i}", "t": t, "bearing": 180.0 * i, **r}) for i, r in enumerate(rows_of)])


def test_head_on_every_five_seconds(bench: Any) -> None:
    b = bench(Conflict)
    for t in range(0, 60, 5):
        conflict, los = step(b, t, [report("B", t, bearing=90.0), report("A", t, bearing=270.0)])
        if t == 0:  # one report each
            assert not len(conflict)
            continue
        assert pairs(b, conflict) == [("A", "B")]
        assert conflict.numbers["tcpa_s"][0] == pytest.approx(MEETING_T - t, abs=1e-5)
        assert conflict.numbers["dcpa_m"][0] < 1e-3
        assert conflict.numbers["sep_nm"][0] == pytest.approx(2 * 450.0 * (MEETING_T - t) / 3600.0, abs=1e-6)
        assert conflict.numbers["t_los_s"][0] == pytest.approx(MEETING_T - t - 20.0, abs=1e-4)
        assert conflict.numbers["vsep_ft"][0] == 0.0
        assert (conflict.t[0], conflict.epoch[0]) == (t, t)
        # it rises with the time to the loss, in steps of 4 s
        c = DEFAULT.detectors.conflict
        ahead_s = c.act_high_s * math.log(conflict.threshold[0] / (c.high_ratio * c.probability))
        assert ahead_s == pytest.approx(MEETING_T - t - 20.0, abs=8.0)
        assert 0.5 < conflict.score[0] <= 1.0
        assert not len(los)


@given(
    ages=st.tuples(st.floats(0.0, 14.0), st.floats(0.0, 14.0)),
    alt_ages=st.tuples(st.floats(0.0, 14.0), st.floats(0.0, 14.0)),
    climb_fpm=st.sampled_from([0.0, -1500.0, 2300.0]),
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_reports_of_different_age_are_brought_to_one_time(
    bench: Any, ages: tuple[float, float], alt_ages: tuple[float, float], climb_fpm: float
) -> None:
    b, t = bench(Conflict), 40.0
    for i in (0, 1):
        # both at 30,000 ft when they meet; altitude comes in a report of its own, whose position is a second report
        heights = {"alt_ft": 30_000.0 - i * climb_fpm / 60.0 * (MEETING_T - t + alt_ages[i]), "vs_fpm": i * climb_fpm}
        older = report(f"ac{i}", t - alt_ages[i], bearing=70.0 * i, **heights)
        newer = report(f"ac{i}", t - ages[i], bearing=70.0 * i, alt_ft=math.nan, vs_fpm=math.nan)
        for row in sorted((older, newer), key=lambda r: r["t"]):
            b.tick(row["t"], adsb=[row])
    conflict, _ = step(b, t, [])
    if min(abs(ages[i] - alt_ages[i]) for i in (0, 1)) < 1e-6:
        return  # one report time, one sample: the second is a duplicate
    assert pairs(b, conflict) == [("ac0", "ac1")]
    assert conflict.numbers["tcpa_s"][0] == pytest.approx(MEETING_T - t, abs=1e-4)
    assert conflict.numbers["dcpa_m"][0] < 1e-2
    assert conflict.numbers["vsep_ft"][0] == pytest.approx(0.0, abs=1e-3)
    assert conflict.epoch[0] == max(t - age for age in ages + alt_ages)


@pytest.mark.parametrize(
    "odd",
    [
        {"on_ground": 1.0},
        {"gs_kt": 29.0},  # no flag and slower than min_gs_kt
        {"alt_ft": math.nan},
        {"gs_kt": 450.0, "trk_deg": math.nan},
    ],
    ids=["on the ground", "parked", "no altitude", "no track"],
)
def test_who_cannot_be_in_conflict(bench: Any, odd: dict[str, float]) -> None:
    conflict, los = meet(bench(Conflict), {}, odd, t=90.0)
    assert not len(conflict)
    assert not len(los)


def test_hovering_with_an_airborne_flag_takes_part(bench: Any) -> None:
    conflict, los = meet(bench(Conflict), {}, {"gs_kt": 0.0, "on_ground": 0.0}, t=90.0)
    assert len(conflict) == len(los) == 1


def test_unknown_altitude_takes_part_when_told_to(bench: Any) -> None:
    b = bench(Conflict, configured(assume_same_level=True))
    conflict, _ = meet(b, {}, {"alt_ft": math.nan})
    assert len(conflict) == 1
    assert math.isnan(conflict.numbers["vsep_ft"][0])


def test_unheard_aircraft_drop_out_after_max_age(bench: Any) -> None:
    b = bench(Conflict)
    assert len(meet(b, {}, {})[0]) == 1
    assert len(step(b, 55.0, [])[0]) == 1
    assert len(step(b, 56.0, [report("ac0", 56.0)])[0]) == 0


def test_a_field_left_out_of_the_newest_report_is_still_known(bench: Any) -> None:
    b = bench(Conflict)
    meet(b, {}, {})
    absent = dict.fromkeys(("alt_ft", "gs_kt", "trk_deg", "vs_fpm"), math.nan)
    assert len(step(b, 45.0, [{**report("ac0", 45.0), **absent}])[0]) == 1


def test_severity_grows_as_the_loss_comes_nearer(bench: Any) -> None:
    b = bench(Conflict, configured(horizon_s=200.0))
    seen = []
    for t in np.arange(-60.0, 81.0, 5.0).tolist():
        at = t + 100.0
        conflict, los = step(b, at, [{**report(n, t, bearing=k), "t": at} for n, k in (("a", 0.0), ("b", 180.0))])
        if len(conflict):
            seen.append((conflict.numbers["t_los_s"][0], int(conflict.severity[0]), len(los)))
    for t_los_s, severity, lost in seen:
        assert severity == (2 if t_los_s < 30.0 else 1 if t_los_s < 60.0 else 0)
        assert lost == (t_los_s == 0.0)
    assert {s for _, s, _ in seen} == {0, 1, 2}


def test_lost_separation_is_los_even_while_they_part(bench: Any) -> None:
    b = bench(Conflict)
    conflict, los = meet(b, {}, {}, t=110.0)  # 10 s after they met: 2.5 NM apart
    assert pairs(b, conflict) == pairs(b, los) == [("ac0", "ac1")]
    assert los.severity[0] == 2
    for name, column in los.numbers.items():
        assert column[0] == conflict.numbers[name][0]
    assert los.numbers["los"][0] == 1.0
    assert los.numbers["tcpa_s"][0] == 0.0
    assert los.numbers["dcpa_nm"][0] == pytest.approx(2.5, abs=1e-6)
    assert los.numbers["t_out_s"][0] == pytest.approx(10.0, abs=1e-4)
    assert los.score[0] == pytest.approx(2.0, abs=1e-6)


def test_rows_are_sorted_by_id_whatever_the_slots(bench: Any) -> None:
    names = ["zulu", "alpha", "9x", "Bravo", "écho", "alph"]
    b = bench(Conflict)
    for t in (40.0, 42.0):
        conflict, _ = step(b, t, [report(n, t, bearing=50.0 * k) for k, n in enumerate(names)])
    found = pairs(b, conflict)
    assert found == sorted(found)
    assert all(a < b for a, b in found)
    assert len(found) == 15


def test_gauges_tell_the_nearest_pair_and_the_counts(bench: Any) -> None:
    b = bench(Conflict)
    assert b.tick(0.0, adsb=[]) == []
    quiet = b.detector.gauges()
    assert math.isnan(quiet["tcpa_min_s"])
    assert math.isnan(quiet["dcpa_min_m"])
    assert quiet["pairs"] == quiet["aircraft"] == 0.0
    conflict, _ = meet(b, {}, {}, {"bearing": 90.0})
    now = b.detector.gauges()
    assert now["aircraft"] == now["pairs"] == 3.0
    assert now["tcpa_min_s"] == conflict.numbers["tcpa_s"].min()
    assert now["dcpa_min_m"] == conflict.numbers["dcpa_m"].min()


def test_new_thresholds_apply_at_once(bench: Any) -> None:
    b = bench(Conflict)
    rows = ({}, {"gs_kt": 400.0, "bearing": 180.0})
    assert len(meet(b, *rows)[0]) == 1
    b.detector.retune(configured(horizon_s=30.0))
    assert step(b, 40.0, [])[0].score.tolist() == [0.0]  # still followed, not in conflict
    b.detector.retune(DEFAULT)
    assert len(step(b, 40.0, [])[0]) == 1
    b.detector.retune(msgspec.convert({"detectors": {"los": {"enabled": False}}}, Config))
    assert [e.kind for e in b.tick(40.0)] == ["conflict"]


def test_more_pairs_than_max_pairs_are_counted(bench: Any) -> None:
    b = bench(Conflict, configured(max_pairs=10))
    crowd = [{"bearing": 20.0 * k} for k in range(8)]
    conflict, _ = meet(b, *crowd)
    assert len(conflict) == 10
    assert b.detector.gauges()["pairs"] == 28.0
    assert b.detector.gauges()["pairs_overflow"] == 18.0


def test_distance_units_agree(bench: Any) -> None:
    conflict, _ = meet(bench(Conflict), {}, {"gs_kt": 430.0, "bearing": 100.0})
    assert conflict.numbers["dcpa_nm"] * NM_M == pytest.approx(conflict.numbers["dcpa_m"])


def over(evidence: Evidence) -> list[bool]:
    return (evidence.score >= evidence.threshold).tolist()


def test_exactly_1000_ft_is_no_conflict_even_when_altitudes_flicker_by_a_step(bench: Any) -> None:
    b = bench(Conflict)
    for k in range(60):
        t = 40.0 + k
        rows = [
            report("a", t, bearing=90.0, alt_ft=30_000.0 + 25.0 * (k % 2)),
            report("b", t, bearing=270.0, alt_ft=31_000.0),
        ]
        conflict, _ = step(b, t, rows)
        assert not any(over(conflict))


def test_950_ft_is_a_conflict(bench: Any) -> None:
    conflict, _ = meet(bench(Conflict), {}, {"alt_ft": 30_900.0}, t=60.0)
    assert over(conflict) == [True]


CLIMB = {"alt_ft": 27_000.0, "vs_fpm": 3000.0}


@pytest.mark.parametrize(
    ("selected", "raised"),
    [(28_000.0, False), (30_000.0, True), (40_000.0, True)],
    ids=["stops short", "joins the level", "climbs through"],
)
def test_the_selected_altitude_says_where_a_climb_ends(bench: Any, selected: float, raised: bool) -> None:
    conflict, _ = meet(bench(Conflict), {}, {**CLIMB, "sel_alt_ft": selected}, t=60.0)
    assert any(over(conflict)) == raised


def test_an_altitude_that_is_being_captured_ends_a_climb(bench: Any) -> None:
    b = bench(Conflict)
    for k in range(20):
        t, slowing = 40.0 + k, k >= 15
        climbing = {"alt_ft": 28_850.0 if slowing else 27_700.0 + 75.0 * k, "vs_fpm": 900.0 if slowing else 4500.0}
        conflict, _ = step(b, t, [report("a", t), report("b", t, bearing=180.0, **climbing)])
    assert not any(over(conflict))
    assert conflict.numbers["vsep_ft"].tolist() == pytest.approx([1000.0])


def test_a_terminal_area_has_its_own_minima_and_of_a_pair_the_larger_ones_hold(bench: Any) -> None:
    inside = {"name": "TMA", "lat": 50.0, "lon": 8.0, "radius_nm": 30.0, "separation_nm": 3.0, "ceiling_ft": 35_000.0}

    def abreast(zones: list[dict[str, Any]], alt_ft: float = 30_000.0) -> tuple[Evidence, Evidence]:
        b = bench(Conflict, configured(zones=zones))
        for t in (90.0, 92.0):
            row = report("a", t, alt_ft=alt_ft)
            at = WGS84.Direct(row["lat"], row["lon"], 90.0, 4.0 * NM_M)
            beside = {**row, "id": "b", "lat": at["lat2"], "lon": at["lon2"]}
            found = step(b, t, [row, beside])
        return found

    assert len(abreast([])[1]) == 1
    assert len(abreast([inside])[1]) == 0
    assert not any(over(abreast([inside])[0]))
    assert len(abreast([inside], alt_ft=36_000.0)[1]) == 1
    west = {**inside, "lon": 7.0, "radius_nm": 38.0 + 1.0}  # holds a, not b
    assert len(abreast([west])[1]) == 1


def test_spikes_and_jumps_take_no_part(bench: Any) -> None:
    b = bench(Conflict)
    for k in range(40):
        t = 40.0 + k
        spike = 93_100.0 if k % 7 == 3 else 30_000.0
        jumping = report("b", t, bearing=90.0, alt_ft=30_000.0)
        rows = [report("a", t, alt_ft=35_000.0 if spike == 30_000.0 else 30_100.0), {**jumping, "lat": 50.0 + k % 2}]
        conflict, los = step(b, t, rows)
        assert not any(over(conflict))
        assert not len(los)


@given(
    gain_kt=st.floats(2.0, 60.0),
    side_nm=st.floats(0.05, 3.0),
    lat=st.sampled_from([-70.0, 0.0, 50.0, 85.0]),
    trk_deg=st.sampled_from([0.0, 45.0, 90.0]),
)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_closest_approach_beyond_the_horizon_is_neither_cut_nor_rounded(
    bench: Any, gain_kt: float, side_nm: float, lat: float, trk_deg: float
) -> None:
    """An overtaker 4 NM behind and to the side: where geodesics that go on for so long are nearest."""
    b, speeds = bench(Conflict), (450.0, 450.0 - gain_kt)
    start = WGS84.Direct(lat, 8.0, trk_deg + 90.0, side_nm * NM_M)
    ahead = WGS84.Direct(start["lat2"], start["lon2"], trk_deg, 4.0 * NM_M)
    origins = ((lat, 8.0, trk_deg), (ahead["lat2"], ahead["lon2"], ahead["azi2"]))

    def at(i: int, t: float) -> dict[str, Any]:
        return WGS84.Direct(*origins[i], speeds[i] * KT_MS * t)

    for t in (0.0, 1.0):
        rows = [
            {"id": f"ac{i}", "t": t, "lat": where["lat2"], "lon": where["lon2"], "trk_deg": where["azi2"] % 360.0,
             "gs_kt": speeds[i], "alt_ft": 30_000.0, "vs_fpm": 0.0}
            for i, where in ((0, at(0, t)), (1, at(1, t)))
        ]  # fmt: skip
        conflict, _ = step(b, t, rows)

    def apart(t: float) -> float:
        one, other = at(0, t), at(1, t)
        return WGS84.Inverse(one["lat2"], one["lon2"], other["lat2"], other["lon2"])["s12"]

    tcpa_s, dcpa_m = conflict.numbers["tcpa_s"][0], conflict.numbers["dcpa_m"][0]
    assert apart(1.0 + tcpa_s) == pytest.approx(dcpa_m, abs=0.01)
    step_s = 5.0
    assert dcpa_m <= min(apart(1.0 + tcpa_s - step_s), apart(1.0 + tcpa_s + step_s)) + 1e-3
    if gain_kt < 50.0:
        assert tcpa_s > 120.0


def test_a_pair_that_has_lost_separation_is_a_warning_while_it_closes_in_and_a_caution_when_it_parts(
    bench: Any,
) -> None:
    b = bench(Conflict)
    grades = {}
    for t in range(70, 130, 5):
        conflict, los = step(b, t, [report("A", t, bearing=0.0), report("B", t, bearing=180.0)])
        if len(conflict) and conflict.numbers["los"][0]:
            grades[t] = int(conflict.severity[0])
            assert los.severity[0] == 2
    assert set(grades.values()) == {1, 2}
    assert all((grade == 2) == (t < MEETING_T) for t, grade in grades.items() if t != MEETING_T)


def test_a_loss_that_is_soon_but_not_probable_is_a_caution(bench: Any) -> None:
    """One climbs towards the level of the other at 26 s from it, and may stop below."""
    for probability, grade in ((0.05, 2), (0.99, 1)):
        b = bench(
            Conflict, configured(warning_probability=probability, warning_s=60.0, caution_s=60.0, probability=0.05)
        )
        conflict, _ = meet(b, {}, {"alt_ft": 28_000.0, "vs_fpm": 2300.0}, t=70.0)
        assert (conflict.numbers["los"][0], int(conflict.severity[0])) == (0.0, grade)


@pytest.mark.parametrize(
    ("second", "apart_nm", "from_nm", "joined"),
    [
        ("~2b0001", 0.1, 0.1, True),
        ("bb0002", 0.1, 0.1, False),  # an address of its own
        ("~2b0001", 0.1, 1.5, False),  # came from elsewhere
        ("~2b0001", 0.8, 0.8, False),  # too far away
    ],
    ids=["second address", "two aircraft", "another that came near", "neighbour"],
)
def test_an_aircraft_is_not_in_conflict_with_its_own_second_address(
    bench: Any, second: str, apart_nm: float, from_nm: float, joined: bool
) -> None:
    b = bench(Conflict)
    for t in range(0, 40, 4):
        here = report("aa0001", t, bearing=0.0, gs_kt=120.0)
        off_nm = from_nm + (apart_nm - from_nm) * t / 36.0
        there = WGS84.Direct(here["lat"], here["lon"], 90.0, off_nm * NM_M)
        # a radar is late: the velocity of a turn ago
        ghost = {**here, "id": second, "lat": there["lat2"], "lon": there["lon2"], "trk_deg": here["trk_deg"] - 30.0}
        conflict, los = step(b, t, [here, ghost])
    assert (not len(conflict) and not len(los)) == joined
    assert b.detector.gauges()["pairs_joined"] == float(joined)
