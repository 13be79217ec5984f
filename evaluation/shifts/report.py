"""The comparison of shifted episodes with their baselines as words: rows for the terminal and for the page.

A difference is shifted minus baseline. Distances of tracks are in metres.
"""

from __future__ import annotations

import math
from typing import Any

from watchkeeper.evaluation.conflicts.summary import NONE, number
from watchkeeper.evaluation.paired.report import TEST_WORDS
from watchkeeper.evaluation.shared.columns import aligned
from watchkeeper.evaluation.shifts.api import Shifts
from watchkeeper.evaluation.shifts.effects import NO_DIFFERENCE, Effect, unit_of

EFFECT_HEADS = (
    "metric", "seeds", "baseline", "shifted", "difference", "interval", "test", "p", "p Holm", "",
)  # fmt: skip
TRACK_HEADS = (
    "shift", "seeds", "DTW", "per point", "Hausdorff", "DTW less own", "per point", "others' DTW", "per point",
    "farthest other",
)  # fmt: skip


def table(result: Shifts) -> str:
    """Everything for a terminal: one block per shift with the metrics that changed, and the distances of the tracks."""
    lines = [overview(result)]
    blocks = by_shift(result)
    every = [row for rows, _ in blocks.values() for row in rows]
    for title, (rows, remarks) in blocks.items():
        lines += ["", title]
        lines += aligned([EFFECT_HEADS, *rows], remark=True, like=every) if rows else []
        lines += remarks
    lines += ["", "tracks: metres from the baseline's, means over seeds"]
    lines += aligned([TRACK_HEADS, *map(track_cells, result.tracks)], remark=True)
    return "\n".join(lines)


def overview(result: Shifts) -> str:
    """What was compared."""
    baselines = {id(baseline) for pairs in result.groups.values() for _, baseline in pairs}
    pairs = sum(map(len, result.groups.values()))
    return (
        f"{pairs:,} shifted episodes compared with {len(baselines):,} baselines of the same seeds; "
        f"{len(result.groups):,} shifts, {len(result.effects):,} tests"
    )


def by_shift(result: Shifts) -> dict[str, tuple[list[tuple[str, ...]], list[str]]]:
    """By what a shift is called: rows of the metrics that changed, and remarks about them and about the others."""
    blocks: dict[str, list[Effect]] = {}
    for effect in result.effects:
        blocks.setdefault(f"{effect.key.words} {effect.unit}".rstrip(), []).append(effect)
    return {title: _block(mine) for title, mine in blocks.items()}


def _block(mine: list[Effect]) -> tuple[list[tuple[str, ...]], list[str]]:
    same = [effect.metric for effect in mine if effect.verdict == NO_DIFFERENCE]
    # test and interval may part; nobody should have to find that out by comparing columns
    remarks = [
        f"{effect.metric}: note: {effect.tested.disagreement}"
        for effect in mine
        if effect.tested.disagreement and effect.tested.significant != effect.tested.interval_excludes_zero
    ]
    if same:
        remarks.append(f"{NO_DIFFERENCE}: {', '.join(same)}")
    return [effect_cells(effect) for effect in mine if effect.verdict != NO_DIFFERENCE], remarks


def effect_cells(effect: Effect) -> tuple[str, ...]:
    """One test, in the order of EFFECT_HEADS."""
    r = effect.tested
    return (
        effect.metric, f"{r.n_pairs:,}", number(r.model2_mean), number(r.model1_mean), _signed(r.mean_difference),
        NONE if math.isnan(r.ci_low) else f"{_signed(r.ci_low)} to {_signed(r.ci_high)}", TEST_WORDS[r.test],
        *(NONE if math.isnan(p) else f"{p:.2g}" for p in (r.p_value, r.p_holm)), effect.verdict,
    )  # fmt: skip


def track_cells(row: dict[str, Any]) -> tuple[str, ...]:
    """One shift's distances, in the order of TRACK_HEADS."""
    size = row["size"] if isinstance(row["size"], str) else f"{row['size']:+g}"
    return (
        f"{row['agent']} {row['kind']} {size} {unit_of(row['kind'])}".rstrip(), f"{row['episodes']:,}",
        *(_metres(row[f"target_{name}_m"]) for name in (
            "dtw", "dtw_per_point", "hausdorff", "dtw_less_own", "dtw_per_point_less_own")),
        _metres(row["others_dtw_m"]), _metres(row["others_dtw_per_point_m"]), row["farthest_other"] or NONE,
    )  # fmt: skip


def _metres(value: float) -> str:
    """Whole metres from ten on, and nothing below a millimetre: that is rounding."""
    if math.isnan(value):
        return NONE
    return f"{value:,.0f}" if value >= 10.0 else f"{round(value, 3):.3g}"


def _signed(value: float) -> str:
    return "0" if value == 0.0 else f"{value:+.3g}"
