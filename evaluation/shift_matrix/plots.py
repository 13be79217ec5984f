"""Heat maps of the shift matrix (extra `plots`): means, and differences to the diagonal, a row of two per metric."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from watchkeeper.evaluation.conflicts.summary import number
from watchkeeper.evaluation.shift_matrix.api import ShiftMatrix
from watchkeeper.evaluation.shift_matrix.matrix import CellFigures, Matrix
from watchkeeper.evaluation.shift_matrix.report import signed, title
from watchkeeper.streams.batch import F8

# Both read in grey and with any colour vision; the second has its middle at 0.
_MEANS, _DIFFERENCES = "cividis", "PuOr_r"
_FRAME = "#d55e00"
# Cells darker or brighter than this share of the scale have words in white.
_DARK = 0.5


def heat_maps(result: ShiftMatrix) -> Figure:
    """All metrics. The diagonal has a frame; a difference is in bold where its interval does not hold 0."""
    rows, columns = len(result.matrices[0].trained_on), len(result.matrices[0].judged_on)
    n = len(result.matrices)
    wide, high = max(3.4, 1.15 * columns + 1.9), max(2.3, 0.62 * rows + 1.5)
    figure = Figure(figsize=(2.0 * wide, n * high + 0.4), layout="constrained")
    panels = figure.subplots(n, 2, squeeze=False)
    for (left, right), matrix in zip(panels, result.matrices, strict=True):
        _panel(figure, left, matrix, "mean")
        _panel(figure, right, matrix, "difference")
    figure.suptitle("Rows: trained on. Columns: judged on. Framed: in-distribution", fontsize="medium")
    return figure


def _panel(figure: Figure, axes: Any, matrix: Matrix, what: str) -> None:
    grid = matrix.grid(what)
    finite = grid[np.isfinite(grid)]
    low, high = _limits(finite, centred=what == "difference")
    colours = _DIFFERENCES if what == "difference" else _MEANS
    image = axes.imshow(np.ma.masked_invalid(grid), cmap=colours, vmin=low, vmax=high, aspect="auto")
    width = len(matrix.judged_on)
    for k, cell in enumerate(matrix.cells):
        y, x = divmod(k, width)
        bold = what == "difference" and (cell.low > 0.0 or cell.high < 0.0)
        share = (grid[y, x] - low) / (high - low) if math.isfinite(grid[y, x]) else _DARK
        ink = "white" if (abs(share - 0.5) > 0.33 if what == "difference" else share < _DARK) else "black"
        axes.text(x, y, _words(cell, what), ha="center", va="center", color=ink, fontsize="small",
                  fontweight="bold" if bold else "normal")  # fmt: skip
        if cell.trained_on == cell.judged_on:
            axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, fill=False, ec=_FRAME, lw=2.5))
    axes.set_xticks(range(width), matrix.judged_on, fontsize="small")
    axes.set_yticks(range(len(matrix.trained_on)), matrix.trained_on, fontsize="small")
    heading = title(matrix) if what == "mean" else f"{matrix.metric}: difference to the diagonal"
    axes.set_title(heading, fontsize="small")
    figure.colorbar(image, ax=axes, shrink=0.9).ax.tick_params(labelsize="x-small")


def _words(cell: CellFigures, what: str) -> str:
    if not cell.n:
        return "–"
    if what == "difference":
        return signed(cell.difference)
    spread = f"\n± {number(cell.std)}" if math.isfinite(cell.std) else ""
    return f"{number(cell.mean)}{spread}"


def _limits(values: F8, *, centred: bool) -> tuple[float, float]:
    """The ends of the colour scale; never the same."""
    if not len(values):
        return 0.0, 1.0
    if centred:
        reach = float(np.abs(values).max()) or 1.0
        return -reach, reach
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)
