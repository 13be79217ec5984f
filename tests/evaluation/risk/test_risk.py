"""Separation risk: encounters counted by hand, the curve against sorting and lifetimes, rates that add up."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.daemon.cli import main
from watchkeeper.evaluation.risk.api import POINTS, closer_than, measure, sky_of
from watchkeeper.evaluation.risk.encounters import FAR, Encounter, encounters
from watchkeeper.evaluation.shared.poisson import poisson_95
from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.simulate import simulate

T0 = 1_700_000_000.0


def passing(miss_nm: float, apart_ft: float, seconds: range = range(-300, 301)) -> list[Batch]:
    """Two aircraft at 480 kt each, head on past each other at second 0, near the equator."""
    batches = []
    for s in seconds:
        along_deg = s * 480.0 / 3600.0 / 60.0
        values = {
            "lat": np.array([0.0, miss_nm / 60.0]), "lon": np.array([along_deg, -along_deg]),
            "alt_ft": np.array([30_000.0, 30_000.0 + apart_ft]), "gs_kt": np.full(2, 480.0),
            "trk_deg": np.array([90.0, 270.0]), "on_ground": np.zeros(2),
        }  # fmt: skip
        columns = columns_of(Kind.ADSB, np.array([0, 1], np.int32), np.full(2, T0 + s), values)
        batches.append(Batch(["a", "b"], {Kind.ADSB: columns}, [], {}))
    return batches


@pytest.mark.parametrize(
    ("miss_nm", "apart_ft", "least"), [(2.5, 0.0, 0.5), (2.5, 800.0, 0.8), (7.5, 0.0, 1.5), (0.0, 1900.0, 1.9)]
)
def test_the_least_is_the_larger_of_both_ways(miss_nm: float, apart_ft: float, least: float) -> None:
    (met,) = encounters(sky_of(passing(miss_nm, apart_ft), 30.0), 5.0, 1000.0)
    assert met.least == pytest.approx(least, rel=0.01)
    if not apart_ft:
        assert met.t == pytest.approx(T0, abs=2)
    assert not met.cut


def test_who_stays_away_has_no_encounter_and_an_end_of_view_cuts_one_off() -> None:
    assert not encounters(sky_of(passing(10.5, 0.0), 30.0), 5.0, 1000.0)
    assert not encounters(sky_of(passing(0.0, 2100.0), 30.0), 5.0, 1000.0)
    (met,) = encounters(sky_of(passing(1.0, 0.0, range(-300, -20)), 30.0), 5.0, 1000.0)
    assert met.cut
    assert met.least > 1.0


@given(st.lists(st.floats(0.01, 1.99), min_size=1, max_size=60))
@settings(max_examples=60, deadline=None)
def test_without_cuts_the_curve_is_the_share_that_came_closer(least: list[float]) -> None:
    curve = closer_than([Encounter(("a", "b"), k, value, cut=False) for k, value in enumerate(least)], 10.0)
    for point in curve:
        assert point.closer == pytest.approx(np.mean(np.array(least) < point.scaled - 1e-12), abs=1e-9) or any(
            abs(value - point.scaled) < 1e-9 for value in least
        )
        assert point.closer_95[0] <= point.closer + 1e-9
        assert point.closer_95[1] >= point.closer - 1e-9
        assert point.per_flight_hour == pytest.approx(len(least) * point.closer / 10.0)
    assert [point.scaled for point in curve] == list(POINTS)
    assert all(one.closer <= other.closer for one, other in pairwise(curve))


def test_an_encounter_that_was_cut_counts_as_a_bound() -> None:
    """By hand: three known at 1.5, 1.0 and 0.5, one cut at 1.2, which came to 1.2 or less."""
    met = [Encounter(("a", str(k)), k, least, cut) for k, (least, cut) in enumerate(
        [(1.5, False), (1.0, False), (0.5, False), (1.2, True)]
    )]  # fmt: skip
    share = {point.scaled: point.closer for point in closer_than(met, 1.0)}
    assert share[2.0] == 1.0
    assert share[1.4] == pytest.approx(3 / 4)  # one of four is known to have stayed at 1.5
    assert share[0.9] == pytest.approx(3 / 4 * 1 / 2)  # of the two that are followed further one stayed at 1.0
    assert share[0.4] == 0.0


@given(st.integers(0, 200))
def test_the_interval_of_a_count_is_exact(count: int) -> None:
    from scipy.stats import poisson  # noqa: PLC0415

    low, high = poisson_95(count)
    assert poisson.cdf(count, high) == pytest.approx(0.025)
    if count:
        assert poisson.sf(count - 1, low) == pytest.approx(0.025)


def test_rates_add_up_and_the_command_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sky = sky_of(simulate("vertical", seed=1, seconds=240.0).batches(), 30.0)
    found = measure(sky, 5.0, 1000.0, (), 0.5)
    for rates in (found.by_altitude, found.by_area, found.by_hour):
        assert sum(rate.losses for rate in rates) == found.all.losses
        assert sum(rate.flight_hours for rate in rates) == pytest.approx(found.flight_hours)
    assert found.encounters >= found.all.losses > 0
    assert found.curve[-1].scaled == FAR
    log, out, picture = tmp_path / "x.wklog", tmp_path / "risk.json", tmp_path / "risk.svg"
    assert main(["simulate", "head-on", "--out", str(log), "--seconds", "200", "--seed", "1"]) == 0
    capsys.readouterr()
    assert main(["evaluate", "risk", str(log), "--quiet", "--out", str(out), "--plot", str(picture)]) == 0
    said = capsys.readouterr().out
    assert "losses of separation" in said
    assert json.loads(out.read_text())["all"]["losses"] == 1
    assert picture.stat().st_size > 1000
