"""`watchkeeper inject`: the log that it writes is the log that it read, but for the attack, and the truth says so."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from watchkeeper.daemon.cli import main as watchkeeper
from watchkeeper.evaluation.attacks.catalogue import catalogue, inject
from watchkeeper.evaluation.attacks.flight import flights_of
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.messages import Kind


def run(*words: object) -> int:
    return watchkeeper([str(word) for word in words])


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("inject") / "mixed.wklog"
    assert run("simulate", "mixed", "--vehicles", 22, "--seconds", 130, "--seed", 4, "--out", path) == 0
    return path


def samples(path: Path, kind: Kind) -> list[tuple[str, float, bytes]]:
    found = []
    for batch in open_log(path).batches():
        if kind in batch.kinds:
            c = batch.kinds[kind]
            rows = zip(c.vid.tolist(), c.t.tolist(), c.data.T, strict=True)
            found += [(batch.ids[v], t, row.tobytes()) for v, t, row in rows]
    return found


@pytest.mark.parametrize("name", ["gps_bias_20m", "gps_dropout", "imu_stuck", "gps_clock_0.2s"])
def test_the_attack_is_that_of_the_evaluation_and_the_rest_is_untouched(log, tmp_path, name):
    out = tmp_path / "out.wklog"
    assert run("inject", name, log, out, "--id", "quad-1") == 0
    (flight,) = (f for f in flights_of(open_log(log).batches()) if f.id == "quad-1")
    want = inject(catalogue().find(name), flight).attacked_flight()
    (got,) = (f for f in flights_of(open_log(out).batches()) if f.id == "quad-1")
    for kind in (Kind.GPS, Kind.IMU):
        assert np.array_equal(got.stream(kind).t, want.stream(kind).t)
        assert np.array_equal(got.stream(kind).data, want.stream(kind).data, equal_nan=True)
        others = [[row for row in samples(path, kind) if row[0] != "quad-1"] for path in (log, out)]
        assert others[0] == others[1] != []
    assert samples(out, Kind.ADSB) == samples(log, Kind.ADSB) != []


def test_the_truth_stands_beside_it(log, tmp_path):
    out = tmp_path / "out.wklog"
    words = ("--onset", 70, "--duration", 20, "--magnitude", 3, "--seed", 5)
    assert run("inject", "gps_drift_2mps", log, out, *words) == 0
    faults = json.loads((tmp_path / "out.wklog.truth.json").read_text())["faults"]
    assert sorted(fault["id"] for fault in faults) == ["quad-1", "wing-2"]
    for fault in faults:
        assert fault["kind"] == "gps_drift"
        assert (fault["magnitude"], fault["unit"], fault["seed"]) == (3.0, "m/s", 5)
        assert fault["t_end"] - fault["t_start"] == pytest.approx(20.0)
        assert fault["t_start"] - 1_700_000_000.0 == pytest.approx(70.0, abs=0.3)


def test_what_cannot_be_done_is_told(log, tmp_path, capfd):
    out = tmp_path / "out.wklog"
    assert run("inject", "gps_bais", log, out) == 1
    assert "did you mean" in capfd.readouterr().err
    assert run("inject", "gps_freeze", log, out, "--id", "nobody") == 1
    assert "no vehicle 'nobody'" in capfd.readouterr().err
    assert run("inject", "gps_freeze", log, log) == 1
    assert run("inject", "gps_freeze") == 2
    assert not out.exists()


def test_the_list_names_every_attack(capfd):
    assert run("inject", "list") == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [attack.name for attack in catalogue().attacks]
