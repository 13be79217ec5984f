"""The comparison of trajectories as one HTML page: the figures, pictures of some pairs, a table of the least alike."""

from __future__ import annotations

from pathlib import Path

from watchkeeper.evaluation.shared.html import Picture, Table, Text, svg_of, write_page
from watchkeeper.evaluation.tracks.metrics import METRICS, TrajectoryMetrics
from watchkeeper.evaluation.tracks.plots import ORDER, plot_histograms, plot_overlays
from watchkeeper.evaluation.tracks.report import Summary, counts, divergence_rows, rates, slice_rows, spreads
from watchkeeper.evaluation.tracks.set import Tracks

LISTED = 50


def write_report(path: Path, real: Tracks, gen: Tracks, metrics: TrajectoryMetrics, summary: Summary) -> None:
    """Write the page."""
    m = metrics.metadata
    head, *rows = spreads(summary)
    divergence_head, *divergence_cells = divergence_rows(summary)
    slices = []
    for by in dict.fromkeys(k.by for k in summary.slices):
        slice_head, *slice_cells = slice_rows(summary, by)
        slices.append(Table(f"by {by}; metrics are means", slice_head, slice_cells))
    worst = sorted(metrics.trajectory_metrics, key=lambda metric: -getattr(metric, ORDER))[:LISTED]
    columns = ("real", "generated", "points", *METRICS)
    listed = [
        [
            f"{k.real_traj_idx} {real.names[k.real_traj_idx]}",
            f"{k.gen_traj_idx} {gen.names[k.gen_traj_idx]}",
            f"{k.len_real}, {k.len_gen}",
            *(f"{getattr(k, name):.4g}" for name in METRICS),
        ]
        for k in worst
    ]
    parts: list[Text | Table | Picture] = [
        Text(
            f"Generated trajectories ({m.generated_file}) compared with real ones ({m.real_data_file}) of the same "
            f"origin and destination, in cells of {m.grid_size:g} degrees. Distances are haversine ones; normalised is "
            f"over the mean number of points; EDR matches points nearer than {m.edr_eps:g} m. Less is more alike."
        ),
        Table("compared", ("", "number", ""), counts(summary)),
        Table("match rates", ("", "share", ""), rates(summary)),
        Table("metrics over all comparisons", head, rows),
        Table("Jensen-Shannon divergence, base e: 0 alike, 0.693 nothing in common", divergence_head, divergence_cells),
        Picture("what the divergences are made of", svg_of(plot_histograms(real, gen), "histograms")),
        *slices,
        Picture(f"pairs from the smallest {ORDER} to the largest", svg_of(plot_overlays(real, gen, metrics), "tracks")),
        Table(f"the {len(listed)} least alike by {ORDER}; the first number is that in the file", columns, listed),
    ]
    write_page(path, "Trajectories: generated and real", parts)
