"""Sorting in kernels: the same order as NumPy's, for any values, and no kernel that brings NumPy's own with it."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from watchkeeper.detectors.kernels.order import ROUNDS, median, nth, sort_by

ROOT = Path(__file__).parents[3]
# Numba compiles these again with every kernel that calls them, which takes from half a second to more than one.
DEAR = {"np.sort", "np.argsort", "np.median", "np.percentile", "np.quantile", "np.unique", "np.searchsorted", "sorted"}


# few different values, so that many are equal
@given(arrays(np.float64, st.integers(1, 200), elements=st.integers(-20, 20).map(float)))
def test_the_order_is_that_of_a_stable_sort(values: np.ndarray) -> None:
    keys, rows = values.copy(), np.arange(values.size)
    sort_by(keys, rows)
    assert rows.tolist() == np.argsort(values, kind="stable").tolist()
    assert keys.tolist() == np.sort(values).tolist()


@given(arrays(np.float64, st.integers(1, 200), elements=st.integers(-20, 20).map(float)), st.data())
def test_the_key_at_a_place_is_that_of_a_sort(values: np.ndarray, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, values.size - 1))
    keys = values.copy()
    assert nth(keys, k) == np.sort(values)[k]
    assert sorted(keys.tolist()) == np.sort(values).tolist()
    assert keys[:k].max(initial=-np.inf) <= keys[k] <= keys[k:].min()
    assert median(values.copy()) == np.median(values)


def test_keys_whose_pivots_leave_two_less_each_time_are_sorted_in_the_end() -> None:
    """The pattern that makes a median of three look at the two smallest keys again and again."""
    n = 8 * ROUNDS
    values = np.empty(n)
    values[0 : n // 2 : 2] = np.arange(1, n // 2, 2)
    values[1 : n // 2 : 2] = np.arange(n // 2 + 1, n, 2)
    values[n // 2 :] = np.arange(2, n + 2, 2)
    assert [nth(values.copy(), k) for k in range(n)] == np.sort(values).tolist()


@given(arrays(np.float64, st.integers(1, 50), elements=st.floats(allow_nan=False)))
def test_any_numbers_are_sorted(values: np.ndarray) -> None:
    keys = values.copy()
    sort_by(keys, np.arange(values.size))
    assert keys.tolist() == np.sort(values).tolist()


def test_no_kernel_of_the_daemon_brings_what_takes_long_to_compile() -> None:
    found = []
    for path in [*ROOT.glob("detectors/**/*.py"), *ROOT.glob("streams/*.py"), *ROOT.glob("streams/codec/*.py")]:
        for kernel in _kernels(ast.parse(path.read_text())):
            dear = {ast.unparse(node.func) for node in ast.walk(kernel) if isinstance(node, ast.Call)} & DEAR
            dear |= {"copy of a slice" for node in ast.walk(kernel) if _copies_a_slice(node)}
            dear |= {"set" for node in ast.walk(kernel) if isinstance(node, ast.Set)}
            found += [f"{path.relative_to(ROOT)}: {kernel.name}: {what}" for what in dear]
    assert not found


def _kernels(tree: ast.Module) -> list[ast.FunctionDef]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [f for f in functions if any("njit" in ast.unparse(d) for d in f.decorator_list)]


def _copies_a_slice(node: ast.AST) -> bool:
    """`a[:, 0] = b[:, 1]`: with it comes the text of an error about shapes, and all that makes text."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Subscript):
        return False
    return any(isinstance(part, ast.Slice) for part in ast.walk(node.value.slice))
