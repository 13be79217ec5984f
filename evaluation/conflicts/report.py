"""The evaluation of conflicts as one HTML page: the groups' figures, every episode in a row, pictures of the worst.

Where episodes have pages of their own (playback/pages.py), their rows lead there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from watchkeeper.evaluation.conflicts.api import findings_of
from watchkeeper.evaluation.conflicts.detector import HallucinationDetector
from watchkeeper.evaluation.conflicts.metrics import BESIDE, METRICS
from watchkeeper.evaluation.conflicts.plots import episode_figure
from watchkeeper.evaluation.conflicts.safety.plots import hot_spots_figure, survival_figure
from watchkeeper.evaluation.conflicts.safety.risk import RATES
from watchkeeper.evaluation.conflicts.summary import number, risk_cells, went_wrong
from watchkeeper.evaluation.shared.html import Link, Picture, Table, Text, svg_of, write_page

FIGURES = ("mean", "std", "min", "max")
# The columns of the table of episodes.
SHORT = ("tp", "fp", "fn", "precision", "recall", "avg_lead_time_s", "min_separation_nm", "num_los_events")
SHORT_ROWS = 500


def write_report(
    path: Path,
    detector: HallucinationDetector,
    episodes: Sequence[Mapping[str, Any]],
    groups: Mapping[str, Mapping[str, Mapping[str, float]]],
    *,
    most: int,
    safety: Mapping[str, Any] | None = None,
    pages: Mapping[tuple[str, str], Path] | None = None,
) -> None:
    """Write the page, with pictures of the `most` episodes in which most went wrong.

    `safety` is what --risk adds; `pages` has the pages of episodes by file and name.
    """
    parts: list[Text | Table | Picture] = [
        Text(
            f"Episodes: {len(episodes):,}. A conflict: two aircraft closer than {detector.los_threshold_nm:g} NM "
            f"within {detector.horizon_s:g} s, if nobody changes course. An alert: the controller acts against one. "
            "Windows of both are matched one to one; what is left is missed, or a ghost."
        )
    ]
    for group, figures in groups.items():
        rows = [[name, *(number(figures[name][what]) for what in FIGURES)] for name in METRICS + BESIDE]
        parts.append(Table(f"{group} ({figures['tp']['n']:,.0f})", ("metric", *FIGURES), rows))
    listed = [
        [_name(e, path, pages or {}), *(number(e["metrics"][name]) for name in SHORT)] for e in episodes[:SHORT_ROWS]
    ]
    parts.append(
        Table("episodes" if len(episodes) <= SHORT_ROWS else f"the first {SHORT_ROWS} episodes", ("", *SHORT), listed)
    )
    parts += _safety(safety, detector.los_threshold_nm) if safety is not None else []
    worst = sorted(episodes, key=went_wrong, reverse=True)[:most]
    parts.append(
        Text(
            "Bars are windows with their margins, lines join those that were matched, and each mark is a step at which "
            "a conflict was predicted or a deliberate command was given.",
            "The episodes in which most went wrong" if len(episodes) > len(worst) else "Episodes",
        )
    )
    parts += [_picture(e, detector) for e in worst]
    write_page(path, "Conflict metrics", parts)


def _name(row: Mapping[str, Any], report: Path, pages: Mapping[tuple[str, str], Path]) -> str:
    name = str(row["name"])
    page = pages.get((str(row["file"]), name))
    return name if page is None else Link(name, Path(os.path.relpath(page, report.parent)).as_posix())


def _safety(safety: Mapping[str, Any], separation_nm: float) -> list[Text | Table | Picture]:
    """The rates with their target, the survival curve and the map."""
    parts: list[Text | Table | Picture] = [
        Text("Intervals of rates are exact for a Poisson count; the band of the curve is a bootstrap's.", "Safety"),
        Table("per flight hour", ("", *RATES, "verdict"), risk_cells(safety["risk"])),
    ]
    if safety["survival"]:
        curve = survival_figure(safety["survival"], separation_nm)
        parts.append(Picture("episodes that stayed farther apart than a distance", svg_of(curve, "survival")))
    if safety["hot_spots"]:
        spots = hot_spots_figure(safety["hot_spots"])
        parts.append(Picture("where alerts were false and conflicts missed", svg_of(spots, "hot spots")))
    return parts


def _picture(row: Mapping[str, Any], detector: HallucinationDetector) -> Picture:
    name, found = str(row["name"]), findings_of(row, detector)
    m = found.matching
    caption = f"{name}: {m.tp} matched, {m.fn} missed, {m.fp} ghost"
    return Picture(caption, svg_of(episode_figure(found, detector.los_threshold_nm, name), name))
