"""Clean flights of another kind: sensors that are worse, slower or mounted askew, from the first sample on. No attack.

A threshold learned on some flights meets these in the field. Each shift is a pure function of a flight, seeded by its
id.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b

import numpy as np

from watchkeeper.evaluation.attacks.flight import Flight, Stream
from watchkeeper.evaluation.attacks.scene import FORCE, PLACE, RATE, VELOCITY

TILT_RAD = math.radians(5.0)


def _dice(flight: Flight, name: str) -> np.random.Generator:
    key = blake2b(f"{name} {flight.id}".encode(), digest_size=8).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(key)))


def slow_imu(flight: Flight) -> Flight:
    """Every other IMU sample."""
    return replace(flight, imu=Stream(flight.imu.t[::2], np.ascontiguousarray(flight.imu.data[:, ::2])))


def slow_gps(flight: Flight) -> Flight:
    """Every other fix."""
    return replace(flight, gps=Stream(flight.gps.t[::2], np.ascontiguousarray(flight.gps.data[:, ::2])))


def vibration(flight: Flight) -> Flight:
    """White noise on the IMU: 1 m/s2 and 0.03 rad/s."""
    data, rng = flight.imu.data.copy(), _dice(flight, "vibration")
    data[FORCE] += rng.standard_normal((3, len(flight.imu)))
    data[RATE] += rng.standard_normal((3, len(flight.imu))) * 0.03
    return replace(flight, imu=Stream(flight.imu.t, data))


def poor_gps(flight: Flight) -> Flight:
    """White noise on the fixes: 0.5 m and 0.15 m/s."""
    data, rng = flight.gps.data.copy(), _dice(flight, "poor_gps")
    data[PLACE] += rng.standard_normal((3, len(flight.gps))) * 0.5
    data[VELOCITY] += rng.standard_normal((3, len(flight.gps))) * 0.15
    return replace(flight, gps=Stream(flight.gps.t, data))


def late_gps(flight: Flight) -> Flight:
    """Fixes that are 0.1 s older than their time stamps say."""
    return replace(flight, gps=Stream(flight.gps.t + 0.1, flight.gps.data))


def tilted_imu(flight: Flight) -> Flight:
    """An IMU mounted 5 degrees askew about its right-hand axis."""
    c, s = math.cos(TILT_RAD), math.sin(TILT_RAD)
    turn = np.array(((c, 0.0, -s), (0.0, 1.0, 0.0), (s, 0.0, c)))
    data = flight.imu.data.copy()
    data[FORCE], data[RATE] = turn @ data[FORCE], turn @ data[RATE]
    return replace(flight, imu=Stream(flight.imu.t, data))


def biased_imu(flight: Flight) -> Flight:
    """Turn-on biases of 0.2 m/s2 and 0.02 rad/s, from the first sample on."""
    data = flight.imu.data.copy()
    data[FORCE] += 0.2 / math.sqrt(3.0)
    data[RATE] += 0.02 / math.sqrt(3.0)
    return replace(flight, imu=Stream(flight.imu.t, data))


SHIFTS: dict[str, Callable[[Flight], Flight]] = {
    "slow_imu": slow_imu,
    "slow_gps": slow_gps,
    "vibration": vibration,
    "poor_gps": poor_gps,
    "late_gps": late_gps,
    "tilted_imu": tilted_imu,
    "biased_imu": biased_imu,
}


def one_hz(flight: Flight) -> Flight:
    """A fix a second, without those between."""
    every = slice(None, None, max(1, round(1.0 / float(np.median(np.diff(flight.gps.t))))))
    return replace(flight, gps=Stream(flight.gps.t[every], np.ascontiguousarray(flight.gps.data[:, every])))


def no_velocity(flight: Flight) -> Flight:
    """A receiver that tells its position alone."""
    data = flight.gps.data.copy()
    data[VELOCITY] = np.nan
    return replace(flight, gps=Stream(flight.gps.t, data))


def imu_25_hz(flight: Flight) -> Flight:
    """An IMU of about 25 Hz."""
    every = slice(None, None, max(1, round(0.04 / float(np.median(np.diff(flight.imu.t))))))
    return replace(flight, imu=Stream(flight.imu.t[every], np.ascontiguousarray(flight.imu.data[:, every])))


def jitter(flight: Flight) -> Flight:
    """Fixes stamped when they arrive: up to a third of an interval late, 0.1 s at most."""
    late_s = min(0.1, float(np.median(np.diff(flight.gps.t))) / 3.0)
    t = flight.gps.t + _dice(flight, "jitter").uniform(0.0, late_s, len(flight.gps))
    return replace(flight, gps=Stream(np.maximum.accumulate(t), flight.gps.data))


def no_imu(flight: Flight) -> Flight:
    """A receiver by itself."""
    return replace(flight, imu=Stream(np.empty(0), np.empty((len(flight.imu.data), 0))))


# Other streams rather than worse ones: what vehicles really send.
STREAMS: dict[str, Callable[[Flight], Flight]] = {
    "1 Hz GPS": one_hz,
    "no velocity": no_velocity,
    "1 Hz, no velocity": lambda flight: no_velocity(one_hz(flight)),
    "25 Hz IMU": imu_25_hz,
    "arrival jitter": jitter,
    "no IMU": no_imu,
}
