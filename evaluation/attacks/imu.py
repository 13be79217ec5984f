"""What can go wrong with an IMU, and with the link that carries both sensors: as gps.py, by family."""

from __future__ import annotations

import numpy as np

from watchkeeper.evaluation.attacks.gps import Effect
from watchkeeper.evaluation.attacks.scene import FORCE, RATE, RAW, Scene
from watchkeeper.streams.batch import F8


def accel_bias(scene: Scene, size_mps2: float) -> None:
    """The accelerometers are off, in a direction of the body drawn at random."""
    scene.imu[FORCE] += _any_way(scene)[:, None] * size_mps2


def gyro_bias(scene: Scene, size_radps: float) -> None:
    """The gyros are off, about an axis of the body drawn at random."""
    scene.imu[RATE] += _any_way(scene)[:, None] * size_radps


def _any_way(scene: Scene) -> F8:
    way = scene.rng.standard_normal(3)
    unit: F8 = way / np.linalg.norm(way)
    return unit


def stuck(scene: Scene, _: float) -> None:
    """All six values repeat the last sample before the fault."""
    _hold(scene, RAW)


def accel_stuck(scene: Scene, _: float) -> None:
    """The accelerometers repeat their last values; the gyros go on."""
    _hold(scene, FORCE)


def gyro_stuck(scene: Scene, _: float) -> None:
    """The gyros repeat their last values; the accelerometers go on."""
    _hold(scene, RATE)


def _hold(scene: Scene, fields: slice) -> None:
    before = max(scene.imu_rows.start - 1, 0)
    scene.imu[fields] = scene.flight.imu.data[fields, before : before + 1]


def accel_scale(scene: Scene, part: float) -> None:
    """The accelerometers say this part more than there is, gravity included."""
    scene.imu[FORCE] *= 1.0 + part


def gyro_scale(scene: Scene, part: float) -> None:
    """The gyros say this part more than there is."""
    scene.imu[RATE] *= 1.0 + part


def accel_saturation(scene: Scene, limit_mps2: float) -> None:
    """The accelerometers end at this value, on every axis."""
    np.clip(scene.imu[FORCE], -limit_mps2, limit_mps2, out=scene.imu[FORCE])


def gyro_saturation(scene: Scene, limit_radps: float) -> None:
    """The gyros end at this value, on every axis."""
    np.clip(scene.imu[RATE], -limit_radps, limit_radps, out=scene.imu[RATE])


def dropout(scene: Scene, _: float) -> None:
    """No IMU sample arrives."""
    scene.imu_lost[:] = True


def link_loss(scene: Scene, _: float) -> None:
    """Neither GPS nor IMU samples arrive."""
    scene.gps_lost[:] = True
    scene.imu_lost[:] = True


EFFECTS: dict[str, Effect] = {
    "imu_accel_bias": accel_bias,
    "imu_gyro_bias": gyro_bias,
    "imu_stuck": stuck,
    "imu_accel_stuck": accel_stuck,
    "imu_gyro_stuck": gyro_stuck,
    "imu_accel_scale": accel_scale,
    "imu_gyro_scale": gyro_scale,
    "imu_accel_saturation": accel_saturation,
    "imu_gyro_saturation": gyro_saturation,
    "imu_dropout": dropout,
    "link_loss": link_loss,
}
