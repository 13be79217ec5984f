"""The names in which two dicts of metrics differ; for tests that put two implementations side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping


def compare(
    first: Mapping[str, float | None], second: Mapping[str, float | None], tolerance: float = 1e-6
) -> list[str]:
    """Sorted names whose values differ, or that only one of the two has.

    None is the same as NaN. Numbers differ if they are further apart than the tolerance, and than that share of the
    larger one: sums over an episode grow with it.
    """
    return sorted(
        name
        for name in first.keys() | second.keys()
        if name not in first or name not in second or not _same(first[name], second[name], tolerance)
    )


def _same(one: float | None, other: float | None, tolerance: float) -> bool:
    one, other = (math.nan if value is None else float(value) for value in (one, other))
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
