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
