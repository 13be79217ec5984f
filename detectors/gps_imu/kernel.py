"""The batched loop of the GPS/IMU detector: one window of both streams, all vehicles, in event-time order.

Both inputs are sorted by (slot, t). For each vehicle IMU samples and GPS fixes are merged by time, IMU first when they
tie, so the result depends on the samples alone, not on how they were cut into windows or which slot they are in.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.gps_imu.fix import Heard, take_gps
from watchkeeper.detectors.gps_imu.imu_bins import take_imu
from watchkeeper.detectors.gps_imu.state import AGAINST, AGAINST_VERTICAL, CHANNELS, REPLAY, STEP, Settings, Work
from watchkeeper.streams.batch import F8, I4, I8, Bool
from watchkeeper.streams.kernels import njit

# Channels in which a receiver's own path (alone/) takes part in the filter's verdict.
PATH = (AGAINST, AGAINST_VERTICAL, STEP, REPLAY)
# The distances of a fix from what the IMU gives, horizontally and vertically.
OFF = ("position_off_m", "altitude_off_m", "velocity_off_mps", "climb_off_mps")


class Rows(NamedTuple):
    """Samples of one kind; `data` is [row, field]."""

    slot: I4
    t: F8
    data: F8


class Tables(NamedTuple):
    """The records of all vehicles, by slot: the filter's, and those of the test for slow faults."""

    vehicles: NDArray[Any]
    slow: NDArray[Any]


class Judged(NamedTuple):
    """What is said of each fix: score (NaN: nothing to judge), sigma by [fix, channel], and the vehicle's displacement.

    `away` is by [fix, axis], m north, east and down; `away_t` since when (0: the position is established); `taken`
    whether the last verdict ended because the GPS was taken as true. `off` is how far the fix is from what the IMU
    gives, by [fix, of OFF]; NaN where the fix does not say.
    """

    score: F8
    sigma: F8
    away: F8
    away_t: F8
    taken: Bool
    off: F8

    def at(self, rows: I8) -> Judged:
        """Some of the fixes."""
        away, off = self.away[rows], self.off[rows]
        return Judged(self.score[rows], self.sigma[rows], away, self.away_t[rows], self.taken[rows], off)

    def and_then(self, others: Judged) -> Judged:
        """These and others."""
        pairs: Any = zip(self, others, strict=True)
        return Judged(*(np.concatenate(pair) for pair in pairs))


def blank_judged(fixes: int) -> Judged:
    """Room for the judgement of so many fixes."""
    return Judged(
        np.empty(fixes), np.zeros((fixes, len(CHANNELS))), np.empty((fixes, 3)), np.empty(fixes), np.empty(fixes, bool),
        np.empty((fixes, len(OFF))),
    )  # fmt: skip


@njit(cache=True)
def run(
    tables: Tables, work: NDArray[Any], par: Settings, imu: Rows, gps: Rows, path: F8, judged: Judged
) -> None:  # fmt: skip
    """Judge every GPS row; `path` is what its receiver shows by itself, by [fix, of PATH]."""
    imu_slot, imu_t, gps_slot, gps_t = imu.slot, imu.t, gps.slot, gps.t
    # no literal: what is called with one would be compiled for it, and again for what follows
    i = g = int(np.int64(0))
    while i < imu_t.size or g < gps_t.size:
        imu_next = i < imu_t.size and (g >= gps_t.size or imu_slot[i] <= gps_slot[g])
        slot = imu_slot[i] if imu_next else gps_slot[g]
        row, slow = tables.vehicles[slot], tables.slow[slot]
        while True:
            with_imu = i < imu_t.size and imu_slot[i] == slot
            with_gps = g < gps_t.size and gps_slot[g] == slot
            if with_imu and (not with_gps or imu_t[i] <= gps_t[g]):
                take_imu(row, par, work[0], imu_t[i], imu.data, i)
                i += 1
            elif with_gps:
                judged.score[g] = take_gps(
                    row, slow, par, work[0], Heard(gps_t[g], gps.data, g, path[g]), judged.sigma[g]
                )
                for k in range(3):
                    judged.away[g, k] = row.away[k]
                judged.away_t[g] = row.away_t
                judged.taken[g] = row.taken == 1
                _tell_off(work[0], judged.off[g])
                g += 1
            else:
                break


@njit(cache=True)
def _tell_off(work: Work, off: F8) -> None:
    """The residual of the last fix in metres and metres per second, in the order of OFF."""
    residual = work.residual
    off[0] = math.sqrt(residual[0] ** 2 + residual[1] ** 2)
    off[1] = abs(residual[2])
    off[2] = math.sqrt(residual[3] ** 2 + residual[4] ** 2)
    off[3] = abs(residual[5])
