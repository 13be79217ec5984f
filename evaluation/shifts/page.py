"""Shifted episodes compared with their baselines as one HTML page: tests by shift, distances of tracks, pictures."""

from __future__ import annotations

from pathlib import Path

from watchkeeper.evaluation.shared.html import Picture, Table, Text, svg_of, write_page
from watchkeeper.evaluation.shifts.api import Shifts
from watchkeeper.evaluation.shifts.flown import Pair, ShiftKey
from watchkeeper.evaluation.shifts.plots import effects_figure, pair_figure, tracks_figure
from watchkeeper.evaluation.shifts.report import (
    EFFECT_HEADS,
    TRACK_HEADS,
    by_shift,
    overview,
    track_cells,
)


def write_report(path: Path, result: Shifts) -> None:
    """Write the page."""
    level = 100.0 * (1.0 - result.alpha)
    parts: list[Text | Table | Picture] = [
        Text(
            f"{overview(result)}. One aircraft begins otherwise; everything else, and the seed, is the same. A "
            "difference is the shifted episode's value minus that of its own baseline. The interval is that of the "
            f"mean difference at {level:g} %. Shapiro-Wilk's test chooses between the paired t-test and Wilcoxon's, "
            "which decides; p Holm is corrected over all shifts and metrics on this page."
        ),
        Picture("shifted minus baseline, by metric and shift", svg_of(effects_figure(result), "effects")),
        *(part for title, block in by_shift(result).items() for part in _shift(title, *block)),
        *(Text(f"Note: {note}.") for note in result.notes),
        Text(
            "Metres between the tracks of a shifted episode and of its baseline, means over seeds. DTW is the sum of "
            "distances along the best alignment and grows with the number of points; per point is divided by it. "
            "Less own: the shifted aircraft's track is first moved to the baseline's beginning and, for a shift of "
            "heading, turned back by as much. Others: all aircraft that are not shifted.",
            "Tracks",
        ),
        Table("metres from the baseline's track", TRACK_HEADS, [track_cells(row) for row in result.tracks]),
        Picture("DTW per point, every seed", svg_of(tracks_figure(result), "tracks")),
    ]
    if (found := _farthest(result)) is not None:
        key, pair = found
        parts.append(
            Picture("the shifted aircraft that went farthest from its baseline", svg_of(pair_figure(key, pair), "pair"))
        )
    write_page(path, "One aircraft shifted", parts)


def _shift(title: str, rows: list[tuple[str, ...]], remarks: list[str]) -> list[Text | Table | Picture]:
    """One shift: what it changed, and what not."""
    return [Table(title, EFFECT_HEADS, rows), *(Text(f"{remark}.") for remark in remarks)]


def _farthest(result: Shifts) -> tuple[ShiftKey, Pair] | None:
    """The pair of episodes in which the shifted agent's track moved most."""
    targets = [row for row in result.deviations if row.is_target]
    if not targets:
        return None
    row = max(targets, key=lambda row: row.dtw_per_point_m)
    key = ShiftKey(row.target_agent, row.shift_type, row.shift_value)
    return key, next(pair for pair in result.groups[key] if pair[0].seed == row.seed)
