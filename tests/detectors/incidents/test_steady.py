"""An attack of a minute is one alarm and one incident that keep their name, and change severity twice at most."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from watchkeeper.config.schema import DEFAULT, Config, FleetLimits
from watchkeeper.detectors.alarms.debounce import SETTLED_S
from watchkeeper.detectors.alarms.events import AlarmBook, AlarmEvent, Finding, encode_event
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.replay import events_of
from watchkeeper.detectors.incidents.incidents import keep_name
from watchkeeper.detectors.sentence import spoken
from watchkeeper.evaluation.attacks.catalogue import catalogue, inject
from watchkeeper.evaluation.attacks.command import attacked
from watchkeeper.evaluation.attacks.flight import flights_of
from watchkeeper.evaluation.protocol.feed import Variant
from watchkeeper.evaluation.protocol.feed import batches as slices
from watchkeeper.evaluation.protocol.splits import Recipe, simulated
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.simulate import simulate

ONSET_S, ATTACK_S, JAMMED_S = 120.0, 60.0, 90.0
MOST_CHANGES = 2
ATTACKS = (
    ("gps_bias_20m", 120.0), ("gps_drift_1mps", 120.0),
    ("gps_velocity_1mps", 120.0), ("gps_velocity_2mps", 120.0), ("gps_velocity_5mps", 120.0),
    ("gps_velocity_1mps", 200.0), ("gps_velocity_2mps", 200.0), ("gps_velocity_5mps", 200.0),
    ("gps_altitude_drift_2mps", 200.0), ("coordinated_2mps", 200.0),
    ("gps_drift_0.2mps", 120.0), ("gps_velocity_0.5mps", 150.0), ("closed_loop_1mps2", 120.0),
)  # fmt: skip
CONFIG = Config(fleet=FleetLimits(max_vehicles=20))


def lives(batches: list[Batch], attack: str, vehicle: str, onset_s: float = ONSET_S) -> dict[str, list[AlarmEvent]]:
    """The events of each alarm that begins in the attack, by kind; one alarm of each kind at most."""
    chosen = msgspec.structs.replace(catalogue().find(attack), duration_s=ATTACK_S)
    flights = [flight for flight in flights_of(batches) if flight.id == vehicle]
    made = [inject(chosen, flight, onset_s=onset_s) for flight in flights]
    pipeline, events = Pipeline(CONFIG), []
    for batch in batches:
        events += pipeline.feed(attacked(batch, made))
    found: dict[str, dict[str, list[AlarmEvent]]] = {}
    for event in events + pipeline.finish():
        if event.subjects == (vehicle,):
            found.setdefault(event.kind, {}).setdefault(event.id, []).append(event)
    assert all(len(by_id) == 1 for by_id in found.values()), {kind: list(by_id) for kind, by_id in found.items()}
    return {kind: next(iter(by_id.values())) for kind, by_id in found.items()}


def changes(values: Iterable[object]) -> int:
    listed = list(values)
    return sum(a != b for a, b in pairwise(listed))


def check(found: dict[str, list[AlarmEvent]]) -> None:
    assert {"gps_imu", "incident"} <= found.keys()
    for kind in ("gps_imu", "incident"):
        life = found[kind]
        assert changes(event.severity for event in life) <= MOST_CHANGES, [event.severity for event in life]
        named = [(d["type"], d["location"]) for event in life if (d := event.diagnosis) is not None]
        assert named
        assert len(set(named)) == 1, named


@pytest.mark.parametrize(("attack", "onset_s"), ATTACKS)
def test_a_recorded_flight_under_attack(attack: str, onset_s: float, recordings: Path) -> None:
    path = recordings / "flights" / "quad106.csv.gz"
    if not path.exists():
        pytest.skip(f"no flights in {recordings}")
    batches = list(open_log(path).batches())
    if next(flight.gps.t[-1] - flight.gps.t[0] for flight in flights_of(batches)) < onset_s + 2 * ATTACK_S:
        pytest.skip("the flight has been cut")
    check(lives(batches, attack, "quad106", onset_s))


def test_a_simulated_flight_under_attack() -> None:
    scenario = simulate("drones", seed=11, seconds=240, vehicles=6, ahrs=False)
    faulty = {fault["id"] for fault in scenario.truth()["faults"]}
    batches = list(scenario.batches())
    sound = next(flight.id for flight in flights_of(batches) if flight.id not in faulty and flight.id[:4] == "quad")
    check(lives(batches, "gps_bias_20m", sound))


def test_a_jammed_receiver_keeps_its_name_when_no_fix_comes_any_more() -> None:
    flight = simulated("quad-n", Recipe(901, 230)).from_zero()
    jamming = msgspec.structs.replace(catalogue().find("gps_jamming_20m"), duration_s=JAMMED_S)
    made = inject(jamming, flight, onset_s=ONSET_S)
    events = list(events_of(Pipeline(CONFIG), slices([Variant(flight, made)], strict=True)))
    contradiction = [event for event in events if event.kind == "gps_imu"]
    silence = next(event for event in events if event.kind == "silence")
    # the contradiction ends long before the jammer does, because there is nothing left that could contradict
    assert contradiction[-1].state == "cleared"
    assert silence.t < contradiction[-1].t < ONSET_S + JAMMED_S - 10.0
    named = [e.diagnosis["type"] for e in events if e.diagnosis is not None and e.t >= silence.t]
    assert set(named) == {"gps_jamming"}


def sayer() -> Callable[[float, str], str]:
    """How severe an alarm of a new book is said to be when it is found so severe at t, from 0 on."""
    book = AlarmBook(DEFAULT.alarms, spoken)

    def said(t: float, severity: str) -> str:
        finding = Finding("watch", ("v",), t, 1.0, 1.0, severity, {"causes": []})
        event = book.still(finding, news=True) if t else book.raised(finding, t)
        assert event is not None
        # a restart at any moment changes nothing
        saved = msgspec.msgpack.decode(msgspec.msgpack.encode(book.snapshot()))
        book.restore(saved)
        assert encode_event(book.active["watch", ("v",)]) == encode_event(event)
        return event.severity

    return said


def test_the_book_lets_severity_rise_at_once_and_fall_after_a_settled_minute() -> None:
    said = sayer()
    assert said(0.0, "advisory") == "advisory"
    assert said(1.0, "warning") == "warning"
    assert said(2.0, "advisory") == "warning"
    assert said(30.0, "warning") == "warning"
    assert said(40.0, "advisory") == "warning"
    assert said(39.0 + SETTLED_S, "advisory") == "warning"
    assert said(40.0 + SETTLED_S, "advisory") == "advisory"
    # it has risen and fallen: that it is worse again is said, and stays
    assert said(41.0 + SETTLED_S, "warning") == "warning"
    for minute in range(2, 9):
        assert said(41.0 + minute * SETTLED_S, "advisory") == "warning"


def test_the_book_lets_severity_fall_to_the_worst_of_a_settled_minute() -> None:
    said = sayer()
    assert said(0.0, "warning") == "warning"
    assert said(10.0, "advisory") == "warning"
    assert said(20.0, "caution") == "warning"
    assert said(10.0 + SETTLED_S, "advisory") == "caution"
    assert said(9.0 + 2 * SETTLED_S, "advisory") == "caution"
    assert said(10.0 + 2 * SETTLED_S, "advisory") == "advisory"


def test_a_diagnosis_keeps_its_name_until_another_is_clearly_better() -> None:
    def answer(first: str, p: float, second: str, q: float) -> dict[str, object]:
        rival = {"type": second, "location": "v/gps", "confidence": q}
        return {"type": first, "location": "v/gps", "confidence": p, "evidence": [], "alternatives": [rival]}

    before = answer("gps_spoofing", 0.6, "gps_jamming", 0.3)
    kept = keep_name(before, answer("gps_jamming", 0.6, "gps_spoofing", 0.3), 4.0)
    assert (kept["type"], kept["confidence"]) == ("gps_spoofing", 0.3)
    assert kept["alternatives"] == [{"type": "gps_jamming", "location": "v/gps", "confidence": 0.6}]
    assert keep_name(before, answer("gps_jamming", 0.9, "gps_spoofing", 0.1), 4.0)["type"] == "gps_jamming"
    assert keep_name(before, answer("imu_fault", 0.5, "gps_jamming", 0.4), 4.0)["type"] == "imu_fault"
    assert keep_name(None, before, 4.0) is before
