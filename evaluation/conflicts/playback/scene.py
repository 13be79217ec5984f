"""What there is to see of an episode: everybody's place on the map, predicted passes, and windows with what they mean.

Distances in NM on the chart (chart.py), times in s since the first step. The page (content.py) and the animation
(animation.py) draw the same scene.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.kernels.windows import overlap
from watchkeeper.evaluation.conflicts.findings import Findings
from watchkeeper.evaluation.conflicts.playback.approaches import approaches
from watchkeeper.evaluation.conflicts.playback.chart import Chart, chart_of
from watchkeeper.streams.batch import F8
from watchkeeper.streams.geo import KT_MS, direct_many

MATCHED, MISSED, GHOST = "matched", "missed", "ghost"
# Of a step with hundreds of close pairs these are shown; more lines would hide the map.
MOST_PASSES = 30


@dataclass(frozen=True, slots=True)
class Window:
    """A window of conflicts or of alerts; half-open, in steps."""

    verdict: str
    start: int
    end: int
    start_s: float
    end_s: float
    who: tuple[int, ...]
    """The pair that comes nearest in a conflict; of an alert everybody who was commanded deliberately."""
    dcpa_nm: float | None = None
    """Smallest DCPA in the window of a conflict."""
    partner: int | None = None
    iou: float | None = None
    lead_s: float | None = None
    """How long before the conflict its alert began; negative: after."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One episode, ready to be drawn; arrays are [step, agent]."""

    found: Findings
    chart: Chart
    t_s: F8
    """[step], since the first."""
    east: F8
    north: F8
    way_east: F8
    way_north: F8
    passes: NDArray[Any]
    """Approach records, at most MOST_PASSES of a step."""
    pass_ends: F8
    """[pass, 4]: where the two will be then, east and north of each."""
    conflicts: list[Window]
    alerts: list[Window]

    @property
    def end_s(self) -> float:
        """When the last step is over."""
        return float(self.t_s[-1]) + self.found.episode.step_s if len(self.t_s) else 0.0


def scene_of(found: Findings) -> Scene:
    """The scene of an evaluated episode."""
    e = found.episode
    chart = chart_of(np.concatenate((e.lat, e.way_lat)), np.concatenate((e.lon, e.way_lon)))
    t_s = e.t - e.t[0] if len(e.t) else e.t
    passes = _fewer(approaches(found))
    ends = np.empty((len(passes), 4))
    for side, first in (("a", 0), ("b", 2)):
        at = passes["step"], passes[side]
        moved_m = e.speed_kt[at] * KT_MS * passes["tcpa_s"]
        lat, lon, _ = direct_many(e.lat[at], e.lon[at], e.heading_deg[at], moved_m)
        ends[:, first], ends[:, first + 1] = chart.place(lat, lon)
    return Scene(
        found, chart, t_s, *chart.place(e.lat, e.lon), *chart.place(e.way_lat, e.way_lon), passes, ends,
        _conflicts(found, t_s), _alerts(found, t_s),
    )  # fmt: skip


def _fewer(passes: NDArray[Any]) -> NDArray[Any]:
    """The nearest of each step; they come in that order."""
    first = np.searchsorted(passes["step"], passes["step"])
    return passes[np.arange(len(passes)) - first < MOST_PASSES]


def _conflicts(found: Findings, t_s: F8) -> list[Window]:
    s, m = found.series, found.matching
    alert_of = dict(m.pairs)
    windows = []
    for g, (start, end) in enumerate(m.truth):
        nearest = start + int(np.argmin(s.dcpa_nm[start:end]))
        a = alert_of.get(g)
        windows.append(
            Window(
                MISSED if a is None else MATCHED, start, end, *_times(found, t_s, start, end),
                who=tuple(s.pair[nearest].tolist()),
                dcpa_nm=float(s.dcpa_nm[nearest]),
                partner=a,
                iou=None if a is None else overlap((start, end), m.alerts[a]),
                lead_s=None if a is None else (start - m.alerts[a][0]) * found.episode.step_s,
            )
        )  # fmt: skip
    return windows


def _alerts(found: Findings, t_s: F8) -> list[Window]:
    conflict_of = {a: g for g, a in found.matching.pairs}
    return [
        Window(
            MATCHED if a in conflict_of else GHOST, start, end, *_times(found, t_s, start, end),
            who=tuple(np.flatnonzero(found.series.acting_agent[start:end].any(axis=0)).tolist()),
            partner=conflict_of.get(a),
        )
        for a, (start, end) in enumerate(found.matching.alerts)
    ]  # fmt: skip


def _times(found: Findings, t_s: F8, start: int, end: int) -> tuple[float, float]:
    return float(t_s[start]), float(t_s[end]) if end < len(t_s) else float(t_s[-1]) + found.episode.step_s
