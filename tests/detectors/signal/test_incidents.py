"""Brown-out, motor loss and lost GPS in simulated flights: an alarm within two seconds, named, with the mode."""

from __future__ import annotations

import pytest

from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.simulate import simulate
from watchkeeper.streams.simulate.scenarios import Simulation

WITHIN_S = 2.0
# What each incident may be named by: the part that fails and those that follow it.
NAMED = {
    "brown_out": ("battery.",),
    "motor_loss": ("motor[2]", "esc[2]"),
    "gps_loss": ("gps.",),
}


def raised(simulation: Simulation) -> list[AlarmEvent]:
    pipeline = Pipeline(Config(fleet=FleetLimits(max_vehicles=100)))
    events = [event for batch in simulation.batches() for event in pipeline.feed(batch)]
    return [event for event in events + pipeline.finish() if event.state == "raised"]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rate_hz", [1.0, 10.0])
def test_an_incident_is_told_within_two_seconds_named_and_with_its_mode(seed, rate_hz):
    simulation = simulate("signals", seed=seed, vehicles=12, seconds=240, rate_hz=rate_hz)
    alarms = raised(simulation)
    incidents = [fault for fault in simulation.truth()["faults"] if fault["kind"] in NAMED]
    assert len(incidents) >= 3
    for fault in incidents:
        own = [e for e in alarms if e.subjects == (fault["id"],) and fault["t_start"] <= e.t <= fault["t_end"]]
        assert own, fault
        first = own[0]
        assert first.t - fault["t_start"] <= WITHIN_S, (fault, first.say)
        assert first.evidence["signal"].startswith(NAMED[fault["kind"]]), first.say
        assert "in mode MISSION, armed" in first.say


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rate_hz", [1.0, 10.0])
def test_clean_flights_raise_nothing(seed, rate_hz):
    assert raised(simulate("signals", seed=seed, vehicles=12, seconds=240, rate_hz=rate_hz, faults=False)) == []
