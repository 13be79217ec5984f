"""A close look at one vehicle's sensors: what the recent samples in its ring buffers say about a contradiction.

A wrong frame, unit or axis turns or scales everything from one sample to the next; a spoofer moves the position; a
broken IMU feels a force that no velocity shows. Shares are between 0 and 1 and mean what tools.py says.
The forces are compared with the velocities by way of the attitude that the vehicle sends; without one that is left out.
Local coordinates may be NED or ENU; axes of the body are front, right, down, or front, left, up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from watchkeeper.config.schema import Frames
from watchkeeper.streams.batch import F8
from watchkeeper.streams.geo import GRAVITY_MS2
from watchkeeper.streams.messages import COLUMN, Kind

_G, _I = COLUMN[Kind.GPS], COLUMN[Kind.IMU]
_POSITION, _VELOCITY = [_G[f"gps_{a}"] for a in "xyz"], [_G[f"gps_v{a}"] for a in "xyz"]
_FORCE, _ATTITUDE = [_I[f"imu_a{a}"] for a in "xyz"], [_I[a] for a in ("roll", "pitch", "yaw")]
_INERTIAL = _FORCE + [_I[f"imu_w{a}"] for a in "xyz"]
# Frames that are mistaken for each other: NED for ENU, up for down, east for north.
_TURNS = (
    np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]),
    np.diag((1.0, 1.0, -1.0)),
    np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
)
# A position that moves by this much more than its velocity says has jumped.
JUMP_M = 8.0
# Units that are mistaken for metres: feet for metres and the other way round, centimetres, millimetres. No other factor
# is a unit: a spoofer who moves the position away from the origin, or to it, has one too.
_FACTORS = (0.3048, 1.0 / 0.3048, 100.0, 1000.0)
# A force that no velocity shows: half of a contradiction is explained at half of this.
ODD_FORCE_MS2 = 1.2
# Newest IMU samples that count, and how old a fix is at its time stamp.
FORCE_S, FIX_AGE_S = 3.0, 0.15
TELLING = 0.9


@dataclass(frozen=True, slots=True)
class GpsLook:
    """What the fixes alone say."""

    turned: float
    scaled: float
    jumped: float
    noise_db: float


def look_at_gps(t: F8, data: F8) -> GpsLook:
    """The largest jump in the history of fixes, and how much worse the receiver rates itself than at its start."""
    if len(t) < 4:
        return GpsLook(0.0, 0.0, 0.0, 0.0)
    noise_db = _worse_db(data[_G["eph"]])
    position, velocity = data[_POSITION], data[_VELOCITY]
    should = position[:, :-1] + velocity[:, :-1] * np.diff(t)
    step_m = np.linalg.norm(position[:, 1:] - should, axis=0)
    if not np.isfinite(step_m).any() or np.nanmax(step_m) < JUMP_M:
        return GpsLook(0.0, 0.0, 0.0, noise_db)
    at = int(np.nanargmax(step_m))
    old, new, jump_m = should[:, at], position[:, at + 1], float(step_m[at])
    turned = max(1.0 - float(np.linalg.norm(new - turn @ old)) / jump_m for turn in _TURNS)
    scaled = max(1.0 - float(np.linalg.norm(new - factor * old)) / jump_m for factor in _FACTORS)
    # half of a jump is explained by chance wherever the vehicle is near the origin
    turned, scaled = (share if share >= TELLING else 0.0 for share in (turned, scaled))
    return GpsLook(turned, scaled, 1.0, noise_db)


def _worse_db(eph: F8) -> float:
    """The newest error estimate over that of the first quarter."""
    first = eph[: max(3, len(eph) // 4)]
    first = first[np.isfinite(first)]
    before, now = float(np.median(first)) if len(first) else math.nan, float(eph[-1])
    # not the logarithm of the ratio, which is zero or infinite where the two are far enough apart
    return 20.0 * (math.log10(now) - math.log10(before)) if before > 0.0 and now > 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class ImuLook:
    """What the forces say; `odd_ms2` is the force that the velocities do not show, NaN when that cannot be told."""

    turned: float
    scaled: float
    stuck: bool
    odd_ms2: float


def look_at_imu(imu_t: F8, imu: F8, gps_t: F8, gps: F8, frames: Frames) -> ImuLook:
    """The newest seconds of forces: are they of the right size, along the right axis, and do velocities show them?"""
    recent = imu_t >= imu_t[-1] - FORCE_S if len(imu_t) else np.zeros(0, bool)
    force = imu[_FORCE][:, recent]
    if force.shape[1] < 10:
        return ImuLook(0.0, 0.0, False, math.nan)
    mean = force.mean(axis=1)
    size = float(np.linalg.norm(mean))
    stuck = bool((np.ptp(imu[_INERTIAL][:, recent], axis=1) == 0.0).all())
    # at rest or in steady flight gravity is the most of it; in g it is 1, and one cut off at 2 m/s2 is more than that
    scaled = TELLING if size < 0.2 * GRAVITY_MS2 or size > 3.0 * GRAVITY_MS2 else 0.0
    turned = TELLING if scaled == 0.0 and float(np.abs(mean[:2]).max()) > 0.7 * size else 0.0
    return ImuLook(turned, scaled, stuck, _odd_force(imu_t[recent], imu[:, recent], gps_t, gps, frames))


def _odd_force(t: F8, imu: F8, gps_t: F8, gps: F8, frames: Frames) -> float:
    """Size of the mean of (force turned into the local frame, plus gravity) minus the change of velocity, in m/s²."""
    shown = np.flatnonzero((gps_t - FIX_AGE_S >= t[0]) & (gps_t - FIX_AGE_S <= t[-1]))
    attitude = imu[_ATTITUDE]
    if len(shown) < 4 or not np.isfinite(attitude).all():
        return math.nan
    first, last = shown[0], shown[-1]
    span_s = float(gps_t[last] - gps_t[first])
    change = (gps[_VELOCITY, last] - gps[_VELOCITY, first]) / span_s
    if frames.local == "enu":
        change = np.array((change[1], change[0], -change[2]))
    within = (t >= gps_t[first] - FIX_AGE_S) & (t <= gps_t[last] - FIX_AGE_S)
    force = imu[_FORCE][:, within]
    if not force.shape[1]:
        return math.nan
    if frames.body == "flu":
        force = force * np.array((1.0, -1.0, -1.0))[:, None]
    felt = _to_ned(force, attitude[:, within]).mean(axis=1) + np.array((0.0, 0.0, GRAVITY_MS2))
    return float(np.linalg.norm(felt - change))


def _to_ned(force: F8, attitude: F8) -> F8:
    """Body to north, east, down, by roll, pitch and yaw."""
    (sr, sp, sy), (cr, cp, cy) = np.sin(attitude), np.cos(attitude)
    x, y, z = force
    turned: F8 = np.stack(
        (
            cp * cy * x + (sr * sp * cy - cr * sy) * y + (cr * sp * cy + sr * sy) * z,
            cp * sy * x + (sr * sp * sy + cr * cy) * y + (cr * sp * sy - sr * cy) * z,
            -sp * x + sr * cp * y + cr * cp * z,
        )
    )
    return turned
