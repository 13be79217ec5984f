""" "0 alarms" is also what a log says that nobody judged: a replay then says who was not judged, by whom, and why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from watchkeeper.daemon.cli import main

HEADER = "kind,id,t,lat,lon,alt_m,imu_ax,imu_ay,imu_az,imu_wx,imu_wy,imu_wz\n"


def flight(path: Path, seconds: int, *, imu: bool) -> Path:
    """A vehicle that stands still, with one fix and ten IMU samples a second."""
    rows = []
    for k in range(10 * seconds):
        t = 1_700_000_000 + k / 10
        rows += [f"gps,q1,{t},48,11,500,,,,,,\n"] if k % 10 == 0 else []
        rows += [f"imu,q1,{t},,,,0,0,-9.81,0,0,0\n"] if imu else []
    path.write_text(HEADER + "".join(rows))
    return path


def last_lines(path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    summary = path.with_suffix(".json")
    assert main(["replay", str(path), "--alarms", str(path.with_suffix(".jsonl")), "--summary", str(summary)]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("compiling")]
    at = next(i for i, line in enumerate(lines) if " alarms raised, " in line or " alarm raised, " in line)
    assert json.loads(summary.read_text())["coverage"]
    return lines[at + 1 :]


def test_a_log_that_is_too_short_says_that_only_arrival_was_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert last_lines(flight(tmp_path / "short.csv", 4, imu=True), capsys) == [
        "nothing was judged but that samples arrive (link, silence): no alarm does not mean that all is well",
        "  q1: not judged by gps_imu: the recording ended before it could be judged",
    ]


def test_a_vehicle_without_an_imu_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, line = last_lines(flight(tmp_path / "gps.csv", 60, imu=False), capsys)
    assert line == "  q1: not judged by gps_imu: it sends no IMU"


def test_where_everybody_was_judged_nothing_more_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "x.wklog"
    main(["simulate", "head-on", "--seconds", "60", "--out", str(log)])
    assert last_lines(log, capsys) == []


def test_a_log_without_samples_says_that_nothing_was_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "x.wklog"
    main(["simulate", "head-on", "--seconds", "5", "--out", str(log)])
    assert main(["replay", str(log), "--start", "4000000000"]) == 0
    assert capsys.readouterr().err.splitlines()[-1].startswith("nothing was judged: there is no sample")
