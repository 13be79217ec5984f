"""The simulator: seeded scenarios of aircraft and drones as batches in arrival order, with the truth.

`simulate(name)` gives a `Simulation`; its `batches()` feed the pipeline, a log or a broker, and its `truth()` is
what an evaluation compares alarms with. The same seed gives the same bytes.

Inside: traffic (how aircraft move), airspace, encounters and controlled (what they decide), shift (how one of
them begins otherwise), adsb (what they report);
missions and motion (how drones fly), sensors (what their GPS and IMU say), faults (what is done to them);
arrival (the order in which it all comes in), truth (what really happened), scenarios (which of it to put together).
"""

from watchkeeper.streams.simulate.scenarios import SCENARIOS, Scenario, Simulation, simulate
from watchkeeper.streams.simulate.shift import SHIFT_KINDS, Shift

__all__ = ["SCENARIOS", "SHIFT_KINDS", "Scenario", "Shift", "Simulation", "simulate"]
