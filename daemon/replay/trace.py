"""The `--trace` of `replay`: one line per conflicting pair per tick, before debouncing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

import msgspec
import numpy as np

from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.engine.pipeline import Pipeline

# Digits after the point in a trace: a micrometre and a microsecond, so that rounding never decides a comparison.
TRACE_DIGITS = 6


class TraceLine(msgspec.Struct):
    """One conflicting pair at one tick, before debouncing; the fields of a line of `--trace`, in order."""

    t: float
    a: str
    b: str
    tcpa_s: float
    dcpa_nm: float
    dcpa_m: float
    vsep_ft: float
    sep_nm: float
    los: bool


_NUMBERS = TraceLine.__struct_fields__[3:-1]
_encode = msgspec.json.Encoder().encode


class Trace:
    """Writes the lines of every tick; a watcher of a Replay."""

    def __init__(self, file: IO[bytes], pipeline: Pipeline) -> None:
        self._file = file
        self._pipeline = pipeline

    def __call__(self, window: Window, evidence: list[Evidence]) -> None:
        """One tick."""
        for found in evidence:
            if found.kind == "conflict":
                self._file.writelines(trace_lines(found, window.t, self._pipeline.fleet.ids))


def trace_lines(evidence: Evidence, t: float, ids: Sequence[str]) -> Iterator[bytes]:
    """The conflicting pairs in one tick's evidence, a < b, sorted."""
    if evidence.b is None:
        return
    rows = np.flatnonzero(evidence.score >= evidence.threshold)
    columns = [np.round(evidence.numbers[name][rows], TRACE_DIGITS).tolist() for name in _NUMBERS]
    los = (evidence.numbers["los"][rows] > 0.0).tolist()
    pairs = zip(evidence.a[rows].tolist(), evidence.b[rows].tolist(), strict=True)
    names = [sorted((ids[a], ids[b])) for a, b in pairs]
    at = round(t, TRACE_DIGITS)
    for (a, b), tcpa_s, dcpa_nm, dcpa_m, vsep_ft, sep_nm, lost in sorted(zip(names, *columns, los, strict=True)):
        yield _encode(TraceLine(at, a, b, tcpa_s, dcpa_nm, dcpa_m, vsep_ft, sep_nm, lost)) + b"\n"
