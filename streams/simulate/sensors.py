"""What a drone's sensors say: IMU and GPS with the errors of the real ones, from the exact motion of its mission.

IMU (specific force and rates, body FRD, gravity included): turn-on bias, slowly wandering bias, scale and axis
misalignment, white noise that grows with the sample rate, vibration while the motors run, lost samples, and
optionally the attitude of an AHRS with its own slow error. GPS (local NED): position error that wanders over
minutes, white velocity noise, gaps of up to two seconds, and a content that is older than its time stamp by the
receiver's latency. Times jitter, and content is that of the jittered time. Sizes are those of consumer parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from watchkeeper.streams.batch import F8, I4
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import COLUMN, FIELDS, Kind
from watchkeeper.streams.simulate.arrival import Chunk
from watchkeeper.streams.simulate.faults import Faults
from watchkeeper.streams.simulate.missions import Missions
from watchkeeper.streams.simulate.motion import QUAD

F4 = NDArray[np.float32]
GPS_RATE_HZ = 5.0


@dataclass(frozen=True, slots=True)
class Errors:
    """Sizes of the sensor errors (1 sigma where they are random); `NONE` is a perfect set of sensors."""

    accel_bias: float = 0.05  # m/s2, at turn-on
    accel_wander: float = 0.01  # m/s2, Gauss-Markov
    accel_density: float = 0.002  # m/s2 per root Hz
    gyro_bias: float = 0.003  # rad/s, at turn-on
    gyro_wander: float = 2e-4  # rad/s, Gauss-Markov
    gyro_density: float = 1.5e-4  # rad/s per root Hz
    wander_tau_s: float = 300.0
    scale: float = 0.003  # scale and misalignment of the axes
    vibration_quad: float = 0.25  # m/s2 in flight
    vibration_wing: float = 0.10
    vibration_gyro: float = 0.01  # rad/s in flight
    ahrs_tilt: float = 0.008  # rad, Gauss-Markov
    ahrs_yaw: float = 0.03
    ahrs_tau_s: float = 40.0
    gps_position: float = 1.0  # m per horizontal axis, Gauss-Markov; half as much again vertically
    gps_tau_s: float = 90.0
    gps_fine: float = 0.03  # m, white, on each fix
    gps_velocity: float = 0.08  # m/s, white; half as much again vertically
    gps_latency_s: tuple[float, float] = (0.1, 0.2)
    gps_jitter_s: float = 0.02
    gap_every_s: float = 300.0  # mean time between gaps of the GPS; 0: none
    gap_s: tuple[float, float] = (0.5, 2.0)  # under the 3 s after which silence is an alarm
    imu_lost: float = 0.001  # share of samples
    imu_jitter_share: float = 0.1  # of the sample interval
    link_s: tuple[float, float] = (0.02, 0.12)  # latency of each drone's radio link
    link_jitter_s: float = 0.01


REAL = Errors()
NONE = Errors(
    accel_bias=0.0, accel_wander=0.0, accel_density=0.0, gyro_bias=0.0, gyro_wander=0.0, gyro_density=0.0, scale=0.0,
    vibration_quad=0.0, vibration_wing=0.0, vibration_gyro=0.0, ahrs_tilt=0.0, ahrs_yaw=0.0, gps_position=0.0,
    gps_fine=0.0, gps_velocity=0.0, gps_latency_s=(0.0, 0.0), gps_jitter_s=0.0, gap_every_s=0.0, imu_lost=0.0,
    imu_jitter_share=0.0, link_s=(0.0, 0.0), link_jitter_s=0.0,
)  # fmt: skip

_G = COLUMN[Kind.GPS]
_PV = [_G[name] for name in ("gps_x", "gps_y", "gps_z", "gps_vx", "gps_vy", "gps_vz")]


class DroneSource:
    """The IMU and GPS samples of all drones: the Source for the arrival queue."""

    def __init__(
        self,
        missions: Missions,
        faults: Faults,
        rng: np.random.Generator,
        *,
        names: list[str],
        rate_hz: float,
        errors: Errors,
        ahrs: bool,
    ) -> None:
        n = len(missions)
        self._missions, self._faults, self._rng, self._errors = missions, faults, rng, errors
        self._rate_hz, self._ahrs = rate_hz, ahrs
        self.names = names
        self.callsigns = [""] * n
        e = errors
        jittery = e.link_jitter_s > 0.0
        self._imu_phase_s: F8 = rng.uniform(0.0, 1.0 / rate_hz, n) * jittery
        self._gps_phase_s: F8 = rng.uniform(0.0, 1.0 / GPS_RATE_HZ, n) * jittery
        self.latency_s: F8 = rng.uniform(*e.gps_latency_s, n)
        self._link_s: F8 = rng.uniform(*e.link_s, n)
        turn_on = np.repeat((e.accel_bias, e.gyro_bias), 3)
        self.bias: F8 = rng.standard_normal((n, 6)) * turn_on
        self._wander_size: F8 = np.repeat((e.accel_wander, e.gyro_wander), 3)
        self._wander: F8 = rng.standard_normal((n, 6)) * self._wander_size
        self._matrix: F8 = np.eye(3) + rng.standard_normal((n, 2, 3, 3)) * e.scale
        bandwidth = math.sqrt(rate_hz / 2.0)
        self._white: F8 = np.repeat((e.accel_density * bandwidth, e.gyro_density * bandwidth), 3)
        self._vibration: F8 = np.empty((n, 6))
        self._vibration[:, :3] = np.where(missions.shape == QUAD, e.vibration_quad, e.vibration_wing)[:, None]
        self._vibration[:, 3:] = e.vibration_gyro
        self._tilt_size: F8 = np.array((e.ahrs_tilt, e.ahrs_tilt, e.ahrs_yaw))
        self._tilt: F8 = rng.standard_normal((n, 3)) * self._tilt_size
        self._gps_size: F8 = np.array((1.0, 1.0, 1.5)) * e.gps_position
        self._gps_error: F8 = rng.standard_normal((n, 3)) * self._gps_size
        self._sky: F8 = rng.standard_normal(n)
        self._gap_until: F8 = np.full(n, -np.inf)

    def second(self, s: int) -> list[Chunk]:
        """See Source."""
        e, rng = self._errors, self._rng
        self._wander = _markov(rng, self._wander, self._wander_size, e.wander_tau_s, 1.0)
        self._tilt = _markov(rng, self._tilt, self._tilt_size, e.ahrs_tau_s, 1.0)
        self._sky = _markov(rng, self._sky, np.ones(1), 120.0, 1.0)
        return [self._faults.apply(self._gps(s)), self._faults.apply(self._imu(s))]

    def _when(self, s: int, rate_hz: float, phase_s: F8, jitter_s: float) -> tuple[I4, F8]:
        """Drone and time of every sample due in this second; time-major."""
        k = np.arange(math.ceil(s * rate_hz - 1e-9), math.ceil((s + 1) * rate_hz - 1e-9))
        n = len(phase_s)
        t = (k / rate_hz)[:, None] + phase_s
        if jitter_s:
            t = t + self._rng.random(t.shape) * jitter_s
        return np.tile(np.arange(n, dtype=np.int32), len(k)), t.ravel()

    def _arrive(self, vid: I4, t: F8) -> F8:
        arrive: F8 = t + self._link_s[vid]
        if self._errors.link_jitter_s:
            arrive += self._rng.random(len(t)) * self._errors.link_jitter_s
        return arrive

    def _imu(self, s: int) -> Chunk:
        e = self._errors
        vid, t = self._when(s, self._rate_hz, self._imu_phase_s, e.imu_jitter_share / self._rate_hz)
        exact = self._missions.body(vid, t)
        data = np.full((len(FIELDS[Kind.IMU]), len(t)), np.nan)
        noise = self._rng.standard_normal((6, len(t)), np.float32)
        _measure(vid, exact, self._matrix, self.bias + self._wander, noise, self._white, self._vibration, data)
        if self._ahrs:
            data[6:9] = exact[6:9] + self._tilt.T[:, vid]
        chunk = Chunk(Kind.IMU, vid, t, self._arrive(vid, t), data)
        return chunk.take(self._rng.random(len(t)) >= e.imu_lost) if e.imu_lost else chunk

    def _gps(self, s: int) -> Chunk:
        e, rng = self._errors, self._rng
        n = len(self._missions)
        vid, t = self._when(s, GPS_RATE_HZ, self._gps_phase_s, e.gps_jitter_s)
        position_error = np.empty((len(t), 3))
        for at in range(0, len(t), n):
            self._gps_error = _markov(rng, self._gps_error, self._gps_size, e.gps_tau_s, 1.0 / GPS_RATE_HZ)
            position_error[at : at + n] = self._gps_error
        data = np.full((len(FIELDS[Kind.GPS]), len(t)), np.nan)
        exact = self._missions.track(vid, t - self.latency_s[vid])
        exact[:3] += position_error.T + rng.standard_normal((3, len(t))) * e.gps_fine
        exact[3:] += rng.standard_normal((3, len(t))) * (np.array((1.0, 1.0, 1.5)) * e.gps_velocity)[:, None]
        data[_PV] = exact
        sats = np.clip(np.round(14.0 + 2.0 * self._sky), 8.0, 20.0)
        hdop = np.round(0.8 - 0.04 * (sats - 14.0), 2)
        data[_G["fix"]], data[_G["sats"]], data[_G["hdop"]] = 3.0, sats[vid], hdop[vid]
        data[_G["eph"]], data[_G["epv"]] = 1.2 * hdop[vid], 1.8 * hdop[vid]
        chunk = Chunk(Kind.GPS, vid, t, self._arrive(vid, t), data)
        if not e.gap_every_s:
            return chunk
        starts = rng.random(n) < 1.0 / e.gap_every_s
        self._gap_until[starts] = s + rng.uniform(*e.gap_s, int(starts.sum()))
        return chunk.take(t >= self._gap_until[vid])


def _markov(rng: np.random.Generator, x: F8, size: F8, tau_s: float, dt_s: float) -> F8:
    """One step of a first-order Gauss-Markov process."""
    keep = math.exp(-dt_s / tau_s)
    stepped: F8 = keep * x + rng.standard_normal(x.shape) * (size * math.sqrt(1.0 - keep * keep))
    return stepped


@njit(cache=True)
def _measure(vid: I4, exact: F8, matrix: F8, bias: F8, noise: F4, white: F8, vibration: F8, out: F8) -> None:
    """Axes, biases and noise: from what a perfect IMU feels to what this one says."""
    for i in range(vid.size):
        d = vid[i]
        air = exact[9, i]
        for sensor in range(2):
            for axis in range(3):
                row = 3 * sensor + axis
                value = bias[d, row]
                for k in range(3):
                    value += matrix[d, sensor, axis, k] * exact[3 * sensor + k, i]
                shake = air * vibration[d, row]
                out[row, i] = value + float(noise[row, i]) * math.sqrt(white[row] * white[row] + shake * shake)
