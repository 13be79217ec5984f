"""What can be done to a GPS receiver: spoofing, jamming, freezing, losing it, and its clock. One function per family.

Each changes a Scene in place and draws from its dice only. The size is the catalogue's magnitude, in the family's unit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from watchkeeper.evaluation.attacks.scene import FORCE, GLOBE, GPS, PLACE, VELOCITY, Scene
from watchkeeper.streams.batch import F8

Effect = Callable[[Scene, float], None]
DOWN = np.array((0.0, 0.0, 1.0))
# An intermittent spoofer: on for this long, off for this long.
ON_S, OFF_S = 2.0, 3.0
# How long the speed of a patient spoofer rises, and that of one who knows the IMU as well.
PATIENT_S, KNOWING_S = 10.0, 4.0
# Correlation of AR(1) errors from fix to fix: 4 s at 5 Hz, between white noise and a drift.
AR1 = 0.95
# A jammer needs this part of its window to overcome the signal; then the receiver has no fix.
JAM_PART = 1.0 / 3.0
# What a receiver reports at the end of that, and the velocity noise for each metre of position noise.
JAM_HDOP, JAM_SATS, JAM_VELOCITY_PER_M = 20.0, 3.0, 0.1


def bias(scene: Scene, size_m: float) -> None:
    """The position jumps to one side and stays there."""
    scene.move(scene.side()[:, None] * size_m * np.ones(len(scene.gps_s)))


def altitude_bias(scene: Scene, size_m: float) -> None:
    """The altitude jumps and stays there."""
    scene.move(DOWN[:, None] * size_m * np.ones(len(scene.gps_s)))


def drift(scene: Scene, speed_mps: float) -> None:
    """The position is pulled away at a constant speed; the velocity is not."""
    scene.move(scene.side()[:, None] * speed_mps * scene.gps_s)


def altitude_drift(scene: Scene, speed_mps: float) -> None:
    """The altitude is pulled away at a constant rate; the vertical velocity is not."""
    scene.move(DOWN[:, None] * speed_mps * scene.gps_s)


def velocity(scene: Scene, speed_mps: float) -> None:
    """The velocity is off to one side; the position is not."""
    scene.gps[VELOCITY] += scene.side()[:, None] * speed_mps


def coordinated(scene: Scene, speed_mps: float) -> None:
    """Position and velocity lie together: pulled away at a constant speed, and the velocity says so."""
    side = scene.side()[:, None]
    scene.move(side * speed_mps * scene.gps_s)
    scene.gps[VELOCITY] += side * speed_mps


def coordinated_ramp(scene: Scene, speed_mps: float) -> None:
    """As `coordinated`, but the speed rises over ten seconds, so that no single fix stands out."""
    _lead_away(scene, scene.side(), speed_mps, PATIENT_S)


def coordinated_imu(scene: Scene, speed_mps: float) -> None:
    """As `coordinated_ramp` over four seconds, and the accelerometers feel the acceleration that the GPS invents."""
    side = scene.side()
    _lead_away(scene, side, speed_mps, KNOWING_S)
    invented = side[:, None] * np.where(scene.imu_s < KNOWING_S, speed_mps / KNOWING_S, 0.0)
    # the transpose of body to local takes it into the body
    scene.imu[FORCE] += np.einsum("nbk,nk->bk", scene.tilt(), invented)


def _lead_away(scene: Scene, side: F8, speed_mps: float, ramp_s: float) -> None:
    s = scene.gps_s
    rising = np.minimum(s, ramp_s)
    scene.move(side[:, None] * speed_mps * (rising**2 / (2.0 * ramp_s) + (s - rising)))
    scene.gps[VELOCITY] += side[:, None] * speed_mps * rising / ramp_s


def noise(scene: Scene, sigma_m: float) -> None:
    """White noise on the position, half as much again on the altitude."""
    scene.move(scene.rng.standard_normal((3, len(scene.gps_s))) * (sigma_m * np.array((1.0, 1.0, 1.5)))[:, None])


def velocity_noise(scene: Scene, sigma_mps: float) -> None:
    """White noise on the velocity."""
    scene.gps[VELOCITY] += scene.rng.standard_normal((3, len(scene.gps_s))) * sigma_mps


def ar1(scene: Scene, sigma_m: float) -> None:
    """Correlated noise on the horizontal position, of this size in the long run, beginning at zero."""
    steps = scene.rng.standard_normal((2, len(scene.gps_s))) * sigma_m * np.sqrt(1.0 - AR1**2)
    error = np.zeros((3, len(scene.gps_s)))
    for k in range(1, len(scene.gps_s)):
        error[:2, k] = AR1 * error[:2, k - 1] + steps[:, k]
    scene.move(error)


def intermittent(scene: Scene, size_m: float) -> None:
    """The position jumps to one side for two seconds out of five."""
    on = scene.gps_s % (ON_S + OFF_S) < ON_S
    scene.move(scene.side()[:, None] * size_m * on)


def replay(scene: Scene, lag_s: float) -> None:
    """What the receiver said some seconds ago is played again: position and velocity of the earlier part."""
    _play_again(scene, lag_s, rebased=False)


def replay_here(scene: Scene, lag_s: float) -> None:
    """As `replay`, but the earlier path is moved so that it begins where the vehicle is: no jump, wrong velocity."""
    _play_again(scene, lag_s, rebased=True)


def _play_again(scene: Scene, lag_s: float, *, rebased: bool) -> None:
    clean, rows = scene.flight.gps, scene.gps_rows
    # whole fixes back: by time, jitter would play one of them twice
    back = max(1, round(lag_s / float(np.median(np.diff(clean.t)))))
    earlier = clean.data[:, np.maximum(np.arange(rows.start, rows.stop) - back, 0)]
    if rebased:
        place = [*range(PLACE.start, PLACE.stop), *GLOBE]
        earlier[place] += (scene.gps[place, 0] - earlier[place, 0])[:, None]
    scene.gps[:] = earlier


def freeze(scene: Scene, _: float) -> None:
    """The last fix before the attack again and again, with new time stamps."""
    scene.gps[:] = scene.flight.gps.data[:, [max(scene.gps_rows.start - 1, 0)]]


def dropout(scene: Scene, _: float) -> None:
    """No fix arrives."""
    scene.gps_lost[:] = True


def jamming(scene: Scene, sigma_m: float) -> None:
    """The accuracy collapses for a third of the window (noise, hdop, eph, sats where there are any), then no fix."""
    part = np.minimum(scene.gps_s / (JAM_PART * scene.seconds), 1.0)
    fixes = len(part)
    scene.move(scene.rng.standard_normal((3, fixes)) * sigma_m * part)
    scene.gps[VELOCITY] += scene.rng.standard_normal((3, fixes)) * (JAM_VELOCITY_PER_M * sigma_m * part)
    # fields that the receiver does not send are NaN and stay so
    for name, worst in (("hdop", JAM_HDOP), ("sats", JAM_SATS), ("eph", 2.0 * sigma_m), ("epv", 3.0 * sigma_m)):
        field = scene.gps[GPS[name]]
        scene.gps[GPS[name]] = field + (worst - field) * part
    scene.gps_lost[part >= 1.0] = True


def clock(scene: Scene, offset_s: float) -> None:
    """The time stamps run ahead by this much: each fix is that much older than it says."""
    scene.gps_t += offset_s


EFFECTS: dict[str, Effect] = {
    "gps_bias": bias,
    "gps_altitude_bias": altitude_bias,
    "gps_drift": drift,
    "gps_altitude_drift": altitude_drift,
    "gps_velocity": velocity,
    "coordinated": coordinated,
    "coordinated_ramp": coordinated_ramp,
    "coordinated_imu": coordinated_imu,
    "gps_noise": noise,
    "gps_velocity_noise": velocity_noise,
    "gps_ar1": ar1,
    "gps_intermittent": intermittent,
    "gps_replay": replay,
    "gps_replay_here": replay_here,
    "gps_freeze": freeze,
    "gps_dropout": dropout,
    "gps_jamming": jamming,
    "gps_clock": clock,
}
