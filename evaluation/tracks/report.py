"""The comparison of trajectories in tables: what was compared and what was not, metrics, rates, divergences, slices."""

from __future__ import annotations

import msgspec
import numpy as np

from watchkeeper.evaluation.tracks.divergence import Divergence, divergences, measured
from watchkeeper.evaluation.tracks.metrics import METRICS, TrajectoryMetrics
from watchkeeper.evaluation.tracks.pairs import Matching
from watchkeeper.evaluation.tracks.rates import MatchRates, match_rates
from watchkeeper.evaluation.tracks.set import Tracks
from watchkeeper.evaluation.tracks.slices import Slice, Slicing, slices_of
from watchkeeper.streams.batch import F8

NONE = "–"


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
    match_rates: MatchRates
    divergences: dict[str, Divergence]
    """Jensen-Shannon divergence of each quantity, in nats."""
    slices: list[Slice]


def summary(
    real: Tracks, gen: Tracks, matching: Matching, metrics: TrajectoryMetrics, slicing: Slicing | None = None
) -> Summary:
    """All together."""
    n = len(matching.pairs)
    quantities = measured(real), measured(gen)
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
        match_rates=match_rates(matching.ends_real, matching.ends_gen),
        divergences=divergences(*quantities),
        slices=slices_of(real, gen, matching, metrics, quantities, slicing) if slicing else [],
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
        rows.append((name, *(NONE if value is None else f"{value:.4g}" for value in cells)))
    return rows


def rates(s: Summary) -> list[tuple[str, str, str]]:
    """The match rates: name, share, how many of how many."""
    words = {
        "origin": "begin where a real one begins",
        "destination": "end where a real one ends",
        "both": "do both",
        "pair": "do both as one real trajectory does",
        "distinct_pairs": "different pairs of cells are real ones",
    }
    rows = []
    for name, what in words.items():
        rate = getattr(s.match_rates, name)
        share = NONE if rate.rate is None else f"{100.0 * rate.rate:.1f} %"
        rows.append((f"match {name}", share, f"{rate.matched:,} of {rate.total:,} {what}"))
    return rows


def divergence_rows(s: Summary) -> list[tuple[str, ...]]:
    """The divergences, a heading first."""
    rows: list[tuple[str, ...]] = [("", "JSD [nats]", "real mean", "gen mean", "real n", "gen n")]
    for name, d in s.divergences.items():
        figures = (NONE if value is None else f"{value:.4g}" for value in (d.jsd, d.real_mean, d.gen_mean))
        rows.append((name, *figures, f"{d.real_values:,}", f"{d.gen_values:,}"))
    return rows


def slice_rows(s: Summary, by: str) -> list[tuple[str, ...]]:
    """What is known of each slice by time or by place, a heading first."""
    metrics = ("hausdorff_norm", "dtw_norm", "edr")
    quantities = [name for name in ("distance_km", "step_min", "radius_km") if name in s.divergences]
    heads = (f"by {by}", "real", "gen", "compared", "pair", *metrics, *(f"JSD {name}" for name in quantities))
    rows: list[tuple[str, ...]] = [heads]
    for k in s.slices:
        if k.by == by:
            share = NONE if k.match_rates.pair.rate is None else f"{100.0 * k.match_rates.pair.rate:.1f} %"
            figures = [k.metrics.get(name) for name in metrics] + [k.divergences[name].jsd for name in quantities]
            cells = (NONE if value is None else f"{value:.4g}" for value in figures)
            rows.append((k.name, f"{k.real:,}", f"{k.generated:,}", f"{k.comparisons:,}", share, *cells))
    return rows


def table(s: Summary) -> str:
    """The figures for people."""
    lines = [f"{name:20}{number:>10}   {remark}" for name, number, remark in (*counts(s), *rates(s))]
    tables = [(12, spreads(s))] * bool(s.metrics) + [(12, divergence_rows(s))] * bool(s.divergences)
    tables += [(8, slice_rows(s, by)) for by in dict.fromkeys(k.by for k in s.slices)]
    for least, rows in tables:
        widths = [max(least, *(len(cell) + 2 for cell in column)) for column in list(zip(*rows, strict=True))[1:]]
        lines.append("")
        for name, *cells in rows:
            lines.append(f"{name:20}" + "".join(f"{cell:>{w}}" for cell, w in zip(cells, widths, strict=True)))
    return "\n".join(lines)
