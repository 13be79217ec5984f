"""The same figures for parts of the data: by time of day, and by place. Is a model good at night, and out of town?

By time: the hour at which a trajectory begins, in slices of some hours, with an offset from UTC for local time. By
place: the quarter of the grid in which it begins or, where a centre is given, whether it stays within that circle,
leads into it, out of it, or neither. A comparison is in the slice of its real trajectory; in distributions and rates
every trajectory is in its own. Rates are about the ends of all real trajectories. Called by report.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from watchkeeper.evaluation.tracks.distance import RADIUS_KM, unit_vectors
from watchkeeper.evaluation.tracks.divergence import Divergence, Quantity, divergences
from watchkeeper.evaluation.tracks.metrics import METRICS, TrajectoryMetrics
from watchkeeper.evaluation.tracks.pairs import LEAST_POINTS, Grid, Matching
from watchkeeper.evaluation.tracks.rates import MatchRates, match_rates
from watchkeeper.evaluation.tracks.set import Tracks
from watchkeeper.streams.batch import F8, I8, Bool
from watchkeeper.streams.logs.source import LogError

TIME, PLACE = "time", "place"
QUARTERS = ("south-west", "south-east", "north-west", "north-east")
AROUND = ("elsewhere", "from the centre", "to the centre", "within the centre")
DAY_H = 24


@dataclass(frozen=True, slots=True)
class Slicing:
    """By what to slice, and how."""

    by: tuple[str, ...]
    hours: int = 6
    """Length of a slice of the day; 24 is a multiple of it."""
    utc_offset_h: float = 0.0
    centre: tuple[float, float, float] | None = None
    """Latitude, longitude and radius in km."""


class Slice(msgspec.Struct, frozen=True):
    """The figures of one slice. `metrics` are means over its comparisons."""

    by: str
    name: str
    real: int
    generated: int
    comparisons: int
    metrics: dict[str, float]
    match_rates: MatchRates
    divergences: dict[str, Divergence]


def check_times(slicing: Slicing | None, *sides: Tracks) -> None:
    """Whether there are times to slice by, asked before the work. Raises LogError."""
    if slicing is not None and TIME in slicing.by:
        for tracks in sides:
            if tracks.t is None:
                raise LogError(tracks.path, "no times in it, so it cannot be sliced by time of day")


def slices_of(
    real: Tracks,
    gen: Tracks,
    matching: Matching,
    metrics: TrajectoryMetrics,
    quantities: tuple[dict[str, Quantity], dict[str, Quantity]],
    slicing: Slicing,
) -> list[Slice]:
    """All slices that have a trajectory, in order."""
    found = []
    columns = {name: metrics.column(name) for name in METRICS}
    for by in slicing.by:
        names, labels = _labels(by, (real, gen), matching.grid, slicing)
        for number, name in enumerate(names):
            of_real, of_gen = (label == number for label in labels)
            if of_real.any() or of_gen.any():
                own = of_real[matching.pairs[:, 0]]
                found.append(
                    Slice(
                        by=by,
                        name=name,
                        real=int(of_real.sum()),
                        generated=int(of_gen.sum()),
                        comparisons=int(own.sum()),
                        metrics={k: float(column[own].mean()) for k, column in columns.items()} if own.any() else {},
                        match_rates=match_rates(
                            matching.ends_real, [end for end in matching.ends_gen if of_gen[end[0]]]
                        ),
                        divergences=divergences(*quantities, (of_real, of_gen)),
                    )
                )
    return found


def _labels(by: str, sides: tuple[Tracks, Tracks], grid: Grid, slicing: Slicing) -> tuple[list[str], list[I8]]:
    """The names of all slices, and for each side which of them each trajectory is in; -1 for too few points."""
    if by == TIME:
        starts = range(0, DAY_H, slicing.hours)
        names = [f"{hour:02}:00-{hour + slicing.hours:02}:00" for hour in starts]
        labels = [_by_time(tracks, slicing) for tracks in sides]
    elif slicing.centre is not None:
        names, labels = list(AROUND), [_around(tracks, *slicing.centre) for tracks in sides]
    else:
        names, labels = list(QUARTERS), [_by_quarter(tracks, grid) for tracks in sides]
    return names, [np.where(tracks.lengths >= LEAST_POINTS, k, -1) for tracks, k in zip(sides, labels, strict=True)]


def _by_time(tracks: Tracks, slicing: Slicing) -> I8:
    assert tracks.t is not None, "checked before the work"
    hour = (_at(tracks.t, tracks.starts[:-1]) / 3600.0 + slicing.utc_offset_h) % DAY_H
    number: I8 = (hour // slicing.hours).astype(np.int64)
    return number


def _by_quarter(tracks: Tracks, grid: Grid) -> I8:
    first = tracks.starts[:-1]
    x, y = np.divmod(grid.cells(_at(tracks.lat, first), _at(tracks.lon, first)), grid.height)
    quarter: I8 = (2 * y >= grid.height) * 2 + (2 * x >= grid.width)
    return quarter


def _around(tracks: Tracks, lat: float, lon: float, radius_km: float) -> I8:
    ends = tracks.starts[:-1], tracks.starts[1:] - 1
    begins, stops = (_near(_at(tracks.lat, at), _at(tracks.lon, at), lat, lon, radius_km) for at in ends)
    number: I8 = begins * 1 + stops * 2
    return number


def _near(lat: F8, lon: F8, centre_lat: float, centre_lon: float, radius_km: float) -> Bool:
    chord = np.linalg.norm(unit_vectors(lat, lon) - unit_vectors(centre_lat, centre_lon), axis=-1)
    within: Bool = 2.0 * RADIUS_KM * np.arcsin(np.minimum(0.5 * chord, 1.0)) <= radius_km
    return within


def _at(values: F8, numbers: I8) -> F8:
    """The values at these points; a trajectory without any gets the nearest other one's, which nobody looks at."""
    return values[np.clip(numbers, 0, len(values) - 1)]
