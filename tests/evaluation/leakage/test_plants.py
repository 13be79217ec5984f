"""Every planted leak is caught, or listed as not followed, and nothing is said of the same code without it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import numpy as np
import pytest

from watchkeeper.daemon.cli import main as watchkeeper
from watchkeeper.evaluation.leakage.api import OWN_CODE, leakage
from watchkeeper.evaluation.leakage.code.check import check_code

from where import ROOT

sys.path.insert(0, str(Path(__file__).parent))
from plants import PLANTS


def written(folder: Path, source: str) -> Path:
    ast.parse(source)
    path = folder / "study.py"
    path.write_text(source)
    return path


def test_there_are_plants_of_many_sorts():
    assert len(PLANTS) >= 19
    assert len({rule for rule, _, _ in PLANTS.values()}) >= 8


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_leak_does_not_pass_in_silence(name, tmp_path, capfd):
    rule, leaky, _ = PLANTS[name]
    path = written(tmp_path, leaky)
    found = check_code([path])
    assert rule in {leak.rule for leak in (*found.leaks, *found.not_followed)}
    assert watchkeeper(["evaluate", "leakage", "--check-code", str(path)]) == (1 if found.leaks else 0)
    said = capfd.readouterr().out
    assert all(f"study.py:{leak.line}: {leak.rule}: " in said for leak in (*found.leaks, *found.not_followed))


@pytest.mark.parametrize("name", PLANTS)
def test_the_same_code_without_the_leak_is_not_accused(name, tmp_path, capfd):
    _, _, clean = PLANTS[name]
    path = written(tmp_path, clean)
    found = check_code([path])
    assert [str(leak) for leak in (*found.leaks, *found.not_followed)] == []
    assert watchkeeper(["evaluate", "leakage", "--check-code", str(path)]) == 0
    assert capfd.readouterr().out == "code: no leak\n"


def test_our_own_code_passes_and_all_of_it_is_followed():
    found = check_code(ROOT / folder for folder in OWN_CODE)
    assert [str(leak) for leak in found.leaks] == []
    # there are no splits in `evaluate signals`: each method scores a value before it learns from it, and every method's
    # threshold is set by hindsight, as its page says; a detector learns each value online, after it was scored
    without_splits = ("evaluation/signals/", "detectors/signal/seasons.py")
    assert [str(leak) for leak in found.not_followed if not any(place in str(leak) for place in without_splits)] == []


def test_a_notebook_is_listed(tmp_path, capfd):
    (tmp_path / "study.ipynb").write_text("{}")
    assert watchkeeper(["evaluate", "leakage", "--check-code", str(tmp_path)]) == 0
    assert "study.ipynb:1: not followed: a notebook is not read" in capfd.readouterr().out


@pytest.fixture
def table() -> dict[str, list[float]]:
    rng = np.random.default_rng(3)
    columns = {name: rng.normal(size=400).tolist() for name in ("gps_x", "gps_y", "imu_ax")}
    return columns | {"label": (rng.random(400) < 0.3).astype(float).tolist()}


@pytest.mark.parametrize(
    "copy",
    [
        lambda x: x,
        lambda x: -3.28 * x + 100.0,
        lambda x: x + np.random.default_rng(1).normal(0.0, 0.05, len(x)),
        np.exp,
    ],
    ids=["exact", "scaled", "noisy", "bent"],
)
def test_a_column_that_is_another_one_again_is_caught(table, copy):
    assert leakage(data=table).to_dict() == {"features": []}
    (leak,) = leakage(data=table | {"innocent": copy(np.array(table["gps_x"])).tolist()}).to_dict()["features"]
    assert "'gps_x' and 'innocent' go together" in leak


@pytest.mark.parametrize("name", ["BaroAlt", "ekfVelN", "EKF-VelN", "GpsGroundTruth", "FusedAlt"])
def test_a_banned_name_is_caught_in_any_spelling(table, name):
    rng = np.random.default_rng(4)
    (leak,) = leakage(data=table | {name: rng.normal(size=400).tolist()}).to_dict()["features"]
    assert leak == f"column {name!r} is banned by its name"
