"""Whom gps_imu judges, and why not the others: from the table of filters, the doubts and the fleet, in columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.fleet.reasons import Code, no_stream
from watchkeeper.detectors.gps_imu.alone.constants import BLIND_EPH_M, BLIND_HDOP
from watchkeeper.detectors.gps_imu.constants import DOUBT_MOTION, FRESH_S
from watchkeeper.detectors.gps_imu.doubts import FORCE, FRAME, OPEN, RATE, SIGN, SOUND
from watchkeeper.detectors.gps_imu.state import ALIGNING, TRACKING
from watchkeeper.streams.batch import F8, U1, Bool
from watchkeeper.streams.geo import GRAVITY_MS2
from watchkeeper.streams.messages import COLUMN, FIX_MIN, Kind

_VERDICT: U1 = np.zeros(6, np.uint8)
_VERDICT[[FORCE, RATE, FRAME, SIGN]] = (Code.UNITS_FORCE, Code.UNITS_RATE, Code.WRONG_FRAME, Code.WRONG_FRAME)
_GPS = COLUMN[Kind.GPS]
_VX = _GPS["gps_vx"]
# What a receiver says of a position that can be used: field, least, most.
_USABLE = (
    ("fix", FIX_MIN, np.inf), ("sats", 1.0, np.inf), ("eph", -np.inf, BLIND_EPH_M), ("hdop", -np.inf, BLIND_HDOP),
)  # fmt: skip
# Mean force, m/s2, up to which a guess about its unit holds.
_GUESSES = (
    (0.3, "gravity seems to be taken out"),
    (3.0, "they seem to be in g"),
    (25.0, ""),
    (60.0, "they seem to be in ft/s2"),
    (2000.0, "they seem to be in mg or cm/s2"),
)


def codes_of(fleet: Fleet, table: NDArray[Any], doubts: NDArray[Any], judged_t: F8, t: float) -> U1:
    """A code for every slot in use.

    A vehicle that does not accelerate shows no attitude, and needs none for its jumps to be seen: it is judged as soon
    as its fixes have scores. One that does is judged when it is tracked. Wrong axes fit as well as right ones until the
    vehicle has turned and accelerated: before that it is not plainly watched.
    """
    n = fleet.high
    phase, verdict = table["phase"][:n], doubts["verdict"][:n]
    gps, imu = fleet.count[Kind.GPS, :n] > 0, fleet.count[Kind.IMU, :n] > 0
    moving, tracked = doubts["change_sq"][:n, 0] >= DOUBT_MOTION, phase == TRACKING
    scored = t - judged_t[:n] <= FRESH_S
    codes = np.where(tracked | ~moving, Code.LEARNING, Code.ALIGNING).astype(np.uint8)
    codes[phase < ALIGNING] = Code.WAITING
    codes[scored & ~moving] = Code.UNALIGNED
    codes[scored & tracked] = Code.UNCONFIRMED
    codes[scored & tracked & (verdict == SOUND)] = Code.WATCHED
    for kind in (Kind.GPS, Kind.IMU):
        codes[t - fleet.last_t[kind, :n] > FRESH_S] = Code.SILENT
    codes = np.where(_VERDICT[verdict] > 0, _VERDICT[verdict], codes)
    codes[gps & ~imu] = no_stream(Kind.IMU)
    codes[imu & ~gps] = no_stream(Kind.GPS)
    codes[~gps & ~imu] = Code.NOT_APPLICABLE
    codes[blind(fleet) & (t - fleet.last_t[Kind.GPS, :n] <= FRESH_S)] = Code.NO_FIX
    return codes


def blind(fleet: Fleet) -> Bool:
    """Whose receiver says in its newest sample that it has no position: no fix, no satellite, no useful accuracy."""
    n = fleet.high
    last_t, value, value_t = fleet.last_t[Kind.GPS, :n], fleet.value[Kind.GPS][:, :n], fleet.value_t[Kind.GPS][:, :n]
    found = np.zeros(n, bool)
    for name, low, high in _USABLE:
        told = value_t[_GPS[name]] == last_t
        found |= told & ((value[_GPS[name]] < low) | (value[_GPS[name]] > high))
    return found


def reopen(doubts: NDArray[Any], codes: U1) -> None:
    """A vehicle that was found to be sound and is not tracked any more is looked at again."""
    n = len(codes)
    again = (doubts["verdict"][:n] == SOUND) & ((codes == Code.ALIGNING) | (codes == Code.LEARNING))
    if again.any():
        doubts["verdict"][:n][again] = OPEN


def words_of(fleet: Fleet, doubts: NDArray[Any], slot: int) -> str:
    """What was seen of one vehicle, for a person."""
    if blind(fleet)[slot]:
        return _of_receiver(fleet, slot)
    row = doubts[slot]
    verdict = int(row["verdict"])
    if verdict == FORCE:
        mean = float(row["force_mean"])
        guess = next((guess for limit, guess in _GUESSES if mean <= limit), "")
        gravity = f"gravity alone is {GRAVITY_MS2:.2f} m/s2"
        return f"they average {mean:,.2f} m/s2 where {gravity}{': ' if guess else ''}{guess}"
    if verdict == RATE:
        return "read as deg/s they fit the GPS"
    if verdict == FRAME:
        return "the GPS fits the IMU in the other local frame: enu for ned, or the reverse"
    if verdict == SIGN:
        return "axes of the body are swapped or mirrored, or accelerations or rates have the wrong sign"
    if fleet.count[Kind.GPS, slot] and not fleet.count[Kind.IMU, slot]:
        return "its GPS is judged by itself: a position and a velocity that are false together are not seen"
    if fleet.count[Kind.GPS, slot] and np.isnan(fleet.value[Kind.GPS][_VX, slot]):
        return "its GPS sends no velocity"
    return ""


def _of_receiver(fleet: Fleet, slot: int) -> str:
    """What a receiver without a position says of itself."""
    figures = (
        ("fix", "fix type {:.0f}"),
        ("sats", "{:.0f} satellites"),
        ("eph", "error {:,.0f} m"),
        ("hdop", "HDOP {:.0f}"),
    )
    values = ((words, float(fleet.value[Kind.GPS][_GPS[name], slot])) for name, words in figures)
    return ", ".join(words.format(value) for words, value in values if not np.isnan(value))
