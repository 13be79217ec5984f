"""Paired tests: SciPy's and statsmodels' numbers, and a clear answer where there is nothing to test."""

from __future__ import annotations

import doctest
import math
import warnings

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from watchkeeper.evaluation.paired import stats as paired_stats
from watchkeeper.evaluation.paired.agreement import nearer_is_first
from watchkeeper.evaluation.paired.command import PairedResult, compare_models_paired, correct

NAN = math.nan


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def compare(a, b, alpha: float = 0.05, **more) -> PairedResult:
    return compare_models_paired(a, b, "one", "two", "dtw_norm", alpha, **more)


def two_models(n: int, *, skewed: bool, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    base = rng.gamma(2.0, 1.0, n)
    noise = rng.exponential(0.5, n) if skewed else rng.normal(0.2, 0.5, n)
    return base + noise, base


@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("n", [3, 8, 25, 200])
def test_the_numbers_are_scipys(n, skewed):
    a, b = two_models(n, skewed=skewed)
    result = compare(a, b)
    shapiro, t, wilcoxon = stats.shapiro(a - b), stats.ttest_rel(a, b), stats.wilcoxon(a, b)
    assert (result.shapiro.statistic, result.shapiro.p_value) == (shapiro.statistic, shapiro.pvalue)
    assert (result.paired_t.statistic, result.paired_t.p_value) == (t.statistic, t.pvalue)
    assert (result.wilcoxon.statistic, result.wilcoxon.p_value) == (wilcoxon.statistic, wilcoxon.pvalue)
    assert result.test == ("paired_t" if shapiro.pvalue >= 0.05 else "wilcoxon")
    assert result.p_value == (t.pvalue if shapiro.pvalue >= 0.05 else wilcoxon.pvalue)
    assert result.significant == (result.p_value < 0.05)
    assert result.cohens_d == pytest.approx(np.mean(a - b) / np.std(a - b, ddof=1), rel=1e-12)
    # t is d times the root of n: the two must agree
    assert result.cohens_d * math.sqrt(n) == pytest.approx(t.statistic, rel=1e-9)


@pytest.mark.parametrize("skewed", [False, True])
def test_the_deciding_test_is_named_with_its_statistic(skewed):
    a, b = two_models(200, skewed=skewed)
    result = compare(a, b)
    expected = stats.wilcoxon(a, b) if skewed else stats.ttest_rel(a, b)
    assert result.test_name == ("Wilcoxon signed-rank test" if skewed else "Paired t-test")
    assert result.test_statistic == expected.statistic
    untested = compare([1.0], [2.0])
    assert (untested.test_name, math.isnan(untested.test_statistic)) == ("none", True)


# Many small differences to one side and a few huge ones to the other: the middle and the mean part.
PARTED = np.concatenate((np.linspace(-0.02, -0.01, 60), [0.3, 0.5, 0.9]))


def test_a_significant_test_next_to_an_interval_with_0_in_it_is_put_into_words():
    result = compare(PARTED, np.zeros(63))
    assert (result.test, result.significant, result.interval_excludes_zero) == ("wilcoxon", True, False)
    assert (
        "95 % interval of the mean difference contains 0, but the Wilcoxon signed-rank test decides"
        in result.disagreement
    )


def test_an_interval_on_the_other_side_is_put_into_words():
    result = compare(np.concatenate((np.linspace(-0.02, -0.01, 60), np.linspace(3.0, 9.0, 12))), np.zeros(72))
    assert (result.significant, result.ci_low > 0.0, result.median_difference < 0.0) == (True, True, True)
    assert "speaks for the other model, but the Wilcoxon signed-rank test decides" in result.disagreement


def test_an_interval_without_0_next_to_no_significance_is_put_into_words():
    # five equal differences: Wilcoxon cannot go below 2 / 2^5, whatever they are
    result = compare([2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 2.0, 3.0, 4.0, 5.0])
    assert (result.p_value, result.significant, result.interval_excludes_zero) == (0.0625, False, True)
    assert (
        "excludes 0, but the Wilcoxon signed-rank test decides and finds no significant difference"
        in result.disagreement
    )


def test_the_interval_is_not_corrected_and_it_says_so():
    shifted = stats.norm.ppf((np.arange(40) + 0.5) / 40) + 0.35  # p about 0.03
    clear = compare(shifted, np.zeros(40))
    assert (clear.significant, clear.interval_excludes_zero, clear.disagreement) == (True, True, "")
    others = [PairedResult("m", "a", "b", 0.05, 9, 0, p_value=p) for p in (0.5, 0.6, 0.7)]
    corrected = correct([clear, *others])[0]
    assert (corrected.significant, corrected.significant_holm) == (True, False)
    assert "not corrected for the number of metrics, and p Holm is" in corrected.disagreement


@given(st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=30))
@settings(max_examples=60, deadline=None)
def test_significance_and_interval_never_part_without_a_word(differences):
    result = compare(differences, [0.0] * len(differences), resamples=100)
    parted = result.significant != result.interval_excludes_zero
    assert bool(result.disagreement) or not parted
    if result.significant and not parted and not result.disagreement:
        assert (result.ci_high < 0.0) == (nearer_is_first(result))


def test_both_branches_of_the_assumption_check_are_taken():
    assert compare(*two_models(200, skewed=False)).test == "paired_t"
    assert compare(*two_models(200, skewed=True)).test == "wilcoxon"


@pytest.mark.parametrize(("n", "method"), [(200, "BCa"), (2000, "percentile")])
def test_the_interval_is_scipys_bootstrap_of_the_mean_and_the_seed_decides(n, method):
    a, b = two_models(n, skewed=True)
    result = compare(a, b, seed=7, resamples=2000)
    expected = stats.bootstrap(
        (a - b,), np.mean, n_resamples=2000, method=method, random_state=np.random.default_rng(7), batch=2_000_000 // n
    ).confidence_interval
    assert (result.ci_low, result.ci_high) == (expected.low, expected.high)
    assert result.ci_method == f"bootstrap, {method}"
    assert compare(a, b, seed=7, resamples=2000) == result
    assert compare(a, b, seed=8, resamples=2000).ci_low != result.ci_low


def test_the_interval_covers_the_true_difference_about_as_often_as_it_says():
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(200):
        b = rng.normal(0.0, 1.0, 40)
        result = compare(b + rng.normal(0.3, 1.0, 40), b, resamples=300)
        covered += result.ci_low <= 0.3 <= result.ci_high
    # 95 % of 200 is 190; four standard deviations are 12
    assert 178 <= covered <= 200


def test_corrections_are_statsmodels():
    rng = np.random.default_rng(3)
    results = [compare(rng.normal(k, 1.0, 40), rng.normal(0.0, 1.0, 40), resamples=100) for k in (0.0, 0.3, 0.5, 0.7)]
    p_values = [r.p_value for r in results]
    corrected = correct(results, 0.05)
    assert [r.p_holm for r in corrected] == multipletests(p_values, 0.05, "holm")[1].tolist()
    assert [r.p_bh for r in corrected] == multipletests(p_values, 0.05, "fdr_bh")[1].tolist()
    assert [r.p_bh for r in corrected] == pytest.approx(stats.false_discovery_control(p_values).tolist())
    assert [r.significant_holm for r in corrected] == [r.p_holm <= 0.05 for r in corrected]
    assert [r.p_value for r in corrected] == p_values, "the uncorrected ones stay"


def test_holm_by_hand():
    # 0.01, 0.03, 0.04 -> 3 * 0.01, max(0.03, 2 * 0.03), max(0.06, 0.04); BH: 3 * 0.01, min(3 / 2 * 0.03, 0.04), 0.04
    results = [PairedResult("m", "a", "b", 0.05, 9, 0, p_value=p) for p in (0.04, 0.01, 0.03)]
    corrected = correct(results)
    assert [r.p_holm for r in corrected] == pytest.approx([0.06, 0.03, 0.06])
    assert [r.p_bh for r in corrected] == pytest.approx([0.04, 0.03, 0.04])
    assert [r.significant_holm for r in corrected] == [False, True, False]
    assert [r.significant_bh for r in corrected] == [True, True, True]


def test_what_was_not_tested_takes_no_part_in_the_correction():
    results = [PairedResult("m", "a", "b", 0.05, 9, 0, p_value=p) for p in (0.03, NAN)]
    corrected = correct(results)
    assert corrected[0].p_holm == 0.03
    assert math.isnan(corrected[1].p_holm)
    assert math.isnan(correct([results[1]])[0].p_holm)


def test_pairs_that_are_not_finite_are_left_out_and_counted():
    a, b = two_models(40, skewed=False)
    dirty_a, dirty_b = np.append(a, (NAN, 1.0, math.inf)), np.append(b, (1.0, NAN, 1.0))
    result, clean = compare(dirty_a, dirty_b), compare(a, b)
    assert result.n_dropped == 3
    assert result.notes == ["3 pairs with a value that is not finite left out"]
    assert msgspec.structs.replace(result, n_dropped=0, notes=[]) == clean


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([], [], "no pair with two finite values: a test needs at least 3"),
        ([1.0], [2.0], "only 1 pair: a test needs at least 3"),
        ([1.0, 2.0], [2.0, 1.0], "only 2 pairs: a test needs at least 3"),
        ([NAN, NAN, NAN, NAN], [1.0, 2.0, 3.0, 4.0], "no pair with two finite values"),
        ([1.0, NAN, 2.0, 3.0], [1.0, 2.0, NAN, 4.0], "only 2 pairs"),
    ],
)
def test_fewer_than_three_pairs_is_no_test_and_says_so(a, b, words):
    result = compare(a, b)
    assert result.notes[0].startswith(words)
    assert (result.test, result.significant) == ("none", False)
    assert math.isnan(result.p_value)


def test_equal_values_are_no_difference():
    result = compare([1.0, 2.0, 3.5, 0.1], [1.0, 2.0, 3.5, 0.1])
    assert (result.p_value, result.cohens_d, result.significant, result.test) == (1.0, 0.0, False, "none")
    assert (result.mean_difference, result.ci_low, result.ci_high) == (0.0, 0.0, 0.0)
    assert "the values are the same in every pair" in result.notes[0]


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_all_values_equal_is_no_difference(value):
    assert compare([value] * 5, [value] * 5).p_value == 1.0


@pytest.mark.parametrize("shift", [0.1, -0.1])
def test_a_constant_shift_is_left_to_the_signs(shift):
    # 0.1 is no binary fraction: the differences are equal but for rounding
    b = np.array([0.3, 1.7, 2.9, 4.1, 5.3, 6.7])
    result = compare(b + shift, b)
    assert result.test == "wilcoxon"
    assert result.p_value == pytest.approx(2.0 / 2.0**6), "all six the same way: two of the 64 ways to give signs"
    assert result.cohens_d == math.copysign(math.inf, shift)
    assert (result.ci_low, result.ci_high) == (pytest.approx(shift), pytest.approx(shift))
    assert math.isnan(result.paired_t.p_value)
    assert "all differences are the same" in result.notes[0]


@pytest.mark.parametrize(
    ("n", "words"), [(9, "warning: only 9 pairs"), (10, "10 pairs; 30 or more"), (29, "29 pairs; 30"), (30, None)]
)
def test_few_pairs_are_warned_about(n, words):
    notes = compare(*two_models(n, skewed=False)).notes
    assert notes == [] if words is None else notes[0].startswith(words)


def test_over_five_thousand_pairs_shapiro_is_approximate_and_it_says_so():
    result = compare(*two_models(5001, skewed=False), resamples=100)
    assert "over 5,000 pairs" in result.notes[-1]
    assert not math.isnan(result.p_value)


def test_undefined_figures_are_null_in_json():
    encoded = msgspec.json.decode(msgspec.json.encode(compare([1.0], [2.0])))
    assert encoded["p_value"] is None
    assert encoded["shapiro"] == {"statistic": None, "p_value": None}
    assert msgspec.json.decode(msgspec.json.encode(compare([2.0, 3.0, 4.0], [1.0, 2.0, 3.0])))["cohens_d"] is None


@pytest.mark.parametrize(
    ("a", "b", "alpha", "words"),
    [
        ([1.0, 2.0], [1.0], 0.05, "not pairs"),
        ([[1.0]], [[1.0]], 0.05, "not pairs"),
        ([1.0], [1.0], 0.0, "alpha 0.0"),
        ([1.0], [1.0], NAN, "alpha nan"),
    ],
)
def test_what_cannot_be_pairs_is_a_value_error(a, b, alpha, words):
    with pytest.raises(ValueError, match=words):
        compare(a, b, alpha)


values = st.floats(-1e6, 1e6) | st.sampled_from((NAN, math.inf, 0.0, 1.0))


@given(st.lists(st.tuples(values, values), max_size=12))
@settings(max_examples=60, deadline=None)
def test_anything_gets_an_answer_and_swapping_the_models_turns_its_sign(pairs):
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    one, other = compare(a, b, resamples=50), compare(b, a, resamples=50)
    assert one.p_value == pytest.approx(other.p_value, nan_ok=True, rel=1e-6)
    assert one.cohens_d == pytest.approx(-other.cohens_d, nan_ok=True)
    assert one.mean_difference == pytest.approx(-other.mean_difference, nan_ok=True)
    assert one.test == other.test
    assert not one.significant or one.p_value < 0.05


def test_the_example_in_the_docstring_runs():
    assert doctest.testmod(paired_stats).failed == 0
