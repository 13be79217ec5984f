"""The peer in the table: a plain innovation test, as small as they come.

A Kalman filter with constant velocity follows the GPS fixes of one vehicle (position and velocity, the three axes
apart) and the score is the root mean square of its normalised innovations. It knows nothing of the IMU, learns nothing
about the vehicle and fuses whatever it is told. What a detector adds to this is what it is worth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from watchkeeper.evaluation.attacks.scene import VELOCITY
from watchkeeper.evaluation.protocol.cases import Judged, Plan, judged
from watchkeeper.evaluation.protocol.feed import Variant
from watchkeeper.evaluation.protocol.noise_floor import local_place
from watchkeeper.evaluation.protocol.run import Trace
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit

NAME = "innovation test"
# Ordinary values for a small vehicle: acceleration that is not foreseen, and GPS noise; m/s2, m, m/s.
ACCEL, POSITION, SPEED = 2.0, 1.0, 0.3
# Fixes before the first score.
WARMUP = 25


def judge_baseline(chosen: Plan) -> Judged:
    """The innovation test on the variants of a plan."""
    return judged(NAME, chosen, traces(chosen.variants))


def traces(variants: Sequence[Variant]) -> list[Trace]:
    """The test's score at every epoch; nobody raises alarms."""
    found: list[Trace] = []
    for variant in variants:
        clean, made = variant.flight.gps, variant.injection
        stop = len(clean) if made is None else made.gps_rows.stop
        t, data, lost = clean.t[:stop].copy(), clean.data[:, :stop].copy(), np.zeros(stop, bool)
        if made is not None:
            t[made.gps_rows], data[:, made.gps_rows], lost[made.gps_rows] = made.gps.t, made.gps.data, made.gps_lost
        score = np.full(stop, np.nan)
        fixes = np.vstack((local_place(data), data[VELOCITY]))
        score[~lost] = innovations(t[~lost], np.ascontiguousarray(fixes[:, ~lost]))
        found.append(Trace(clean.t[:stop], score, np.zeros(stop, bool)))
    return found


@njit(cache=True)
def innovations(t: F8, fixes: F8) -> F8:
    """Root mean square of the normalised innovations of each fix; NaN in the warm-up."""
    n = t.size
    score = np.full(n, np.nan)
    state = np.zeros((3, 2))
    # one covariance for all axes: their noise is the same
    a, b, c = POSITION * POSITION, 0.0, SPEED * SPEED
    for axis in range(3):
        state[axis, 0], state[axis, 1] = fixes[axis, 0], fixes[3 + axis, 0]
        if math.isnan(state[axis, 1]):
            state[axis, 1] = 0.0
            c = 100.0
    for i in range(1, n):
        dt = max(t[i] - t[i - 1], 1e-3)
        q = ACCEL * ACCEL
        a, b, c = (
            a + 2.0 * dt * b + dt * dt * c + q * dt**4 / 4.0,
            b + dt * c + q * dt**3 / 2.0,
            c + q * dt * dt,
        )
        total, count = 0.0, 0
        s_place, s_speed = a + POSITION * POSITION, c + SPEED * SPEED
        with_speed = not math.isnan(fixes[3, i] + fixes[4, i] + fixes[5, i])
        for axis in range(3):
            state[axis, 0] += dt * state[axis, 1]
            e = fixes[axis, i] - state[axis, 0]
            if math.isnan(e):
                continue
            total += e * e / s_place
            count += 1
            f = fixes[3 + axis, i] - state[axis, 1]
            if with_speed:
                total += f * f / s_speed
                count += 1
            state[axis, 0] += a / s_place * e
            state[axis, 1] += b / s_place * e
        a, b, c = a - a * a / s_place, b - a * b / s_place, c - b * b / s_place
        if with_speed:
            s_speed = c + SPEED * SPEED
            for axis in range(3):
                f = fixes[3 + axis, i] - state[axis, 1]
                state[axis, 0] += b / s_speed * f
                state[axis, 1] += c / s_speed * f
            a, b, c = a - b * b / s_speed, b - b * c / s_speed, c - c * c / s_speed
        if i >= WARMUP and count > 0:
            score[i] = math.sqrt(total / count)
    return score
