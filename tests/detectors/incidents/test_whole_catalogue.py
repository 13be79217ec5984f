"""Every spoofing attack of the catalogue on a recorded flight: few changes of severity, one name, one row at a time.

test_steady.py has those that were once wrong, in every run; this is all of them, begun at several moments of the
flight: five minutes of replays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.incidents.fold import without_symptoms
from watchkeeper.evaluation.attacks.catalogue import catalogue, inject
from watchkeeper.evaluation.attacks.command import attacked
from watchkeeper.evaluation.attacks.flight import flights_of
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.source import open_log

FAMILIES = {
    "gps_bias", "gps_altitude_bias", "gps_drift", "gps_altitude_drift", "gps_velocity", "coordinated",
    "coordinated_ramp", "coordinated_imu", "closed_loop", "gps_intermittent", "gps_replay", "gps_replay_here",
}  # fmt: skip
SPOOFING = [attack for attack in catalogue().attacks if attack.family in FAMILIES]
ONSETS_S, ATTACK_S = (60.0, 120.0, 200.0, 300.0, 420.0), 60.0
MOST_CHANGES = 2
CONFIG = Config(fleet=FleetLimits(max_vehicles=20))

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def flight(recordings: Path) -> list[Batch]:
    path = recordings / "flights" / "quad106.csv.gz"
    if not path.exists():
        pytest.skip(f"no flights in {recordings}")
    batches = list(open_log(path).batches())
    if next(flight.gps.t[-1] - flight.gps.t[0] for flight in flights_of(batches)) < max(ONSETS_S) + 2 * ATTACK_S:
        pytest.skip("the flight has been cut")
    return batches


def events_of(batches: list[Batch], attack: str, onset_s: float) -> list[AlarmEvent]:
    chosen = msgspec.structs.replace(catalogue().find(attack), duration_s=ATTACK_S)
    made = [inject(chosen, flight, onset_s=onset_s) for flight in flights_of(batches)]
    pipeline, events = Pipeline(CONFIG), []
    for batch in batches:
        events += pipeline.feed(attacked(batch, made))
    return events + pipeline.finish()


def changes(values: Iterable[Hashable]) -> int:
    return sum(a != b for a, b in pairwise(values))


def rows_at_once(events: list[AlarmEvent]) -> int:
    """The most rows of a list of active alarms that folds symptoms, before the incident is there and after."""
    active: dict[str, AlarmEvent] = {}
    most = 0
    for t in sorted({event.t for event in events}):
        for event in events:
            if event.t == t:
                active.pop(event.id, None)
                if event.state != CLEARED:
                    active[event.id] = event
        most = max(most, len(without_symptoms(active.values())))
    return most


@pytest.mark.parametrize("onset_s", ONSETS_S)
@pytest.mark.parametrize("attack", [attack.name for attack in SPOOFING])
def test_an_alarm_is_steady(flight: list[Batch], attack: str, onset_s: float) -> None:
    events = [event for event in events_of(flight, attack, onset_s) if event.kind in {"gps_imu", "incident"}]
    lives: dict[str, list[AlarmEvent]] = defaultdict(list)
    for event in events:
        lives[event.id].append(event)
    for life in lives.values():
        assert changes(event.severity for event in life) <= MOST_CHANGES, [event.severity for event in life]
        named = {(found["type"], found["location"]) for event in life if (found := event.diagnosis) is not None}
        assert len(named) <= 1, named
    assert rows_at_once(events) <= 1


def test_most_of_them_are_alarmed_at_all(flight: list[Batch]) -> None:
    """What is never alarmed is steady as well: of biases and drifts the strong ones are found."""
    for attack in ("gps_bias_20m", "gps_drift_1mps", "gps_velocity_2mps", "coordinated_5mps", "gps_replay_2s"):
        assert {event.kind for event in events_of(flight, attack, 200.0)} >= {"gps_imu", "incident"}, attack
