"""The comparison of models as one HTML page: a section for every two models with figures, verdicts and differences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from watchkeeper.evaluation.paired.models import Comparison
from watchkeeper.evaluation.paired.plots import plot_differences
from watchkeeper.evaluation.paired.report import (
    HEADS,
    SEED_HEADS,
    cells,
    matching_words,
    notes,
    seed_rows,
    seed_verdict,
    tests,
    verdict,
)
from watchkeeper.evaluation.paired.result import NO_TEST
from watchkeeper.evaluation.shared.html import Picture, Table, Text, svg_of, write_page


def write_report(path: Path, comparisons: Sequence[Comparison]) -> None:
    """Write the page."""
    alpha = comparisons[0].results[0].alpha
    parts: list[Text | Table | Picture] = [
        Text(
            "Each pair is one real trajectory that both models were held against. A difference is the first model's "
            "value minus the second's, and less is nearer to the real trajectories. The interval is that of the mean "
            f"difference at {100.0 * (1.0 - alpha):g} %. Shapiro-Wilk's test decides whether the t-test or Wilcoxon's "
            "decides; the interval does not. Holm and Benjamini-Hochberg (BH) correct for the number of metrics."
        )
    ]
    for c in comparisons:
        first, second = c.names
        parts += [
            Text(f"{matching_words(c)}.", f"{first} (1) and {second} (2)"),
            Table(f"1 {c.first.path}, 2 {c.second.path}", HEADS, [cells(r) for r in c.results]),
            *(Text(f"{r.metric_name}: {verdict(r)}{'' if r.test == NO_TEST else f'. {tests(r)}'}.") for r in c.results),
            *(Text(f"{r.metric_name}: note: {r.disagreement}.") for r in c.results if r.disagreement),
            *(Text(f"Note: {note}.") for note in notes(c)),
            *([Table("across seeds", SEED_HEADS, seed_rows(c))] if c.seeds else []),
            *(Text(f"{s.figure}: {seed_verdict(s)}.") for s in c.seeds),
            Picture(f"{first} minus {second}, pair by pair", svg_of(plot_differences(c), f"{first} {second}")),
        ]
    write_page(path, "Models compared on the same trajectories", parts)
