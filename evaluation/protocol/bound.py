"""The smallest attack that any detector could call, from a flight's own noise: is a miss physics, or ours?

An attack that parts position and velocity of the GPS adds a known shape to their residual (change of position less the
mean of two velocities times the time between). By Neyman and Pearson no test of that residual does better than the
whitened matched filter, which even knows onset and direction: with Gaussian noise of the flight's own autocovariance,
the magnitude that it finds 95 % of the time within 10 s, at the budget of false alarms. It is the bound of noise that
is Gaussian and the same all the time: smaller attacks are found in some calm minutes, and heavy tails hide larger ones.
Families without such a shape (IMU faults, noise, lost streams) have none here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import NormalDist

import msgspec
import numpy as np
from scipy.linalg import solve_toeplitz

from watchkeeper.evaluation.attacks.flight import Flight
from watchkeeper.evaluation.attacks.scene import VELOCITY
from watchkeeper.evaluation.protocol.cases import Case
from watchkeeper.evaluation.protocol.noise_floor import local_place
from watchkeeper.streams.batch import F8

WITHIN_S = 10.0
FOUND = 0.95
# False alarms that it may raise per hour: one in 50 h, which is stricter than any profile was seen to be.
BUDGET_PER_H = 0.02
# Families with a shape: whether it is on the vertical axis, and whether it is a step or goes on.
SHAPES: dict[str, tuple[bool, bool]] = {
    "gps_bias": (False, True),
    "gps_altitude_bias": (True, True),
    "gps_drift": (False, False),
    "gps_altitude_drift": (True, False),
    "gps_velocity": (False, False),
}


class Bound(msgspec.Struct, frozen=True):
    """One attack: the cases that are large enough to be called within 10 s, and those of them that were."""

    attack: str
    magnitude: float
    smallest: float
    """Median over its flights."""
    cases: int
    allowed: int
    found: int
    ratio: float | None
    """Found over allowed; None where none is."""


def bounds(flights: Sequence[Flight], cases: Mapping[str, Sequence[Case]]) -> list[Bound]:
    """The attacks that have a bound, in the order of the cases."""
    of = {(flight.id, family): smallest(flight, *shape) for flight in flights for family, shape in SHAPES.items()}
    rows = []
    for name, same in cases.items():
        known = [(c, of[c.flight_id, c.attack.family]) for c in same if c.attack.family in SHAPES]
        known = [(case, least) for case, least in known if np.isfinite(least)]
        if not known:
            continue
        enough = [case for case, least in known if case.attack.magnitude >= least]
        found = sum(case.alarm_t is not None and case.alarm_t - case.t_start <= WITHIN_S for case in enough)
        magnitude, least = known[0][0].attack.magnitude, float(np.median([least for _, least in known]))
        ratio = found / len(enough) if enough else None
        rows.append(Bound(name, magnitude, least, len(known), len(enough), found, ratio))
    return rows


def smallest(flight: Flight, upright: bool, step: bool) -> float:
    """The smallest magnitude of one shape in one flight; NaN without velocities, or where nothing ever differs."""
    t, axes = flight.gps.t, slice(2, 3) if upright else slice(0, 2)
    place, speed = local_place(flight.gps.data)[axes], flight.gps.data[VELOCITY][axes]
    residual = np.diff(place, axis=1) - 0.5 * (speed[:, 1:] + speed[:, :-1]) * np.diff(t)
    residual = np.nan_to_num(residual)
    if not residual.any():
        return float("nan")
    dt = float(np.median(np.diff(t)))
    fixes = max(int(WITHIN_S / dt), 1)
    shape = np.zeros(fixes)
    if step:
        shape[0] = 1.0
    else:
        shape[:] = dt
    energy = float(shape @ solve_toeplitz(_autocovariance(residual, fixes), shape))
    chance = BUDGET_PER_H * WITHIN_S / 3600.0
    normal = NormalDist()
    return float((normal.inv_cdf(1.0 - chance) + normal.inv_cdf(FOUND)) / np.sqrt(energy))


def _autocovariance(residual: F8, lags: int) -> F8:
    """Mean over the axes; tapered, so that it is the autocovariance of some noise."""
    n = residual.shape[1]
    own: F8 = np.array([np.mean(residual[:, : n - k] * residual[:, k:]) * (n - k) / n for k in range(min(lags, n))])
    own = np.append(own, np.zeros(lags - len(own)))
    own[0] *= 1.0 + 1e-6
    return own
