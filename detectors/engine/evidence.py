"""The form of evidence, checked where it leaves a detector: a mistake must not surface in somebody else's code."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from numpy.typing import NDArray

from watchkeeper.detectors.base import SEVERITIES, Evidence
from watchkeeper.detectors.declaration import Declaration

# Everything that has a row for each subject, but for `a`, which says how many there are, and the numbers.
COLUMNS = ("t", "epoch", "score", "threshold", "severity", "b", "cause_bits", "news", "taken_as_normal")
# All of them in one look: most ticks have little evidence, and looking at it must not take longer than making it.
_columns = attrgetter(*COLUMNS)
FEW = 32


def check(evidence: Evidence, declaration: Declaration, high: int) -> None:
    """ValueError: evidence that the alarms cannot take, in words. `high`: slots in use."""
    if evidence.kind not in [kind.name for kind in declaration.kinds]:
        raise ValueError(f"evidence for {evidence.kind!r}, a kind that it does not declare")
    n = len(evidence)
    for name, column in zip(COLUMNS, _columns(evidence), strict=True):
        if column is not None and len(column) != n:
            raise ValueError(f"the column {name!r} has {len(column)} rows, not {n}")
    if set(map(len, evidence.numbers.values())) - {n}:
        name, column = next((name, column) for name, column in evidence.numbers.items() if len(column) != n)
        raise ValueError(f"the column {name!r} has {len(column)} rows, not {n}")
    if evidence.details and len(evidence.details) != n:
        raise ValueError(f"{len(evidence.details)} details for {n} rows")
    if not n:
        return
    if _most(evidence.severity) >= len(SEVERITIES):
        raise ValueError(f"a severity of {evidence.severity.max()}; there are {len(SEVERITIES)}")
    subjects = len(evidence.places) if declaration.subjects == "place" else high
    if declaration.subjects == "pair" and evidence.b is None:
        raise ValueError("evidence about pairs without their second vehicles")
    for column in (evidence.a, evidence.b):
        # seen without a sign, what is below zero is beyond everything
        if column is not None and not _most(column.view(f"u{column.itemsize}")) < subjects:
            raise ValueError("evidence about a subject that does not exist")


def _most(column: NDArray[Any]) -> int:
    """NumPy takes longer to begin than for a few rows."""
    return max(column.tolist()) if len(column) <= FEW else int(column.max())
