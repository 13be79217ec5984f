"""The metrics of many pairs of trajectories: worked out in parallel, and `trajectory_metrics.json` as it is documented.

`paired` compares two such documents (paired/files.py reads them).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from itertools import pairwise

import msgspec
import numpy as np

from watchkeeper.evaluation.tracks.distance import DTW, EDR, HAUSDORFF, compare, unit_vectors
from watchkeeper.evaluation.tracks.pairs import Matching
from watchkeeper.evaluation.tracks.set import Tracks
from watchkeeper.streams.batch import F8, I8

FILE_NAME = "trajectory_metrics.json"
METRICS = ("hausdorff_km", "hausdorff_norm", "dtw_km", "dtw_norm", "edr")
OD_SOURCES = ("train", "test")
# Parts of the work for each thread: enough that the last one to finish is not waited for long.
_PARTS_PER_JOB = 32


class GridBounds(msgspec.Struct, frozen=True):
    """The area of the grid in degrees; `east` is more than 180 where it reaches across the antimeridian."""

    south: float
    west: float
    north: float
    east: float


class Metadata(msgspec.Struct, frozen=True):
    """What was compared, and how. `grid_size` is in degrees, `edr_eps` in metres."""

    generated_file: str
    real_data_file: str
    od_source: str
    evaluation_timestamp: str
    num_trajectory_comparisons: int
    grid_size: float
    edr_eps: float
    grid_bounds: GridBounds
    """Cells are numbered from a corner of this area: two files compare only if it is the same."""


class TrajectoryMetric(msgspec.Struct, frozen=True):
    """One comparison. `od_pair` are cells of the grid, the lengths numbers of points."""

    od_pair: tuple[int, int]
    real_traj_idx: int
    gen_traj_idx: int
    hausdorff_km: float
    hausdorff_norm: float
    dtw_km: float
    dtw_norm: float
    edr: float
    len_real: int
    len_gen: int


class TrajectoryMetrics(msgspec.Struct, frozen=True):
    """The whole document."""

    metadata: Metadata
    trajectory_metrics: list[TrajectoryMetric]

    def column(self, name: str) -> F8:
        """One metric of all comparisons."""
        return np.array([getattr(metric, name) for metric in self.trajectory_metrics], np.float64)


def distances(
    real: Tracks, gen: Tracks, pairs: I8, eps_m: float, *, jobs: int | None = None, done: Callable[[float], None]
) -> F8:
    """All three distances of all pairs, [pair, HAUSDORFF … EDR], worked out in threads (default: one per core).

    `done` is told the share of the work that is done. The result does not depend on the number of threads.
    """
    a, b = unit_vectors(real.lat, real.lon), unit_vectors(gen.lat, gen.lon)
    out = np.full((len(pairs), 3), np.nan)
    jobs = jobs or len(os.sched_getaffinity(0))
    work = np.cumsum(real.lengths[pairs[:, 0]] * gen.lengths[pairs[:, 1]])
    goals = np.linspace(0.0, float(work.max(initial=0)), jobs * _PARTS_PER_JOB + 1)
    cuts = sorted({0, len(pairs), *np.searchsorted(work, goals[1:]).tolist()})
    # compiled here and not by several threads at once
    compare(a, real.starts, b, gen.starts, pairs[:0], eps_m / 1000.0, out[:0])
    pool = ThreadPoolExecutor(jobs)
    try:
        parts = [
            pool.submit(compare, a, real.starts, b, gen.starts, pairs[i:k], eps_m / 1000.0, out[i:k])
            for i, k in pairwise(cuts)
        ]
        for finished, part in enumerate(as_completed(parts), 1):
            part.result()
            done(finished / len(parts))
    finally:
        pool.shutdown(cancel_futures=True)
    return out


def document(
    real: Tracks, gen: Tracks, matching: Matching, values: F8, *, od_source: str, eps_m: float
) -> TrajectoryMetrics:
    """The document that goes to FILE_NAME. Normalised is over the mean number of points of the two."""
    len_real, len_gen = real.lengths[matching.pairs[:, 0]], gen.lengths[matching.pairs[:, 1]]
    mean_len = 0.5 * (len_real + len_gen)
    hausdorff_km, dtw_km, edr = values[:, HAUSDORFF], values[:, DTW], values[:, EDR]
    columns = (
        *matching.pairs.T, hausdorff_km, hausdorff_km / mean_len, dtw_km, dtw_km / mean_len, edr, len_real, len_gen,
    )  # fmt: skip
    rows = zip(map(tuple, matching.od.tolist()), *(column.tolist() for column in columns), strict=True)
    grid = matching.grid
    metadata = Metadata(
        generated_file=str(gen.path),
        real_data_file=str(real.path),
        od_source=od_source,
        evaluation_timestamp=datetime.now(UTC).isoformat(timespec="seconds"),
        num_trajectory_comparisons=len(matching.pairs),
        grid_size=grid.size_deg,
        edr_eps=eps_m,
        grid_bounds=GridBounds(grid.lat_min, grid.lon_min, grid.lat_max, grid.lon_max),
    )
    return TrajectoryMetrics(metadata, [TrajectoryMetric(*row) for row in rows])
