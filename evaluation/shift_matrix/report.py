"""The shift matrix as words: rows for the terminal and for the page.

Rows are what a model was trained on, columns what it was judged on; the diagonal is in brackets.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from watchkeeper.evaluation.conflicts.direction import BETTER
from watchkeeper.evaluation.conflicts.summary import NONE, number
from watchkeeper.evaluation.shared.columns import aligned
from watchkeeper.evaluation.shift_matrix.api import ShiftMatrix
from watchkeeper.evaluation.shift_matrix.matrix import HOME, CellFigures, Gap, Matrix

CORNER = "trained on"
GAP_HEADS = (CORNER, "scenarios", "gap", "interval", "drawn", "")


def table(result: ShiftMatrix) -> str:
    """Every metric for a terminal: means, differences to the diagonal, gaps."""
    blocks = [overview(result)]
    for matrix in result.matrices:
        lines = [title(matrix)]
        for heading, rows in (
            ("mean ± std (n)", mean_rows(matrix)),
            ("difference to the diagonal (its interval), and ratio", difference_rows(matrix, ratio=True)),
        ):
            lines += ["", heading, *aligned([(CORNER, *matrix.judged_on), *rows])]
        if matrix.gaps:
            lines += ["", "generalisation gap: mean difference over the other scenarios"]
            lines += aligned([GAP_HEADS, *map(gap_cells, matrix.gaps)], remark=True)
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def overview(result: ShiftMatrix) -> str:
    """What was judged."""
    m = result.matrices[0]
    return (
        f"{result.episodes:,} episodes; trained on {len(m.trained_on)} scenarios (rows), judged on {len(m.judged_on)} "
        f"(columns); intervals at {100.0 * (1.0 - result.draws.alpha):g} %"
    )


def title(matrix: Matrix) -> str:
    """The metric, and which way it is better."""
    side = BETTER.get(matrix.metric)
    return f"{matrix.metric} ({side} is better)" if side else matrix.metric


def mean_rows(matrix: Matrix) -> list[tuple[str, ...]]:
    """Row by row the means with spread and number of episodes; the diagonal in brackets."""
    return _rows(matrix, lambda c: f"{number(c.mean)} ± {number(c.std)} ({c.n:,})", brackets=True)


def difference_rows(matrix: Matrix, *, ratio: bool = False) -> list[tuple[str, ...]]:
    """Row by row the differences to the diagonal, if asked for with the ratio of the means."""
    return _rows(matrix, lambda cell: _difference(cell) + (f" × {cell.ratio:.2f}" if ratio and _rated(cell) else ""))


def ratio_rows(matrix: Matrix) -> list[tuple[str, ...]]:
    """Row by row the ratios to the diagonal."""
    return _rows(matrix, lambda cell: number(cell.ratio))


def gap_cells(gap: Gap) -> tuple[str, ...]:
    """One gap, in the order of GAP_HEADS."""
    words = {True: "worse elsewhere", False: "better elsewhere", None: ""}[gap.worse]
    return gap.trained_on or "all", f"{gap.scenarios}", signed(gap.gap), _span(gap.low, gap.high), gap.how, words


def signed(value: float) -> str:
    """A difference."""
    return NONE if math.isnan(value) else "0" if value == 0.0 else f"{value:+.3g}"


def _difference(cell: CellFigures) -> str:
    if cell.how == HOME or math.isnan(cell.difference):
        return signed(cell.difference)
    return f"{signed(cell.difference)} ({_span(cell.low, cell.high)})"


def _rated(cell: CellFigures) -> bool:
    return cell.how != HOME and math.isfinite(cell.ratio)


def _span(low: float, high: float) -> str:
    return NONE if math.isnan(low) else f"{signed(low)} to {signed(high)}"


def _rows(matrix: Matrix, word: Callable[[CellFigures], str], *, brackets: bool = False) -> list[tuple[str, ...]]:
    width = len(matrix.judged_on)
    rows = []
    for k, trained in enumerate(matrix.trained_on):
        cells = matrix.cells[k * width : (k + 1) * width]
        words = [NONE if not cell.n else word(cell) for cell in cells]
        marked = [
            f"[{text}]" if brackets and cell.trained_on == cell.judged_on and cell.n else text
            for cell, text in zip(cells, words, strict=True)
        ]
        rows.append((trained, *marked))
    return rows
