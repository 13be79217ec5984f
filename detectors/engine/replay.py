"""Replay: drives the one Pipeline from recorded logs and writes down what it says. Never looks at the wall clock.

    logs → merge by time → (chunk) → (pace) → Pipeline → alarms, trace, summary

Batches are pulled one at a time, so memory does not grow with the log and nothing runs ahead of the pipeline. The
output depends on the samples and the configuration only: not on speed, chunk size or machine.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any

import msgspec
import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.source import Source

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


class Replay:
    """One run. `on_event` and further `listeners` get each alarm event in order, `trace` a line per pair and tick."""

    def __init__(self, config: Config, on_event: Callable[[AlarmEvent], None], trace: IO[bytes] | None = None) -> None:
        self.pipeline = Pipeline(config, on_evidence=self._tick)
        self.events: Counter[tuple[str, str]] = Counter()
        self.t_first, self.t_last = math.inf, -math.inf
        self.listeners = [on_event]
        self._trace = trace

    def run(self, batches: Iterable[Batch]) -> None:
        """Put everything through the pipeline, to the end."""
        for batch in batches:
            self.feed(batch)
        self.finish()

    def feed(self, batch: Batch) -> None:
        """One batch."""
        self._emit(self.pipeline.feed(batch))

    def finish(self) -> None:
        """The logs have ended."""
        self._emit(self.pipeline.finish())

    def _emit(self, events: list[AlarmEvent]) -> None:
        for event in events:
            self.events[event.kind, event.state] += 1
            for listener in self.listeners:
                listener(event)

    def _tick(self, window: Window, evidence: list[Evidence]) -> None:
        for samples in window.samples.values():
            self.t_first = min(self.t_first, float(samples.t.min()))
            self.t_last = max(self.t_last, float(samples.t.max()))
        if self._trace is not None:
            for found in evidence:
                if found.kind == "conflict":
                    self._trace.writelines(trace_lines(found, window.t, self.pipeline.fleet.ids))

    def summary(self, sources: Sequence[Source]) -> dict[str, Any]:
        """What went in, what was refused and what came out, ready for JSON."""
        pipeline = self.pipeline
        spanned = self.t_first <= self.t_last
        infos = [source.info() for source in sources]
        # who is expected, and what became of them: only where somebody is
        network = {}
        if pipeline.fleet.declared.any and pipeline.incidents is not None:
            network["topology"] = pipeline.incidents.network.listing(pipeline.watermark)
        return {
            "inputs": [
                {"path": str(i.path), "format": i.format, "bad_rows": i.bad_rows, "problems": i.problems} for i in infos
            ],
            "detectors": sorted(detector.declaration.name for detector in pipeline.detectors),
            "samples": dict(sorted(pipeline.samples.items())),
            "drops": _nested(pipeline.drops),
            "alarms": _nested(self.events),
            "active": len(pipeline.active),
            "span": {
                "t_first": self.t_first if spanned else None,
                "t_last": self.t_last if spanned else None,
                "seconds": round(self.t_last - self.t_first, TRACE_DIGITS) if spanned else 0.0,
            },
            "ticks": pipeline.ticks,
            **network,
        }


def _nested(counts: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for (outer, inner), n in sorted(counts.items()):
        nested.setdefault(outer, {})[inner] = n
    return nested


_encode = msgspec.json.Encoder().encode


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
