"""`watchkeeper.evaluate.tracks`: how like the real trajectories are the generated ones?

Trajectories with the same origin and destination (pairs.py) are compared by Hausdorff distance, DTW and EDR
(distance.py). `evaluate.paired` compares the results of several models. command.py is the same from a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.evaluation.shared.errors import EvaluationError
from watchkeeper.evaluation.tracks.distance import EDR_EPS_M
from watchkeeper.evaluation.tracks.files import TrackData, tracks_in
from watchkeeper.evaluation.tracks.metrics import METRICS, TrajectoryMetrics, distances, document
from watchkeeper.evaluation.tracks.pairs import GRID_SIZE_DEG, Grid, Matching, grid_over, grid_within, match
from watchkeeper.evaluation.tracks.report import Summary, summary
from watchkeeper.evaluation.tracks.roads import read_roads
from watchkeeper.evaluation.tracks.set import Tracks
from watchkeeper.evaluation.tracks.slices import Slicing, check_times
from watchkeeper.streams.frames.write import COUNT, NUMBER, Backend, rows_frame

NO_PAIRS = "no origin and destination in common: nothing to compare (a larger grid size may help)"
COLUMNS = {
    **dict.fromkeys(("origin", "destination", "real_traj_idx", "gen_traj_idx"), COUNT),
    **dict.fromkeys(METRICS, NUMBER),
    **dict.fromkeys(("len_real", "len_gen"), COUNT),
}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Two sets of trajectories, which of them were compared, and what came of it."""

    real: Tracks
    gen: Tracks
    matching: Matching
    metrics: TrajectoryMetrics
    summary: Summary

    def to_frame(self, backend: Backend | None = None) -> Any:
        """One row per comparison; `evaluate.paired` takes two such frames."""
        rows = []
        for metric in self.metrics.trajectory_metrics:
            origin, destination = metric.od_pair
            rows.append(msgspec.to_builtins(metric) | {"origin": origin, "destination": destination})
        return rows_frame(rows, COLUMNS, backend)

    def to_dict(self) -> dict[str, Any]:
        """The figures over all comparisons and every comparison: `results.json` and `trajectory_metrics.json`."""
        return {**msgspec.to_builtins(self.summary), **msgspec.to_builtins(self.metrics)}


def tracks(
    real: TrackData,
    gen: TrackData,
    *,
    grid_size: float = GRID_SIZE_DEG,
    edr_eps: float = EDR_EPS_M,
    gap_s: float | None = None,
    od_source: str = "test",
    bounds: Sequence[float] | None = None,
    roads: str | PathLike[str] | None = None,
    slicing: Slicing | None = None,
    jobs: int | None = None,
) -> Evaluation:
    """Compare generated trajectories with real ones that have the same origin and destination.

    Frames have the columns `traj_id` (or `id`), `lat`, `lon` and perhaps `t`; paths are CSV, GeoJSON or logs. Origins
    and destinations are the same within cells of `grid_size` degrees; EDR lets points match within `edr_eps` metres; a
    silence longer than `gap_s` begins another trajectory. The grid covers `bounds` (south, west, north, east), or the
    road network `roads`, which files of road ids need, or the real trajectories. `slicing` asks for figures by time of
    day or by place.

    >>> import watchkeeper as wk
    >>> real = {"traj_id": [1, 1, 1], "lat": [50.0, 50.1, 50.2], "lon": [8.0, 8.0, 8.0]}
    >>> result = wk.evaluate.tracks(real, {**real, "lon": [8.0, 8.01, 8.0]}, grid_size=0.5)
    >>> round(result.summary.metrics["hausdorff_km"].mean, 1)
    0.7
    """
    network = None if roads is None else read_roads(Path(roads))
    both = [tracks_in(data, gap_s=gap_s, quiet=True, roads=network) for data in (real, gen)]
    if bounds is not None:
        grid = grid_within(bounds, grid_size)
    else:
        grid = network.grid(grid_size) if network else grid_over(both[0], grid_size)
    result = evaluate(*both, grid=grid, eps_m=edr_eps, od_source=od_source, slicing=slicing, jobs=jobs)
    if not len(result.matching.pairs):
        raise EvaluationError(NO_PAIRS)
    return result


def evaluate(
    real: Tracks,
    gen: Tracks,
    *,
    grid: Grid | None = None,
    eps_m: float = EDR_EPS_M,
    od_source: str = "test",
    slicing: Slicing | None = None,
    jobs: int | None = None,
    done: Callable[[float], None] = lambda _: None,
) -> Evaluation:
    """Match and compare two sets of trajectories; `done` is told the share of the work that is done."""
    check_times(slicing, real, gen)
    matching = match(real, gen, grid or grid_over(real))
    values = distances(real, gen, matching.pairs, eps_m, jobs=jobs, done=done)
    metrics = document(real, gen, matching, values, od_source=od_source, eps_m=eps_m)
    return Evaluation(real, gen, matching, metrics, summary(real, gen, matching, metrics, slicing))
