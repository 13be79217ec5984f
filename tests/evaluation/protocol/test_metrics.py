"""The protocol's arithmetic: hand-worked values, SciPy and brute force as oracles, and detectors that must fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from watchkeeper.evaluation.attacks.catalogue import Attack
from watchkeeper.evaluation.protocol.cases import Case, Clean, Judged, not_attacked
from watchkeeper.evaluation.protocol.figures import group_figures
from watchkeeper.evaluation.protocol.metrics import caught_at, sustained, threshold, wins
from watchkeeper.evaluation.protocol.run import ProtocolError
from watchkeeper.evaluation.protocol.splits import leave_one_out
from watchkeeper.evaluation.shared import bootstrap

ATTACK = Attack("gps_bias_10m", "gps_bias", 10.0, 1)
FLIGHTS = ("quad-a", "quad-b", "quad-c", "quad-d")
N = 5


def clean(flight: str, score: np.ndarray, alarms: tuple[tuple[str, float], ...] = ()) -> Clean:
    return Clean(flight, "quad", 0.2 * np.arange(len(score)), score, 10, 0, alarms)


def case(flight: str, score: np.ndarray, alarm_t: float | None = None) -> Case:
    return Case(ATTACK, flight, 0, 100.0, 100.1 + 0.2 * np.arange(len(score)), score, alarm_t, already_on=False)


def figures(negative, positive, **options):
    """The group's figures for a detector that gives these scores to (flight, dice) clean and attacked."""
    rng = np.random.default_rng(3)
    found = Judged(
        "made up",
        {f: clean(f, negative(f, rng)) for f in FLIGHTS},
        {ATTACK.name: [case(f, positive(f, rng), **options) for f in FLIGHTS for _ in range(3)]},
    )
    return group_figures("mixed", found, leave_one_out(FLIGHTS), [ATTACK], N)


def test_an_oracle_gets_everything():
    got = figures(lambda f, rng: rng.uniform(0.0, 0.5, 2000), lambda f, rng: rng.uniform(0.9, 1.0, 150), alarm_t=101.0)
    row = got.attacks[0]
    assert row.epoch.auroc == 1.0
    assert row.epoch.recall_1 == row.epoch.recall_5 == row.event.recall_1 == row.event.alarm_recall == 1.0
    assert row.event.auroc == 1.0
    assert row.event.latency_epochs == N
    assert row.event.latency_ms == pytest.approx(100.0 + 200.0 * (N - 1))
    assert row.event.alarm_latency_epochs == 5
    assert got.failures == []
    assert got.fpr_1 == pytest.approx(0.01, abs=0.006)


def test_a_constant_score_is_worth_nothing():
    got = figures(lambda f, rng: np.full(2000, 0.3), lambda f, rng: np.full(150, 0.3))
    row = got.attacks[0]
    assert row.epoch.auroc == 0.5
    assert row.event.auroc == 0.5
    assert row.epoch.recall_1 == row.epoch.recall_5 == row.event.recall_1 == 0.0
    assert got.failures == [ATTACK.name]
    assert got.fpr_1 == got.fpr_5 == 0.0


def test_a_random_score_is_worth_nothing_and_keeps_its_nominal_rate():
    got = figures(lambda f, rng: rng.normal(size=4000), lambda f, rng: rng.normal(size=150))
    row = got.attacks[0]
    assert row.epoch.auroc == pytest.approx(0.5, abs=0.03)
    assert row.epoch.recall_1 == pytest.approx(0.01, abs=0.01)
    assert row.epoch.recall_5 == pytest.approx(0.05, abs=0.02)
    assert got.fpr_1 == pytest.approx(0.01, abs=0.005)
    assert got.fpr_5 == pytest.approx(0.05, abs=0.01)
    assert got.failures == [ATTACK.name]


def test_a_detector_that_says_nothing_finds_nothing():
    got = figures(lambda f, rng: rng.normal(size=2000), lambda f, rng: np.full(150, -np.inf))
    assert got.attacks[0].epoch.recall_1 == 0.0
    assert got.attacks[0].epoch.auroc == 0.0


def test_a_flight_that_is_louder_than_the_others_shows_in_its_own_rate():
    def negative(f, rng):
        return rng.normal(size=4000) * (3.0 if f == "quad-c" else 1.0)

    got = figures(negative, lambda f, rng: rng.normal(size=150))
    rates = {f.flight: f.fpr_1 for f in got.flights}
    # three times as wide: 2.33 sigma of the others are 0.78 of its own, which 22 % exceed
    assert rates["quad-c"] == pytest.approx(0.22, abs=0.04)
    assert max(rates[f] for f in rates if f != "quad-c") < 0.01
    assert all(f.flight not in f.calibrated_on for f in got.flights)


def test_f1_by_hand():
    # 100 clean epochs of which the threshold leaves 1 out; 8 of 10 attacked epochs are over it
    def negative(f, rng):
        return np.arange(100.0)

    got = figures(negative, lambda f, rng: np.array([0.0, 0.0, *([1000.0] * 8)]))
    # per flight: TP 3 * 8, FN 3 * 2, FP 0 because the 1 % quantile (the higher one) is the largest clean value
    assert got.attacks[0].epoch.recall_1 == pytest.approx(0.8)
    assert got.attacks[0].epoch.f1 == pytest.approx(2 * 24 / (2 * 24 + 6))


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40), st.lists(st.integers(-5, 5), min_size=1, max_size=40))
def test_wins_are_those_of_mann_and_whitney(positive, negative):
    p, q = np.array(positive, float), np.array(negative, float)
    assert wins(p, np.sort(q)) == mannwhitneyu(p, q).statistic


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 6), st.integers(0, 9))
def test_n_in_a_row_by_brute_force(values, n, level):
    score = np.array(values, float)
    ends = [k for k in range(n - 1, len(values)) if all(v > level for v in values[k - n + 1 : k + 1])]
    assert caught_at(score, level, n) == (ends[0] if ends else None)
    assert (sustained(score, n) > level) == bool(ends)


def test_the_threshold_leaves_the_nominal_part_over_it():
    flights = [clean("quad-a", np.arange(500.0)), clean("quad-b", np.arange(500.0, 1000.0))]
    assert (np.arange(1000.0) > threshold(flights, 0.01)).sum() in (9, 10)
    assert (np.arange(1000.0) > threshold(flights, 0.05)).sum() in (49, 50)


def test_the_threshold_survives_epochs_without_a_score():
    assert np.isfinite(threshold([clean("quad-a", np.array([-np.inf] * 50 + [1.0] * 50))], 0.05))


def test_weights_draw_whole_flights():
    drawn = bootstrap.weights(5, 600)
    assert drawn.shape == (600, 5)
    assert (drawn.sum(axis=1) == 5).all()
    assert drawn.mean() == pytest.approx(1.0)
    assert np.array_equal(drawn, bootstrap.weights(5, 600))


def test_a_resampled_area_is_the_area_of_the_resample():
    rng = np.random.default_rng(8)
    positive = [rng.normal(1.0, 1.0, n) for n in (20, 30, 10)]
    negative = [rng.normal(0.0, 1.0, n) for n in (50, 40, 60)]
    matrix = np.array([[wins(p, np.sort(q)) for q in negative] for p in positive])
    drawn = np.array([[2.0, 1.0, 0.0]])
    got = bootstrap.auroc(drawn, matrix, np.array([20.0, 30.0, 10.0]), np.array([50.0, 40.0, 60.0]))
    p = np.concatenate((positive[0], positive[0], positive[1]))
    q = np.concatenate((negative[0], negative[0], negative[1]))
    assert got[0] == pytest.approx(mannwhitneyu(p, q).statistic / (len(p) * len(q)))


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    """Flights whose recall varies: the 95 % interval holds the true mean in most repetitions, and not in all."""
    rng = np.random.default_rng(11)
    covered = 0
    for trial in range(200):
        share = rng.beta(6.0, 4.0, 20)
        drawn = bootstrap.weights(20, 500, seed=trial)
        found = bootstrap.interval(bootstrap.ratio(drawn, 150.0 * share, np.full(20, 150.0)))
        assert found is not None
        covered += found[0] <= 0.6 <= found[1]
    assert 170 <= covered < 200


def test_there_is_no_interval_of_nothing():
    assert bootstrap.interval(bootstrap.ratio(bootstrap.weights(3), np.zeros(3), np.zeros(3))) is None


def test_what_the_averages_are_when_nothing_happens():
    """The same windows of the clean flights, alarms included; an epoch that the clean flight lacks is not detected."""
    score = np.linspace(0.0, 1.0, 1000)
    found = Judged(
        "made up",
        {"quad-a": clean("quad-a", score, (("gps_imu", 100.5), ("gps_imu", 190.0)))},
        {ATTACK.name: [case("quad-a", np.full(150, 9.0))]},
    )
    inside = found.clean["quad-a"].t[500:650]
    found.cases[ATTACK.name][0] = replace(found.cases[ATTACK.name][0], t=np.append(inside, 1e6), t_start=99.9)
    (null,) = not_attacked(found).cases[ATTACK.name]
    assert np.array_equal(null.score[:-1], score[500:650])
    assert null.score[-1] == -np.inf
    assert null.alarm_t == 100.5


def test_a_flight_of_which_nothing_was_said_calibrates_nothing():
    with pytest.raises(ProtocolError, match="nothing was said about the flights that calibrate: quad-a"):
        threshold([clean("quad-a", np.empty(0))], 0.01)


def test_a_detector_that_is_silent_on_one_flight_has_no_rate_there():
    got = figures(
        lambda f, rng: np.empty(0) if f == "quad-b" else rng.normal(size=1000), lambda f, rng: np.full(150, -np.inf)
    )
    rates = {f.flight: f.fpr_1 for f in got.flights}
    assert rates["quad-b"] is None
    assert rates["quad-a"] is not None
    assert got.attacks[0].epoch.recall_1 == 0.0
