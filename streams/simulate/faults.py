"""What is done to drones: labelled faults and attacks on their GPS and IMU, each with a start and an end.

A schedule is drawn apart from everything else, and every noise is drawn whether or not a sample is touched, so with
the same seed the samples outside the windows are the same bytes with and without faults.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from watchkeeper.streams.batch import F8, I8
from watchkeeper.streams.messages import COLUMN, Kind
from watchkeeper.streams.simulate.arrival import Chunk
from watchkeeper.streams.simulate.missions import SHORT_RUN_S, Missions

# kind -> stream, smallest and largest magnitude, unit
KINDS: dict[str, tuple[str, float, float, str]] = {
    "gps_bias": ("gps", 15.0, 40.0, "m"),  # the position jumps to one side and stays there
    "gps_drift": ("gps", 2.5, 5.0, "m/s"),  # position and velocity are led away, the speed rising over RAMP_S
    "gps_freeze": ("gps", 0.0, 0.0, ""),  # the last fix again and again
    "gps_velocity": ("gps", 2.5, 6.0, "m/s"),  # the velocity lies, the position does not
    "imu_bias": ("imu", 1.0, 3.0, "m/s2"),  # the accelerometers are off to one side
    "imu_stuck": ("imu", 0.0, 0.0, ""),  # the last sample again and again
    "silence": ("", 0.0, 0.0, ""),  # the stream stops
}
RAMP_S = 4.0
WARM_UP_S = 40.0
RECOVER_S = 20.0  # at the end of a run, to see alarms clear
# position, velocity, and all that a frozen receiver or a stuck IMU repeats
_XYZ = slice(COLUMN[Kind.GPS]["gps_x"], COLUMN[Kind.GPS]["gps_z"] + 1)
_VXYZ = slice(COLUMN[Kind.GPS]["gps_vx"], COLUMN[Kind.GPS]["gps_vz"] + 1)
_FORCE = slice(COLUMN[Kind.IMU]["imu_ax"], COLUMN[Kind.IMU]["imu_az"] + 1)
_REPEATED = {Kind.GPS: slice(0, _VXYZ.stop), Kind.IMU: slice(0, COLUMN[Kind.IMU]["yaw"] + 1)}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of one drone, in seconds since the start; `direction` is a unit vector, NED or body."""

    vehicle: int
    kind: str
    stream: str
    t_start: float
    t_end: float
    magnitude: float
    unit: str
    direction: tuple[float, float, float]


class Faults:
    """Applies a schedule to chunks as they pass. Chunks must come in order of time."""

    def __init__(self, schedule: Sequence[Fault]) -> None:
        self._coming = sorted(schedule, key=lambda f: f.t_start, reverse=True)
        self._active: list[Fault] = []
        self._held: dict[Fault, F8] = {}

    def apply(self, chunk: Chunk) -> Chunk:
        """The chunk as the faults leave it: changed in place, and without the samples that were silenced."""
        if not len(chunk.t):
            return chunk
        # samples of one chunk span a second, and another chunk of the same second may be a little older
        t_min, t_max = float(chunk.t.min()) - 2.0, float(chunk.t.max())
        while self._coming and self._coming[-1].t_start <= t_max:
            self._active.append(self._coming.pop())
        over = [f for f in self._active if f.t_end <= t_min]
        for fault in over:
            self._active.remove(fault)
            self._held.pop(fault, None)
        silenced = np.zeros(len(chunk.t), bool)
        for fault in self._active:
            if fault.stream == chunk.kind.word:
                rows = np.flatnonzero(
                    (chunk.vid == fault.vehicle) & (chunk.t >= fault.t_start) & (chunk.t < fault.t_end)
                )
                if fault.kind == "silence":
                    silenced[rows] = True
                elif len(rows):
                    self._change(fault, chunk, rows)
        return chunk.take(~silenced) if silenced.any() else chunk

    def _change(self, fault: Fault, chunk: Chunk, rows: I8) -> None:
        direction = np.array(fault.direction)[:, None]
        data = chunk.data
        if fault.kind == "gps_bias":
            data[_XYZ, rows] += direction * fault.magnitude
        elif fault.kind == "gps_velocity":
            data[_VXYZ, rows] += direction * fault.magnitude
        elif fault.kind == "gps_drift":
            s = chunk.t[rows] - fault.t_start
            ramp = np.minimum(s, RAMP_S)
            speed = fault.magnitude * ramp / RAMP_S
            data[_XYZ, rows] += direction * (speed * ramp / 2.0 + fault.magnitude * (s - ramp))
            data[_VXYZ, rows] += direction * speed
        elif fault.kind == "imu_bias":
            data[_FORCE, rows] += direction * fault.magnitude
        else:
            repeated = _REPEATED[chunk.kind]
            if fault not in self._held:
                self._held[fault] = data[repeated, rows[0]].copy()
            data[repeated, rows] = self._held[fault][:, None]


def draw_schedule(rng: np.random.Generator, missions: Missions, seconds: float) -> list[Fault]:
    """Faults for every other drone, so that as many stay clean; each kind comes up by turns."""
    schedule: list[Fault] = []
    kinds = list(KINDS)
    turn = 0
    for vehicle in range(0, len(missions), 2):
        # multirotors and fixed wings take turns too
        target = vehicle + (vehicle // 2) % 2 if vehicle + 1 < len(missions) else vehicle
        for start, end in _windows(rng, missions, target, seconds):
            schedule.extend(_fault(rng, target, kinds[turn % len(kinds)], start, end))
            turn += 1
    return sorted(schedule, key=lambda f: (f.t_start, f.vehicle, f.stream))


def demo_schedule(rng: np.random.Generator, drones: int, seconds: float, cycle_s: float) -> list[Fault]:
    """In each cycle a jump, a velocity spoof, an IMU bias and a silence, on other drones each time."""
    schedule: list[Fault] = []
    plan = (("gps_bias", 20.0, 38.0), ("silence", 22.0, 36.0), ("gps_velocity", 24.0, 38.0), ("imu_bias", 21.0, 37.0))
    for cycle in range(math.ceil(seconds / cycle_s)):
        for k, (kind, start, end) in enumerate(plan[: max(drones, 1)]):
            vehicle = (cycle + k) % drones
            begin = cycle * cycle_s
            if begin + end <= seconds:
                schedule.extend(_fault(rng, vehicle, kind, begin + start, begin + end, silent=("gps",)))
    return schedule


def _windows(rng: np.random.Generator, missions: Missions, vehicle: int, seconds: float) -> list[tuple[float, float]]:
    if seconds <= SHORT_RUN_S:
        start = seconds / 3.0 + float(rng.uniform(0.0, 0.03)) * seconds
        return [(start, seconds * 2.0 / 3.0)]
    windows: list[tuple[float, float]] = []
    free = WARM_UP_S
    while True:
        length = float(rng.uniform(15.0, 35.0))
        starts = free + rng.uniform(0.0, 60.0, 6)
        starts = starts[starts + length <= seconds - RECOVER_S]
        if not len(starts):
            return windows
        # while it moves: a frozen position tells nothing about a drone that stands still
        start = max(starts.tolist(), key=lambda at: _mean_speed(missions, vehicle, at, at + length))
        windows.append((start, start + length))
        free = start + length + 80.0


def _mean_speed(missions: Missions, vehicle: int, start: float, end: float) -> float:
    t = np.linspace(start, end, 16)
    velocity = missions.track(np.full(len(t), vehicle, np.int32), t)[3:5]
    return float(np.hypot(velocity[0], velocity[1]).mean())


def _fault(
    rng: np.random.Generator, vehicle: int, kind: str, start: float, end: float, silent: tuple[str, ...] = ()
) -> list[Fault]:
    stream, low, high, unit = KINDS[kind]
    size = float(rng.uniform(low, high))
    angle = float(rng.uniform(-math.pi, math.pi))
    side = (math.cos(angle), math.sin(angle), 0.0)
    if kind != "silence":
        return [Fault(vehicle, kind, stream, start, end, size, unit, side)]
    # the GPS, the IMU, or the whole link
    silent = silent or (("gps",), ("imu",), ("gps", "imu"))[int(rng.integers(3))]
    return [Fault(vehicle, kind, s, start, end, end - start, "s", side) for s in silent]
