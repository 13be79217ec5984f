"""`watchkeeper check-config` and `watchkeeper detectors`, as a user calls them."""

import argparse
import json
import os
from pathlib import Path
from types import ModuleType

import pytest

from watchkeeper.config.detectors import Detectors
from watchkeeper.config.loader import load
from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.commands import check_config, detectors


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("WATCHKEEPER_")]:
        monkeypatch.delenv(name)


def call(command: ModuleType, *argv: object) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    code: int = command.main(parser.parse_args([str(a) for a in argv]))
    return code


def test_good_file_is_confirmed_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "wk.toml"
    file.write_text('profile = "high-sensitivity"')
    assert call(check_config, file) == 0
    [line] = capsys.readouterr().out.splitlines()
    assert str(file) in line
    assert "high-sensitivity" in line


def test_bad_file_prints_every_problem_and_exits_78(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "wk.toml"
    file.write_text("[time]\ntick_s = 0\nlatenes_s = 1\n[detectors.conflict]\nseparation_nm = 51")
    assert call(check_config, file, "--show") == 78
    out = capsys.readouterr().out
    for part in ("time.tick_s", "0.01 to 60 s", "time.latenes_s", "time.lateness_s", "separation_nm", "0.01 to 50 NM"):
        assert part in out
    assert out.count(f"{file}: ") == 4  # three blocks and the sum
    assert "3 problems" in out


def test_missing_file_exits_78(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(check_config, tmp_path / "none.toml") == 78
    assert "No such file" in capsys.readouterr().out


def test_environment_counts_as_it_does_for_the_daemon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "wk.toml"
    file.write_text("")
    monkeypatch.setenv("WATCHKEEPER_TIME__TICK_S", "0")
    assert call(check_config, file) == 78
    assert "WATCHKEEPER_TIME__TICK_S" in capsys.readouterr().out


def test_shown_configuration_can_be_loaded_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, again = tmp_path / "wk.toml", tmp_path / "again.toml"
    file.write_text('profile = "high-specificity"\n[detectors.conflict]\nseparation_nm = 3')
    assert call(check_config, file, "--show") == 0
    again.write_text(capsys.readouterr().out)
    assert load(again, env={}) == load(file, env={}) != DEFAULT


def test_detectors_lists_every_detector_and_parameter(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(detectors) == 0
    out = capsys.readouterr().out
    for name in Detectors().sections():
        assert f"\n{name} " in "\n" + out
    for part in ("separation_nm", "0.01 to 50", "NM", "debounce.clear_ratio", '["gps", "imu"]'):
        assert part in out


def test_detectors_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(detectors, "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert list(listed) == list(Detectors().sections())
    by_key = {p["key"]: p for d in listed.values() for p in d["parameters"]}
    horizon = by_key["detectors.conflict.horizon_s"]
    assert (horizon["default"], horizon["min"], horizon["max"], horizon["unit"]) == (120.0, 1, 1800, "s")
    assert by_key["detectors.los.debounce.n"]["default"] == 2
    assert all(p["reason"] for p in by_key.values())


def test_one_detector_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(detectors, "--json", "los") == 0
    assert list(json.loads(capsys.readouterr().out)) == ["los"]
    assert call(detectors, "radar") == 2
    assert "conflict" in capsys.readouterr().err
