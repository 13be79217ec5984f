"""Whether what a vehicle sends can be what the configuration says it is: units of the IMU, axes of the GPS.

No filter: for spans of a second the gyros alone turn the specific force into a frame that does not rotate, and the GPS
tells the same vectors in north, east and down (velocity change minus gravity). A constant rotation must bring one set
onto the other (wahba.py). The part of the vectors that the best one leaves over, the misfit, is compared for what was
sent and for what it may have been meant to be:

    as sent         rad/s, m/s2, axes as configured
    degrees         the rates were in deg/s
    mirrored        the GPS is in the other local frame (`enu` for `ned`, or the reverse)
    inverted        the IMU sends acceleration with the sign of gravity turned round
    reversed        the rates have the wrong sign
    handed          the axes of the body are left-handed: two are swapped, or one has the wrong sign

The size of the force is judged apart: its mean is gravity, within a factor of two, on everything that is not in orbit.
A vehicle is looked at until one of these is clearly the better one; then its verdict stands and costs nothing more.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.gps_imu.constants import (
    DOUBT_CLEAR,
    DOUBT_FIT,
    DOUBT_MOTION,
    DOUBT_PAUSE_S,
    DOUBT_RUN,
    DOUBT_S,
    DOUBT_SPANS,
    FORCE_HIGH,
    FORCE_LOW,
    FORCE_MEAN_S,
    FORCE_RUN_S,
    SPAN_S,
)
from watchkeeper.detectors.gps_imu.kernel import Rows
from watchkeeper.detectors.gps_imu.state import Settings, Vector
from watchkeeper.detectors.kernels.wahba import best_rotation
from watchkeeper.streams.batch import F8
from watchkeeper.streams.geo import GRAVITY_MS2
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import GPS, IMU

# Verdicts.
OPEN, SOUND, FORCE, RATE, FRAME, SIGN = range(6)
# Hypotheses, by their misfit.
AS_SENT, DEGREES, MIRRORED, INVERTED, REVERSED, HANDED = range(6)
# What the rates are multiplied with: as sent, from degrees, with the other sign.
PART = (1.0, math.pi / 180.0, -1.0)
RATES = len(PART)
# Rotations below this many radians, squared, need no sine: the series is exact to 1e-7.
SMALL_SQ = 0.04


class Doubt:
    """What is known of one vehicle (detectors/kernels/records.py)."""

    verdict: int
    run: int
    """Spans in a row that said the same, `leaning`."""
    leaning: int
    imu_t: float
    imu_last: Annotated[F8, (6,)]
    force_mean: float
    """Leaky mean of the size of the specific force, m/s2."""
    force_s: float
    off_s: float
    """How long that mean has been out of its range."""
    # attitude against the frame that does not rotate, with the rates times PART; force integrated in it
    quat: Annotated[F8, (3, 4)]
    push: Annotated[F8, (3, 3)]
    push_before: Annotated[F8, (3, 3)]
    # the span: when it began, velocity then (or position, where there is none), mean velocity of the span before
    span_t: float
    begun: int
    vel: Vector
    pos: Vector
    speed: Vector
    means: int
    # leaky sums over spans: GPS velocity change x IMU, seconds x IMU, squares
    spans: float
    cross: Annotated[F8, (3, 3, 3)]
    down: Annotated[F8, (3, 3)]
    imu_sq: Annotated[F8, (3,)]
    change_sq: Annotated[F8, (2,)]
    """Squares of the velocity change: horizontal, all."""
    change_down: float
    span_sq: float
    misfit: Annotated[F8, (6,)]


class Space:
    """Working space: a record, as the filter's is, so that what both call is compiled once."""

    b: Annotated[F8, (3, 3)]
    k: Annotated[F8, (4, 4)]
    vectors: Annotated[F8, (4, 4)]
    quat: Annotated[F8, (4,)]


@njit(cache=True)
def look(doubts: NDArray[Any], par: Settings, space: NDArray[Any], imu: Rows, gps: Rows) -> None:
    """One window: take the samples of all vehicles without a verdict, merged by time."""
    # no literal: what is called with one would be compiled for it, and again for what follows
    i = g = int(np.int64(0))
    while i < imu.t.size or g < gps.t.size:
        imu_next = i < imu.t.size and (g >= gps.t.size or imu.slot[i] <= gps.slot[g])
        slot = imu.slot[i] if imu_next else gps.slot[g]
        row = doubts[slot]
        open_ = row.verdict != SOUND
        while True:
            with_imu = i < imu.t.size and imu.slot[i] == slot
            with_gps = g < gps.t.size and gps.slot[g] == slot
            if with_imu and (not with_gps or imu.t[i] <= gps.t[g]):
                if open_:
                    _take_imu(row, imu.t[i], imu.data, i)
                i += 1
            elif with_gps:
                if open_:
                    _take_gps(row, par, space[0], gps.t[g], gps.data, g)
                g += 1
            else:
                break


@njit(cache=True)
def _begin(row: Doubt, t: float) -> None:
    """Attitude and sums from here on."""
    for h in range(RATES):
        row.quat[h, 0], row.quat[h, 1], row.quat[h, 2], row.quat[h, 3] = 1.0, 0.0, 0.0, 0.0
    row.push[:, :] = 0.0
    row.push_before[:, :] = 0.0
    row.cross[:, :, :] = 0.0
    row.down[:, :] = 0.0
    row.imu_sq[:] = 0.0
    row.change_sq[:] = 0.0
    row.spans = row.change_down = row.span_sq = 0.0
    row.begun = row.means = row.run = 0
    row.imu_t = t


@njit(cache=True)
def _take_imu(row: Doubt, t: float, data: F8, i: int) -> None:
    """Turn the attitudes, and add the force in them. The body's axes do not matter: any right-handed ones will do."""
    fx, fy, fz = data[i, IMU.imu_ax], data[i, IMU.imu_ay], data[i, IMU.imu_az]
    wx, wy, wz = data[i, IMU.imu_wx], data[i, IMU.imu_wy], data[i, IMU.imu_wz]
    dt = t - row.imu_t
    if math.isnan(fx + fy + fz + wx + wy + wz) or dt == 0.0:
        return
    last = row.imu_last
    if row.imu_t == 0.0 or dt < 0.0 or dt > DOUBT_PAUSE_S:
        _begin(row, t)
        last[0], last[1], last[2], last[3], last[4], last[5] = fx, fy, fz, wx, wy, wz
        return
    row.imu_t = t
    size = math.sqrt(fx * fx + fy * fy + fz * fz)
    row.force_s += dt
    row.force_mean += (size - row.force_mean) * min(1.0, dt / min(row.force_s, FORCE_MEAN_S))
    off = row.force_mean < FORCE_LOW or row.force_mean > FORCE_HIGH
    row.off_s = row.off_s + dt if off else 0.0
    if row.off_s >= FORCE_RUN_S:
        row.verdict = FORCE
    elif row.verdict == FORCE and not off:
        row.verdict = OPEN
    ax, ay, az = 0.5 * (fx + last[0]) * dt, 0.5 * (fy + last[1]) * dt, 0.5 * (fz + last[2]) * dt
    rx, ry, rz = 0.5 * (wx + last[3]) * dt, 0.5 * (wy + last[4]) * dt, 0.5 * (wz + last[5]) * dt
    last[0], last[1], last[2], last[3], last[4], last[5] = fx, fy, fz, wx, wy, wz
    for h in range(RATES):
        part = PART[h]
        _turn(row.quat[h], part * rx, part * ry, part * rz)
        w, x, y, z = row.quat[h, 0], row.quat[h, 1], row.quat[h, 2], row.quat[h, 3]
        # rotate by the quaternion: v + 2 q x (q x v + w v)
        cx, cy, cz = y * az - z * ay + w * ax, z * ax - x * az + w * ay, x * ay - y * ax + w * az
        row.push[h, 0] += ax + 2.0 * (y * cz - z * cy)
        row.push[h, 1] += ay + 2.0 * (z * cx - x * cz)
        row.push[h, 2] += az + 2.0 * (x * cy - y * cx)


@njit(cache=True)
def _turn(q: F8, rx: float, ry: float, rz: float) -> None:
    """Turn an attitude by a rotation vector in body axes."""
    square = rx * rx + ry * ry + rz * rz
    if square < SMALL_SQ:
        c, s = 1.0 - 0.125 * square, 0.5 - square / 48.0
    else:
        angle = math.sqrt(square)
        c, s = math.cos(0.5 * angle), math.sin(0.5 * angle) / angle
    x, y, z = rx * s, ry * s, rz * s
    a, b, d, e = q[0], q[1], q[2], q[3]
    q[0] = a * c - b * x - d * y - e * z
    q[1] = a * x + b * c + d * z - e * y
    q[2] = a * y - b * z + d * c + e * x
    q[3] = a * z + b * y - d * x + e * c
    # its length is nearly 1: one step of Newton's method brings it there
    norm = 1.5 - 0.5 * (q[0] ** 2 + q[1] ** 2 + q[2] ** 2 + q[3] ** 2)
    for k in range(4):
        q[k] *= norm


@njit(cache=True)
def _take_gps(row: Doubt, par: Settings, space: Space, t: float, data: F8, g: int) -> None:
    """At the end of a span compare what GPS and IMU say about it."""
    if row.imu_t == 0.0 or abs(t - row.imu_t) > DOUBT_PAUSE_S:
        return
    if par.enu:
        vn, ve, vd = data[g, GPS.gps_vy], data[g, GPS.gps_vx], -data[g, GPS.gps_vz]
        n, e, d = data[g, GPS.gps_y], data[g, GPS.gps_x], -data[g, GPS.gps_z]
    else:
        vn, ve, vd = data[g, GPS.gps_vx], data[g, GPS.gps_vy], data[g, GPS.gps_vz]
        n, e, d = data[g, GPS.gps_x], data[g, GPS.gps_y], data[g, GPS.gps_z]
    moving = not math.isnan(vn + ve)
    if not moving and math.isnan(n + e):
        return
    span = t - row.span_t
    if row.begun == 0 or span <= 0.0 or span > DOUBT_PAUSE_S:
        row.begun, row.means = 1, 0
        _mark(row, t, vn, ve, vd, n, e, d)
        return
    if span < SPAN_S:
        return
    usable = True
    if moving:
        dn, de, dd = vn - row.vel[0], ve - row.vel[1], vd - row.vel[2]
        weight = 1.0
        for h in range(RATES):
            row.push_before[h, :] = 0.0
    else:
        mn, me, md = (n - row.pos[0]) / span, (e - row.pos[1]) / span, (d - row.pos[2]) / span
        dn, de, dd = mn - row.speed[0], me - row.speed[1], md - row.speed[2]
        usable = row.means > 0
        row.speed[0], row.speed[1], row.speed[2] = mn, me, md
        row.means = 1
        weight = 0.5
    if math.isnan(dd):
        dd = 0.0
    if usable and not math.isnan(dn + de):
        _add(row, dn, de, dd, span, weight)
        _compare(row, space)
    _mark(row, t, vn, ve, vd, n, e, d)


@njit(cache=True)
def _mark(row: Doubt, t: float, vn: float, ve: float, vd: float, n: float, e: float, d: float) -> None:
    row.span_t = t
    row.vel[0], row.vel[1], row.vel[2] = vn, ve, vd
    row.pos[0], row.pos[1], row.pos[2] = n, e, d
    for h in range(RATES):
        for k in range(3):
            row.push_before[h, k] = row.push[h, k]
            row.push[h, k] = 0.0


@njit(cache=True)
def _add(row: Doubt, dn: float, de: float, dd: float, span: float, weight: float) -> None:
    """One span into the sums; with `weight` 0.5 the IMU's vector is the mean of this span and the one before."""
    keep = math.exp(-span / DOUBT_S)
    row.spans = row.spans * keep + 1.0
    row.change_sq[0] = row.change_sq[0] * keep + dn * dn + de * de
    row.change_sq[1] = row.change_sq[1] * keep + dn * dn + de * de + dd * dd
    row.change_down = row.change_down * keep + dd * span
    row.span_sq = row.span_sq * keep + span * span
    for h in range(RATES):
        row.imu_sq[h] *= keep
        for j in range(3):
            push = weight * row.push[h, j] + (1.0 - weight) * row.push_before[h, j]
            row.imu_sq[h] += push * push
            row.cross[h, 0, j] = row.cross[h, 0, j] * keep + dn * push
            row.cross[h, 1, j] = row.cross[h, 1, j] * keep + de * push
            row.cross[h, 2, j] = row.cross[h, 2, j] * keep + dd * push
            row.down[h, j] = row.down[h, j] * keep + span * push


@njit(cache=True)
def _compare(row: Doubt, space: Space) -> None:
    """The misfits of all hypotheses, and what follows when one is clearly the best for some spans."""
    if row.spans < DOUBT_SPANS:
        return
    for case in range(6):
        row.misfit[case] = _misfit(row, space, case)
    fit = row.misfit
    motion = row.change_sq[0]
    leaning = OPEN
    turned = min(fit[REVERSED], fit[HANDED])
    if fit[AS_SENT] > DOUBT_FIT and fit[DEGREES] < min(DOUBT_FIT, DOUBT_CLEAR * fit[AS_SENT], turned):
        leaning = RATE
    elif motion >= DOUBT_MOTION:
        other = min(fit[MIRRORED], fit[INVERTED])
        if fit[AS_SENT] < DOUBT_CLEAR * min(other, turned, fit[DEGREES]):
            leaning = SOUND
        elif min(other, turned) < min(DOUBT_FIT, DOUBT_CLEAR * fit[AS_SENT]):
            leaning = FRAME if fit[MIRRORED] <= min(fit[INVERTED], turned) else SIGN
    row.run = row.run + 1 if leaning == row.leaning else 1
    row.leaning = leaning
    if leaning != OPEN and row.run >= DOUBT_RUN and row.verdict != FORCE:
        row.verdict = leaning


@njit(cache=True)
def _misfit(row: Doubt, space: Space, case: int) -> float:
    """The part of the vectors that the best rotation leaves over: 0 fits, 1 has nothing in common."""
    h = 1 if case == DEGREES else 2 if case in (REVERSED, HANDED) else 0
    sign = -1.0 if case in (INVERTED, HANDED) else 1.0
    cross, b = row.cross[h], space.b
    for j in range(3):
        if case == MIRRORED:
            b[0, j], b[1, j], b[2, j] = cross[1, j], cross[0, j], -cross[2, j]
        else:
            b[0, j], b[1, j], b[2, j] = sign * cross[0, j], sign * cross[1, j], sign * cross[2, j]
        b[2, j] -= sign * GRAVITY_MS2 * row.down[h, j]
    vertical = -row.change_down if case == MIRRORED else row.change_down
    gps_sq = row.change_sq[1] - 2.0 * GRAVITY_MS2 * vertical + GRAVITY_MS2**2 * row.span_sq
    if gps_sq <= 0.0 or row.imu_sq[h] <= 0.0:
        return 1.0
    best_rotation(b, space.k, space.vectors, space.quat)
    most = max(space.k[0, 0], space.k[1, 1], space.k[2, 2], space.k[3, 3])
    # in units in which both sets are of one size: the unit of force does not matter here
    misfit: float = 1.0 - most / math.sqrt(gps_sq * row.imu_sq[h])
    return misfit
