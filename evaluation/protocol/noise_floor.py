"""What the GPS of a clean flight does to itself: how far its position strays from its own velocity, without any attack.

No detector that compares position with velocity can tell an attack from this when the attack is smaller. The residual
of a fix is the change of horizontal position less the mean of the two velocities times the time between; a jump shows
in one residual, a drift in their sum. The floor is what one fix, or one span, in a hundred exceeds.
"""

from __future__ import annotations

import msgspec
import numpy as np

from watchkeeper.evaluation.attacks.flight import Flight
from watchkeeper.evaluation.attacks.scene import DEGREE_M, GPS, PLACE, VELOCITY
from watchkeeper.streams.batch import F8

SPANS_S = (10.0, 30.0)
SHARE = 0.99


class Floor(msgspec.Struct, frozen=True):
    """The floor of one flight; None without velocities, or when it is too short."""

    flight: str
    step_m: float | None
    drift_10s_mps: float | None
    drift_30s_mps: float | None


def local_place(data: F8) -> F8:
    """Positions in metres, [3, fix]; geodetic ones on a plane around their middle."""
    place: F8 = data[PLACE]
    if np.isnan(place[:2]).all() and not np.isnan(data[GPS["lat"]]).all():
        lat, lon = data[GPS["lat"]], data[GPS["lon"]]
        narrow = np.cos(np.radians(np.nanmedian(lat)))
        place = np.vstack((lat * DEGREE_M, lon * DEGREE_M * narrow, -data[GPS["alt_m"]]))
    return place


def floor(flight: Flight) -> Floor:
    """The floor of a flight."""
    t, place, speed = flight.gps.t, local_place(flight.gps.data)[:2], flight.gps.data[VELOCITY][:2]
    residual = np.diff(place, axis=1) - 0.5 * (speed[:, 1:] + speed[:, :-1]) * np.diff(t)
    residual = np.nan_to_num(residual) if not np.isnan(residual).all() else residual
    wander = np.concatenate((np.zeros((2, 1)), np.cumsum(residual, axis=1)), axis=1)
    drifts = []
    for span_s in SPANS_S:
        later = np.searchsorted(t, t + span_s)
        first = np.flatnonzero(later < len(t))
        last = later[first]
        drifts.append(_high(np.linalg.norm(wander[:, last] - wander[:, first], axis=0) / (t[last] - t[first])))
    return Floor(flight.id, _high(np.linalg.norm(residual, axis=0)), *drifts)


def _high(sizes: F8) -> float | None:
    return float(np.quantile(sizes, SHARE)) if len(sizes) and np.isfinite(sizes).all() else None
