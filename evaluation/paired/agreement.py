"""Does a test find a difference, and does the interval printed next to it say the same? If not, in words why.

The test decides. The bootstrap interval is about the mean difference and is not corrected over metrics, so the two can
part; nobody should have to find that out by comparing columns. Called by stats.py and report.py.
"""

from __future__ import annotations

import math

import msgspec

from watchkeeper.evaluation.paired.result import NO_TEST, PAIRED_T, TEST_NAMES, WILCOXON, PairedResult, Tested

# Why a test and the bootstrap interval of the mean may part.
_WHY = {
    PAIRED_T: "the t-test takes the differences for normal, the interval resamples them; near the limit they may part",
    WILCOXON: "the test is about the middle of the differences, the interval about their mean, which a few can move",
}


def judged(result: PairedResult) -> PairedResult:
    """What the test that counts says, and whether the interval seems to say something else."""
    found = msgspec.structs.replace(
        result,
        test_name=TEST_NAMES[result.test],
        test_statistic={PAIRED_T: result.paired_t, WILCOXON: result.wilcoxon}.get(result.test, Tested()).statistic,
        significant=bool(result.p_value < result.alpha),
        interval_excludes_zero=result.ci_low > 0.0 or result.ci_high < 0.0,
    )
    return msgspec.structs.replace(found, disagreement=disagreement(found))


def nearer_is_first(r: PairedResult) -> bool:
    """Whether the test that counts speaks for model 1: Wilcoxon's is about the middle of the differences."""
    middle = r.median_difference if r.test == WILCOXON and r.median_difference else r.mean_difference
    return middle < 0.0


def disagreement(r: PairedResult) -> str:
    """Where test and interval part, in words; empty where they agree."""
    level = f"the {100.0 * (1.0 - r.alpha):g} % interval of the mean difference"
    decides = f"the {r.test_name[0].lower() if r.test == PAIRED_T else r.test_name[0]}{r.test_name[1:]} decides"
    p = f"p {r.p_value:.2g}"
    if r.test == NO_TEST or math.isnan(r.ci_low):
        return ""
    if r.significant and not r.interval_excludes_zero:
        return f"{level} contains 0, but {decides} and finds a difference ({p}): {_WHY[r.test]}"
    if r.interval_excludes_zero and not r.significant:
        return f"{level} excludes 0, but {decides} and finds no significant difference ({p}): {_WHY[r.test]}"
    if r.significant and nearer_is_first(r) != (r.ci_high < 0.0):
        return f"{level} speaks for the other model, but {decides} ({p}): {_WHY[r.test]}"
    if r.significant and not math.isnan(r.p_holm) and not r.significant_holm:
        return f"{level} excludes 0, but it is not corrected for the number of metrics, and p Holm is {r.p_holm:.2g}"
    return ""
