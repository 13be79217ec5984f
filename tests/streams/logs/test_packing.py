"""Packed columns: every bit comes back, whatever the numbers are; numbers as sensors give them take few bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from watchkeeper.streams.logs.packing import (
    BINARY,
    CONSTANT,
    DECIMAL,
    RAW,
    SCALED,
    SINGLE,
    Arrays,
    Code,
    pack,
    pack_whole,
    unpack,
    unpack_whole,
)

RNG = np.random.default_rng(3)
# NaN with other bits than usual, the smallest number, and one that overflows when it is scaled
WILD = np.array([0x7FF8_0000_0000_0001, 1, 0x7FE0_0000_0000_0000], np.int64).view(np.float64)


def back(code: Code, arrays: list[bytes], n: int) -> NDArray[np.float64]:
    assert all(len(array) % 8 == 0 for array in arrays)
    out = np.empty(n)
    unpack(code, Arrays(memoryview(b"".join(arrays))), out)
    return out


def assert_same(column: NDArray[np.float64]) -> tuple[Code, float]:
    code, arrays = pack(column)
    found = back(code, arrays, len(column))
    np.testing.assert_array_equal(found.view(np.int64), np.ascontiguousarray(column).view(np.int64))
    return code, sum(map(len, arrays)) / max(len(column), 1)


def decimals(digits: int) -> st.SearchStrategy[float]:
    return st.integers(-(10**7), 10**7).map(lambda whole: whole / 10**digits)


@given(
    st.one_of(
        hnp.arrays(np.float64, st.integers(0, 200)),
        hnp.arrays(np.float64, st.integers(0, 300), elements=decimals(4)),
        hnp.arrays(np.float64, st.integers(0, 300), elements=st.one_of(decimals(2), st.just(np.nan))),
        hnp.arrays(np.float64, st.integers(0, 300), elements=st.integers(0, 2**62).map(float)),
    )
)
@example(np.array([]))
@example(np.array([-0.0, 0.0]))
@example(np.array([1.5, -0.0, *np.arange(200.0)]))
@example(np.array([np.inf, *np.arange(100.0), -np.inf]))
@example(np.array([*np.arange(100.0), np.nan, *WILD]))
@example(np.array([*WILD, *np.full(300, 0.25)]))
@example(np.array([np.nan, 255.0, 0.0]))
def test_every_bit_comes_back(column: NDArray[np.float64]) -> None:
    assert_same(column)


@pytest.mark.parametrize(
    ("form", "at_most", "column"),
    [
        (CONSTANT, 0, np.full(5000, -0.0)),
        (DECIMAL, 2, np.round(RNG.normal(0, 0.3, 5000), 4)),
        (DECIMAL, 3, np.round(RNG.normal(-9.8, 2.0, 5000), 4)),
        # a few that do not fit, as text has them
        (DECIMAL, 2.3, np.where(np.arange(5000) % 100 == 0, -0.0, np.round(RNG.normal(0, 0.3, 5000), 4))),
        (DECIMAL, 2, np.where(np.arange(5000) % 3 == 0, np.nan, np.round(RNG.normal(0, 0.3, 5000), 4))),
        # times of a log, with the jitter of a receiver
        (DECIMAL, 2, np.round(np.arange(5000) * 0.02 + RNG.normal(0, 0.001, 5000), 4)),
        # longitudes of PX4
        (SCALED, 3, np.cumsum(RNG.integers(-90, 90, 5000)) * 1e-7 + 0.0),
        # the same times in our era
        (BINARY, 3, 1.7e9 + np.arange(5000) * 0.02 + RNG.normal(0, 0.001, 5000)),
        (SINGLE, 4, RNG.normal(0, 1, 5000).astype(np.float32).astype(np.float64)),
        (RAW, 8, RNG.normal(0, 1, 5000)),
    ],
)
def test_numbers_as_they_come_take_few_bytes(form: int, at_most: float, column: NDArray[np.float64]) -> None:
    code, size = assert_same(column)
    assert code.form == form
    assert size <= at_most + 0.01


@given(hnp.arrays(np.int64, st.integers(0, 300), elements=st.integers(-(2**40), 2**40)))
@example(np.arange(8192))
def test_whole_numbers_come_back(column: NDArray[np.int64]) -> None:
    for dtype in (np.int64, np.int32):
        numbers: NDArray[Any] = column.astype(dtype)
        code, arrays = pack_whole(numbers)
        out = np.empty_like(numbers)
        unpack_whole(code, Arrays(memoryview(b"".join(arrays))), out)
        np.testing.assert_array_equal(out, numbers)


@pytest.mark.parametrize(
    "code", [Code(9), Code(DECIMAL, width=7), Code(DECIMAL, width=2, digits=99), Code(SINGLE), Code(DECIMAL, width=3)]
)
def test_a_code_that_makes_no_sense_is_refused(code: Code) -> None:
    with pytest.raises(ValueError, match=r"not known|buffer"):
        unpack(code, Arrays(memoryview(bytes(8))), np.empty(100))
