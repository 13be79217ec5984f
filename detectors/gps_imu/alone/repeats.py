"""Fixes that equal earlier ones to the last bit: a recording that is played again, or a receiver that is frozen.

A receiver has noise: the values of one fix never come again, unless they are rounded, and no five of them in order.
"""

from __future__ import annotations

import math

import numpy as np

from watchkeeper.detectors.gps_imu.alone.constants import (
    FROZEN_MPS,
    FROZEN_S,
    FROZEN_SLOW_S,
    FROZEN_TIMES,
    FROZEN_WAY_MPS,
    KEPT,
    REPLAYED,
)
from watchkeeper.detectors.gps_imu.alone.state import Receiver
from watchkeeper.detectors.gps_imu.state import Work
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import GPS

# What a fix is compared by. Position and velocity alone: satellites and accuracy repeat themselves all the time.
COMPARED = (
    GPS.gps_x, GPS.gps_y, GPS.gps_z, GPS.lat, GPS.lon, GPS.alt_m, GPS.gps_vx, GPS.gps_vy, GPS.gps_vz,
)  # fmt: skip
# A multiplier of good mixing (SplitMix64's first), as a signed number.
_MIX = np.int64(-4658895280553007687)


@njit(cache=True)
def _digest(data: F8, i: int) -> int:
    """A number that equal fixes share, and that others hardly ever do; never 0."""
    digest = np.int64(1)
    for c in COMPARED:
        x = data[i, c]
        if not math.isnan(x):
            # exponent and mantissa: every bit of the value but its sign, which the mantissa has
            mantissa, exponent = math.frexp(x)
            digest = (digest ^ np.int64(mantissa * 9007199254740992.0)) * _MIX
            digest ^= digest >> np.int64(29)
            digest += np.int64(exponent)
        digest = digest * _MIX + np.int64(c)
    return int(digest if digest != 0 else np.int64(1))


@njit(cache=True)
def look_for_replay(row: Receiver, data: F8, i: int, changed: bool) -> float:
    """How many fixes in a row equal earlier ones in order, as a part of what is needed; keeps this fix."""
    digest = _digest(data, i)
    if not changed:
        return row.replay_run / REPLAYED if row.replay_run >= REPLAYED else 0.0
    at = -1
    follow = row.replay_at + 1
    if row.replay_run > 0 and follow < row.kept_count and row.kept[follow % KEPT] == digest:
        at = follow
    else:
        row.replay_run = 0
        for back in range(1, min(row.kept_count, KEPT)):
            if row.kept[(row.kept_count - 1 - back) % KEPT] == digest:
                at = row.kept_count - 1 - back
                break
    row.replay_at = at
    row.replay_run = row.replay_run + 1 if at >= 0 else 0
    row.kept[row.kept_count % KEPT] = digest
    row.kept_count += 1
    return row.replay_run / REPLAYED


@njit(cache=True)
def look_for_freeze(row: Receiver, work: Work, changed: bool, judge: bool) -> float:
    """How long the fix has repeated the one before, as a part of what is needed for this receiver to be frozen.

    A receiver that stands still may hold its position: then its velocity is zero, or not told.
    """
    if changed or row.frozen_since_t == 0.0:
        if changed and row.frozen_since_t > 0.0 and not judge:
            row.frozen_seen_s = max(row.frozen_seen_s, row.fix_t - row.frozen_since_t)
        row.frozen_since_t = work.t
        row.frozen_mps = math.sqrt(row.way[0] ** 2 + row.way[1] ** 2)
        return 0.0
    run_s = work.t - row.frozen_since_t
    speed = math.sqrt(work.told[0] ** 2 + work.told[1] ** 2)
    if speed >= FROZEN_MPS:
        return run_s / max(FROZEN_S, FROZEN_TIMES * row.frozen_seen_s)
    if math.isnan(speed) and row.frozen_mps >= FROZEN_WAY_MPS:
        return run_s / max(FROZEN_S, FROZEN_TIMES * row.frozen_seen_s)
    if math.isnan(speed):
        return run_s / max(FROZEN_SLOW_S, FROZEN_TIMES * row.frozen_seen_s)
    return 0.0
