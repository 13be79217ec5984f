"""The comparison of two models in words: a line of figures per metric, and what they mean. Plain text and rows of HTML.

Less is nearer to the real trajectories, in all metrics. A difference is model 1 minus model 2.
"""

from __future__ import annotations

import math

from watchkeeper.evaluation.paired.agreement import nearer_is_first
from watchkeeper.evaluation.paired.models import Comparison
from watchkeeper.evaluation.paired.result import NO_TEST, PAIRED_T, WILCOXON, PairedResult
from watchkeeper.evaluation.paired.seeds import SeedComparison

NONE = "–"
TEST_WORDS = {PAIRED_T: "t", WILCOXON: "Wilcoxon", NO_TEST: NONE}
HEADS = ("metric", "pairs", "mean 1", "mean 2", "difference", "interval", "d", "test", "p", "p Holm", "p BH")
SEED_HEADS = ("across seeds", "model", "seeds", "mean", "std", "interval of mean")
_SEED_WIDTHS = (20, 22, 7, 11, 11, 24)
_WIDTHS = (15, 7, 9, 9, 11, 22, 7, 10, 9, 9, 9)


def table(c: Comparison) -> str:
    """The comparison for people."""
    lines = [
        *(
            f"{k} {name}: {model.path}"
            for k, (name, model) in enumerate(zip(c.names, (c.first, c.second), strict=True), 1)
        ),
        matching_words(c),
        "",
        _line(HEADS),
        *(_line(cells(r)) for r in c.results),
        "",
        *(f"{r.metric_name}: {verdict(r)}" for r in c.results),
        *(f"{r.metric_name}: note: {r.disagreement}" for r in c.results if r.disagreement),
        *(f"{r.metric_name}: {tests(r)}" for r in c.results if r.test != NO_TEST),
        *notes(c),
        *(_seed_lines(c) if c.seeds else []),
    ]
    return "\n".join(lines)


def _seed_lines(c: Comparison) -> list[str]:
    rows = [_line(row, _SEED_WIDTHS) for row in (SEED_HEADS, *seed_rows(c))]
    return ["", *rows, "", *(f"{s.figure}: {seed_verdict(s)}" for s in c.seeds)]


def seed_rows(c: Comparison) -> list[tuple[str, ...]]:
    """Each figure over the seeds of both models, in the order of SEED_HEADS."""
    return [
        (
            s.figure, f"{k} {spread.model}", f"{len(spread.by_seed)}", _figure(spread.mean), _figure(spread.std),
            NONE if math.isnan(spread.ci_low) else f"{spread.ci_low:.4g} to {spread.ci_high:.4g}",
        )
        for s in c.seeds
        for k, spread in enumerate((s.first, s.second), 1)
    ]  # fmt: skip


def seed_verdict(s: SeedComparison) -> str:
    """Whether two models differ by more than their seeds do."""
    by = f"difference {s.difference:.4g}"
    if s.in_stds and not math.isnan(s.in_stds) and not math.isinf(s.in_stds):
        by += f", {s.in_stds:.2g} times the standard deviation of seeds"
    test = "" if math.isnan(s.p_value) else f"; {s.test_name} {s.test_statistic:.3f}, p {s.p_value:.2g}"
    return f"{s.words} ({by}{test})"


def matching_words(c: Comparison) -> str:
    """How the records were paired."""
    n = len(c.pairs.numbers)
    left = f"{len(c.first.records) - n:,} and {len(c.second.records) - n:,}"
    return (
        f"{n:,} pairs, {c.pairs.by_index:,} by real trajectory and {c.pairs.by_order:,} by order within an origin and "
        f"destination; {left} without a partner"
    )


def cells(r: PairedResult) -> tuple[str, ...]:
    """One metric's figures, in the order of HEADS."""
    return (
        r.metric_name,
        f"{r.n_pairs:,}",
        _figure(r.model1_mean),
        _figure(r.model2_mean),
        _figure(r.mean_difference),
        NONE if math.isnan(r.ci_low) else f"{r.ci_low:.3g} to {r.ci_high:.3g}",
        _figure(r.cohens_d, ".2f"),
        TEST_WORDS[r.test],
        *(_figure(p, ".2g") for p in (r.p_value, r.p_holm, r.p_bh)),
    )


def verdict(r: PairedResult) -> str:
    """What the figures mean, with the corrected p-values where there are any."""
    if math.isnan(r.p_value):
        return "not tested"
    nearer = r.model1_name if nearer_is_first(r) else r.model2_name
    decided = "" if r.test == NO_TEST else f"; decided by: {r.test_name}"
    if r.significant_holm:
        return f"{nearer} is nearer (significant after Holm's correction){decided}"
    if r.significant_bh:
        return f"{nearer} is nearer (significant by Benjamini-Hochberg, not by Holm){decided}"
    if r.significant:
        return f"{nearer} is nearer by this metric alone; not significant once corrected over all of them{decided}"
    return f"no significant difference (alpha {r.alpha:g}){decided}"


def tests(r: PairedResult) -> str:
    """Both tests, and why one of them counts."""
    t = f"t {_figure(r.paired_t.statistic, '.3f')} (p {_figure(r.paired_t.p_value, '.2g')})"
    wilcoxon = f"Wilcoxon {_figure(r.wilcoxon.statistic, 'g')} (p {_figure(r.wilcoxon.p_value, '.2g')})"
    if math.isnan(r.shapiro.p_value):
        return f"{t}, {wilcoxon}; Wilcoxon's counts"
    why = "t counts, the differences may be normal" if r.test == PAIRED_T else "Wilcoxon's counts, they are not normal"
    return f"{t}, {wilcoxon}; Shapiro-Wilk {r.shapiro.statistic:.3f} (p {r.shapiro.p_value:.2g}): {why}"


def notes(c: Comparison) -> list[str]:
    """All notes, each once, with the metrics that it is about."""
    about: dict[str, list[str]] = {}
    for r in c.results:
        for note in r.notes:
            about.setdefault(note, []).append(r.metric_name)
    everywhere = len(c.results)
    return c.notes + [
        note if len(metrics) == everywhere else f"{', '.join(metrics)}: {note}" for note, metrics in about.items()
    ]


def _line(row: tuple[str, ...], widths: tuple[int, ...] = _WIDTHS) -> str:
    first, *rest = zip(row, widths, strict=True)
    return f"{first[0]:<{first[1]}}" + "".join(f"{cell:>{width}}" for cell, width in rest)


def _figure(value: float, how: str = ".4g") -> str:
    return NONE if math.isnan(value) else format(value, how)
