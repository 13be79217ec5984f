"""What a receiver shows about itself: the beat of its fixes, how late they are, and how accurate it says that they are.

Called by fix.py for each fix. A clock that steps is off the beat, a receiver that is later than thought shows
velocities that lag behind the acceleration, and a jammed one loses satellites before it loses its position.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.alone.state import Receiver
from watchkeeper.detectors.gps_imu.constants import (
    ACCURACY_S,
    BEAT_GAIN,
    BEAT_S,
    BEAT_SLIP,
    BEATS,
    BEATS_OFF,
    DELAY_MAX,
    DELAY_PRIOR,
    DELAY_S,
    FIND_GAIN,
    LEAD_MAX,
    LEAD_PRIOR,
    LEAD_S,
)
from watchkeeper.detectors.gps_imu.state import TIMING, Settings, Vehicle, Work
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import GPS


@njit(cache=True)
def fix_timing(row: Vehicle | Receiver, par: Settings, work: Work, dt: float) -> None:
    """Fixes come on a regular beat; a clock that steps shifts it, lost fixes do not."""
    if row.interval == 0.0:
        row.interval = dt
    count = max(1.0, math.floor(dt / row.interval + 0.5))
    off = dt - count * row.interval
    row.beats += 1
    if row.beats < BEATS:
        row.beat_s = 0.0
        row.interval += max(FIND_GAIN, 1.0 / row.beats) * off / count
    else:
        row.beat_s = (row.beat_s + off) * math.exp(-dt / BEAT_S)
        if abs(row.beat_s) < BEAT_SLIP * row.interval:
            row.interval += BEAT_GAIN * row.beat_s
            row.beats = BEATS
        elif row.beats > BEATS + BEATS_OFF:
            row.beats = 0  # another rate, not another clock
    work.distance[TIMING] = abs(row.beat_s) / (0.5 * par.timing_std_s)


@njit(cache=True)
def lost_accuracy(row: Vehicle, data: F8, i: int, dt: float, healthy: bool) -> float:
    """How many times the receiver's own error estimate (eph, else hdop) has doubled, or its satellites have halved."""
    error = data[i, GPS.eph] if data[i, GPS.eph] > 0.0 else data[i, GPS.hdop]
    sats = data[i, GPS.sats]
    usual, slow = row.accuracy, 1.0 - math.exp(-dt / ACCURACY_S)
    worse = 0.0
    for k, told in ((0, error), (1, 1.0 / max(sats, 0.5))):
        if not told > 0.0:
            continue
        log = math.log2(told)
        if usual[2 + k] == 0.0:
            usual[k], usual[2 + k] = log, 1.0
        worse = max(worse, log - usual[k])
        if healthy:
            usual[k] += slow * (log - usual[k])
    return worse


@njit(cache=True)
def learn_delay(row: Vehicle, par: Settings, work: Work, span: float) -> None:
    """A receiver that is later than thought shows velocities that lag behind the acceleration."""
    residual, moved = work.residual, work.moved
    if math.isnan(residual[3]):
        return
    square = (moved[0] * moved[0] + moved[1] * moved[1]) / (span * span)
    along = (residual[3] * moved[0] + residual[4] * moved[1]) / span
    row.delay_weight = DELAY_PRIOR + (row.delay_weight - DELAY_PRIOR) * math.exp(-span / DELAY_S) + square
    step = along + DELAY_PRIOR * span / DELAY_S * (row.delay_s - par.gps_delay_s)
    row.delay_s = min(max(row.delay_s - step / row.delay_weight, 0.0), DELAY_MAX)


@njit(cache=True)
def learn_lead(row: Vehicle, span: float) -> None:
    """Where the velocity is older than the position, the path strays from it by that time times its change."""
    along = square = 0.0
    for k in range(2):
        along += row.swung[k] * (row.strayed[k] - row.lead_s * row.swung[k])
        square += row.swung[k] ** 2
    row.lead_weight = LEAD_PRIOR + max(row.lead_weight - LEAD_PRIOR, 0.0) * math.exp(-span / LEAD_S) + square
    step = along - LEAD_PRIOR * span / LEAD_S * row.lead_s
    row.lead_s = min(max(row.lead_s + step / row.lead_weight, -LEAD_MAX), LEAD_MAX)
