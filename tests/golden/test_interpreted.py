"""Every kernel runs without the compiler too, and gives the same: so it can be stepped through and measured."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from golden.replays import HERE
from golden.test_golden import FILES, LETTERS, close, lines

# Few, because plain Python takes a hundred times as long, but together they call nearly every kernel.
NAMES = ("clocks", "contradictions", "controlled", "drones", "vertical")
# Kernels that need more aircraft, other settings or another caller than these replays have; their own tests run them
# compiled.
ELSEWHERE = {
    "detectors.conflict.grid._coarse_runs",
    "detectors.conflict.grid.first_at_least",
    "detectors.conflict.hindsight._farthest",
    "detectors.conflict.ways._unknown",
    "detectors.engine.guard._same_until",
    "detectors.engine.senders.line._calm",
    "detectors.engine.senders.majority._go_back",
    "detectors.gps_imu.ahrs.take_attitude",
    "detectors.gps_imu.alone.path._follow",
    "detectors.gps_imu.contradiction._blame_velocity",
    "detectors.gps_imu.contradiction._comes_back",
    "detectors.gps_imu.contradiction._loosen",
    "detectors.gps_imu.contradiction._take_back",
    "detectors.gps_imu.contradiction._turned_along",
    "detectors.gps_imu.contradiction._usual",
    "detectors.gps_imu.displacement.look_after_outage",
    "detectors.gps_imu.model.half_space.score",
    "detectors.gps_imu.model.half_space.turn",
    "detectors.gps_imu.model.psquare._parabola",
    "detectors.gps_imu.model.psquare.estimate",
    "detectors.gps_imu.model.psquare.update",
    "detectors.kernels.order._sift",
    "detectors.kernels.order.sort_by",
    "detectors.signal.kernel._missed",
    "detectors.signal.kernel._others_inside",
    "detectors.signal.kernel._states",
    "detectors.signal.kernel._together",
    "detectors.signal.kernel._value",
    "detectors.signal.kernel._worse",
    "detectors.signal.kernel._write",
    "detectors.signal.kernel.find",
    "detectors.signal.kernel.follow",
    "detectors.signal.model.begin",
    "detectors.signal.model.gain",
    "detectors.signal.model.judge",
    "detectors.signal.model.keep_time",
    "detectors.signal.model.learn",
    "detectors.signal.model.least",
    "detectors.signal.model.quantiles",
    "detectors.signal.model.settle_for",
    "detectors.signal.partner._explained",
    "detectors.signal.partner._speaks",
    "detectors.signal.partner._take",
    "detectors.signal.partner.compare",
    "detectors.signal.partner.learn_pair",
    "streams.geo.direct_many",
    "streams.geo.ecef_many",
    "streams.geo.inverse",
    "streams.geo.inverse_many",
}


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    into = tmp_path_factory.mktemp("interpreted")
    path = os.pathsep.join([str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path}
    program = [sys.executable, str(HERE / "interpreted.py"), str(into), *NAMES]
    done = subprocess.run(program, env=env, check=True, capture_output=True, text=True)
    return into, {name.removeprefix("watchkeeper.") for name in done.stdout.split()}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("name", NAMES)
def test_a_replay_without_the_compiler_is_the_same(interpreted: tuple[Path, set[str]], name: str, file: str) -> None:
    expected = lines((HERE / f"{name}.{file}").read_bytes())
    found = lines((interpreted[0] / f"{name}.{file}").read_bytes())
    assert [[line.get(key) for key in LETTERS] for line in found] == [
        [line.get(key) for key in LETTERS] for line in expected
    ]
    for a, b in zip(found, expected, strict=True):
        assert close(a, b), (a, b)


def test_every_kernel_has_run(interpreted: tuple[Path, set[str]]) -> None:
    assert interpreted[1] == ELSEWHERE
