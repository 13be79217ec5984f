"""Pictures of one episode (extra `plots`): its windows with their matches, and separation over time.

Called by report.py; the animation (playback/animation.py) has both parts below its map.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from watchkeeper.detectors.kernels.windows import Window
from watchkeeper.evaluation.conflicts.findings import Findings
from watchkeeper.evaluation.conflicts.playback.scene import GHOST, MATCHED, MISSED
from watchkeeper.streams.batch import F8, Bool

# Distinguishable in grey and with any colour vision; what went wrong is hatched as well.
_MATCHED, _MISSED, _GHOST, _SIGN = "#0072b2", "#d55e00", "#e69f00", "#444444"
COLOUR_OF = {MATCHED: _MATCHED, MISSED: _MISSED, GHOST: _GHOST}
_TRUTH_Y, _ALERT_Y, _HIGH = 2.0, 0.6, 0.8
# Separation beyond a few minima says nothing; the axis ends there.
_AXIS_MINIMA = 6.0
# A legend over the axes hides nothing.
_ABOVE = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "frameon": False, "fontsize": "small"}


def episode_figure(found: Findings, separation_nm: float, title: str) -> Figure:
    """Windows above, separation below, on one time axis in seconds since the episode's first step."""
    figure = Figure(figsize=(9.0, 5.0), layout="constrained")
    windows, separation = figure.subplots(2, 1, sharex=True, height_ratios=(1.1, 1.4))
    t = found.episode.t - found.episode.t[0] if len(found.episode.t) else found.episode.t
    draw_windows(windows, found, t)
    draw_separation(separation, found, t, separation_nm)
    figure.suptitle(title, fontsize="medium")
    return figure


def draw_windows(axes: Any, found: Findings, t: F8) -> None:
    """Windows of conflicts and alerts, lines between those that are matched, and a mark per step."""
    m, s, step_s = found.matching, found.series, found.episode.step_s
    answered, used = {g for g, _ in m.pairs}, {a for _, a in m.pairs}
    for rows, y, good, wrong in ((m.truth, _TRUTH_Y, answered, _MISSED), (m.alerts, _ALERT_Y, used, _GHOST)):
        for i, window in enumerate(rows):
            hatch, colour = ("", _MATCHED) if i in good else ("///", wrong)
            span = [(window[0] * step_s, (window[1] - window[0]) * step_s)]
            axes.broken_barh(span, (y - _HIGH / 2, _HIGH), facecolors=colour, alpha=0.55, hatch=hatch, edgecolor=colour)
    for g, a in m.pairs:
        ends = _middle(m.truth[g], step_s), _middle(m.alerts[a], step_s)
        axes.plot(ends, (_TRUTH_Y - _HIGH / 2, _ALERT_Y + _HIGH / 2), color=_MATCHED, lw=1.5, marker="o", ms=4)
    for flag, y in ((s.conflict, _TRUTH_Y + 0.55), (s.acting, _ALERT_Y - 0.55)):
        _ticks(axes, t, flag, y)
    axes.set_yticks((_TRUTH_Y, _ALERT_Y), ("conflict", "alert"))
    axes.set_ylim(-0.3, 2.9)
    entries = ((_MATCHED, "", "matched"), (_MISSED, "///", "missed"), (_GHOST, "///", "ghost"))
    handles = [Patch(facecolor=c, alpha=0.55, hatch=h, edgecolor=c, label=word) for c, h, word in entries]
    axes.legend(handles=handles, ncols=3, **_ABOVE)
    axes.spines[["top", "right"]].set_visible(False)


def _ticks(axes: Any, t: F8, flag: Bool, y: float) -> None:
    """A mark at each step at which the raw flag is set, before margins and debouncing."""
    axes.plot(t[flag], np.full(int(flag.sum()), y), ls="none", marker="|", ms=6, color=_SIGN)


def draw_separation(axes: Any, found: Findings, t: F8, separation_nm: float) -> None:
    """Smallest separation and smallest predicted one over time."""
    s = found.series
    finite = np.where(np.isfinite(s.separation_nm), s.separation_nm, np.nan)
    predicted = np.where(np.isfinite(s.dcpa_nm), s.dcpa_nm, np.nan)
    axes.plot(t, finite, color=_MATCHED, lw=1.8, label="smallest separation now")
    axes.plot(t, predicted, color=_GHOST, lw=1.2, ls="--", label="smallest predicted within the horizon")
    axes.axhline(separation_nm, color=_MISSED, lw=1.0, label=f"minimum {separation_nm:g} NM")
    axes.plot(t[s.lost], finite[s.lost], ls="none", marker="o", ms=4, color=_MISSED, label="separation lost")
    axes.set_ylim(0.0, _AXIS_MINIMA * separation_nm)
    axes.set_xlabel("time since the first step [s]")
    axes.set_ylabel("distance [NM]")
    axes.grid(visible=True, lw=0.4, alpha=0.6)
    axes.legend(ncols=4, **_ABOVE)
    axes.spines[["top", "right"]].set_visible(False)


def _middle(window: Window, step_s: float) -> float:
    return (window[0] + window[1]) / 2.0 * step_s
