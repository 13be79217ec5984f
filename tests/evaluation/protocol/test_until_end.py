"""Attacks until the end of the flight: what is said of them after the first minute, and when the flight ends."""

from __future__ import annotations

import json

import numpy as np
import pytest

from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.cli import main as watchkeeper
from watchkeeper.evaluation.attacks.catalogue import catalogue, inject
from watchkeeper.evaluation.attacks.flight import Flight
from watchkeeper.evaluation.protocol.cases import OURS, judged, plan
from watchkeeper.evaluation.protocol.run import Trace, run
from watchkeeper.evaluation.protocol.splits import MIXED, Material, Recipe, leave_one_out, simulated
from watchkeeper.evaluation.protocol.until_end import LATE_S, _up, until_end


@pytest.fixture(scope="module")
def flights() -> list[Flight]:
    return [simulated(name, Recipe(seed, 300)).from_zero() for name, seed in (("quad-a", 51), ("wing-b", 52))]


@pytest.mark.parametrize("name", ["gps_bias_20m", "gps_jamming_20m", "imu_stuck", "link_loss", "gps_replay_30s"])
def test_an_attack_until_the_end_touches_every_sample_from_its_onset_to_the_last(flights, name):
    known = catalogue()
    attack = known.find(name)
    for flight in flights:
        made = inject(attack, flight, until_end=True)
        assert made.gps_rows.stop == len(flight.gps)
        assert made.t_end > flight.end
        assert flight.end - made.t_start >= 0.75 * (300.0 - known.onset.earliest_s - known.onset.tail_s) - 1.0
        assert made.touched
        again = inject(attack, flight, until_end=True)
        assert again.gps.data.tobytes() == made.gps.data.tobytes()


def test_an_attack_on_the_gps_shares_the_clean_imu(flights):
    made = inject(catalogue().find("gps_bias_20m"), flights[0], until_end=True)
    assert np.shares_memory(made.imu.data, flights[0].imu.data)
    assert not np.shares_memory(inject(catalogue().find("imu_stuck"), flights[0]).imu.data, flights[0].imu.data)


def test_an_alarm_is_up_from_its_raise_to_its_clearing():
    t = np.arange(6.0)
    trace = Trace(t, t, np.zeros(6, bool), [("gps_imu", 1.0, 3.0), ("silence", 5.0, np.inf)])
    assert _up(trace).tolist() == [False, True, True, False, False, True]


def test_a_lie_that_lasts_is_still_called_one_after_a_minute_and_a_small_one_never(flights):
    attacks = [catalogue().find(name) for name in ("gps_bias_100m", "gps_bias_0.1m", "link_loss")]
    material = Material({f.id: f for f in flights}, {MIXED: leave_one_out([f.id for f in flights])})
    chosen = plan(flights, (), (), 0)
    ours = judged(OURS, chosen, run(DEFAULT, chosen.variants))
    found = until_end(material, ours, DEFAULT, attacks, strict=True)
    late = {row.attack: row for row in found.late}
    assert all(row.cases == 2 and row.lasted_s > LATE_S for row in late.values())
    assert late["gps_bias_100m"].alarm_at_end == late["link_loss"].alarm_at_end == 1.0
    assert late["gps_bias_100m"].alarm_up == late["link_loss"].alarm_up == 1.0
    assert late["gps_bias_0.1m"].alarm_up == 0.0
    assert found.figures.failures == ["gps_bias_0.1m"]


def test_the_command_reports_them_and_says_what_it_does_on_standard_error(tmp_path, capfd):
    splits, out = tmp_path / "splits.json", tmp_path / "metrics.json"
    recipes = {"quad-a": {"seed": 1, "seconds": 150}, "quad-b": {"seed": 2, "seconds": 150}}
    splits.write_text(json.dumps({"val": ["quad-a"], "test": ["quad-b"], "flights": recipes}))
    words = ["--splits", splits, "--attacks", "gps_freeze,gps_bias_0.1m", "--repeats", 1, "--no-search", "--out", out]
    assert watchkeeper(["evaluate", "protocol", *map(str, words)]) == 0
    said = capfd.readouterr()
    assert "evaluating: attacks until the end of the flight" in said.err
    assert "evaluating" not in said.out
    assert "Attacks until the end of the flight (mixed" in said.out
    result = json.loads(out.read_text())
    assert {"half a minute", "until the end"} == {f["lasts"] for f in result["failures"]}
    assert [row["attack"] for row in result["lasting"]["late"]] == ["gps_freeze", "gps_bias_0.1m"]
