"""`bench conflicts` measures what it says, names what it could not measure, and fails when a promise is broken."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from geographiclib.geodesic import Geodesic

from watchkeeper.benchmarks import conflict_report as report
from watchkeeper.benchmarks import conflicts
from watchkeeper.benchmarks.conflicts import Row, promised
from watchkeeper.benchmarks.traffic import hot_spot
from watchkeeper.daemon.cli import main

from where import DOCS

GOOD = [
    Row(10_000, "ours", rounds=200, median_ms=5.0, cpu_ms=5.0, p99_ms=6.0, bytes_per_aircraft=230.0),
    Row(10_000, "compiled", rounds=3, median_ms=3000.0, cpu_ms=3000.0, p99_ms=3100.0, bytes_per_aircraft=80.0),
    Row(10_000, "numpy", "left out: more than 5,000"),
    Row(25_000, "ours", rounds=200, median_ms=12.0, cpu_ms=12.0, p99_ms=14.0, bytes_per_aircraft=230.0),
    Row(50_000, "ours", rounds=200, median_ms=25.0, cpu_ms=25.0, p99_ms=30.0, bytes_per_aircraft=230.0),
    Row(100_000, "ours", rounds=200, median_ms=52.0, cpu_ms=52.0, p99_ms=60.0, bytes_per_aircraft=230.0),
    Row(10_000, "futures", rounds=200, median_ms=4.9, cpu_ms=4.9, p99_ms=6.0, bytes_per_aircraft=230.0),
    Row(50_000, "futures", rounds=200, median_ms=35.0, cpu_ms=35.0, p99_ms=40.0, bytes_per_aircraft=230.0),
]


def test_a_small_run_prints_the_table_and_writes_everything_as_json(tmp_path, capsys):
    out = tmp_path / "result.json"
    arguments = ["--sizes", "200", "--rounds", "5", "--budget", "1", "--out", str(out)]
    assert main(["bench", "conflicts", *arguments]) == 0
    text = capsys.readouterr().out
    for column in ("N", "detector", "median ms", "p99 ms", "pairs", "bytes/aircraft", "ratio to ours"):
        assert column in text
    assert text.count("not measured") == 7, "200 aircraft say nothing about any promise"
    rows = {row["detector"]: row for row in json.loads(out.read_bytes())["rows"]}
    assert list(rows) == ["ours", "futures", "compiled", "numpy"]
    assert rows["futures"]["pairs"] >= rows["ours"]["pairs"], "pairs within the margins are judged as well"
    assert rows["ours"]["pairs"] > 0
    assert rows["ours"]["rounds"] == 5
    assert 0 < rows["ours"]["min_ms"] <= rows["ours"]["median_ms"] <= rows["ours"]["p99_ms"] <= rows["ours"]["max_ms"]
    if not rows["numpy"]["note"]:
        assert rows["numpy"]["pairs"] >= rows["ours"]["pairs"], "it flags pairs exactly 1,000 ft apart as well"
        assert rows["numpy"]["bytes_per_aircraft"] > 100 * 200, "more than a dozen matrices of 200 by 200"


def test_without_bluesky_ours_alone_is_measured_and_the_run_says_so(tmp_path, capsys, monkeypatch):
    (tmp_path / "bluesky.py").write_text("raise ImportError('no BlueSky here')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert main(["bench", "conflicts", "--sizes", "100", "--rounds", "3"]) == 0
    assert capsys.readouterr().out.count("not installed: no BlueSky here") == 2


def test_promises_that_hold_are_ok():
    assert [promise.broken for promise in promised(GOOD)] == [False] * 7
    assert [report.verdict(promise).split()[0] for promise in promised(GOOD)] == ["ok"] * 7


@pytest.mark.parametrize(
    ("number", "row", "change"),
    [
        (0, 1, {"cpu_ms": 2499.0}),
        (1, 4, {"p99_ms": 50.1}),
        (2, 5, {"p99_ms": 120.1}),
        (3, 5, {"cpu_ms": 60.1}),
        (4, 3, {"bytes_per_aircraft": 301.0}),
        (5, 6, {"cpu_ms": 6.1}),
        (6, 7, {"p99_ms": 50.1}),
    ],
)
def test_each_promise_can_be_broken(number, row, change, monkeypatch, capsys):
    rows = GOOD.copy()
    rows[row] = replace(rows[row], **change)
    assert [promise.broken for promise in promised(rows)] == [k == number for k in range(7)]
    at = {(row.n, row.detector): row for row in rows}
    monkeypatch.setattr(conflicts, "_row", lambda o, most, core: at.get((o.n, o.detector), Row(o.n, o.detector, "no")))
    assert main(["bench", "conflicts", "--sizes", "10000", "25000", "50000", "100000"]) == 1
    assert capsys.readouterr().out.count("MISS") == 1


def test_the_promise_over_bluesky_says_why_it_was_not_measured():
    rows = [GOOD[0], Row(10_000, "compiled", "not installed: No module named 'bluesky'")]
    first = promised(rows)[0]
    assert not first.broken
    assert "not measured, not installed: No module named 'bluesky'" in report.verdict(first)


@pytest.mark.parametrize("n", [100, 5000])
def test_traffic_is_as_dense_as_promised_at_every_size(n):
    traffic = hot_spot(n, 3)
    away_m = [
        Geodesic.WGS84.Inverse(48.86, 2.35, lat, lon)["s12"]
        for lat, lon in zip(traffic.lat_deg.tolist(), traffic.lon_deg.tolist(), strict=True)
    ]
    # half of the aircraft are within the middle half of the area
    inner_km2 = np.pi * (np.median(away_m) / 1e3) ** 2
    assert 0.5 * n / inner_km2 * 1e4 == pytest.approx(20.0, rel=0.25 if n == 100 else 0.05)
    assert (traffic.alt_ft % 25 == 0).all()
    assert (traffic.alt_ft[traffic.vs_fpm == 0.0] % 1000 == 0).mean() == pytest.approx(0.9, abs=0.1)


def test_traffic_depends_on_the_seed_alone():
    assert np.array_equal(hot_spot(50, 1).lat_deg, hot_spot(50, 1).lat_deg)
    assert not np.array_equal(hot_spot(50, 1).lat_deg, hot_spot(50, 2).lat_deg)


def test_more_aircraft_than_fit_on_earth_are_refused():
    with pytest.raises(ValueError, match="whole Earth"):
        hot_spot(2_000_000, 1)


def test_the_table_replaces_what_stood_between_the_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    for _ in range(2):
        report.write_table(page, {"CPU": "fast"}, GOOD, promised(GOOD))
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith(f"{report.END}\nafter\n")
    assert "old" not in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 2 + len(GOOD)
    assert {line.count("|") for line in table} == {1 + len(report.COLUMNS)}
    assert "| 10,000 | BlueSky, compiled | 3,000 | 3,100 |" in text


def test_a_table_from_a_busy_machine_says_so(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"{report.BEGIN}\n{report.END}\n")
    report.write_table(page, {}, GOOD, promised(GOOD))
    assert report.DISTURBED not in page.read_text()
    report.write_table(page, {}, [replace(GOOD[0], median_ms=9.0), *GOOD[1:]], promised(GOOD))
    assert report.DISTURBED in page.read_text()


def test_a_page_without_markers_is_left_alone(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("mine\n")
    with pytest.raises(SystemExit, match="lacks the line"):
        report.write_table(page, {}, GOOD, promised(GOOD))
    assert page.read_text() == "mine\n"


def test_the_page_of_the_documentation_has_the_markers():
    page = (DOCS / "benchmarks" / "conflicts.md").read_text()
    assert page.count(report.BEGIN) == page.count(report.END) == 1


def test_the_plot_is_the_same_file_for_the_same_figures(tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra `plots`")
    for name in ("a.svg", "b.svg"):
        report.plot(tmp_path / name, GOOD)
    picture = (tmp_path / "a.svg").read_text()
    assert "BlueSky, compiled" in picture
    assert picture == (tmp_path / "b.svg").read_text()
