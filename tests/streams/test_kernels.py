"""Kernels take records and named groups of columns, not twenty arrays."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from where import ROOT

MOST = 8
ROOMS = ("streams", "detectors", "evaluation", "benchmarks")


def too_wide(source: str) -> Iterator[str]:
    """Kernels of this source that take more than MOST arguments."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and any("njit" in ast.unparse(d) for d in node.decorator_list):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            if len(arguments) > MOST:
                yield f"{node.name} takes {len(arguments)}"


def test_no_kernel_takes_more_arguments_than_a_reader_can_hold():
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    found = {str(path.relative_to(ROOT)): list(too_wide(path.read_text())) for path in files}
    assert {path: wide for path, wide in found.items() if wide} == {}
    assert sum("@njit" in path.read_text() for path in files) > 30


def test_a_wide_kernel_is_noticed():
    wide = "@njit(cache=True)\ndef f(a, b, c, d, e, f, g, h, i): ..."
    assert list(too_wide(wide)) == ["f takes 9"]
    assert list(too_wide(wide.replace(", i)", ")"))) == []
