"""Are the generated trajectories as long, as slow and as wide as the real ones? Jensen-Shannon divergence (JSD).

Each quantity is a histogram of the real trajectories and one of the generated ones: 99 equal bins from 0 to the largest
real value, and one from there to infinity. With p and q their shares and m = (p + q) / 2,

    JSD = 1/2 sum p ln(p / m) + 1/2 sum q ln(q / m)

in nats (base e): 0 for equal histograms, ln 2 = 0.693 for two that share no bin. This is the square of what SciPy calls
the Jensen-Shannon distance. Trajectories of fewer than two points are left out. Called by report.py and slices.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
from scipy.special import rel_entr

from watchkeeper.evaluation.tracks.distance import RADIUS_KM, unit_vectors
from watchkeeper.evaluation.tracks.pairs import LEAST_POINTS
from watchkeeper.evaluation.tracks.set import Tracks, wrapped
from watchkeeper.streams.batch import F8, I8, Bool

# Edges from 0 to the largest real value; infinity comes after them.
EDGES = 100
QUANTITIES = {
    "distance_km": "length of the way, summed from point to point",
    "step_min": "time from one point to the next, every step by itself",
    "trip_min": "time from the first point to the last",
    "radius_km": "mean distance of the points from their mean position",
    "gyration_km": "radius of gyration: root of the mean squared distance from the mean position",
}
TIMED = ("step_min", "trip_min")


@dataclass(frozen=True, slots=True)
class Quantity:
    """One quantity of a set of trajectories: values, and whose they are."""

    values: F8
    owner: I8

    def of(self, chosen: Bool) -> F8:
        """The values of the trajectories that the mask names."""
        return self.values[chosen[self.owner]]


class Divergence(msgspec.Struct, frozen=True):
    """One quantity compared. Means are in the quantity's unit; None where a side has no values."""

    jsd: float | None
    real_mean: float | None
    gen_mean: float | None
    real_values: int
    gen_values: int


def measured(tracks: Tracks) -> dict[str, Quantity]:
    """The quantities of all trajectories of at least two points; those of time only where there are times."""
    whose = np.flatnonzero(tracks.lengths >= LEAST_POINTS)
    if not len(whose):
        return {}
    n = tracks.lengths[whose]
    own = np.repeat(tracks.lengths >= LEAST_POINTS, tracks.lengths)
    first = np.cumsum(n) - n
    lat, lon = tracks.lat[own], tracks.lon[own]
    step = np.ones(len(lat) - 1, bool)  # from each point to the next, but not from one trajectory to another
    step[first[1:] - 1] = False
    stepper = np.repeat(whose, n - 1)
    way_km = _km(unit_vectors(lat[:-1], lon[:-1]), unit_vectors(lat[1:], lon[1:]))[step]
    from_middle_km = _from_middle_km(lat, lon, first, n)
    found = {
        "distance_km": Quantity(np.add.reduceat(way_km, first - np.arange(len(first))), whose),
        "radius_km": Quantity(np.add.reduceat(from_middle_km, first) / n, whose),
        "gyration_km": Quantity(np.sqrt(np.add.reduceat(from_middle_km**2, first) / n), whose),
    }
    if tracks.t is not None:
        t = tracks.t[own]
        found["step_min"] = Quantity(np.diff(t)[step] / 60.0, stepper)
        found["trip_min"] = Quantity((t[first + n - 1] - t[first]) / 60.0, whose)
    return {name: found[name] for name in QUANTITIES if name in found}


def divergence(real: F8, gen: F8) -> Divergence:
    """Two sets of values compared."""
    jsd = None
    if len(real) and len(gen):
        _, p, q = histograms(real, gen)
        jsd = jensen_shannon(p, q)
    real_mean, gen_mean = (float(values.mean()) if len(values) else None for values in (real, gen))
    return Divergence(jsd, real_mean, gen_mean, len(real), len(gen))


def divergences(
    real: dict[str, Quantity], gen: dict[str, Quantity], chosen: tuple[Bool, Bool] | None = None
) -> dict[str, Divergence]:
    """Every quantity that both sides have; with `chosen` only of the real and generated trajectories named there."""
    found = {}
    for name in QUANTITIES:
        if name in real and name in gen:
            a, b = real[name], gen[name]
            found[name] = divergence(a.of(chosen[0]), b.of(chosen[1])) if chosen else divergence(a.values, b.values)
    return found


def histograms(real: F8, gen: F8) -> tuple[F8, I8, I8]:
    """Edges, and how many real and generated values are in each bin. A bin holds its lower edge."""
    largest = float(real.max())
    # where all real values are 0, the bins are 0 and everything above it
    inner = np.linspace(0.0, largest, EDGES) if largest > 0.0 else np.array([0.0, np.nextafter(0.0, 1.0)])
    edges = np.append(inner, np.inf)
    return edges, np.histogram(real, edges)[0], np.histogram(gen, edges)[0]


def jensen_shannon(p: I8 | F8, q: I8 | F8) -> float:
    """The divergence of two histograms in nats; they need not add up to 1.

    >>> round(jensen_shannon(np.array([1, 1]), np.array([0, 2])), 6)
    0.215762
    >>> round(jensen_shannon(np.array([1, 0]), np.array([0, 1])), 6)
    0.693147
    """
    p, q = p / p.sum(), q / q.sum()
    m = 0.5 * (p + q)
    return float(0.5 * rel_entr(p, m).sum() + 0.5 * rel_entr(q, m).sum())


def _from_middle_km(lat: F8, lon: F8, first: I8, n: I8) -> F8:
    """Each point's distance from the mean latitude and longitude of its trajectory."""
    base = np.repeat(lon[first], n)
    east = wrapped(lon - base)  # from the first point, so that the antimeridian is nowhere near
    mean_lat = np.repeat(np.add.reduceat(lat, first) / n, n)
    mean_lon = base + np.repeat(np.add.reduceat(east, first) / n, n)
    return _km(unit_vectors(lat, lon), unit_vectors(mean_lat, mean_lon))


def _km(a: F8, b: F8) -> F8:
    """Haversine distance of unit vectors, one by one."""
    chord = np.sqrt(((a - b) ** 2).sum(axis=-1))
    arc: F8 = 2.0 * RADIUS_KM * np.arcsin(np.minimum(0.5 * chord, 1.0))
    return arc
