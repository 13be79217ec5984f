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
    SURPRISE_OF_CHANCE,
)
from watchkeeper.detectors.gps_imu.alone.state import Receiver
from watchkeeper.detectors.gps_imu.state import Work
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import GPS

# What a fix is compared by: position and velocity, or velocity alone. Satellites and accuracy repeat themselves all the
# time.
ALL = (
    GPS.gps_x, GPS.gps_y, GPS.gps_z, GPS.lat, GPS.lon, GPS.alt_m, GPS.gps_vx, GPS.gps_vy, GPS.gps_vz,
)  # fmt: skip
VELOCITY = (GPS.gps_vx, GPS.gps_vy, GPS.gps_vz)
# A multiplier of good mixing (SplitMix64's first), as a signed number.
_MIX = np.int64(-4658895280553007687)


@njit(cache=True)
def _digest(data: F8, i: int, fields: tuple[int, ...]) -> int:
    """A number that equal fixes share, and that others hardly ever do; never 0."""
    digest = np.int64(1)
    for c in fields:
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
def look_for_replay(row: Receiver, work: Work, data: F8, i: int, changed: bool) -> float:
    """How many fixes in a row equal earlier ones in order, as a part of what is needed; keeps this fix.

    A recording that begins where the vehicle is has other positions than it had, and the same velocities. By chance
    those come again as well, where they are rounded: how often is learned.
    """
    run = row.replay_run[0] / REPLAYED
    if changed:
        run = _follow(row, 0, _digest(data, i, ALL)) / REPLAYED
    told = work.told
    if math.isnan(told[0] + told[1]) or (told[0] == row.told[0] and told[1] == row.told[1]):
        return float(run) if changed or run >= 1.0 else 0.0
    again = row.replay_run[1]
    velocities = _follow(row, 1, _digest(data, i, VELOCITY))
    if velocities != again + 1 or velocities == 1:
        row.asked += 1.0
        row.met += 1.0 if velocities == 1 else 0.0
    chance = (1.0 + row.met) / (2.0 + row.asked)
    needed = max(float(REPLAYED), SURPRISE_OF_CHANCE / -math.log(chance))
    return float(max(run, velocities / needed))


@njit(cache=True)
def _follow(row: Receiver, which: int, digest: int) -> int:
    """How many in a row equal earlier ones in order, with this one, which is kept."""
    kept, count, at = row.kept[which], row.kept_count[which], -1
    follow = row.replay_at[which] + 1
    if row.replay_run[which] > 0 and follow < count and kept[follow % KEPT] == digest:
        at = follow
    else:
        row.replay_run[which] = 0
        for back in range(1, min(count, KEPT)):
            if kept[(count - 1 - back) % KEPT] == digest:
                at = count - 1 - back
                break
    row.replay_at[which] = at
    row.replay_run[which] = row.replay_run[which] + 1 if at >= 0 else 0
    kept[count % KEPT] = digest
    row.kept_count[which] = count + 1
    return int(row.replay_run[which])


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
