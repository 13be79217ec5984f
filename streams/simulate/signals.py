"""Vehicles that send signals: battery, motors, temperatures, GPS figures, radio; and faults of each kind.

    source = SignalSource(rng, vehicles=8, signals=24, seconds=300.0, faults=True)
    source.batches(t0)       one batch a second, every vehicle's signals at `rate_hz`
    source.faults            what is wrong when, in seconds from the start

Quadrotors hover, climb and cruise: one throttle drives current, four motors, voltage and temperatures, so that signals
follow each other as they do on a vehicle. Beyond these each has further signals, half of them slow and half noise.
Everything is drawn from one generator: the same seed gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from watchkeeper.streams.batch import F8, Batch, Columns
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.signals import label, name_columns

NAMES = (
    "armed", "mode", "battery.voltage_v", "battery.cell_v", "battery.current_a", "battery.temperature_c",
    "motor[0].output", "motor[1].output", "motor[2].output", "motor[3].output",
    "esc[0].rpm", "esc[1].rpm", "esc[2].rpm", "esc[3].rpm",
    "gps.fix", "gps.sats", "gps.eph_m", "vibration.x", "vibration.y", "vibration.z", "radio.rssi", "cpu.load",
)  # fmt: skip
FAULTS = ("brown_out", "motor_loss", "gps_loss", "stuck", "jump", "drift", "noise", "decouple", "stop")
# Signals that faults without a subject of their own happen to.
_ANY = ("battery.current_a", "esc[0].rpm", "esc[1].rpm", "vibration.x", "radio.rssi", "battery.voltage_v")
# Vehicles arm after some seconds on the ground, and nothing fails before so many seconds in the air, or of a short one
# before half of it.
ARM_S, CLEAN_S = 5.0, 90.0
FAULT_S = 30.0


@dataclass(frozen=True, slots=True)
class SignalFault:
    """One fault of one vehicle; times in seconds from the start."""

    vehicle: int
    kind: str
    signal: str
    t_start: float
    t_end: float


class SignalSource:
    """See the module's docstring."""

    def __init__(
        self, rng: np.random.Generator, *, vehicles: int, seconds: float, signals: int = len(NAMES),
        rate_hz: float = 1.0, faults: bool = True,
    ) -> None:  # fmt: skip
        self._rng = rng
        self.seconds = seconds
        self.rate_hz = rate_hz
        self.ids = [f"quad-{i + 1:0{len(str(vehicles))}d}" for i in range(vehicles)]
        self.names = [*NAMES[:signals], *(f"aux[{i}]" for i in range(signals - len(NAMES)))]
        self.faults = self._schedule(vehicles) if faults else []
        self._columns = name_columns(self.names)
        n = vehicles
        self._phase, self._gust = rng.uniform(0, 2 * np.pi, n), np.zeros(n)
        self._used = np.zeros(n)
        self._warm = np.full(n, 20.0)
        self._wander = np.zeros((len(self.names), n))
        self._held: dict[int, float] = {}

    def _schedule(self, vehicles: int) -> list[SignalFault]:
        start = CLEAN_S if self.seconds > 2.0 * CLEAN_S else 0.5 * self.seconds
        found = []
        for vehicle in range(vehicles):
            # one in four stays well, so that there is something to be silent about
            if vehicle % 4 == 3:
                continue
            kind = FAULTS[vehicle % len(FAULTS)]
            signal = {"brown_out": "battery.cell_v", "motor_loss": "motor[2].output", "gps_loss": "gps.fix"}.get(
                kind, _ANY[int(self._rng.integers(len(_ANY)))]
            )
            at = start + float(self._rng.uniform(0.0, max(self.seconds - start - FAULT_S, 1.0) * 0.5))
            found.append(SignalFault(vehicle, kind, signal, at, min(at + FAULT_S, self.seconds)))
        return found

    def batches(self, t0: float) -> Iterator[Batch]:
        """One batch a second."""
        step = 1.0 / self.rate_hz
        ticks = np.arange(0.0, self.seconds, step)
        per_batch = max(1, round(self.rate_hz))
        for first in range(0, len(ticks), per_batch):
            yield self._batch(ticks[first : first + per_batch], t0, step)

    def _batch(self, ticks: F8, t0: float, step: float) -> Batch:
        n, k = len(self.ids), len(self.names)
        blocks = []
        for t in ticks.tolist():
            # signal by vehicle; row by row a vehicle's signals together, as one message has them
            table = self._values(t, step).T
            rows, which = np.nonzero(~np.isnan(table))
            blocks.append((np.full(len(rows), t0 + t), rows.astype(np.int32), table[rows, which], which))
        t, vid, value, which = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        data = np.concatenate([value.reshape(1, -1), self._columns[:, which]])
        cols = Columns(np.arange(len(t)), vid, np.full(len(t), -1, np.int32), t, data)
        assert len(t) <= n * k * len(ticks)
        return Batch(self.ids, {Kind.SIGNAL: cols})

    def _values(self, t: float, step: float) -> F8:
        """Every signal of every vehicle at t; NaN where it does not come."""
        rng, n = self._rng, len(self.ids)
        armed = t >= ARM_S
        self._gust += step * (-self._gust / 3.0) + rng.normal(0.0, 0.05, n) * np.sqrt(step)
        cruise = 0.5 + 0.1 * np.sin(2.0 * np.pi * t / 40.0 + self._phase)
        throttle = np.clip(cruise + self._gust, 0.2, 0.9) if armed else np.zeros(n)
        current = 2.0 + 30.0 * throttle**1.5 + rng.normal(0.0, 0.15, n)
        self._used += current * step / 3600.0
        volts = 16.6 - 0.5 * self._used - 0.02 * current + rng.normal(0.0, 0.01, n)
        self._warm += step * (20.0 + 0.8 * current - self._warm) / 120.0
        share = throttle * np.array([1.0, 1.02, 0.98, 1.01])[:, None]
        motors = np.clip(share + rng.normal(0.0, 0.01, (4, n)), 0.0, 1.0) if armed else np.zeros((4, n))
        rpm = 9000.0 * np.sqrt(motors) + rng.normal(0.0, 20.0, (4, n)) * armed
        found = np.empty((len(self.names), n))
        values = {
            "armed": np.full(n, float(armed)),
            "mode": np.full(n, label("MISSION" if t >= ARM_S + 15.0 else "TAKEOFF" if armed else "STANDBY")),
            "battery.voltage_v": volts,
            "battery.cell_v": volts / 4.0,
            "battery.current_a": current,
            "battery.temperature_c": np.round(self._warm + rng.normal(0.0, 0.05, n), 1),
            **{f"motor[{i}].output": motors[i] for i in range(4)},
            **{f"esc[{i}].rpm": np.maximum(rpm[i], 0.0) for i in range(4)},
            "gps.fix": np.full(n, 3.0),
            "gps.sats": 14.0 + np.round(np.sin(2.0 * np.pi * t / 97.0 + self._phase)),
            "gps.eph_m": 0.8 + 0.05 * np.sin(t / 31.0 + self._phase) + rng.normal(0.0, 0.02, n),
            **{f"vibration.{axis}": 8.0 * throttle + np.abs(rng.normal(4.0, 0.8, n)) for axis in "xyz"},
            "radio.rssi": -60.0 - 8.0 * np.sin(t / 53.0 + self._phase) + rng.normal(0.0, 1.0, n),
            "cpu.load": 0.4 + 0.05 * np.abs(rng.normal(0.0, 1.0, n)),
        }
        for i, name in enumerate(self.names):
            if name in values:
                found[i] = values[name]
            else:
                slow = i % 2 == 0
                self._wander[i] += rng.normal(0.0, 0.05 if slow else 0.0, n) - 0.01 * self._wander[i]
                found[i] = self._wander[i] + rng.normal(0.0, 0.02 if slow else 1.0, n)
        for number, fault in enumerate(self.faults):
            if fault.t_start <= t < fault.t_end:
                self._spoil(found, number, fault, t)
        return found

    def _spoil(self, found: F8, number: int, fault: SignalFault, t: float) -> None:
        """What a fault makes of the values of its vehicle."""
        at = {name: i for i, name in enumerate(self.names)}
        v, since = fault.vehicle, t - fault.t_start
        if fault.kind == "brown_out":
            sag = min(4.2, 1.5 + 1.4 * since)
            found[at["battery.voltage_v"], v] -= sag
            found[at["battery.cell_v"], v] -= sag / 4.0
        elif fault.kind == "motor_loss":
            found[at["motor[2].output"], v] = found[at["esc[2].rpm"], v] = 0.0
        elif fault.kind == "gps_loss":
            found[at["gps.fix"], v] = found[at["gps.sats"], v] = 0.0
            found[at["gps.eph_m"], v] = 99.0
        elif fault.kind == "stop":
            found[at[fault.signal], v] = np.nan
        else:
            self._spoil_any(found[at[fault.signal]], number, fault, since)

    def _spoil_any(self, values: F8, number: int, fault: SignalFault, since: float) -> None:
        v = fault.vehicle
        usual = {"radio.rssi": 1.0, "vibration.x": 1.0, "battery.voltage_v": 0.05, "battery.current_a": 1.0}.get(
            fault.signal, 200.0
        )
        if fault.kind == "stuck":
            values[v] = self._held.setdefault(number, float(values[v]))
        elif fault.kind == "jump":
            values[v] += 12.0 * usual
        elif fault.kind == "drift":
            values[v] += 0.6 * usual * since
        elif fault.kind == "noise":
            values[v] += self._rng.normal(0.0, 6.0 * usual)
        else:
            held = self._held.setdefault(number, float(values[v]))
            values[v] = held + self._rng.normal(0.0, usual)
