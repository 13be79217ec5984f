"""Pictures of paired differences. Needs matplotlib (extra `plots`)."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from watchkeeper.evaluation.paired.models import Comparison
from watchkeeper.evaluation.paired.result import PairedResult
from watchkeeper.streams.batch import F8

FIRST_COLOUR, SECOND_COLOUR = "#0072b2", "#d55e00"
BINS = 40


def plot_differences(comparison: Comparison) -> Figure:
    """For each metric a histogram of the differences, coloured by who is nearer, and the mean with its interval."""
    results = comparison.results
    figure = Figure(figsize=(4.0 * len(results), 3.9), layout="constrained")
    for axes, result in zip(figure.subplots(1, len(results), squeeze=False)[0], results, strict=True):
        a, b = comparison.values[result.metric_name]
        _draw(axes, result, a - b)
    first, second = comparison.names
    figure.suptitle(f"{first} minus {second}, pair by pair", fontsize="medium")
    return figure


def _draw(axes: Axes, result: PairedResult, difference: F8) -> None:
    finite = difference[np.isfinite(difference)]
    # an edge of the bins at 0, so that no bar stands on both sides
    reach = float(np.abs(finite).max(initial=0.0)) or 1.0
    edges = np.linspace(-reach, reach, BINS + 1).tolist()
    for mine, colour, name in (
        (finite[finite < 0.0], FIRST_COLOUR, result.model1_name),
        (finite[finite > 0.0], SECOND_COLOUR, result.model2_name),
    ):
        axes.hist(mine, edges, color=colour, alpha=0.75, label=f"{name} nearer: {len(mine):,}")
    if equal := int((finite == 0.0).sum()):
        axes.plot([], [], ls="none", label=f"equal: {equal:,}")
    axes.axvline(0.0, color="black", lw=0.8)
    top = axes.get_ylim()[1] * 1.12
    if not math.isnan(result.ci_low):
        low, mean, high = result.ci_low, result.mean_difference, result.ci_high
        axes.errorbar(
            [mean], [top * 0.95], xerr=[[max(0.0, mean - low)], [max(0.0, high - mean)]],
            color="black", marker="D", ms=4.0, capsize=4.0, lw=1.4, label=f"mean, {100.0 * (1.0 - result.alpha):g} %",
        )  # fmt: skip
    axes.set_ylim(0.0, top)
    p_values = "not tested" if math.isnan(result.p_value) else f"p {result.p_value:.2g}, Holm {result.p_holm:.2g}"
    axes.set_title(p_values, fontsize="small")
    axes.set_xlabel(f"difference of {result.metric_name}", fontsize="small")
    axes.set_ylabel("pairs", fontsize="small")
    axes.legend(fontsize="x-small")
    axes.tick_params(labelsize="small")
    axes.spines[["top", "right"]].set_visible(False)
