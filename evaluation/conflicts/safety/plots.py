"""Pictures of many episodes (extra `plots`): survival of the least separation, and a map of false and missed alerts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import narwhals as nw
from matplotlib.figure import Figure
from narwhals.typing import IntoDataFrame

from watchkeeper.evaluation.conflicts.safety.hotspots import FALSE, MISSED

Rows: TypeAlias = Sequence[Mapping[str, Any]] | IntoDataFrame
# Distinguishable in grey and with any colour vision.
_CURVE, _MISSED, _FALSE = "#0072b2", "#d55e00", "#e69f00"
_STYLE = {FALSE: (_FALSE, "^", "false alerts"), MISSED: (_MISSED, "o", "missed conflicts")}
# Area of a mark of one window, in points squared.
_ONE = 28.0


def survival_figure(curve: Rows, separation_nm: float) -> Figure:
    """`survival`, as rows or as a frame: the share of episodes over the least separation, with its band."""
    rows = _rows(curve)
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    axes: Any = figure.subplots()
    at = [row["separation_nm"] for row in rows]
    axes.fill_between(
        at, [row["low_95"] for row in rows], [row["high_95"] for row in rows],
        step="post", color=_CURVE, alpha=0.25, lw=0.0, label="95 % of bootstrap resamples",
    )  # fmt: skip
    axes.step(at, [row["survival"] for row in rows], where="post", color=_CURVE, lw=1.8, label="episodes")
    axes.axvline(separation_nm, color=_MISSED, lw=1.0, ls="--", label=f"minimum {separation_nm:g} NM")
    axes.set_xlim(0.0, max(at, default=1.0))
    axes.set_ylim(0.0, 1.02)
    axes.set_xlabel("least separation in the episode [NM]")
    axes.set_ylabel("share of episodes that stayed farther apart")
    axes.grid(visible=True, lw=0.4, alpha=0.6)
    axes.legend(frameon=False, fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def hot_spots_figure(spots: Rows) -> Figure:
    """`hot_spots`, as rows or as a frame, on a map: a mark per cell and kind, its area by the number of windows."""
    cells = _rows(spots)
    figure = Figure(figsize=(7.0, 5.0), layout="constrained")
    axes: Any = figure.subplots()
    for kind, (colour, marker, word) in _STYLE.items():
        here = [cell for cell in cells if cell[kind]]
        axes.scatter(
            [cell["lon"] for cell in here], [cell["lat"] for cell in here],
            s=[_ONE * cell[kind] for cell in here], c=colour, marker=marker, alpha=0.65,
            edgecolors="none", label=f"{word} ({sum(int(cell[kind]) for cell in here)})",
        )  # fmt: skip
    middle = sum(cell["lat"] for cell in cells) / max(1, len(cells))
    axes.set_aspect(1.0 / max(0.01, math.cos(math.radians(middle))), adjustable="datalim")
    axes.set_xlabel("longitude [deg]")
    axes.set_ylabel("latitude [deg]")
    axes.grid(visible=True, lw=0.4, alpha=0.6)
    axes.legend(frameon=False, fontsize="small", loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _rows(data: Rows) -> Sequence[Mapping[str, Any]]:
    return data if isinstance(data, Sequence) else nw.from_native(data, eager_only=True).rows(named=True)
