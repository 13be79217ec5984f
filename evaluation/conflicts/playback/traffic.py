"""The maps of an animation (extra `plots`): everybody, and a close-up of the pair that will pass nearest.

The circle around an aircraft has half the separation minimum as its radius, so that two overlap where separation is
lost. A line in front of an aircraft is its way within the next minute. Colours are those of plots.py. Called by
animation.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patches import Circle

from watchkeeper.evaluation.conflicts.playback.scene import MISSED, Scene
from watchkeeper.evaluation.conflicts.plots import COLOUR_OF
from watchkeeper.streams.batch import F8

TRAIL_STEPS = 30
CALM, LOST = "#5b6b7a", "#c01616"
_BOX = {"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 2.0}


class Traffic:
    """One pair of axes; `draw` puts a step into the canvas, over what stays.

    With `around_nm` it is a close-up: that far around the middle of the pair that will pass nearest.
    """

    def __init__(self, axes: Any, scene: Scene, around_nm: float | None = None) -> None:
        self._axes, self._scene, self._close, self._middle = axes, scene, around_nm is not None, np.zeros(2)
        axes.set_aspect("equal", adjustable="box" if self._close else "datalim")
        if around_nm is not None:
            axes.set(xlim=(-around_nm, around_nm), ylim=(-around_nm, around_nm))
            axes.set_title("the pair that will pass nearest", fontsize="small")
        else:
            axes.plot(scene.east, scene.north, color=CALM, lw=0.8, alpha=0.35)
            axes.plot(scene.way_east[-1:], scene.way_north[-1:], ls="none", marker="s", mfc="none", mec=CALM, ms=5)
            axes.margins(0.08)
            axes.set_title("everybody", fontsize="small")
        axes.grid(visible=True, lw=0.4, alpha=0.6)
        axes.set_ylabel("north [NM]")
        axes.set_xlabel("east [NM]")
        self._trails = axes.add_collection(LineCollection([], colors=CALM, lw=1.8, animated=True), autolim=False)
        self._passes = axes.add_collection(LineCollection([], animated=True), autolim=False)
        self._minutes = axes.add_collection(LineCollection([], lw=1.6, animated=True), autolim=False)
        self._craft = axes.scatter([], [], s=26, zorder=3, animated=True)
        ids = scene.found.episode.ids
        self._zones = [axes.add_artist(Circle((0.0, 0.0), 1.0, lw=0.8, animated=True)) for _ in ids]
        self._names = [
            axes.annotate(
                word, (0.0, 0.0), xytext=(6.0, 5.0), textcoords="offset points", fontsize="small", animated=True,
                annotation_clip=True, parse_math=False,
            )
            for word in ids
        ]  # fmt: skip
        place = {"transform": axes.transAxes, "va": "top", "fontsize": "large", "animated": True, "bbox": _BOX}
        self._clock = axes.text(0.01, 0.98, "", **place)

    def draw(self, step: int) -> None:
        """Into the figure's canvas."""
        s, e = self._scene, self._scene.found.episode
        self._middle = self._middle_at(step)
        here = np.stack((s.east[step], s.north[step]), axis=1) - self._middle
        stretch = s.chart.stretch(e.lat[step])
        colours = self._colours(step)
        self._draw_zones(here, s.found.settings["los_threshold_nm"] / 2.0 * stretch, colours)
        past = slice(max(0, step - TRAIL_STEPS), step + 1)
        self._trails.set_segments(list(np.stack((s.east[past].T, s.north[past].T), axis=2) - self._middle))
        minute_nm, heading = e.speed_kt[step] / 60.0 * stretch, np.radians(e.heading_deg[step])
        tips = here + np.stack((minute_nm * np.sin(heading), minute_nm * np.cos(heading)), axis=1)
        self._minutes.set(segments=list(np.stack((here, tips), axis=1)), color=colours)
        self._craft.set(offsets=here, color=colours)
        self._set_passes(step, here)
        self._clock.set_text(f"{s.t_s[step]:.0f} s")
        for artist in (self._trails, self._passes, self._minutes, self._craft):
            self._axes.draw_artist(artist)
        self._draw_names(step, here)
        self._axes.draw_artist(self._clock)

    def _middle_at(self, step: int) -> F8:
        """Of the pair that will pass nearest; without one where it was before. A map of everybody stays."""
        pair = self._scene.found.series.pair[step]
        if not self._close or pair[0] < 0:
            return self._middle
        middle: F8 = np.array([self._scene.east[step, pair].mean(), self._scene.north[step, pair].mean()])
        return middle

    def _colours(self, step: int) -> list[str]:
        """Red for lost separation, the verdict's colour for a conflict, grey otherwise."""
        s = self._scene
        now = self._passes_at(step)
        in_conflict = {int(row[side]) for row in s.passes[now] if row["conflict"] for side in ("a", "b")}
        lost = s.found.series.violations[step] > 0
        verdict = self._conflict_colour(step)
        return [LOST if lost[a] else verdict if a in in_conflict else CALM for a in range(len(lost))]

    def _conflict_colour(self, step: int) -> str:
        verdicts = {w.verdict for w in self._scene.conflicts if w.start <= step < w.end}
        return COLOUR_OF[MISSED] if MISSED in verdicts else COLOUR_OF[next(iter(verdicts))] if verdicts else CALM

    def _passes_at(self, step: int) -> slice:
        return slice(*np.searchsorted(self._scene.passes["step"], (step, step + 1)).tolist())

    def _set_passes(self, step: int, here: F8) -> None:
        """The ways of both to their closest points, dashed, and the distance there."""
        now = self._passes_at(step)
        lines, colours, styles = [], [], []
        for row, ends in zip(self._scene.passes[now], self._scene.pass_ends[now], strict=True):
            colour = self._conflict_colour(step) if row["conflict"] else CALM
            a, b = ends[:2] - self._middle, ends[2:] - self._middle
            lines += [np.stack((here[row["a"]], a)), np.stack((here[row["b"]], b)), np.stack((a, b))]
            colours += [colour] * 3
            styles += ["--", "--", "-"]
        self._passes.set(segments=lines, color=colours or CALM, linestyle=styles or "-", linewidth=1.3)

    def _draw_zones(self, here: F8, radius_nm: F8, colours: list[str]) -> None:
        for zone, centre, radius, colour in zip(self._zones, here, radius_nm, colours, strict=True):
            if np.isfinite(centre).all():
                zone.set(center=centre, radius=radius, edgecolor=colour, facecolor=(colour, 0.08))
                self._axes.draw_artist(zone)

    def _draw_names(self, step: int, here: F8) -> None:
        """Bold: it was commanded deliberately at this step."""
        acting = self._scene.found.series.acting_agent[step]
        for a in np.flatnonzero(np.isfinite(here).all(axis=1)).tolist():
            label = self._names[a]
            label.xy = here[a]
            label.set(weight="bold" if acting[a] else "normal")
            self._axes.draw_artist(label)
