"""A spoofer that flies the vehicle: the autopilot follows the GPS that lies, and the IMU feels where it really goes.

The position that the receiver reports is pulled aside, the autopilot takes that for an error and flies the other way.
What the receiver says hardly changes, the vehicle leaves its path. It is pulled by PULLED_M along a smooth step, so
that its acceleration peaks at the attack's size; the autopilot is a second-order loop, of which the reported position
shows the transient. The vehicle tilts its thrust to accelerate, as a multirotor does: gyros and attitude show the tilt,
accelerometers the new thrust.
"""

from __future__ import annotations

import math

import numpy as np

from watchkeeper.evaluation.attacks.scene import FORCE, RATE, VELOCITY, Scene
from watchkeeper.streams.batch import F8
from watchkeeper.streams.geo import GRAVITY_MS2

# How far the vehicle is pulled: enough for a crash into what it flies next to.
PULLED_M = 2.5
# The position loop of an autopilot: its natural frequency, rad/s, and damping. Chosen: a multirotor that answers within
# about two seconds without overshoot to speak of.
LOOP_RADPS, LOOP_DAMPING = 1.0, 0.8
# Largest second derivative of the septic step, whose first three derivatives are zero at both ends: a spoofer that
# begins with a jump would be found by it.
STEEPEST = 84.0 / (5.0 * math.sqrt(5.0))


def closed_loop(scene: Scene, peak_mps2: float) -> None:
    """The vehicle follows the lie: pulled aside by 2.5 m, at most this acceleration."""
    side = scene.side()[:, None]
    seconds = math.sqrt(STEEPEST * PULLED_M / peak_mps2)
    speed, accel, jerk = _step(scene.gps_s, seconds)
    scene.move(-side * (2.0 * LOOP_DAMPING / LOOP_RADPS * speed + accel / LOOP_RADPS**2))
    scene.gps[VELOCITY] -= side * (2.0 * LOOP_DAMPING / LOOP_RADPS * accel + jerk / LOOP_RADPS**2)
    _, accel, jerk = _step(scene.imu_s, seconds)
    _feel(scene, side * accel, side * jerk)


def _step(s: F8, seconds: float) -> tuple[F8, F8, F8]:
    """Speed, acceleration and jerk with which the vehicle is pulled."""
    x = np.clip(s / seconds, 0.0, 1.0)
    y = 1.0 - x
    return (
        PULLED_M / seconds * 140.0 * (x * y) ** 3,
        PULLED_M / seconds**2 * 420.0 * (x * y) ** 2 * (1.0 - 2.0 * x),
        PULLED_M / seconds**3 * 840.0 * x * y * (1.0 - 5.0 * x * y),
    )


def _feel(scene: Scene, accel: F8, jerk: F8) -> None:
    """What the IMU says of an acceleration, [3, sample] in local axes, that the vehicle leans into."""
    to_local = scene.tilt()
    lean, leaning = (np.stack((of[1], -of[0], np.zeros_like(of[0]))) / GRAVITY_MS2 for of in (accel, jerk))
    force = np.einsum("nbk,bk->nk", to_local, scene.imu[FORCE]) + accel
    turned = force - np.cross(lean, force, axis=0)
    scene.imu[FORCE] = np.einsum("nbk,nk->bk", to_local, turned)
    scene.imu[RATE] += np.einsum("nbk,nk->bk", to_local, leaning)
    scene.lean(lean)
