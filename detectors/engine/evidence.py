"""The form of evidence, checked where it leaves a detector: a mistake must not surface in somebody else's code."""

from __future__ import annotations

import numpy as np

from watchkeeper.detectors.base import SEVERITIES, Evidence
from watchkeeper.detectors.declaration import Declaration


def check(evidence: Evidence, declaration: Declaration, high: int) -> None:
    """ValueError: evidence that the alarms cannot take, in words. `high`: slots in use."""
    if evidence.kind not in {kind.name for kind in declaration.kinds}:
        raise ValueError(f"evidence for {evidence.kind!r}, a kind that it does not declare")
    n = len(evidence)
    columns = {
        "t": evidence.t, "epoch": evidence.epoch, "score": evidence.score, "threshold": evidence.threshold,
        "severity": evidence.severity, "b": evidence.b, "cause_bits": evidence.cause_bits, "news": evidence.news,
        "taken_as_normal": evidence.taken_as_normal, **evidence.numbers,
    }  # fmt: skip
    for name, column in columns.items():
        if column is not None and len(column) != n:
            raise ValueError(f"the column {name!r} has {len(column)} rows, not {n}")
    if evidence.details and len(evidence.details) != n:
        raise ValueError(f"{len(evidence.details)} details for {n} rows")
    if not n:
        return
    if evidence.severity.max() >= len(SEVERITIES):
        raise ValueError(f"a severity of {evidence.severity.max()}; there are {len(SEVERITIES)}")
    subjects = len(evidence.places) if declaration.subjects == "place" else high
    if declaration.subjects == "pair" and evidence.b is None:
        raise ValueError("evidence about pairs without their second vehicles")
    for column in (evidence.a, evidence.b):
        if column is not None and not (np.min(column) >= 0 and np.max(column) < subjects):
            raise ValueError("evidence about a subject that does not exist")
