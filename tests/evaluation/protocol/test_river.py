"""What river adds: each way to score is the one that its name says, and none sees the future."""

from __future__ import annotations

import numpy as np
import pytest

from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.gps_imu.state import CHANNELS, SCALED
from watchkeeper.evaluation.attacks.catalogue import catalogue
from watchkeeper.evaluation.protocol.cases import plan
from watchkeeper.evaluation.protocol.river import QUANTILE_EPOCHS, _by_quantile, _runs, _trees, river_study
from watchkeeper.evaluation.protocol.run import run
from watchkeeper.evaluation.protocol.splits import MIXED, Material, Recipe, leave_one_out, simulated

# long enough for the trees to have an opinion
SECONDS = 400


@pytest.fixture(scope="module")
def material() -> Material:
    flights = {
        name: simulated(name, Recipe(seed, SECONDS)).from_zero() for name, seed in (("quad-a", 1), ("wing-b", 2))
    }
    return Material(flights, {MIXED: leave_one_out(list(flights))})


def test_a_running_quantile_is_that_of_the_past_and_leaves_out_what_is_far_over_it():
    rng = np.random.default_rng(1)
    ratio = rng.exponential(size=3000)
    ratio[:10] = np.nan
    found = _by_quantile(ratio)
    assert np.isnan(found[:10]).all()
    assert (found[10 : 10 + QUANTILE_EPOCHS] == 0.0).all()
    late = found[2000:]
    assert np.mean(late >= 1.0) == pytest.approx(0.01, abs=0.01)
    attacked = ratio.copy()
    attacked[2500:] += 100.0
    assert np.array_equal(_by_quantile(attacked)[:2500], found[:2500], equal_nan=True)
    assert (_by_quantile(attacked)[2500:] > 10.0).all()


def test_runs_are_counted_once_each_and_only_when_long_enough():
    over = np.array([1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1], bool)
    assert _runs(over, 3) == 3
    assert _runs(over, 5) == 2
    assert _runs(over, 7) == 0


def test_the_trees_of_a_vehicle_do_not_see_what_comes_after(material):
    attack = catalogue().find("gps_bias_50m")
    chosen = plan(list(material.flights.values()), material.tested, [attack], 1)
    traces = run(DEFAULT, chosen.variants, channels=CHANNELS[:SCALED])
    clean, attacked = traces[0], traces[2]
    made = chosen.variants[2].injection
    assert made is not None
    before = made.gps_rows.start
    assert np.array_equal(_trees(clean, 2.576)[:before], _trees(attacked, 2.576)[:before], equal_nan=True)
    assert attacked.sigma is not None
    assert attacked.sigma.shape == (len(attacked.t), SCALED)


def test_the_table_has_every_way_and_the_shipped_one_is_the_protocol_s_own(material):
    attacks = [catalogue().find(name) for name in ("gps_bias_50m", "gps_drift_2mps")]
    found = river_study(material, DEFAULT, attacks, strict=True)
    shipped, voting, alone, plain, quantile = found.rows
    assert shipped.recall_1 > 0.8
    assert voting.event_recall_1 >= shipped.event_recall_1
    assert alone.auroc < shipped.auroc
    assert {row.name for row in (plain, quantile)} == {
        "no levels per vehicle",
        "running quantile in place of the levels",
    }
    assert 0.0 <= found.adwin_in_attacks <= 1.0
    assert found.adwin_per_clean_hour >= 0.0
