"""Is one model better than another on the same trajectories? Paired tests of one metric, and corrections over several.

A difference is model 1 minus model 2. Shapiro-Wilk on the differences decides between the paired t-test and Wilcoxon's
signed-rank test; both are always reported. SciPy does the tests and the bootstrap, statsmodels (extra `stats`) the
corrections. What cannot be tested gets an answer in words (`notes`) and a p-value of NaN, never an exception.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from watchkeeper.evaluation.paired.agreement import disagreement, judged
from watchkeeper.evaluation.paired.result import PAIRED_T, WILCOXON, PairedResult, Tested
from watchkeeper.streams.batch import F8

ALPHA = 0.05
SEED = 0
RESAMPLES = 10_000
# Level of the assumption check: the t-test is kept unless normal differences are that unlikely.
NORMALITY_ALPHA = 0.05
LEAST_PAIRS, FEW_PAIRS, ENOUGH_PAIRS = 3, 10, 30
# Shapiro-Wilk's p-value is an approximation fitted up to here.
SHAPIRO_PAIRS = 5000
# BCa corrects the interval for skewness by leaving out each pair once, which takes time in the square of their number;
# with so many pairs the mean's distribution is no longer skewed, and plain percentiles do.
BCA_PAIRS = 1000
# Numbers held at once by the bootstrap.
_BATCH = 2_000_000
# Differences below this share of the values are rounding; those below the other have squares that are 0.
_ROUNDING, _TINY = 1e-12, 1e-150


def compare_models_paired(
    model1_values: ArrayLike,
    model2_values: ArrayLike,
    model1_name: str,
    model2_name: str,
    metric_name: str,
    alpha: float = ALPHA,
    *,
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> PairedResult:
    """Compare two models whose values are paired by position. Raises ValueError only if they cannot be pairs at all.

    >>> result = compare_models_paired([3.1, 2.9, 3.5, 3.3], [2.0, 2.2, 2.1, 2.4], "old", "new", "dtw_norm")
    >>> result.test, result.significant, round(result.p_value, 3), round(result.mean_difference, 3)
    ('paired_t', True, 0.006, 1.025)
    """
    first, second = np.asarray(model1_values, np.float64), np.asarray(model2_values, np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(f"{metric_name}: values of shapes {first.shape} and {second.shape} are not pairs")
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha {alpha}: expected a number between 0 and 1")
    finite = np.isfinite(first) & np.isfinite(second)
    a, b = first[finite], second[finite]
    n_dropped = int((~finite).sum())
    notes = _remarks(len(a), n_dropped)
    result = PairedResult(metric_name, model1_name, model2_name, alpha, len(a), n_dropped, notes=notes)
    if len(a):
        result = msgspec.structs.replace(result, **_describe(a, b))
    if len(a) < LEAST_PAIRS:
        return result
    nothing = max(_ROUNDING * max(np.abs(a).max(), np.abs(b).max()), _TINY)
    if np.abs(a - b).max() <= nothing:
        return _no_difference(result)
    same = np.ptp(a - b) <= nothing
    result = _same_difference(result, a, b) if same else _tested(result, a, b, seed, resamples)
    return judged(result)


def correct(results: Sequence[PairedResult], alpha: float = ALPHA) -> list[PairedResult]:
    """The same results with p-values corrected over all of them that were tested: Holm and Benjamini-Hochberg."""
    from statsmodels.stats.multitest import multipletests  # noqa: PLC0415 - an extra, and slow to import

    tested = [k for k, result in enumerate(results) if not math.isnan(result.p_value)]
    corrected = list(results)
    if not tested:
        return corrected
    p_values = [results[k].p_value for k in tested]
    holm_yes, holm_p, *_ = multipletests(p_values, alpha, "holm")
    bh_yes, bh_p, *_ = multipletests(p_values, alpha, "fdr_bh")
    for at, k in enumerate(tested):
        corrected[k] = msgspec.structs.replace(
            results[k],
            p_holm=float(holm_p[at]),
            p_bh=float(bh_p[at]),
            significant_holm=bool(holm_yes[at]),
            significant_bh=bool(bh_yes[at]),
        )
        corrected[k] = msgspec.structs.replace(corrected[k], disagreement=disagreement(corrected[k]))
    return corrected


def _describe(a: F8, b: F8) -> dict[str, float]:
    difference = a - b
    return {
        "model1_mean": float(a.mean()),
        "model2_mean": float(b.mean()),
        "mean_difference": float(difference.mean()),
        "median_difference": float(np.median(difference)),
        "std_difference": float(difference.std(ddof=1)) if len(difference) > 1 else math.nan,
    }


def _tested(result: PairedResult, a: F8, b: F8, seed: int, resamples: int) -> PairedResult:
    """The usual case: differences that differ."""
    difference = a - b
    with warnings.catch_warnings():
        # SciPy warns that p-values are approximate over 5,000 pairs; we say so in a note of our own
        warnings.simplefilter("ignore", UserWarning)
        shapiro = _plain(stats.shapiro(difference))
    t, wilcoxon = _plain(stats.ttest_rel(a, b)), _plain(stats.wilcoxon(a, b))
    normal = shapiro.p_value >= NORMALITY_ALPHA
    low, high, method = _interval(difference, 1.0 - result.alpha, seed, resamples)
    return msgspec.structs.replace(
        result,
        ci_low=low,
        ci_high=high,
        ci_method=method,
        cohens_d=result.mean_difference / result.std_difference,
        shapiro=shapiro,
        paired_t=t,
        wilcoxon=wilcoxon,
        test=PAIRED_T if normal else WILCOXON,
        p_value=t.p_value if normal else wilcoxon.p_value,
    )


def _same_difference(result: PairedResult, a: F8, b: F8) -> PairedResult:
    """Without any spread only the signs say something."""
    wilcoxon = _plain(stats.wilcoxon(a, b))
    return msgspec.structs.replace(
        result,
        std_difference=0.0,
        ci_low=result.mean_difference,
        ci_high=result.mean_difference,
        ci_method="exact",
        cohens_d=math.copysign(math.inf, result.mean_difference),
        wilcoxon=wilcoxon,
        test=WILCOXON,
        p_value=wilcoxon.p_value,
        notes=["all differences are the same: no spread, so t and Cohen's d have no finite value", *result.notes],
    )


def _no_difference(result: PairedResult) -> PairedResult:
    """All pairs equal: every way to swap the models gives the same data, so the p-value is 1."""
    return msgspec.structs.replace(
        result,
        mean_difference=0.0,
        median_difference=0.0,
        std_difference=0.0,
        ci_low=0.0,
        ci_high=0.0,
        ci_method="exact",
        cohens_d=0.0,
        p_value=1.0,
        notes=["the values are the same in every pair: there is no difference to test", *result.notes],
    )


def _interval(difference: F8, level: float, seed: int, resamples: int) -> tuple[float, float, str]:
    for method in ("BCa", "percentile") if len(difference) <= BCA_PAIRS else ("percentile",):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", stats.DegenerateDataWarning)
            found = stats.bootstrap(
                (difference,),
                np.mean,
                vectorized=True,
                n_resamples=resamples,
                batch=max(1, _BATCH // len(difference)),
                confidence_level=level,
                method=method,
                random_state=np.random.default_rng(seed),
            ).confidence_interval
        # BCa has no answer where hardly any two resamples differ
        if np.isfinite((found.low, found.high)).all():
            break
    return float(found.low), float(found.high), f"bootstrap, {method}"


def _remarks(pairs: int, dropped: int) -> list[str]:
    """What is to be said about the numbers of pairs alone."""
    notes = []
    if pairs < LEAST_PAIRS:
        have = f"only {pairs} pair{'s' * (pairs > 1)}" if pairs else "no pair with two finite values"
        notes.append(f"{have}: a test needs at least {LEAST_PAIRS}, so there is none")
    elif pairs < FEW_PAIRS:
        notes.append(f"warning: only {pairs} pairs, the result may not be reliable")
    elif pairs < ENOUGH_PAIRS:
        notes.append(f"{pairs} pairs; {ENOUGH_PAIRS} or more are recommended")
    elif pairs > SHAPIRO_PAIRS:
        notes.append(f"over {SHAPIRO_PAIRS:,} pairs Shapiro-Wilk's p-value is an approximation")
    if dropped:
        notes.append(f"{dropped:,} pair{'s' * (dropped > 1)} with a value that is not finite left out")
    return notes


def _plain(result: object) -> Tested:
    return Tested(float(result.statistic), float(result.pvalue))  # type: ignore[attr-defined]
