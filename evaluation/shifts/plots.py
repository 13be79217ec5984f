"""Pictures of shifts (extra `plots`): what they changed, how far tracks moved, and the tracks of one pair."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from watchkeeper.evaluation.conflicts.direction import BETTER
from watchkeeper.evaluation.shifts.api import Shifts
from watchkeeper.evaluation.shifts.effects import Effect
from watchkeeper.evaluation.shifts.flown import Pair, ShiftKey

# Distinguishable in grey and with any colour vision.
_SHIFTED, _OTHER, _BASELINE, _SEED = "#d55e00", "#0072b2", "#0072b2", "#999999"
_COLOUR = {True: "#d55e00", False: "#009e73", None: "#444444"}
_PANELS_A_ROW = 4


def effects_figure(result: Shifts) -> Figure:
    """A panel per metric: each shift's mean difference with its interval, and every seed's as a grey mark."""
    metrics = list(dict.fromkeys(effect.metric for effect in result.effects))
    names = [key.words for key in result.groups]
    columns = min(_PANELS_A_ROW, len(metrics))
    rows = math.ceil(len(metrics) / columns)
    figure = Figure(figsize=(3.0 * columns + 1.6, rows * (0.32 * len(names) + 1.1)), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for axes, metric in zip(panels, metrics, strict=False):
        for y, effect in enumerate(effect for effect in result.effects if effect.metric == metric):
            _draw_effect(axes, y, effect)
        axes.axvline(0.0, color="black", lw=0.8)
        side = f", {BETTER[metric]} is better" if metric in BETTER else ""
        axes.set_title(f"{metric}{side}", fontsize="small")
        axes.set_yticks(range(len(names)), names, fontsize="small")
        axes.tick_params(axis="x", labelsize="small")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].invert_yaxis()
    for axes in panels[len(metrics) :]:
        axes.set_visible(False)
    level = f"{100.0 * (1.0 - result.alpha):g} %"
    figure.suptitle(
        f"Shifted minus baseline of the same seed: mean and {level} interval; filled: significant after Holm",
        fontsize="medium",
    )
    return figure


def _draw_effect(axes: Any, y: int, effect: Effect) -> None:
    r, seeds = effect.tested, np.array(list(effect.differences.values()), np.float64)
    seeds = seeds[np.isfinite(seeds)]
    axes.plot(seeds, np.full(len(seeds), y + 0.22), ls="none", marker="|", ms=5, color=_SEED, alpha=0.7)
    if math.isnan(r.mean_difference):
        return
    colour = _COLOUR[effect.worse]
    if not math.isnan(r.ci_low):
        axes.plot((r.ci_low, r.ci_high), (y, y), color=colour, lw=2.0)
    axes.plot(r.mean_difference, y, "o", ms=5.5, mec=colour, mfc=colour if r.significant_holm else "white")


def tracks_figure(result: Shifts) -> Figure:
    """DTW per point of every seed, by shift: of the shifted agent, the same less its own shift, and of the others."""
    keys = list(result.groups)
    figure = Figure(figsize=(8.0, 0.42 * len(keys) + 1.6), layout="constrained")
    axes: Any = figure.subplots()
    series = (
        ("shifted aircraft", -0.2, _SHIFTED, "o", "dtw_per_point_m", True),
        ("the same, less its own shift", 0.0, _SHIFTED, "x", "dtw_per_point_less_own_m", True),
        ("all others", 0.2, _OTHER, ".", "dtw_per_point_m", False),
    )
    for label, off, colour, marker, figure_name, target in series:
        points = [
            (getattr(row, figure_name), keys.index(ShiftKey(row.target_agent, row.shift_type, row.shift_value)) + off)
            for row in result.deviations
            if row.is_target == target
        ]
        x, y = zip(*points, strict=True) if points else ((), ())
        axes.plot(x, y, ls="none", marker=marker, ms=5, color=colour, alpha=0.6, label=label)
    # zero is a distance too: straight up to a metre, by powers of ten from there on
    axes.set_xscale("symlog", linthresh=1.0)
    axes.set_xlim(left=-0.2)
    axes.set_yticks(range(len(keys)), [key.words for key in keys], fontsize="small")
    axes.invert_yaxis()
    axes.set_xlabel("DTW between shifted and baseline track, metres per point")
    axes.grid(visible=True, axis="x", lw=0.4, alpha=0.6)
    axes.legend(frameon=False, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def pair_figure(key: ShiftKey, pair: Pair) -> Figure:
    """The tracks of one shifted episode over those of its baseline, near the shifted agent."""
    shifted, baseline = pair
    figure = Figure(figsize=(6.0, 4.6), layout="constrained")
    axes: Any = figure.subplots()
    for flown, colour, style, word in ((baseline, _BASELINE, "-", "baseline"), (shifted, _SHIFTED, "--", "shifted")):
        for k, agent in enumerate(flown.ids):
            own = agent == key.agent
            label = f"{agent}, {word}" if own else None
            axes.plot(flown.lon[:, k], flown.lat[:, k], style, color=colour, lw=2.2 if own else 1.0, label=label)
    lat, lon = (
        np.concatenate([values[:, flown.ids.index(key.agent)] for flown, values in sides])
        for sides in (
            ((baseline, baseline.lat), (shifted, shifted.lat)),
            ((baseline, baseline.lon), (shifted, shifted.lon)),
        )
    )
    reach = 0.6 * max(float(np.nanmax(lat) - np.nanmin(lat)), float(np.nanmax(lon) - np.nanmin(lon)), 0.05)
    middle = float(np.nanmean(lat)), float(np.nanmean(lon))
    axes.set_xlim(middle[1] - 1.4 * reach, middle[1] + 1.4 * reach)
    axes.set_ylim(middle[0] - reach, middle[0] + reach)
    axes.set_aspect(1.0 / max(0.01, math.cos(math.radians(middle[0]))), adjustable="box")
    axes.set_xlabel("longitude [deg]")
    axes.set_ylabel("latitude [deg]")
    axes.set_title(f"{key.words}, seed {shifted.seed}", fontsize="medium")
    axes.grid(visible=True, lw=0.4, alpha=0.6)
    axes.legend(frameon=False, fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
