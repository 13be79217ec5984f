"""A second kind of simulated vehicle: an engine that runs by duty cycles, unlike the quadrotors of streams/simulate.

What makes it different: levels that change in steps with the duty, noise with heavy tails, sensors that count in coarse
steps, temperatures that lag by minutes, a tank that empties, a rhythm of 24 s, and pairs that agree only through a lag.
"""

from __future__ import annotations

import numpy as np

from watchkeeper.evaluation.signals.series import Vehicle
from watchkeeper.streams.batch import F8

# How long one duty lasts at least and at most, in seconds, and which there are.
DUTY_S = (60.0, 180.0)
DUTIES = (0.35, 0.5, 0.65, 0.8)
PULSE_S = 24.0


def _duty(rng: np.random.Generator, steps: int, rate_hz: float) -> F8:
    """The duty wanted at each step."""
    found: list[F8] = []
    while sum(map(len, found)) < steps:
        found.append(np.full(round(float(rng.uniform(*DUTY_S)) * rate_hz), rng.choice(DUTIES)))
    return np.concatenate(found)[:steps]


def _lagged(x: F8, lag_s: float, rate_hz: float) -> F8:
    a, found = 1.0 / (lag_s * rate_hz + 1.0), np.empty(len(x))
    level = float(x[0])
    for i, value in enumerate(x.tolist()):
        level += a * (value - level)
        found[i] = level
    return found


def plants(vehicles: int, seconds: float, seed: int, rate_hz: float = 1.0) -> list[Vehicle]:
    """Vehicles without faults.

    >>> one, = plants(1, 300.0, 5)
    >>> one.values.shape == (len(one.names), 300)
    True
    """
    steps = round(seconds * rate_hz)
    t = np.arange(steps) / rate_hz
    made = []
    for number in range(vehicles):
        rng = np.random.Generator(np.random.PCG64([seed, number]))
        load = _lagged(_duty(rng, steps, rate_hz), 6.0, rate_hz)
        rpm = 1_800.0 * load + 8.0 * rng.standard_t(4, steps)
        flow = 12.0 * load + 0.15 * rng.standard_t(3, steps)
        heat = _lagged(40.0 + 50.0 * load, 90.0, rate_hz)
        pulse = np.sin(2.0 * np.pi * (t / PULSE_S + rng.uniform()))
        values = {
            "engine.rpm": rpm,
            "engine.fuel_flow": flow,
            "engine.oil_bar": 2.0 + 2.5 * np.sqrt(load) + 0.03 * rng.normal(size=steps),
            "engine.coolant_c": np.round(heat + 0.2 * rng.normal(size=steps), 1),
            "engine.exhaust_c": 200.0 + 350.0 * load + 3.0 * rng.standard_t(4, steps),
            "alternator_v": np.round(13.8 + 0.3 * load + 0.02 * rng.normal(size=steps), 2),
            "tank_l": 120.0 - np.cumsum(flow) / 3600.0 / rate_hz + 0.4 * pulse + 0.05 * rng.normal(size=steps),
            "pitch_deg": 2.0 * pulse + 0.3 * rng.normal(size=steps),
            "bilge_mm": 30.0 + np.cumsum(0.05 * rng.normal(size=steps)) + 0.5 * rng.normal(size=steps),
            "modem.rssi": np.round(-85.0 + _lagged(20.0 * rng.normal(size=steps), 10.0, rate_hz)),
        }
        made.append(Vehicle(f"plant-{seed}-{number + 1}", tuple(values), t, np.array(list(values.values()))))
    return made
