"""How close two aircraft were: the closest moment along their reports is that of a walk in small steps."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.config.schema import FleetLimits
from watchkeeper.detectors.conflict.constants import LOOK_BACK_S
from watchkeeper.detectors.conflict.followed import Followed, keys
from watchkeeper.detectors.conflict.hindsight import Hindsight
from watchkeeper.detectors.fleet.fleet import Fleet, Samples
from watchkeeper.evaluation.alarms.flights import between
from watchkeeper.streams.batch import F8, I8
from watchkeeper.streams.geo import ecef_many
from watchkeeper.streams.messages import COLUMN, FIELDS, Kind

COL = COLUMN[Kind.ADSB]
VERTICAL_FT = 1000.0
NOW = 100.0


def told(tracks: list[tuple[F8, F8, F8, F8]]) -> Hindsight:
    """Hindsight over a fleet that has heard these tracks: times, latitudes, longitudes, altitudes."""
    fleet = Fleet(FleetLimits(max_vehicles=4))
    for slot, (t, lat, lon, alt_ft) in enumerate(tracks):
        fleet.slot_for(f"ac{slot}")
        data = np.full((len(FIELDS[Kind.ADSB]), len(t)), np.nan)
        data[COL["lat"]], data[COL["lon"]], data[COL["alt_ft"]] = lat, lon, alt_ft
        who = np.full(len(t), slot, np.int32)
        fleet.ingest(Samples(Kind.ADSB, who, t, data, np.full(len(t), -1, np.int32)))
    return Hindsight(fleet.ring[Kind.ADSB])


@st.composite
def track(draw: st.DrawFn) -> tuple[F8, F8, F8, F8]:
    """An aircraft near 50 N 8 E that reports at odd times and changes its course with each report."""
    gaps = draw(st.lists(st.sampled_from([1.0, 3.7, 5.0, 10.0, 35.0]), min_size=2, max_size=9))
    t = NOW - draw(st.floats(0.0, 5.0)) - sum(gaps) + np.cumsum(gaps)
    kms = st.one_of(st.floats(-0.2, -0.001), st.floats(0.001, 0.2))
    steps = np.array([[draw(kms) * gap, draw(kms) * gap, draw(st.floats(-30.0, 30.0)) * gap] for gap in gaps])
    at = np.array([draw(st.floats(-6.0, 6.0)), draw(st.floats(-6.0, 6.0)), draw(st.sampled_from([0.0, 1500.0]))])
    path = at + np.cumsum(steps, axis=0)
    return t, 50.0 + path[:, 0] / 111.2, 8.0 + path[:, 1] / 71.5, 30_000.0 + path[:, 2]


@given(track(), track())
@settings(max_examples=60, deadline=None)
def test_the_closest_moment_is_that_of_a_walk_in_small_steps(a: tuple[F8, ...], b: tuple[F8, ...]) -> None:
    least = told([a, b]).least(
        np.array([0], np.int32), np.array([1], np.int32), np.array([VERTICAL_FT]), np.array([True]), NOW
    )[0]
    recent = [tuple(column[x[0] >= NOW - LOOK_BACK_S] for column in x) for x in (a, b)]
    at = np.unique(np.concatenate([np.arange(NOW - LOOK_BACK_S, NOW, 0.01), *(x[0] for x in recent)]))
    xyz = [between(t, np.ascontiguousarray(ecef_many(lat, lon).T), at) for t, lat, lon, _ in recent]
    alt = [between(t, alt_ft, at) for t, _, _, alt_ft in recent]
    sep_m, vsep_ft = np.linalg.norm(xyz[0] - xyz[1], axis=1), np.abs(alt[0] - alt[1])
    known = ~np.isnan(sep_m)
    # a report alone between two gaps is a point, not a line
    known &= np.append(known[1:], False) | np.append(False, known[:-1])
    if not known.any():
        assert np.isnan(least["t"])
        return
    close = known & (vsep_ft < VERTICAL_FT)
    if np.min(np.abs(vsep_ft[known] - VERTICAL_FT)) < 1.0 and not close.any():
        return  # grazes the vertical minimum between two steps
    rows = close if close.any() else known
    # 0.01 s at up to 570 m/s relative to each other
    assert least["level"] == close.any()
    assert abs(least["sep_m"] - sep_m[rows].min()) < 12.0
    i = np.argmin(np.abs(at - least["t"]))
    assert abs(sep_m[i] - least["sep_m"]) < 12.0
    assert abs(vsep_ft[i] - least["vsep_ft"]) < 2.0


def test_a_held_position_and_a_jump_are_no_measurements() -> None:
    t = np.array([70.0, 80.0, 85.0, 90.0, 100.0])
    lat = np.array([50.0, 50.01, 50.01, 60.0, 50.03])
    still = np.full(5, 50.02), np.full(5, 8.01), np.full(5, 30_000.0)
    hovering = (t, still[0] + np.arange(5) * 1e-9, still[1], still[2])
    moving = (t, lat, np.full(5, 8.0), np.full(5, 30_000.0))
    least = told([moving, hovering]).least(
        np.array([0], np.int32), np.array([1], np.int32), np.array([1000.0]), np.array([True]), NOW
    )[0]
    # it passes 50.02 N at 90 s, halfway between the reports of 80 and 100 s
    assert abs(least["t"] - 90.0) < 0.01
    assert abs(least["sep_m"] - 717.0) < 1.0


def pairs(*both: tuple[int, int]) -> I8:
    """The keys of these pairs of slots."""
    return keys(*np.array(both, np.int32).reshape(-1, 2).T)


def test_a_pair_is_followed_for_a_minute_after_its_last_conflict_and_forgotten_with_its_slot() -> None:
    f = Followed()
    f.note(pairs((7, 2), (3, 9)), 100.0, 10)
    f.note(pairs((2, 7)), 130.0, 10)
    assert f.among(pairs((2, 7), (9, 3), (3, 7))).tolist() == [True, True, False]
    assert [x.tolist() for x in f.missing(pairs((7, 2)))] == [[3], [9]]
    f.note(pairs(), 161.0, 10)
    assert [x.tolist() for x in f.missing(pairs())] == [[2], [7]]
    f.forget(np.array([7], np.int32))
    assert not len(f.key)


def test_when_too_many_are_followed_those_stay_that_were_in_conflict_last() -> None:
    f = Followed()
    f.note(pairs((1, 2), (5, 6)), 100.0, 2)
    f.note(pairs((3, 4)), 101.0, 2)
    assert [x.tolist() for x in f.missing(pairs())] == [[1, 3], [2, 4]]
