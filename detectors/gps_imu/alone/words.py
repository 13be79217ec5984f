"""What a receiver says of itself: its accuracy, and whether it sees interference; each against what it usually says."""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.alone.constants import (
    BLIND_EPH_M,
    BLIND_HDOP,
    INDICATOR,
    SAID_S,
    SATS_FREE,
    SURE,
    USUAL_S,
    WARNS,
)
from watchkeeper.detectors.gps_imu.alone.state import Receiver
from watchkeeper.detectors.gps_imu.constants import ACCURACY_S
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import FIX_MIN, GPS


@njit(cache=True)
def is_blind(data: F8, i: int) -> bool:
    """Whether the receiver says that what it sends is no position. What is not told is NaN and says nothing."""
    return bool(
        data[i, GPS.fix] < FIX_MIN
        or data[i, GPS.sats] < 1.0
        or data[i, GPS.eph] > BLIND_EPH_M
        or data[i, GPS.hdop] > BLIND_HDOP
    )


@njit(cache=True)
def octaves_lost(row: Receiver, data: F8, i: int, dt: float, healthy: bool) -> float:
    """How many times the error estimate (eph, else hdop) has doubled, or satellites have halved beyond what is free."""
    error = data[i, GPS.eph] if data[i, GPS.eph] > 0.0 else data[i, GPS.hdop]
    usual, slow = row.accuracy, 1.0 - math.exp(-dt / ACCURACY_S)
    worse = 0.0
    for k in range(2):
        told = error if k == 0 else 1.0 / max(data[i, GPS.sats], 0.5)
        if not told > 0.0:
            continue
        log = math.log2(told)
        if usual[2 + k] == 0.0:
            usual[k], usual[2 + k] = log, 1.0
        worse = max(worse, log - usual[k] - (SATS_FREE if k == 1 else 0.0))
        if healthy:
            usual[k] += slow * (log - usual[k])
    return worse


@njit(cache=True)
def lasting_loss(row: Receiver, octaves: float, dt: float) -> float:
    """The same once it has lasted, else 0."""
    row.poor_s = row.poor_s + dt if octaves >= 1.0 else 0.0
    return octaves if row.poor_s >= SAID_S else 0.0


@njit(cache=True)
def interference(row: Receiver, data: F8, i: int, dt: float) -> float:
    """What the receiver says of jamming and spoofing, in thresholds: 1 a warning, 2 and more when it is sure.

    Where a receiver always warns, that is how it is; that it is sure counts always.
    """
    usual, known, slow = row.usual_word, row.known_word, 1.0 - math.exp(-dt / USUAL_S)
    state = data[i, GPS.jamming_state]
    said = 0.0
    if data[i, GPS.spoofing_state] >= WARNS:
        said = data[i, GPS.spoofing_state] - WARNS + 1.0
    if state >= SURE:
        said = max(said, 2.0)
    for k in range(4):
        if k == 0:
            told = data[i, GPS.jamming]
            more = (told - usual[0]) / INDICATOR
        elif k == 1:
            told = state
            more = state - usual[1] if state >= WARNS else 0.0
        else:
            told = data[i, GPS.noise if k == 2 else GPS.agc]
            told = math.log2(told) if told > 0.0 else math.nan
            # twice the noise, or half the gain
            more = told - usual[2] if k == 2 else usual[3] - told
        if math.isnan(told):
            continue
        if known[k] == 0.0:
            usual[k], more = told, 0.0
        known[k] += dt
        if more < 1.0:
            usual[k] += slow * (told - usual[k])
        elif known[k] > USUAL_S / 4.0:
            said = max(said, more)
        else:
            usual[k] += max(slow, dt / known[k]) * (told - usual[k])
    row.warned_s = row.warned_s + dt if said >= 1.0 else 0.0
    return said if row.warned_s >= SAID_S else 0.0
