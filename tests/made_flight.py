"""Made-up flights for the tests of gps_imu, and the detector run over them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from watchkeeper.config.schema import DEFAULT, Config, FleetLimits, Frames
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.fleet.fleet import Fleet, Samples
from watchkeeper.detectors.gps_imu.detector import GpsImu
from watchkeeper.streams.messages import COLUMN, FIELDS, Kind

G = 9.80665
IMU_HZ, GPS_HZ, DELAY_S = 50, 5, 0.2
GPS, IMU = COLUMN[Kind.GPS], COLUMN[Kind.IMU]
XYZ, VXYZ = slice(0, 3), slice(GPS["gps_vx"], GPS["gps_vz"] + 1)
THRESHOLD = DEFAULT.detectors.gps_imu.threshold


@dataclass(frozen=True)
class Flight:
    """One vehicle's samples: times, and fields by [field, sample]."""

    imu_t: np.ndarray
    imu: np.ndarray
    gps_t: np.ndarray
    gps: np.ndarray

    def copy(self) -> Flight:
        return Flight(self.imu_t.copy(), self.imu.copy(), self.gps_t.copy(), self.gps.copy())


def flight(seconds: float = 60.0, seed: int = 0, heading: float = 1.0, rest_s: float = 3.0) -> Flight:
    """A vehicle that rests, then accelerates to and fro while it turns slowly, always level; sensors with noise."""
    rng = np.random.default_rng(seed)
    rate = 0.05

    def motion(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Acceleration, velocity and position, all zero until rest_s."""
        s = np.maximum(t - rest_s, 0.0)
        size, w = np.array([[4.0], [3.0], [-1.0]]), np.array([[0.4], [0.3], [0.2]])
        moving = s > 0.0
        return size * np.cos(w * s) * moving, size / w * np.sin(w * s), size / w**2 * (1.0 - np.cos(w * s))

    imu_t = np.arange(0.0, seconds, 1 / IMU_HZ) + rng.uniform(-1e-3, 1e-3, round(seconds * IMU_HZ))
    force = motion(imu_t)[0] - [[0.0], [0.0], [G]]
    yaw = heading + rate * np.maximum(imu_t - rest_s, 0.0)
    imu = np.full((len(FIELDS[Kind.IMU]), len(imu_t)), np.nan)
    imu[0] = np.cos(yaw) * force[0] + np.sin(yaw) * force[1]
    imu[1] = -np.sin(yaw) * force[0] + np.cos(yaw) * force[1]
    imu[2] = force[2]
    imu[3:6] = np.array([[0.0], [0.0], [1.0]]) * rate * (imu_t > rest_s)
    # turn-on biases and white noise
    imu[0:3] += rng.normal((0.05, -0.08, 0.1), 0.05, (len(imu_t), 3)).T
    imu[3:6] += rng.normal((0.004, -0.002, 0.003), 0.003, (len(imu_t), 3)).T
    gps_t = np.arange(0.1, seconds, 1 / GPS_HZ)
    _, vel, pos = motion(gps_t - DELAY_S)
    gps = np.full((len(FIELDS[Kind.GPS]), len(gps_t)), np.nan)
    gps[XYZ] = pos + rng.normal(0, 0.2, pos.shape)
    gps[VXYZ] = vel + rng.normal(0, 0.1, vel.shape)
    return Flight(imu_t, imu, gps_t, gps)


def config(frames: Frames | None = None, **keys: object) -> Config:
    section = msgspec.structs.replace(DEFAULT.detectors.gps_imu, **keys)
    detectors = msgspec.structs.replace(DEFAULT.detectors, gps_imu=section)
    return msgspec.structs.replace(
        DEFAULT, detectors=detectors, frames=frames or DEFAULT.frames, fleet=FleetLimits(max_vehicles=64)
    )


class Watch:
    """The detector over several flights at once, with windows of any length."""

    def __init__(self, flights: dict[str, Flight], cfg: Config, first_slot: int = 0) -> None:
        self.fleet = Fleet(cfg.fleet)
        for i in range(first_slot):
            self.fleet.slot_for(f"nobody{i}")
        self.flights = {self.fleet.slot_for(name): f for name, f in flights.items()}
        self.detector = GpsImu(cfg, self.fleet)
        self.t = 0.0

    def until(self, t: float, tick_s: float = 1.0) -> list[Evidence]:
        """Step to time t."""
        found = []
        while self.t < t - 1e-9:
            end = self.t + tick_s
            samples = {Kind.GPS: self._cut(Kind.GPS, end), Kind.IMU: self._cut(Kind.IMU, end)}
            found += self.detector.step(Window(end, {k: s for k, s in samples.items() if len(s)}))
            self.t = end
        return found

    def _cut(self, kind: Kind, end: float) -> Samples:
        slot, t, data = [], [], []
        for s, f in sorted(self.flights.items()):
            ft, fd = (f.gps_t, f.gps) if kind == Kind.GPS else (f.imu_t, f.imu)
            a, b = np.searchsorted(ft, (self.t, end), side="right")
            slot.append(np.full(b - a, s, np.int32))
            t.append(ft[a:b])
            data.append(fd[:, a:b])
        n = sum(map(len, t))
        return Samples(
            kind, np.concatenate(slot), np.concatenate(t), np.concatenate(data, axis=1), np.full(n, -1, np.int32)
        )


def watch(f: Flight, cfg: Config | None = None, tick_s: float = 1.0) -> Evidence:
    """All evidence about one flight, as one table."""
    found = Watch({"v": f}, cfg or config(model="off")).until(float(f.gps_t[-1]) + 1.0, tick_s)
    columns = ("a", "t", "epoch", "score", "threshold", "severity", "cause_bits")
    return replace(
        found[0],
        **{name: np.concatenate([getattr(e, name) for e in found]) for name in columns},
        numbers={name: np.concatenate([e.numbers[name] for e in found]) for name in found[0].numbers},
    )


def alarm_t(ev: Evidence, after: float = 0.0, n: int = 5) -> float:
    """When the n-th suspicious fix in a row came; inf if never."""
    run = 0
    for t, score in zip(ev.t, ev.score, strict=True):
        run = run + 1 if score >= THRESHOLD and t >= after else 0
        if run == n:
            return float(t)
    return math.inf


def is_quiet(ev: Evidence) -> bool:
    """Whether no alarm would be raised; single fixes over the threshold are part of the calibration."""
    return alarm_t(ev) == math.inf and bool(np.mean(ev.score >= THRESHOLD) < 0.03)


def during(f: Flight, start: float, end: float) -> tuple[np.ndarray, np.ndarray]:
    """Which IMU samples and which fixes are in the time given."""
    return (f.imu_t >= start) & (f.imu_t < end), (f.gps_t >= start) & (f.gps_t < end)


START, END = 60.0, 90.0


def jump(f: Flight, imu: np.ndarray, gps: np.ndarray) -> None:
    f.gps[:2, gps] += [[14.0], [14.0]]


def drift(f: Flight, imu: np.ndarray, gps: np.ndarray) -> None:
    f.gps[0, gps] += 2.0 * (f.gps_t[gps] - START)


def freeze(f: Flight, imu: np.ndarray, gps: np.ndarray) -> None:
    f.gps[:, gps] = f.gps[:, [np.flatnonzero(gps)[0]]]


def velocity(f: Flight, imu: np.ndarray, gps: np.ndarray) -> None:
    f.gps[GPS["gps_vy"], gps] += 3.0


def sink(f: Flight, imu: np.ndarray, gps: np.ndarray) -> None:
    f.gps[GPS["gps_z"], gps] += 15.0


def noise(f: Flight, imu: np.ndarray, gps: np.ndarray) -> None:
    f.gps[XYZ, gps] += np.random.default_rng(9).normal(0, 5.0, (3, gps.sum()))


def gyro_bias(f: Flight, imu: np.ndarray, gps: np.ndarray) -> None:
    f.imu[IMU["imu_wx"], imu] += 0.1


def accel_bias(f: Flight, imu: np.ndarray, gps: np.ndarray) -> None:
    f.imu[IMU["imu_ax"], imu] += 1.0


def stuck(f: Flight, imu: np.ndarray, gps: np.ndarray) -> None:
    f.imu[:, imu] = f.imu[:, [np.flatnonzero(imu)[0]]]


ATTACKS: dict[str, tuple[Callable[[Flight, np.ndarray, np.ndarray], None], str, float]] = {
    "jump": (jump, "position", 1.2),
    "drift": (drift, "position_against_velocity", 8.0),
    "freeze": (freeze, "freeze", 3.0),
    "velocity": (velocity, "velocity", 1.6),
    "sink": (sink, "vertical", 1.2),
    "noise": (noise, "noise", 12.0),
    "gyro bias": (gyro_bias, "drift", 8.0),
    "accel bias": (accel_bias, "drift", 8.0),
    "stuck IMU": (stuck, "imu_stuck", 2.0),
}


def attacked(name: str, seconds: float = 180.0, seed: int = 4) -> Flight:
    f = flight(seconds, seed)
    imu, gps = during(f, START, END)
    ATTACKS[name][0](f, imu, gps)
    return f
