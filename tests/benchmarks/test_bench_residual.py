"""`bench residual` measures the whole path and fails when the promise is broken."""

from __future__ import annotations

import pytest

from watchkeeper.benchmarks import residual
from watchkeeper.daemon.cli import main

SMALL = ("bench", "residual", "--vehicles", "20", "--seconds", "25", "--rounds", "1")


def test_a_small_fleet_is_judged_faster_than_it_flies(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SMALL) == 0
    out = capsys.readouterr().out
    assert "20 drones, 100 Hz IMU, 5 Hz GPS, 25 s" in out
    assert "gps_imu" in out
    assert "10 times real time: kept" in out


@pytest.mark.long
def test_a_broken_promise_is_an_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(residual, "PROMISE", 1e9)
    assert main(SMALL) == 1
    assert "BROKEN" in capsys.readouterr().out


def test_a_log_within_the_warm_up_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        main((*SMALL[:4], "--seconds", "20"))
    assert error.value.code == 2
    assert "judges nothing before 20 s" in capsys.readouterr().err
