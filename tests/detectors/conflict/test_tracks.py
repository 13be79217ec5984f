"""Tracks: what is believed of an aircraft's reports, and what is not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from geographiclib.geodesic import Geodesic

from watchkeeper.detectors.conflict.constants import ALT_REACQUIRE, BREAK_S, SUSPECT_S
from watchkeeper.detectors.conflict.tracks import Tracks
from watchkeeper.detectors.fleet.fleet import Samples
from watchkeeper.detectors.kernels.reports import REACQUIRE
from watchkeeper.streams.geo import KT_MS
from watchkeeper.streams.messages import COLUMN, FIELDS, Kind

WGS84 = Geodesic.WGS84
GS_KT, TRK_DEG = 450.0, 70.0


def report(t: float, **fields: float) -> dict[str, float]:
    """A report at t of an aircraft that left 50 N 8 E at t = 0, level at 30,000 ft."""
    at = WGS84.Direct(50.0, 8.0, TRK_DEG, GS_KT * KT_MS * t)
    row = {"lat": at["lat2"], "lon": at["lon2"], "alt_ft": 30_000.0, "gs_kt": GS_KT, "trk_deg": at["azi2"] % 360.0}
    return {"t": t, **row, "vs_fpm": 0.0, **fields}


def fed(rows: list[dict[str, float]], into: Tracks | None = None) -> Any:
    """The track after these reports."""
    table = into or Tracks(1)
    for row in rows:
        data = np.full((len(FIELDS[Kind.ADSB]), 1), np.nan)
        for name, value in row.items():
            if name != "t":
                data[COLUMN[Kind.ADSB][name], 0] = value
        table.update(Samples(Kind.ADSB, np.zeros(1, np.int32), np.array([row["t"]]), data, np.full(1, -1, np.int32)))
    return table.rows[0]


def without(row: dict[str, float], *names: str) -> dict[str, float]:
    return {**row, **dict.fromkeys(names, math.nan)}


def test_every_report_that_continues_the_track_counts() -> None:
    row = fed([report(float(t)) for t in range(5)])
    assert row["trusted"] == 5
    assert row["t"] == 4.0
    assert row["alt_ft"] == 30_000.0


@pytest.mark.parametrize("interval_s", [1.0, 5.0, 12.0])
@pytest.mark.parametrize("rate_dps", [-3.0, -1.0, 1.0, 3.0])
def test_a_steady_turn_is_measured_across_north(interval_s: float, rate_dps: float) -> None:
    # the position does not matter here: it stays close
    rows = [report(k * interval_s, trk_deg=(350.0 + rate_dps * k * interval_s) % 360.0) for k in range(20)]
    assert fed(rows)["turn_dps"] == pytest.approx(rate_dps, rel=0.05)


def test_speed_and_track_are_derived_where_none_is_reported() -> None:
    row = fed([without(report(float(t)), "gs_kt", "trk_deg") for t in range(20)])
    truth = report(15.0)
    assert row["gs_ms"] == pytest.approx(GS_KT * KT_MS, rel=0.006)  # a sphere
    assert row["trk_deg"] == pytest.approx(truth["trk_deg"], abs=0.3)


def test_climb_is_derived_where_none_is_reported() -> None:
    rows = [without(report(float(t), alt_ft=30_000.0 - 25.0 * t), "vs_fpm") for t in range(20)]
    assert fed(rows)["climb_fpm"] == pytest.approx(-1500.0)


def test_an_altitude_held_from_earlier_says_nothing_about_climb() -> None:
    rows = [report(0.0, vs_fpm=-1500.0)] + [without(report(float(t)), "alt_ft", "vs_fpm") for t in range(1, 14)]
    assert fed(rows)["climb_fpm"] == -1500.0


@pytest.mark.parametrize("spikes", [1, ALT_REACQUIRE - 1])
@pytest.mark.parametrize("size_ft", [600.0, -5000.0, 93_100.0])
def test_altitude_spikes_leave_no_trace(spikes: int, size_ft: float) -> None:
    rows = [report(float(t)) for t in range(20)]
    for k in range(10, 10 + spikes):
        rows[k]["alt_ft"] += size_ft
    table = Tracks(1)
    for row in rows:
        assert fed([row], table)["alt_ft"] == 30_000.0


def test_a_new_altitude_that_stays_is_believed() -> None:
    rows = [report(float(t)) for t in range(10)] + [report(10.0 + t, alt_ft=35_000.0) for t in range(ALT_REACQUIRE)]
    assert fed(rows)["alt_ft"] == 35_000.0


def jumped(t: float) -> dict[str, float]:
    away = report(t)
    return {**away, "lat": away["lat"] + 4.0}


def test_a_jump_takes_the_trust_away_until_the_new_place_has_proved_itself() -> None:
    table = Tracks(1)
    fed([report(float(t)) for t in range(10)], table)
    for k in range(REACQUIRE + 3):
        row = fed([jumped(10.0 + k)], table)
        if k < REACQUIRE - 1:
            assert row["trusted"] == 0
            assert row["t"] == 9.0
        else:
            assert row["trusted"] == k - REACQUIRE + 2
            assert row["lat_deg"] == jumped(10.0 + k)["lat"]


def test_a_long_track_that_jumps_is_not_believed_until_it_is_back_on_its_way() -> None:
    table = Tracks(1)
    fed([report(float(t)) for t in range(40)], table)
    for t in range(40, 800):
        assert fed([jumped(float(t))], table)["trusted"] == 0
    for k in range(REACQUIRE + 1):
        row = fed([report(800.0 + k)], table)
    assert row["trusted"] >= 1
    assert row["lat_deg"] == report(800.0 + REACQUIRE)["lat"]


def test_nor_for_half_an_hour_if_it_stays_away() -> None:
    table = Tracks(1)
    fed([report(float(t)) for t in range(40)], table)
    believed = [t for t in range(40, 2000) if fed([jumped(float(t))], table)["trusted"] == 1]
    assert believed == [40 + int(SUSPECT_S)]


def test_a_single_wild_position_costs_one_report() -> None:
    table = Tracks(1)
    fed([report(float(t)) for t in range(40)], table)
    assert fed([jumped(40.0)], table)["trusted"] == 0
    assert fed([report(41.0)], table)["trusted"] == 1
    assert fed([report(42.0)], table)["trusted"] == 2


def test_back_and_forth_is_never_believed() -> None:
    rows = [report(float(t), lat=report(float(t))["lat"] + t % 2) for t in range(100)]
    table = Tracks(1)
    fed(rows[:1], table)
    trusted = [fed([row], table)["trusted"] for row in rows[1:]]
    assert max(trusted) <= 1


def test_a_repeated_position_is_no_measurement_unless_it_hovers() -> None:
    held = report(0.0)
    row = fed([held] + [{**report(float(t)), "lat": held["lat"], "lon": held["lon"]} for t in range(1, 5)])
    assert (row["t"], row["trusted"]) == (0.0, 1)
    hover = [{**report(float(t)), "lat": held["lat"], "lon": held["lon"], "gs_kt": 0.0} for t in range(5)]
    row = fed(hover)
    assert (row["t"], row["trusted"]) == (4.0, 5)


def test_after_a_long_break_the_track_starts_anew() -> None:
    rows: list[Any] = [report(float(t)) for t in range(5)] + [report(5.0 + BREAK_S, alt_ft=5_000.0)]
    row = fed(rows)
    assert (row["trusted"], row["alt_ft"]) == (1, 5_000.0)


def test_a_snapshot_is_the_whole_state() -> None:
    rows = [report(float(t), trk_deg=70.0 + t) for t in range(30)]
    whole, first, second = Tracks(1), Tracks(1), Tracks(1)
    fed(rows, whole)
    fed(rows[:13], first)
    second.restore(first.snapshot(1))
    fed(rows[13:], second)
    for name in whole.rows.dtype.names:
        assert second.rows[name].tobytes() == whole.rows[name].tobytes()
