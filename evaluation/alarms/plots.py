"""Plots of the evaluation of alarms. Needs matplotlib (extra `plots`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from watchkeeper.evaluation.alarms.curve import Curve, Point

# Distinguishable in grey and with any colour vision: each line has its own marker as well.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
_MARKERS = ("o", "s", "^", "D", "v", "P")


def plot_trade_off(curve: Curve, path: Path) -> None:
    """Losses not foreseen and warning time against the share of nuisance pairs, a line per count, own rule marked."""
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    unforeseen, warning = figure.subplots(1, 2)
    for i, n in enumerate(sorted({point.n for point in curve.points})):
        points = sorted((p for p in curve.points if p.n == n), key=lambda p: p.threshold)
        style = {"color": _COLOURS[i % len(_COLOURS)], "marker": _MARKERS[i % len(_MARKERS)], "ms": 4.0, "lw": 1.2}
        unforeseen.plot(*_places(points, _unforeseen), label=f"{n} in a row", **style)
        warning.plot(*_places(points, _warning), label=f"{n} in a row", **style)
    own = curve.configured
    star = {
        "color": "black",
        "marker": "*",
        "ms": 13.0,
        "ls": "none",
        "label": f"configured: {own.n} of {own.m} at {own.threshold:g}",
    }
    unforeseen.plot(*_places([own], _unforeseen), **star)
    warning.plot(*_places([own], _warning), **star)
    unforeseen.set_ylabel("eligible losses late or missed [%]")
    unforeseen.set_ylim(-3.0, 103.0)
    warning.set_ylabel("median warning time [s]")
    for axes in (unforeseen, warning):
        axes.set_xlabel("alarmed pairs that never lost separation [%]")
        axes.grid(visible=True, lw=0.4, alpha=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    warning.legend(fontsize="small")
    unit = "probability" if curve.probability else "score"
    values = sorted({point.threshold for point in curve.points})
    span = f", {unit} {values[0]:g} … {values[-1]:g} along each line" if values else ""
    figure.suptitle(f"Conflict alarms: epochs in a row and threshold{span}", fontsize="medium")
    figure.savefig(path, dpi=110)


def _places(points: Sequence[Point], of: Callable[[Point], float | None]) -> tuple[list[float], list[float]]:
    """Where the points lie, without those that have nothing to show."""
    places = [
        (100.0 * p.pairs_nuisance_share, y)
        for p in points
        if p.pairs_nuisance_share is not None and (y := of(p)) is not None
    ]
    return [x for x, _ in places], [y for _, y in places]


def _unforeseen(point: Point) -> float | None:
    if point.missed_eligible_share is None or point.late_eligible_share is None:
        return None
    return 100.0 * (point.missed_eligible_share + point.late_eligible_share)


def _warning(point: Point) -> float | None:
    return point.warning_median_s
