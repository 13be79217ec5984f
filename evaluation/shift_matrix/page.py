"""The shift matrix as one HTML page: heat maps, means, differences, ratios and gaps of every metric."""

from __future__ import annotations

from pathlib import Path

from watchkeeper.evaluation.shared.html import Picture, Table, Text, svg_of, write_page
from watchkeeper.evaluation.shift_matrix.api import ShiftMatrix
from watchkeeper.evaluation.shift_matrix.plots import heat_maps
from watchkeeper.evaluation.shift_matrix.report import (
    CORNER,
    GAP_HEADS,
    difference_rows,
    gap_cells,
    mean_rows,
    overview,
    ratio_rows,
    title,
)


def write_report(path: Path, result: ShiftMatrix) -> None:
    """Write the page."""
    parts: list[Text | Table | Picture] = [
        Text(
            f"{overview(result)}. The diagonal is in-distribution. A difference is judged elsewhere minus judged at "
            "home, for the same models. Its interval is from pairs of the same seed where both cells have the same "
            "seeds, and otherwise from episodes drawn independently. The gap is the mean difference over the other "
            "scenarios."
        ),
        Picture(
            "means, and differences to the diagonal; bold: the interval does not hold 0", svg_of(heat_maps(result), "m")
        ),
        *(Text(f"Note: {note}.") for note in result.notes),
    ]
    for matrix in result.matrices:
        head = (CORNER, *matrix.judged_on)
        parts += [
            Text("", title(matrix)),
            Table("mean ± standard deviation (episodes)", head, mean_rows(matrix)),
            Table("difference to the diagonal", head, difference_rows(matrix)),
            Table("ratio to the diagonal", head, ratio_rows(matrix)),
            Table("generalisation gap", GAP_HEADS, [gap_cells(gap) for gap in matrix.gaps]),
        ]
    write_page(path, "Trained here, judged there", parts)
