"""The comparison of trajectories in two tables: what was compared and what was not, and the metrics over all pairs."""

from __future__ import annotations

import msgspec
import numpy as np

from watchkeeper.evaluation.tracks.metrics import METRICS, TrajectoryMetrics
from watchkeeper.evaluation.tracks.pairs import Matching
from watchkeeper.evaluation.tracks.set import Tracks
from watchkeeper.streams.batch import F8


class Spread(msgspec.Struct, frozen=True):
    """One metric over all comparisons. `std` has n - 1 below it and is None for a single one."""

    mean: float
    std: float | None
    min: float
    median: float
    p90: float
    max: float


class Summary(msgspec.Struct, frozen=True):
    """The figures over all comparisons, as they go to results.json."""

    real_trajectories: int
    gen_trajectories: int
    dropped_real: int
    dropped_gen: int
    clamped_gen: int
    unmatched_real: int
    unmatched_gen: int
    comparisons: int
    od_pairs: int
    grid_width: int
    grid_height: int
    metrics: dict[str, Spread]


def summary(real: Tracks, gen: Tracks, matching: Matching, metrics: TrajectoryMetrics) -> Summary:
    """All together."""
    n = len(matching.pairs)
    return Summary(
        real_trajectories=len(real),
        gen_trajectories=len(gen),
        dropped_real=matching.dropped_real,
        dropped_gen=matching.dropped_gen,
        clamped_gen=matching.clamped_gen,
        unmatched_real=len(real) - matching.dropped_real - n,
        unmatched_gen=len(gen) - matching.dropped_gen - n,
        comparisons=n,
        od_pairs=len(np.unique(matching.od, axis=0)),
        grid_width=matching.grid.width,
        grid_height=matching.grid.height,
        metrics={name: _spread(metrics.column(name)) for name in METRICS} if n else {},
    )


def _spread(values: F8) -> Spread:
    return Spread(
        mean=float(values.mean()),
        std=float(values.std(ddof=1)) if len(values) > 1 else None,
        min=float(values.min()),
        median=float(np.median(values)),
        p90=float(np.percentile(values, 90)),
        max=float(values.max()),
    )


def counts(s: Summary) -> list[tuple[str, str, str]]:
    """What was compared and what was not: name, number, remark."""
    rows = [
        ("real trajectories", s.real_trajectories, f"{s.dropped_real:,} dropped (fewer than 2 points)"),
        ("generated", s.gen_trajectories, f"{s.dropped_gen:,} dropped; {s.clamped_gen:,} with an end outside the grid"),
        ("comparisons", s.comparisons, f"{s.od_pairs:,} origins and destinations"),
        ("not compared", s.unmatched_real, f"real; {s.unmatched_gen:,} generated: no partner in the same cells"),
    ]
    return [(name, f"{n:,}", remark) for name, n, remark in rows]


def spreads(s: Summary) -> list[tuple[str, ...]]:
    """The metrics over all comparisons, a heading first."""
    heads = Spread.__struct_fields__
    rows: list[tuple[str, ...]] = [("", *heads)]
    for name, spread in s.metrics.items():
        cells = (getattr(spread, head) for head in heads)
        rows.append((name, *("–" if value is None else f"{value:.4g}" for value in cells)))
    return rows


def table(s: Summary) -> str:
    """The figures for people."""
    lines = [f"{name:20}{number:>10}   {remark}" for name, number, remark in counts(s)]
    if s.metrics:
        lines += ["", *(f"{name:20}" + "".join(f"{cell:>12}" for cell in cells) for name, *cells in spreads(s))]
    return "\n".join(lines)
