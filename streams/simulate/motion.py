"""How a drone moves: position, velocity, acceleration, attitude and body rates at any time, in closed form.

A mission is a list of segments. Over each, horizontal speed, course rate, climb rate and an "airborne" envelope go
smoothly (a quintic with no slope or curvature at its ends) from one value to the next, so acceleration and jerk
are continuous and the angular rates of a body that banks into its turns follow exactly. On top comes a slow wander
of a few decimetres: gusts, and the autopilot's answer. Missions end where they began and are flown again and again.

Frames: local NED in metres over a flat Earth that does not turn; body FRD; Euler angles roll, pitch, yaw in rad.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from watchkeeper.streams.batch import F8, I4, I8
from watchkeeper.streams.geo import GRAVITY_MS2
from watchkeeper.streams.kernels import njit

QUAD, WING = 0, 1
# Columns of a segment: start and length in s; speed, course rate, climb rate, envelope before and after; course and
# position (north, east, down) at its start.
START, LENGTH, V0, V1, R0, R1, W0, W1, E0, E1, COURSE, NORTH, EAST, DOWN = range(14)
SEGMENT = 14
# A multirotor leans against its drag: thrust carries this much extra acceleration per m/s of speed.
QUAD_DRAG_PER_S = 0.04
WING_ALPHA_RAD = 0.05  # angle of attack in level flight
WING_SOFT_SPEED = 4.0  # m/s; keeps the pitch angle defined at rest
TONES = 2  # sines per axis in the wander
# Gauss-Legendre on [0, 1], 8 points: exact for the polynomial parts, 1e-9 m for turns that begin or end.
_X8, _W8 = np.polynomial.legendre.leggauss(8)
_NODES: F8 = (_X8 + 1.0) / 2.0
_WEIGHTS: F8 = _W8 / 2.0


@njit(cache=True)
def _ramp(x: float) -> tuple[float, float, float, float, float]:
    """The quintic step at x in [0, 1]: its integral, value and three derivatives."""
    x2 = x * x
    y = 1.0 - x
    return (
        x2 * x2 * (2.5 - 3.0 * x + x2),
        x2 * x * (10.0 - 15.0 * x + 6.0 * x2),
        30.0 * x2 * y * y,
        60.0 * x * y * (1.0 - 2.0 * x),
        60.0 * (1.0 - 6.0 * x + 6.0 * x2),
    )


@njit(cache=True)
def displacement(seg: F8, at_s: float) -> tuple[float, float, float]:
    """How far north, east and down the drone has come `at_s` seconds into a segment."""
    length = seg[LENGTH]
    up = seg[W0] * at_s + (seg[W1] - seg[W0]) * length * _ramp(at_s / length)[0]
    v0, v1, r0, r1, course = seg[V0], seg[V1], seg[R0], seg[R1], seg[COURSE]
    if v0 == v1 and r0 == r1:
        half = r0 * at_s / 2.0
        chord = v0 * at_s * (math.sin(half) / half if abs(half) > 1e-9 else 1.0)
        return chord * math.cos(course + half), chord * math.sin(course + half), -up
    north = east = 0.0
    for k in range(_NODES.size):
        s = at_s * _NODES[k]
        area, step, _, _, _ = _ramp(s / length)
        speed = v0 + (v1 - v0) * step
        angle = course + r0 * s + (r1 - r0) * length * area
        north += _WEIGHTS[k] * speed * math.cos(angle)
        east += _WEIGHTS[k] * speed * math.sin(angle)
    return north * at_s, east * at_s, -up


@njit(cache=True)
def _find(segs: F8, first: int, count: int, t: float) -> int:
    lo, hi = first, first + count
    while hi - lo > 1:
        mid = (lo + hi) // 2
        if segs[mid, START] <= t:
            lo = mid
        else:
            hi = mid
    return lo


class Plan(NamedTuple):
    """What all drones do, by drone: its segments, how long they last, and how it wanders about its path."""

    segs: F8
    first: I8
    segments: I8
    cycle_s: F8
    offset_s: F8
    home: F8
    wander: F8
    shape: I4


@njit(cache=True)
def track(vid: I4, t: F8, plan: Plan, out: F8) -> None:
    """Position and velocity of each sample: `out` is [6, n], north, east, down and their rates."""
    segs, home, wander = plan.segs, plan.home, plan.wander
    for i in range(vid.size):
        d = vid[i]
        m = (t[i] + plan.offset_s[d]) % plan.cycle_s[d]
        seg = segs[_find(segs, plan.first[d], plan.segments[d], m)]
        s, length = m - seg[START], seg[LENGTH]
        north, east, down = displacement(seg, s)
        area, step, slope, _, _ = _ramp(s / length)
        speed = seg[V0] + (seg[V1] - seg[V0]) * step
        course = seg[COURSE] + seg[R0] * s + (seg[R1] - seg[R0]) * length * area
        env = seg[E0] + (seg[E1] - seg[E0]) * step
        env1 = (seg[E1] - seg[E0]) * slope / length
        out[0, i] = home[d, 0] + seg[NORTH] + north
        out[1, i] = home[d, 1] + seg[EAST] + east
        out[2, i] = home[d, 2] + seg[DOWN] + down
        out[3, i] = speed * math.cos(course)
        out[4, i] = speed * math.sin(course)
        out[5, i] = -(seg[W0] + (seg[W1] - seg[W0]) * step)
        for axis in range(3):
            for k in range(TONES):
                size, omega = wander[d, axis, k, 0], wander[d, axis, k, 1]
                phase = omega * t[i] + wander[d, axis, k, 2]
                out[axis, i] += env * size * math.sin(phase)
                out[3 + axis, i] += size * (env1 * math.sin(phase) + env * omega * math.cos(phase))


@njit(cache=True)
def body(vid: I4, t: F8, plan: Plan, out: F8) -> None:
    """What a perfect IMU feels: `out` is [10, n], specific force, angular rate, roll, pitch, yaw, envelope."""
    segs, wander = plan.segs, plan.wander
    vel, acc, jerk = np.zeros(3), np.zeros(3), np.zeros(3)
    for i in range(vid.size):
        d = vid[i]
        m = (t[i] + plan.offset_s[d]) % plan.cycle_s[d]
        seg = segs[_find(segs, plan.first[d], plan.segments[d], m)]
        s, length = m - seg[START], seg[LENGTH]
        area, step, slope, bend, third = _ramp(s / length)
        dv, dr, dw, de = seg[V1] - seg[V0], seg[R1] - seg[R0], seg[W1] - seg[W0], seg[E1] - seg[E0]
        v, v1, v2 = seg[V0] + dv * step, dv * slope / length, dv * bend / (length * length)
        r, r1 = seg[R0] + dr * step, dr * slope / length
        w, w1, w2 = seg[W0] + dw * step, dw * slope / length, dw * bend / (length * length)
        e, e1, e2 = seg[E0] + de * step, de * slope / length, de * bend / (length * length)
        e3 = de * third / (length * length * length)
        yaw = seg[COURSE] + seg[R0] * s + dr * length * area
        c, sn = math.cos(yaw), math.sin(yaw)

        vel[0], vel[1], vel[2] = v * c, v * sn, -w
        acc[0], acc[1], acc[2] = v1 * c - v * r * sn, v1 * sn + v * r * c, -w1
        along, across = v2 - v * r * r, 2.0 * v1 * r + v * r1
        jerk[0], jerk[1], jerk[2] = along * c - across * sn, along * sn + across * c, -w2
        for axis in range(3):
            for k in range(TONES):
                size, om = wander[d, axis, k, 0], wander[d, axis, k, 1]
                phase = om * t[i] + wander[d, axis, k, 2]
                p0, p1 = size * math.sin(phase), size * om * math.cos(phase)
                p2, p3 = -om * om * p0, -om * om * p1
                vel[axis] += e1 * p0 + e * p1
                acc[axis] += e2 * p0 + 2.0 * e1 * p1 + e * p2
                jerk[axis] += e3 * p0 + 3.0 * e2 * p1 + 3.0 * e1 * p2 + e * p3

        if plan.shape[d] == QUAD:
            roll, pitch, roll1, pitch1 = _lean(vel, acc, jerk, c, sn, r)
        else:
            roll, pitch, roll1, pitch1 = _bank(v, v1, r, r1, w, w1)
        sr, cr, sp, cp = math.sin(roll), math.cos(roll), math.sin(pitch), math.cos(pitch)

        # specific force: acceleration less gravity, turned by yaw, then pitch, then roll into the body
        fn, fe, fd = acc[0], acc[1], acc[2] - GRAVITY_MS2
        hx, hy = c * fn + sn * fe, -sn * fn + c * fe
        px, pz = cp * hx - sp * fd, sp * hx + cp * fd
        out[0, i] = px
        out[1, i] = cr * hy + sr * pz
        out[2, i] = -sr * hy + cr * pz
        out[3, i] = roll1 - r * sp
        out[4, i] = pitch1 * cr + r * sr * cp
        out[5, i] = -pitch1 * sr + r * cr * cp
        out[6, i] = roll
        out[7, i] = pitch
        out[8, i] = (yaw + math.pi) % (2.0 * math.pi) - math.pi
        out[9, i] = e


@njit(cache=True)
def _lean(vel: F8, acc: F8, jerk: F8, c: float, sn: float, r: float) -> tuple[float, float, float, float]:
    """Roll, pitch and their rates of a multirotor, whose thrust must point along what it has to give."""
    tn, te = acc[0] + QUAD_DRAG_PER_S * vel[0], acc[1] + QUAD_DRAG_PER_S * vel[1]
    tz = acc[2] - GRAVITY_MS2
    dn, de, dz = jerk[0] + QUAD_DRAG_PER_S * acc[0], jerk[1] + QUAD_DRAG_PER_S * acc[1], jerk[2]
    tx, ty = c * tn + sn * te, -sn * tn + c * te
    dx, dy = c * dn + sn * de + r * ty, -sn * dn + c * de - r * tx
    flat2 = tx * tx + tz * tz
    flat = math.sqrt(flat2)
    flat1 = (tx * dx + tz * dz) / flat
    roll, pitch = math.atan2(ty, flat), math.atan2(-tx, -tz)
    return roll, pitch, (dy * flat - ty * flat1) / (flat2 + ty * ty), (dx * tz - tx * dz) / flat2


@njit(cache=True)
def _bank(v: float, v1: float, r: float, r1: float, w: float, w1: float) -> tuple[float, float, float, float]:
    """Roll, pitch and their rates of a fixed wing in a coordinated turn, with its nose a little above its path."""
    side, side1 = v * r / GRAVITY_MS2, (v1 * r + v * r1) / GRAVITY_MS2
    soft = math.sqrt(v * v + WING_SOFT_SPEED * WING_SOFT_SPEED)
    soft1 = v * v1 / soft
    slope, slope1 = w / soft, (w1 * soft - w * soft1) / (soft * soft)
    return (
        math.atan(side),
        math.atan(slope) + WING_ALPHA_RAD,
        side1 / (1.0 + side * side),
        slope1 / (1.0 + slope * slope),
    )
