"""Columns of numbers in few bytes, exactly: a sensor's numbers have few digits, though each takes 8 bytes in memory.

    CONSTANT   all have the same bits: they are in the code itself
    DECIMAL    whole numbers over a power of ten, as text has them (0.0317 is 317 / 10^4)
    SCALED     whole numbers times a negative power of ten, as converted from integers (473977418 * 1e-7)
    BINARY     whole numbers over a power of two: times of one era, whatever their digits
    SINGLE     single precision, as autopilots log
    TABLE      at most 256 different numbers: the numbers, and which of them each is (names of signals)
    RAW        double precision

The whole numbers of DECIMAL, SCALED and BINARY are counted from the smallest and written in as many bytes as the
largest needs: first the low parts of all of them, then the high parts. Where that is shorter, the differences between
neighbours are (times grow evenly). A few numbers that do not fit the rest (-0.0 among them) follow with their places;
NaN has the largest number that the bytes can hold. Every array is filled up to a multiple of 8 bytes.

General compressors were measured beside this (`watchkeeper bench logs`): on most recordings they need more bytes, and
on all of them longer to read.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from watchkeeper.streams.batch import F8, I8

RAW, CONSTANT, DECIMAL, SCALED, BINARY, SINGLE, TABLE = range(7)
# Different numbers of a TABLE.
ENTRIES_MAX = 256
# 10^22 is the last power of ten that a double holds exactly; sensors end long before.
DIGITS_MAX = 9
# Wider numbers are no shorter than the doubles themselves, by much.
WIDTH_MAX = 6
# Numbers that do not fit may be one in so many; more, and the column has other digits.
ODD_SHARE = 64
# How many are looked at before all are.
PROBE = 64
# The parts of a number of so many bytes, low ones first.
_PARTS = {1: "1", 2: "2", 3: "21", 4: "4", 5: "41", 6: "42"}
_EXACT = 2**53
# Numbers of seconds, degrees or metres have 22 binary digits behind the point or less than twice as many.
BITS_MAX = 50


class Code(msgspec.Struct, array_like=True):
    """How a column is written. `least` is the smallest of its whole numbers, or the number of CONSTANT as bits."""

    form: int = RAW
    least: int = 0
    width: int = 0
    digits: int = 0
    first: int | None = None
    """The first whole number, when differences are written."""
    odd: int = 0
    has_nan: bool = False


# -- writing ----------------------------------------------------------------------------------------------------


def pack(column: F8) -> tuple[Code, list[bytes]]:
    """The shortest code of a column that gives back every bit of it, and its arrays."""
    column = np.ascontiguousarray(column, "<f8")
    bits = column.view("<i8")
    if (bits == bits[:1]).all():
        return Code(CONSTANT, int(bits[0]) if len(bits) else 0), []
    best = _decimal(column, bits)
    single = _single(column, bits)
    if single is not None and (best is None or _size(best[1]) > _size(single[1])):
        best = single
    if best is None or _size(best[1]) > 2 * len(column):
        table = _table(bits)
        if table is not None and (best is None or _size(best[1]) > _size(table[1])):
            best = table
    return best or (Code(), [column.tobytes()])


def _table(bits: I8) -> tuple[Code, list[bytes]] | None:
    probe = np.unique(bits[: 4 * ENTRIES_MAX])
    if len(probe) > ENTRIES_MAX or len(probe) * 2 > len(bits):
        return None
    entries, which = np.unique(bits, return_inverse=True)
    if len(entries) > ENTRIES_MAX:
        return None
    return Code(TABLE, odd=len(entries)), [entries.astype("<i8").tobytes(), _filled(which.astype("<u1"))]


def pack_whole(column: NDArray[Any]) -> tuple[Code, list[bytes]]:
    """A column of whole numbers (DECIMAL without digits)."""
    numbers = column.astype("<i8")
    if (numbers == numbers[:1]).all():
        return Code(CONSTANT, int(numbers[0]) if len(numbers) else 0), []
    found = _whole(numbers, None, DECIMAL, 0)
    return found or (Code(), [numbers.tobytes()])


def _single(column: F8, bits: I8) -> tuple[Code, list[bytes]] | None:
    with np.errstate(over="ignore", invalid="ignore"):
        single = column.astype("<f4")
    same = (single.astype("<f8").view("<i8") == bits).all()
    return (Code(SINGLE), [_filled(single)]) if same else None


def _decimal(column: F8, bits: I8) -> tuple[Code, list[bytes]] | None:
    nan = np.isnan(column)
    has_nan = bool(nan.any())
    if has_nan and (bits[nan] != np.array(np.nan).view("<i8")).any():
        return None
    some = column[~nan] if has_nan else column
    probe = some[:: max(len(some) // PROBE, 1)]
    bits_behind = 53 - int(np.frexp(np.abs(probe).max())[1])
    tries = [
        *((DECIMAL, digits) for digits in range(DIGITS_MAX + 1)),
        *((SCALED, digits) for digits in range(1, DIGITS_MAX + 1)),
        *([(BINARY, bits_behind)] if 0 < bits_behind <= BITS_MAX else []),
    ]
    for form, digits in tries:
        if np.count_nonzero(_misfits(probe, *_wholes(probe, form, digits))) > len(probe) // 8:
            continue
        numbers, back = _wholes(some, form, digits)
        odd = np.flatnonzero(_misfits(some, numbers, back))
        if len(odd) * ODD_SHARE <= len(some):
            return _placed(column, nan if has_nan else None, numbers, odd, form, digits)
    return None


def _wholes(some: F8, form: int, digits: int) -> tuple[F8, F8]:
    """The nearest whole numbers, and what they give back."""
    with np.errstate(all="ignore"):
        # the sum makes 0.0 of -0.0, which has no whole number
        numbers = np.rint(some * (2.0 if form == BINARY else 10.0) ** digits) + 0.0
        return numbers, _given_back(numbers.copy(), form, digits)


def _given_back(numbers: F8, form: int, digits: int) -> F8:
    """What whole numbers stand for, in their place."""
    if form == SCALED:
        numbers *= 10.0**-digits
    elif form == BINARY:
        numbers *= 2.0**-digits
    elif digits:
        numbers /= 10.0**digits
    return numbers


def _misfits(some: F8, numbers: F8, back: F8) -> NDArray[np.bool_]:
    # not a number, or too large a one, is not below the limit either
    misfits: NDArray[np.bool_] = (back.view("<i8") != some.view("<i8")) | ~(np.abs(numbers) < _EXACT)
    return misfits


def _placed(
    column: F8, nan: NDArray[np.bool_] | None, numbers: F8, odd: I8, form: int, digits: int
) -> tuple[Code, list[bytes]] | None:
    """The whole numbers in the places of a column; `numbers` are those of its entries that are not NaN."""
    if len(odd):
        numbers = numbers.copy()
        numbers[odd] = np.delete(numbers, odd)[0] if len(odd) < len(numbers) else 0.0
    whole = numbers.astype("<i8")
    places = np.flatnonzero(~nan)[odd] if nan is not None else odd
    found = _whole(whole, nan, form, digits)
    if found is None:
        return None
    code, arrays = found
    code.odd = len(odd)
    if len(odd):
        arrays += [_filled(places.astype("<u4")), column[places].tobytes()]
    return code, arrays


def _whole(some: I8, nan: NDArray[np.bool_] | None, form: int, digits: int) -> tuple[Code, list[bytes]] | None:
    """Whole numbers from the smallest on; None when they are too wide."""
    least, most = int(some.min()), int(some.max())
    code = Code(form, least, _width(most - least + (nan is not None)), digits, has_nan=nan is not None)
    above = some
    if nan is None and len(some) > 1:
        steps = np.diff(some)
        lo, hi = int(steps.min()), int(steps.max())
        if _width(hi - lo) < code.width and abs(hi) + abs(lo) < _EXACT:
            code = Code(form, lo, _width(hi - lo), digits, int(some[0]))
            above = np.concatenate([[lo], steps])
    if code.width > WIDTH_MAX:
        return None
    counted = (above - code.least).astype("<u8")
    if nan is not None:
        counted, given = np.full(len(nan), 256**code.width - 1, "<u8"), counted
        counted[~nan] = given
    arrays = []
    for size in _PARTS[code.width]:
        part = counted.astype(f"<u{size}")
        arrays.append(_filled(part))
        counted = counted >> np.uint64(8 * int(size))
    return code, arrays


def _width(most: int) -> int:
    """Bytes of the largest number, 1 at least."""
    return max((most.bit_length() + 7) // 8, 1)


def _size(arrays: list[bytes]) -> int:
    return sum(map(len, arrays))


def _filled(array: NDArray[Any]) -> bytes:
    return array.tobytes() + bytes(-array.nbytes % 8)


# -- reading ----------------------------------------------------------------------------------------------------


class Arrays:
    """The arrays of a frame, one after the other. Raises ValueError when there are too few bytes."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def take(self, dtype: str, n: int) -> NDArray[Any]:
        """The next array of n of these."""
        found: NDArray[Any] = np.frombuffer(self._data, dtype, n, self._at)
        self._at += -(-found.nbytes // 8) * 8
        return found


def unpack(code: Code, arrays: Arrays, out: F8) -> None:
    """Write the column that a code describes into an array of its length. Raises ValueError."""
    n = len(out)
    if code.form == RAW:
        out[:] = arrays.take("<f8", n)
    elif code.form == CONSTANT:
        out.view("<i8")[:] = code.least
    elif code.form == SINGLE:
        out[:] = arrays.take("<f4", n)
    elif code.form == TABLE and 0 < code.odd <= ENTRIES_MAX:
        entries = arrays.take("<f8", code.odd)
        # an index beyond the table is an IndexError, which readers take as damage
        out[:] = entries[arrays.take("<u1", n)]
    elif code.form in (DECIMAL, SCALED, BINARY) and 0 <= code.digits <= BITS_MAX:
        _numbers(code, arrays, out)
        _given_back(out, code.form, code.digits)
        if code.odd:
            places = arrays.take("<u4", code.odd)
            out[places] = arrays.take("<f8", code.odd)
    else:
        raise ValueError("numbers in a form that is not known")


def unpack_whole(code: Code, arrays: Arrays, out: NDArray[Any]) -> None:
    """The same for whole numbers. Raises ValueError."""
    if code.form == CONSTANT:
        out[:] = code.least
    elif code.form == RAW:
        out[:] = arrays.take("<i8", len(out))
    elif code.form == DECIMAL and not code.digits:
        _numbers(code, arrays, out)
    else:
        raise ValueError("numbers in a form that is not known")


def _numbers(code: Code, arrays: Arrays, out: NDArray[Any]) -> None:
    """Whole numbers; NaN where they are none. All of them are below 2^53, so sums of doubles are exact."""
    if code.width not in _PARTS:
        raise ValueError("numbers of a width that is not known")
    n = len(out)
    shift = 0
    for size in _PARTS[code.width]:
        part = arrays.take(f"<u{size}", n)
        if shift:
            out += part * out.dtype.type(1 << shift)
        else:
            out[:] = part
        shift += 8 * int(size)
    if code.first is not None:
        out += code.least
        if n:
            out[0] = code.first
        np.cumsum(out, out=out)
        return
    none = out == 256**code.width - 1 if code.has_nan else None
    out += code.least
    if none is not None:
        out[none] = np.nan
