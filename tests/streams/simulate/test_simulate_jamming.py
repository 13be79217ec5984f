"""The simulated jammer: categories fall for those it reaches, while it does, and for nobody else."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from geographiclib.geodesic import Geodesic

from watchkeeper.streams.messages import COLUMN, Kind
from watchkeeper.streams.simulate import simulate
from watchkeeper.streams.simulate.jamming import RADIUS_KM

C = COLUMN[Kind.ADSB]
SIM = simulate("jamming", seed=5, vehicles=250, seconds=400)


@pytest.fixture(scope="module")
def truth():
    return SIM.truth()["jamming"]


@pytest.fixture(scope="module")
def reports():
    """Per aircraft: rows of t, lat, lon, nacp, nic."""
    rows = defaultdict(list)
    for batch in SIM.batches():
        columns = batch.kinds[Kind.ADSB]
        data = columns.data[[C["lat"], C["lon"], C["nacp"], C["nic"]]]
        for vid, t, values in zip(columns.vid.tolist(), columns.t.tolist(), data.T.tolist(), strict=True):
            rows[batch.ids[vid]].append([t, *values])
    return {name: np.array(each) for name, each in rows.items()}


def test_reports_are_poor_exactly_when_the_truth_says_so(truth, reports):
    assert len(truth["jammed"]) > 10
    for name, rows in reports.items():
        t = rows[:, 0]
        inside = np.zeros(len(t), bool)
        edge = np.zeros(len(t), bool)
        for a, b in truth["jammed"].get(name, []):
            inside |= (t >= a) & (t <= b)
            edge |= (abs(t - a) < 2.0) | (abs(t - b) < 2.0)
        always = name in truth["poor"]
        low = (rows[:, 3] < 8) & (rows[:, 4] < 7)
        assert (low == (inside | always))[~edge].all(), name


def test_the_reach_grows_stays_and_shrinks(truth, reports):
    far_km = defaultdict(float)
    for name, rows in reports.items():
        if name in truth["poor"]:
            continue
        for t, lat, lon, *_ in rows[rows[:, 3] < 8].tolist():
            away_km = Geodesic.WGS84.Inverse(truth["lat"], truth["lon"], lat, lon)["s12"] / 1000.0
            step = int((t - truth["t_on"]) // 20.0)
            far_km[step] = max(far_km[step], away_km)
    assert min(far_km) >= 0
    assert max(far_km) <= (truth["t_off"] - truth["t_on"]) // 20.0
    full = int((truth["t_full"] - truth["t_on"]) // 20.0)
    assert 0.8 * RADIUS_KM < far_km[full] < 1.02 * RADIUS_KM
    assert far_km[0] < 0.4 * RADIUS_KM
    assert far_km[max(far_km)] < 0.4 * RADIUS_KM


def test_most_aircraft_are_healthy_all_the_time(truth, reports):
    touched = truth["jammed"].keys() | set(truth["poor"])
    assert 0.5 * len(reports) < len(reports.keys() - touched)
    assert 5 < len(truth["poor"]) < 0.2 * len(reports)
