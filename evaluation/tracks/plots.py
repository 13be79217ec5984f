"""Pictures of trajectories over each other, and of what they are like together. Needs matplotlib (extra `plots`)."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from watchkeeper.evaluation.tracks.divergence import QUANTITIES, histograms, jensen_shannon, measured
from watchkeeper.evaluation.tracks.metrics import TrajectoryMetric, TrajectoryMetrics
from watchkeeper.evaluation.tracks.set import Tracks, wrapped
from watchkeeper.streams.batch import F8

REAL_COLOUR, GEN_COLOUR = "#0072b2", "#d55e00"
PANELS = 6
# What the shown pairs are ordered by: it sees the whole way, and does not grow with the number of points.
ORDER = "dtw_norm"
_KM_PER_DEG = 111.195


def plot_overlays(real: Tracks, gen: Tracks, metrics: TrajectoryMetrics) -> Figure:
    """Pairs from the most alike to the least, evenly spread in rank; each in kilometres from the real origin."""
    order = np.argsort(metrics.column(ORDER), kind="stable")
    shown = order[np.unique(np.linspace(0, len(order) - 1, PANELS).round().astype(int))]
    columns = min(3, len(shown))
    rows = math.ceil(len(shown) / columns)
    figure = Figure(figsize=(3.4 * columns, 3.4 * rows + 0.5), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in panels[len(shown) :]:
        axes.set_visible(False)
    for axes, number in zip(panels, shown.tolist(), strict=False):
        metric = metrics.trajectory_metrics[number]
        _draw(axes, real.points(metric.real_traj_idx), gen.points(metric.gen_traj_idx))
        axes.set_title(_title(metric), fontsize="small")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize="small")
    count = f"{len(shown)} of {len(order):,}" if len(shown) < len(order) else f"{len(order)}"
    figure.suptitle(f"Real and generated, {count} pairs from the smallest {ORDER} to the largest", fontsize="medium")
    return figure


def plot_histograms(real: Tracks, gen: Tracks) -> Figure:
    """For each quantity the histograms that its divergence is made of, as shares of each side."""
    sides = measured(real), measured(gen)
    names = [name for name in QUANTITIES if all(name in side for side in sides)]
    figure = Figure(figsize=(3.6 * max(1, len(names)), 3.6), layout="constrained")
    for axes, name in zip(figure.subplots(1, max(1, len(names)), squeeze=False)[0], names, strict=False):
        a, b = (side[name].values for side in sides)
        edges, *counts = histograms(a, b)
        # the last bin is open: it is drawn as wide as the others, to the right of the line
        drawn = np.append(edges[:-1], 2.0 * edges[-2] - edges[-3])
        for count, colour, style, label in (
            (counts[0], REAL_COLOUR, "-", "real"),
            (counts[1], GEN_COLOUR, "--", "generated"),
        ):
            axes.stairs(count / count.sum(), drawn, color=colour, ls=style, lw=1.3, label=label)
        axes.axvline(edges[-2], color="black", lw=0.6, ls=":", label="largest real value; beyond it: one bin")
        axes.set_title(f"JSD {jensen_shannon(*counts):.3g} nats", fontsize="small")
        axes.set_xlabel(name, fontsize="small")
        axes.set_ylabel("share", fontsize="small")
        axes.tick_params(labelsize="small")
        axes.spines[["top", "right"]].set_visible(False)
    if names:
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize="small")
    return figure


def _draw(axes: Axes, real: F8, gen: F8) -> None:
    origin = real[0]
    for points, colour, style, label in ((real, REAL_COLOUR, "-", "real"), (gen, GEN_COLOUR, "--", "generated")):
        east_km, north_km = _local_km(points, origin)
        axes.plot(east_km, north_km, color=colour, ls=style, lw=1.4, label=label)
        axes.plot(east_km[-1:], north_km[-1:], color=colour, marker="s", ms=5.0, ls="none")
    axes.plot([0.0], [0.0], color="black", marker="o", ms=5.0, ls="none", label="origin (squares: ends)")
    axes.set_aspect("equal", adjustable="datalim")
    axes.grid(visible=True, lw=0.4, alpha=0.6)
    axes.set_xlabel("east [km]", fontsize="small")
    axes.set_ylabel("north [km]", fontsize="small")
    axes.tick_params(labelsize="small")


def _local_km(points: F8, origin: F8) -> tuple[F8, F8]:
    """East and north of the origin, good enough to look at; unbroken at the antimeridian."""
    lat, lon = points[:, 0] - origin[0], wrapped(points[:, 1] - origin[1])
    return lon * _KM_PER_DEG * math.cos(math.radians(float(origin[0]))), lat * _KM_PER_DEG


def _title(metric: TrajectoryMetric) -> str:
    return (
        f"real {metric.real_traj_idx}, generated {metric.gen_traj_idx}\n"
        f"Hausdorff {metric.hausdorff_km:.3g} km, DTW/n {metric.dtw_norm:.3g} km, EDR {metric.edr:.2f}"
    )
