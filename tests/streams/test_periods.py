"""Multiples of a period at any time since 1970; and no part of the program compares times by a tolerance of its own."""

from __future__ import annotations

import ast
import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.streams.periods import periods_over, periods_until

ROOT = Path(__file__).parents[2]
FOLDERS = ("config", "streams", "detectors", "daemon", "evaluation")
periods = st.sampled_from([0.01, 0.1, 0.25, 0.3, 1.0, 1.00001, 2.5, 3.3, 7.0, 10.0, 60.0])
starts = st.sampled_from([0.0, 1e5, 1_700_000_000.0, 4_000_000_000.0])
counts = st.integers(0, 100_000)


@given(starts, counts, periods, st.integers(-3, 3))
def test_a_multiple_is_one_up_to_rounding(start, count, period_s, bits):
    k = int(start / period_s) + count
    t = k * period_s
    for _ in range(abs(bits)):
        t = math.nextafter(t, math.inf if bits > 0 else -math.inf)
    assert periods_over(t, period_s) == periods_until(t, period_s) == k


@given(starts, counts, periods, st.integers(0, 1000))
def test_a_sum_of_ticks_is_one_too(start, count, tick_s, more):
    # a time that was reached from another one, and not multiplied out
    k = int(start / tick_s) + count
    assert periods_over(k * tick_s + more * tick_s, tick_s) == k + more


@given(starts, counts, periods, st.floats(0.001, 0.999))
def test_between_multiples_nothing_is_rounded(start, count, period_s, share):
    k = int(start / period_s) + count
    t = (k + share) * period_s
    exact = Fraction(t) / Fraction(period_s)
    assert periods_over(t, period_s) == math.floor(exact) == k
    assert periods_until(t, period_s) == math.ceil(exact) == k + 1


def problems(source: str) -> list[str]:
    """Tolerances that depend on how long ago 1970 is: relative ones, and a small number next to a rounded quotient."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("isclose", "allclose") and not any(
            word.arg in ("rel_tol", "rtol") and isinstance(word.value, ast.Constant) and word.value.value == 0
            for word in node.keywords
        ):
            found.append(f"line {node.lineno}: {name} with a relative tolerance")
        if name in ("floor", "ceil") and _nudged(node.args[0]):
            found.append(f"line {node.lineno}: {name} of a quotient and a small number: streams/periods.py")
    return found


def _nudged(node: ast.expr) -> bool:
    parts = list(ast.walk(node))
    small = any(
        isinstance(part, ast.BinOp)
        and isinstance(part.op, (ast.Add, ast.Sub))
        and any(isinstance(side, ast.Constant) and 0.0 < abs(side.value) < 1e-2 for side in (part.left, part.right))
        for part in parts
    )
    return small and any(isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Div, ast.FloorDiv)) for part in parts)


def test_no_tolerance_depends_on_how_long_ago_1970_is():
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(files) > 300
    found = {str(path.relative_to(ROOT)): problems(path.read_text()) for path in files}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("math.isclose(end_t, t)", True),
        ("np.allclose(a, b, atol=1e-9)", True),
        ("isclose(end_t, t, rel_tol=1e-12)", True),
        ("math.isclose(end_t, t, rel_tol=0.0, abs_tol=1e-6)", False),
        ("np.allclose(a, b, rtol=0, atol=1e-9)", False),
        ("math.floor(t / step_s + 1e-6)", True),
        ("int(np.ceil((t - 1e-6) / step_s))", True),
        ("math.ceil(k * step_s / tick_s - 1e-4)", True),
        ("math.floor(seconds / step_s + 0.5)", False),
        ("math.ceil(t / tick_s)", False),
        ("math.ceil(s * rate_hz - 1e-9)", False),
    ],
)
def test_the_search_finds_what_it_should(line, wrong):
    assert bool(problems(line)) == wrong
