"""`bench logs`: every way gives the samples back, and ours is the shorter of our two."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from watchkeeper.benchmarks import logs


def test_the_table_names_each_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["kind,id,t,imu_ax,imu_ay,imu_az,imu_wx,imu_wy,imu_wz"]
    rows += [f"imu,d1,{i / 50:.2f},{i % 7 / 10},0.1,-9.8{i % 10},0.01,0.0{i % 3},0.0" for i in range(500)]
    (tmp_path / "flight.csv").write_text("\n".join(rows) + "\n")
    assert logs.main([str(tmp_path / "flight.csv"), "--rounds", "1"]) == 0
    said = capsys.readouterr().out
    assert "flight.csv: 500 samples (500 imu)" in said
    first, second = (float(re.search(rf"version {n}\)\s+([\d.]+)", said)[1]) for n in (1, 2))  # type: ignore[index]
    assert second < first / 3
    assert "deflate 1, shuffled" in said
