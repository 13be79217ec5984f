"""Faults in named numbers are found and named, clean ones are left alone, and the table stays within its bounds."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from watchkeeper.config.detectors.signal import Signal, SignalLimit
from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.detectors.alarms.events import AlarmEvent, encode_event
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.signal.detector import SignalDetector
from watchkeeper.streams.batch import F8, Batch, Columns
from watchkeeper.streams.logs.chunks import rechunk
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.signals import label, name_columns
from watchkeeper.streams.simulate import simulate

STEPS = 240
ONSET = 150


def config(**changes: object) -> Config:
    base = Config(fleet=FleetLimits(max_vehicles=50))
    own = msgspec.structs.replace(base.detectors.signal, **changes)
    return msgspec.structs.replace(base, detectors=msgspec.structs.replace(base.detectors, signal=own))


def batches(values: dict[str, F8], vehicle: str = "quad-3") -> list[Batch]:
    """A batch a second; NaN is a value that does not come."""
    names = name_columns(list(values))
    table = np.array(list(values.values()))
    made = []
    for i in range(table.shape[1]):
        which = np.flatnonzero(~np.isnan(table[:, i]))
        n = len(which)
        data = np.concatenate([table[which, i].reshape(1, -1), names[:, which]])
        vid, via = np.zeros(n, np.int32), np.full(n, -1, np.int32)
        made.append(Batch([vehicle], {Kind.SIGNAL: Columns(np.arange(n), vid, via, np.full(n, 1000.0 + i), data)}))
    return made


def run(values: dict[str, F8], settings: Config | None = None) -> list[AlarmEvent]:
    pipeline = Pipeline(settings or config())
    events = [event for batch in batches(values) for event in pipeline.feed(batch)]
    return [event for event in events + pipeline.finish() if event.kind == "signal"]


def healthy(seed: int = 1) -> dict[str, F8]:
    rng = np.random.default_rng(seed)
    t = np.arange(STEPS)
    load = 10.0 + 3.0 * np.sin(t / 9.0) + rng.normal(0.0, 0.3, STEPS)
    return {
        "current_a": load,
        "rpm": 500.0 * load + rng.normal(0.0, 20.0, STEPS),
        "rssi": -60.0 + rng.normal(0.0, 1.0, STEPS),
        "temperature": 40.0 + 0.01 * t + rng.normal(0.0, 0.1, STEPS),
        "armed": np.ones(STEPS),
        "mode": np.full(STEPS, label("MISSION")),
    }


def first(events: list[AlarmEvent]) -> AlarmEvent:
    assert events, "no alarm"
    return events[0]


@pytest.mark.parametrize("seed", range(6))
def test_a_healthy_vehicle_raises_nothing(seed):
    assert run(healthy(seed)) == []


def stuck(x: F8) -> None:
    x[ONSET:] = x[ONSET]


def jump(x: F8) -> None:
    x[ONSET:] += 40.0


def drift(x: F8) -> None:
    x[ONSET:] += 0.7 * np.arange(STEPS - ONSET)


def noise(x: F8) -> None:
    x[ONSET:] += np.random.default_rng(9).normal(0.0, 12.0, STEPS - ONSET)


def gone(x: F8) -> None:
    x[ONSET:] = np.nan


@pytest.mark.parametrize(
    ("fault", "causes", "within_s"),
    [(stuck, "stuck", 15), (jump, "jump", 3), (drift, "drift", 40), (noise, "noisier", 15), (gone, "rhythm", 15)],
)
def test_a_fault_is_named_with_its_signal_mode_and_arming(fault, causes, within_s):
    values = healthy()
    fault(values["rssi"])
    event = first(run(values))
    assert event.evidence["signal"] == "rssi"
    assert 0.0 <= event.t - (1000.0 + ONSET) <= within_s
    assert (event.evidence["mode"], event.evidence["armed"]) == ("MISSION", True)
    assert "rssi" in event.say
    assert "in mode MISSION, armed" in event.say
    if causes != "noisier":  # its first values are as far off as a jump's
        assert causes in event.evidence["causes"]


def test_two_signals_that_no_longer_agree_are_named_together():
    values = healthy()
    # the right kind of numbers, of another time
    values["rpm"][ONSET:] = values["rpm"][ONSET - 14 : STEPS - 14]
    event = first(run(values))
    assert {event.evidence["signal"], event.evidence["partner"]} == {"rpm", "current_a"}
    assert event.evidence["causes"] == ["disagrees"]


def test_a_known_limit_is_told_at_once_and_only_while_armed():
    limit = SignalLimit(names=("motor*",), low=0.1, armed=True, severity="warning")
    values = {"motor_1": np.full(60, 0.5), "armed": np.ones(60)}
    values["motor_1"][:5] = values["armed"][:5] = 0.0  # on the ground
    values["motor_1"][40:] = 0.0
    event = first(run(values, config(limits=(limit,))))
    assert (event.t, event.severity, event.evidence["causes"]) == (1041.0, "warning", ["out_of_range"])
    values["armed"][38:] = 0.0
    assert run(values, config(limits=(limit,))) == []


def test_a_vehicle_that_does_something_new_is_no_fault_of_a_sensor():
    values = healthy()
    for name in ("current_a", "rpm", "rssi", "temperature"):
        values[name][ONSET:] = 3.0 * values[name][ONSET:]
    assert run(values) == []


def test_a_new_level_that_lasts_is_taken_as_normal_and_the_alarm_says_so():
    values = healthy()
    jump(values["rssi"])
    events = run(values)
    assert [event.state for event in events if event.state != "updated"] == ["raised", "cleared"]
    assert events[-1].ended == "taken_as_normal"


def test_many_signals_that_are_each_odd_for_a_moment_are_no_alarm():
    rng = np.random.default_rng(4)
    values = {f"s{k}": rng.normal(0.0, 1.0, STEPS) for k in range(40)}
    for i in range(100, STEPS):
        values[f"s{rng.integers(40)}"][i] += 15.0
    assert run(values) == []


def test_the_bytes_do_not_depend_on_chunks_or_restarts():
    whole = list(simulate("signals", seed=5, seconds=150, vehicles=6, rate_hz=2.0).batches())

    def told(parts, every=0):
        pipeline, found = Pipeline(config()), []
        for i, batch in enumerate(parts):
            found += pipeline.feed(batch)
            if every and i % every == 0:
                state = pipeline.snapshot()
                pipeline = Pipeline(config())
                pipeline.restore(msgspec.msgpack.decode(msgspec.msgpack.encode(0)) or state)
        return [encode_event(event) for event in found + pipeline.finish()]

    expected = told(whole)
    assert any(b'"signal"' in line for line in expected)
    assert told(rechunk(whole, 7)) == expected
    assert told(rechunk(whole, 1000)) == expected
    assert told(whole, every=11) == expected


def test_a_value_that_comes_twice_is_counted_and_not_judged_again():
    values = healthy()
    pipeline = Pipeline(config())
    for batch in batches(values)[:50]:
        pipeline.feed(batch)
        pipeline.feed(batch)
    pipeline.finish()
    assert pipeline.gauges()["signal_duplicates"] > 100
    table = next(d for d in pipeline.detectors if isinstance(d, SignalDetector)).table
    assert table.signals["n"][: table.high].max() == 50


def test_a_vehicle_has_at_most_so_many_signals_and_leaves_room_for_others():
    settings = config(max_signals=200, max_per_vehicle=64)
    pipeline = Pipeline(settings)
    flood = {f"x{i}": np.full(3, float(i)) for i in range(500)}
    for vehicle in ("a", "b", "c"):
        for batch in batches(flood, vehicle):
            pipeline.feed(batch)
    for batch in batches({"battery_v": np.full(3, 12.0)}, "late"):
        pipeline.feed(batch)
    pipeline.finish()
    table = next(d for d in pipeline.detectors if isinstance(d, SignalDetector)).table
    assert len(table) <= 200
    assert [table.name(row) for row in table.rows_of(pipeline.fleet.slot_of["late"])] == ["battery_v"]
    assert pipeline.gauges()["signal_refused"] > 1000


def test_rows_of_a_forgotten_vehicle_are_given_to_others():
    pipeline = Pipeline(config())
    for batch in batches({"a": np.arange(5.0), "b": np.arange(5.0)}):
        pipeline.feed(batch)
    pipeline.finish()
    detector = next(d for d in pipeline.detectors if isinstance(d, SignalDetector))
    assert len(detector.table) == 2
    detector.forget(np.array([pipeline.fleet.slot_of["quad-3"]], np.int32))
    assert len(detector.table) == 0
    assert sorted(detector.table.free) == [0, 1]


def test_a_snapshot_that_points_beyond_its_table_is_refused():
    pipeline = Pipeline(config())
    for batch in batches({"a": np.arange(5.0), "b": np.arange(5.0)}):
        pipeline.feed(batch)
    pipeline.finish()
    detector = next(d for d in pipeline.detectors if isinstance(d, SignalDetector))
    state = detector.snapshot()
    state["signals"] = state["signals"].copy()
    state["signals"]["after"][0] = 99
    with pytest.raises(ValueError, match="beyond"):
        SignalDetector(config(), pipeline.fleet).restore(state)


def test_motors_that_all_stand_have_been_switched_off():
    values = {f"motor[{k}].output": np.full(60, 0.5) for k in range(4)} | {"armed": np.ones(60)}
    for k in range(4):
        values[f"motor[{k}].output"][40:] = 0.0
    assert run(values) == []


def test_the_presets_know_the_names_that_adapters_use():
    cfg = Signal()
    assert set(cfg.presets) == {"battery", "temperature", "motors", "gps", "vibration"}
    for name, value in {"battery.cell_v": 3.0, "motor[0].output": 0.0, "esc[1].rpm": 0.0, "gps.fix": 0.0}.items():
        values = {name: np.full(40, 4.0 if "cell" in name else 5000.0 if "rpm" in name else 1.0), "armed": np.ones(40)}
        values[name][:] = 3.9 if "cell" in name else values[name] if "fix" not in name else 3.0
        if name.startswith(("motor", "esc")):
            values[name.replace("[0]", "[3]").replace("[1]", "[3]")] = values[name].copy()  # one that goes on
        values[name][20:] = value
        event = first(run(values))
        assert (event.evidence["signal"], event.evidence["causes"][0]) == (name, "out_of_range")
        assert event.t - 1020.0 <= 2.0


def test_until_what_is_usual_is_learned_a_vehicle_with_known_limits_is_judged_by_those_alone():
    """A recording that ends then says so; of one without limits nothing at all was judged."""
    said = []
    for name in ("battery[0].cell_v[0]", "rssi"):
        pipeline = Pipeline(config())
        for batch in batches({name: np.full(20, 3.9) + np.arange(20) * 1e-3}):
            pipeline.feed(batch)
        pipeline.finish()
        said.append(pipeline.guard.coverage.tallies()["signal"].not_judged)
    assert said == [{"limits_only": 1}, {"too_short": 1}]
