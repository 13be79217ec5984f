"""Many episodes in one table: mean, standard deviation, least and most of every metric, over all and per group."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from watchkeeper.evaluation.conflicts.metrics import BESIDE, METRICS

ALL = "all"
NONE = "–"
Row = Mapping[str, Any]


def aggregate(rows: Sequence[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Metric to mean, std (ddof 1; NaN of one), min, max and n: the episodes in which it is a number."""
    result: dict[str, dict[str, float]] = {}
    for name in METRICS + BESIDE:
        column = np.array([row[name] for row in rows], np.float64)
        column = column[np.isfinite(column)]
        n = len(column)
        result[name] = {
            "mean": float(column.mean()) if n else math.nan,
            "std": float(column.std(ddof=1)) if n > 1 else math.nan,
            "min": float(column.min()) if n else math.nan,
            "max": float(column.max()) if n else math.nan,
            "n": n,
        }
    return result


def grouped(episodes: Iterable[Row], key: str | None) -> dict[str, list[Mapping[str, float]]]:
    """The metrics of the episodes by what their metadata says under `key`; all of them first."""
    groups: dict[str, list[Mapping[str, float]]] = {ALL: []}
    for episode in episodes:
        groups[ALL].append(episode["metrics"])
        if key is not None:
            value = str(episode["meta"].get(key, "")) or "(none)"
            groups.setdefault(f"{key} {value}", []).append(episode["metrics"])
    return dict(sorted(groups.items(), key=lambda item: (item[0] != ALL, item[0])))


def went_wrong(episode: Row) -> float:
    """How many windows of an episode have no partner."""
    return float(episode["metrics"]["fp"] + episode["metrics"]["fn"])


def table(groups: Mapping[str, Mapping[str, Mapping[str, float]]], counts: Mapping[str, int]) -> str:
    """The groups side by side: the value of one episode, or mean ± standard deviation of several."""
    heads = [f"{name} ({counts[name]:,})" for name in groups]
    cells = {
        metric: [_cell(figures[metric], counts[group]) for group, figures in groups.items()]
        for metric in METRICS + BESIDE
    }
    widths = [max(len(head), *(len(row[i]) for row in cells.values())) for i, head in enumerate(heads)]
    lines = [f"{'':26}" + "  ".join(head.rjust(width) for head, width in zip(heads, widths, strict=True))]
    for metric, row in cells.items():
        lines.append(f"{metric:26}" + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
    return "\n".join(lines)


def risk_cells(rows: Sequence[Row]) -> list[list[str]]:
    """The rates of `risk`, as words: event, count, hours, rate, interval, target, verdict."""
    rates = ("per_hour", "low_95", "high_95", "target_per_hour")
    return [
        [
            row["event"], f"{row['events']:,}", f"{row['flight_hours']:,.1f}",
            *(f"{row[name]:.2g}" if math.isfinite(row[name]) else NONE for name in rates), row["verdict"],
        ]
        for row in rows
    ]  # fmt: skip


def risk_table(rows: Sequence[Row]) -> str:
    """The same for a terminal."""
    head = ["per flight hour", "events", "hours", "rate", "low 95 %", "high 95 %", "target", ""]
    cells = [head, *risk_cells(rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]).rstrip()
        for line in cells
    )


def _cell(figure: Mapping[str, float], episodes: int) -> str:
    if not figure["n"]:
        return NONE
    if episodes == 1:
        return number(figure["mean"])
    spread = number(figure["std"]) if math.isfinite(figure["std"]) else NONE
    return f"{number(figure['mean'])} ± {spread}"


def number(value: float) -> str:
    """Three digits after the point at most, – for none."""
    return NONE if not math.isfinite(value) else f"{round(value, 3):,g}" if abs(value) < 1e5 else f"{value:,.0f}"
