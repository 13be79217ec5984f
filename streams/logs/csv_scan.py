"""Finds and reads the cells of plain CSV text, fast: where each cell starts, and its value if it is a number.

Used by the CSV reader, a block of whole lines at a time. Quotes are not known here; the reader takes them away
before. Numbers are exact: a decimal with at most 15 digits and a small exponent is one exactly rounded division or
product, everything else is left to Python's float().
"""

from __future__ import annotations

from typing import Self

import numpy as np

from watchkeeper.streams.batch import F8, I8, U1, Bool
from watchkeeper.streams.kernels import njit

_NEWLINE, _RETURN, _BLANK = 10, 13, 32
_PLUS, _MINUS, _POINT, _ZERO, _NINE, _E, _SMALL_E = 43, 45, 46, 48, 57, 69, 101
# Integers below 10**15 and powers of ten up to 10**22 are exact in float64, so one operation rounds correctly.
_DIGITS = 15
_POWERS: F8 = np.array([10.0**k for k in range(23)])


class Table:
    """Rows of `width` cells in a block of bytes that ends with a newline; `lines` are their numbers in the file."""

    def __init__(self, block: bytes, separator: bytes, width: int, first_line: int) -> None:
        self._block = block
        self._bytes: U1 = np.frombuffer(block, np.uint8)
        self._start: I8 = np.zeros((block.count(b"\n"), width + 1), np.int64)
        self.cells: I8 = np.zeros(len(self._start), np.int64)
        """Cells found in each row; a row is usable when they are `width`. An empty line has one, which is empty."""
        _find(self._bytes, separator[0], self._start, self.cells)
        self.lines: I8 = first_line + np.arange(len(self._start))

    def __len__(self) -> int:
        return len(self.lines)

    def keep(self, rows: Bool | slice) -> Self:
        """The same table with these rows only."""
        part = object.__new__(type(self))
        part._block, part._bytes = self._block, self._bytes
        part._start, part.cells, part.lines = self._start[rows], self.cells[rows], self.lines[rows]
        return part

    def is_blank(self) -> Bool:
        """Rows that are empty lines."""
        blank: Bool = (self.cells == 1) & (self._start[:, 1] - 1 == self._start[:, 0])
        return blank

    def filled(self, column: int) -> Bool:
        """Rows in which this cell is not empty."""
        full: Bool = self._start[:, column + 1] - 1 > self._start[:, column]
        return full

    def text(self, column: int) -> list[str]:
        """A column as text, without blanks around it."""
        block = self._block
        ends = (self._start[:, column + 1] - 1).tolist()
        cells = [block[a:b] for a, b in zip(self._start[:, column].tolist(), ends, strict=True)]
        # bytes that are not UTF-8 make one odd name, not an unreadable file
        known = {cell: cell.decode("utf-8", "replace").strip() for cell in set(cells)}
        return [known[cell] for cell in cells]

    def numbers(self, column: int, rows: I8) -> tuple[F8, I8]:
        """A column's values in the given rows (NaN: empty), and which of those rows hold something else."""
        values = np.empty(len(rows))
        odd = np.zeros(len(rows), np.bool_)
        _parse(self._bytes, np.ascontiguousarray(self._start[:, column : column + 2]), rows, _POWERS, values, odd)
        return values, np.flatnonzero(odd)


@njit(cache=True)
def _find(text: U1, separator: int, start: I8, cells: I8) -> None:
    width = start.shape[1] - 1
    row = 0
    cell = 0
    for i in range(text.size):
        c = text[i]
        if c == separator:
            cell += 1
            if cell < width:
                start[row, cell] = i + 1
        elif c == _NEWLINE:
            cell += 1
            end = i
            if i > start[row, 0] and text[i - 1] == _RETURN:
                end -= 1
            start[row, min(cell, width)] = end + 1
            cells[row] = cell
            cell = 0
            row += 1
            if row < start.shape[0]:
                start[row, 0] = i + 1


@njit(cache=True)
def _parse(text: U1, start: I8, rows: I8, powers: F8, values: F8, odd: Bool) -> None:
    for k in range(rows.size):
        i = start[rows[k], 0]
        stop = start[rows[k], 1] - 1
        while i < stop and text[i] == _BLANK:
            i += 1
        while i < stop and text[stop - 1] == _BLANK:
            stop -= 1
        if i == stop:
            values[k] = np.nan
            continue
        negative = text[i] == _MINUS
        if text[i] in (_MINUS, _PLUS):
            i += 1
        mantissa = np.int64(0)
        digits = 0
        scale = 0
        seen = False
        point = False
        while i < stop:
            c = text[i]
            if _ZERO <= c <= _NINE:
                seen = True
                mantissa = mantissa * 10 + (c - _ZERO)
                if mantissa > 0:
                    digits += 1
                if point:
                    scale -= 1
                if digits > _DIGITS:
                    break
            elif c == _POINT and not point:
                point = True
            else:
                break
            i += 1
        if seen and i < stop and digits <= _DIGITS and text[i] in (_E, _SMALL_E):
            i += 1
            exponent_negative = i < stop and text[i] == _MINUS
            if i < stop and text[i] in (_MINUS, _PLUS):
                i += 1
            exponent = 0
            seen = False
            while i < stop and _ZERO <= text[i] <= _NINE and exponent < 1000:
                exponent = exponent * 10 + (text[i] - _ZERO)
                seen = True
                i += 1
            scale += -exponent if exponent_negative else exponent
        if not seen or i < stop or not -22 <= scale <= 22:
            odd[k] = True
            values[k] = np.nan
            continue
        value = float(mantissa)
        value = value / powers[-scale] if scale < 0 else value * powers[scale]
        values[k] = -value if negative else value
