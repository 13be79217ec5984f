"""What a paired comparison of two models by one metric gives. stats.py makes it, agreement.py puts it into words.

A difference is model 1 minus model 2. NaN is what could not be worked out.
"""

from __future__ import annotations

import math

import msgspec

PAIRED_T, WILCOXON, NO_TEST = "paired_t", "wilcoxon", "none"
TEST_NAMES = {PAIRED_T: "Paired t-test", WILCOXON: "Wilcoxon signed-rank test", NO_TEST: "none"}


class Tested(msgspec.Struct, frozen=True):
    """One test's statistic and two-sided p-value; NaN where it is undefined."""

    statistic: float = math.nan
    p_value: float = math.nan


class PairedResult(msgspec.Struct, frozen=True):
    """The comparison of two models by one metric."""

    metric_name: str
    model1_name: str
    model2_name: str
    alpha: float
    n_pairs: int
    n_dropped: int
    """Pairs in which a value was not finite."""
    model1_folder: str = ""
    model2_folder: str = ""
    """Where the results are from; empty where they are not from files."""
    model1_mean: float = math.nan
    model2_mean: float = math.nan
    mean_difference: float = math.nan
    median_difference: float = math.nan
    std_difference: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    """Bootstrap interval of the mean difference at the level 1 - alpha."""
    ci_method: str = ""
    cohens_d: float = math.nan
    """Mean over standard deviation (n - 1) of the differences; infinite where all are the same but not 0."""
    shapiro: Tested = Tested()
    paired_t: Tested = Tested()
    wilcoxon: Tested = Tested()
    test: str = NO_TEST
    """The one whose p-value counts: paired_t, wilcoxon or none."""
    test_name: str = TEST_NAMES[NO_TEST]
    test_statistic: float = math.nan
    """Those of the test that counts."""
    p_value: float = math.nan
    significant: bool = False
    """p_value < alpha, before any correction: the test decides, not the interval."""
    interval_excludes_zero: bool = False
    disagreement: str = ""
    """In words, where the interval next to it seems to say something else than `significant`."""
    p_holm: float = math.nan
    p_bh: float = math.nan
    significant_holm: bool = False
    significant_bh: bool = False
    notes: list[str] = []
