"""An episode as an animation for slides (extra `plots`): two maps above, the windows below, a frame per step.

What stays is drawn once and copied into each frame; only what moves (traffic.py, and a line for the moment on the time
axes) is drawn again. Called by command.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from watchkeeper.evaluation.conflicts.findings import Findings
from watchkeeper.evaluation.conflicts.playback.film import Frame, write_film
from watchkeeper.evaluation.conflicts.playback.scene import Scene, scene_of
from watchkeeper.evaluation.conflicts.playback.traffic import Traffic
from watchkeeper.evaluation.conflicts.plots import draw_separation, draw_windows
from watchkeeper.evaluation.shared.counted import shown

FRAMES_PER_S = 10
# Longer episodes skip steps: half a minute is what a slide bears.
MOST_FRAMES = 300
# Even numbers of pixels, as video formats want them: 960 × 720.
SIZE_IN, DPI = (9.6, 7.2), 100
# How far the close-up reaches, in separation minima.
CLOSE_MINIMA = 3.0


def animate(path: Path, found: Findings, name: str, *, quiet: bool = False) -> int:
    """Write the animation; how many frames it has."""
    scene = scene_of(found)
    steps = shown_steps(len(scene.t_s))
    return write_film(path, shown(_frames(scene, name, steps), len(steps), "drawing", hidden=quiet), FRAMES_PER_S)


def shown_steps(steps: int) -> range:
    """Every step, or every nth of a long episode.

    >>> len(shown_steps(150)), shown_steps(1000).step
    (150, 4)
    """
    return range(0, steps, max(1, -(-steps // MOST_FRAMES)))


def _frames(scene: Scene, name: str, steps: range) -> Iterator[Frame]:
    figure: Any = Figure(figsize=SIZE_IN, dpi=DPI, layout="constrained")
    canvas: Any = FigureCanvasAgg(figure)
    maps, times = figure.subfigures(2, 1, height_ratios=(3.4, 2.6))
    everybody, pair = maps.subplots(1, 2)
    windows, separation = times.subplots(2, 1, height_ratios=(1.0, 1.1))
    minimum_nm = scene.found.settings["los_threshold_nm"]
    draw_windows(windows, scene.found, scene.t_s)
    draw_separation(separation, scene.found, scene.t_s, minimum_nm)
    for axes in (windows, separation):
        axes.set_xlim(0.0, max(scene.end_s, 1.0))
    windows.tick_params(labelbottom=False)
    figure.suptitle(name, fontsize="medium", parse_math=False)
    maps_moving = Traffic(everybody, scene), Traffic(pair, scene, CLOSE_MINIMA * minimum_nm)
    moving = (*maps_moving, _Cursor(windows, scene), _Cursor(separation, scene))
    canvas.draw()
    ground = canvas.copy_from_bbox(figure.bbox)
    for step in steps:
        canvas.restore_region(ground)
        for part in moving:
            part.draw(step)
        yield np.asarray(canvas.buffer_rgba()).copy()


class _Cursor:
    """The moment on a time axis."""

    def __init__(self, axes: Any, scene: Scene) -> None:
        self._axes, self._t_s = axes, scene.t_s
        self._line = axes.axvline(0.0, color="black", lw=1.4, animated=True)

    def draw(self, step: int) -> None:
        """Into the figure's canvas."""
        self._line.set_xdata([self._t_s[step]] * 2)
        self._axes.draw_artist(self._line)
