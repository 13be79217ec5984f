"""What a worker can say of itself: who is judged, what is in trouble, what it has used."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import msgspec

from watchkeeper.detectors.engine.pipeline import Pipeline


class Figures(msgspec.Struct, frozen=True):
    """Of one operator. `tallies`: coverage by detector (detectors/coverage/table.py); `drops` are repeated samples."""

    name: str
    detectors: list[str]
    tallies: dict[str, dict[str, Any]]
    troubles: list[str]
    warnings: list[str]
    vehicles: int
    ticks: int
    drops: list[tuple[str, str, int]]
    cpu_s: float = 0.0
    peak_mb: float = 0.0


def figures_of(pipeline: Pipeline) -> Figures:
    """Of one pipeline or part of one."""
    guard = pipeline.guard
    return Figures(
        pipeline.part.name,
        sorted(detector.declaration.name for detector in pipeline.detectors),
        {name: asdict(tally) for name, tally in guard.coverage.tallies().items()} if pipeline.part.covers else {},
        guard.troubles(),
        guard.warnings(),
        len(pipeline.fleet),
        pipeline.ticks,
        [(kind, reason, n) for (kind, reason), n in pipeline.drops.items()],
    )
