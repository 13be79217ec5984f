"""Rows of words as lines of a terminal: names to the left, figures to the right, as wide as the widest of a column."""

from __future__ import annotations

from collections.abc import Sequence

Rows = Sequence[Sequence[str]]


def aligned(rows: Rows, *, remark: bool = False, like: Rows = ()) -> list[str]:
    """One line per row. With `remark` the last column is words, to the left. `like`: rows whose widths count too.

    >>> aligned([("metric", "mean"), ("recall", "0.5")])
    ['metric  mean', 'recall   0.5']
    """
    widths = [max(map(len, column)) for column in zip(*rows, *like, strict=True)]
    sides = [str.ljust, *[str.rjust] * (len(widths) - 2), str.ljust if remark else str.rjust]
    lines = [[side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)] for row in rows]
    return ["  ".join(cells).rstrip() for cells in lines]
