"""A detector that raises costs its own alarms and nobody else's; the vehicle that did it is found and named."""

import logging
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.config.section import Flag, Section
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.base import Evidence, Window, register, unregister
from watchkeeper.detectors.declaration import AlarmKind, Declaration, Facts, simulated
from watchkeeper.detectors.engine.fence import EXCLUDE_S, FAILURES, PAUSE_S, WELL_S
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.fleet.fleet import Fleet, Samples
from watchkeeper.detectors.sentence import say
from watchkeeper.streams.batch import I4, Batch, columns_of
from watchkeeper.streams.foreign.states import StateEncoder, decode_state
from watchkeeper.streams.messages import Kind

CONFIG = Config(fleet=FleetLimits(max_vehicles=50))
IDS = [f"v{i:02}" for i in range(12)]
# An altitude that the detector of this file cannot stand, and one that it calls anomalous.
DEADLY_FT, HIGH_FT, LOW_FT = 13_000.0, 45_000.0, 10_000.0


class MoodySettings(Section, frozen=True):
    """Of the detector below."""

    enabled: Flag = True
    debounce: Debounce = Debounce(n=2, m=2, clear_n=2, min_on_s=0.0, lost_s=10.0)


class Moody:
    """Aircraft above 40,000 ft; raises where `mood` says so."""

    declaration: ClassVar[Declaration] = Declaration(
        name="moody",
        help="aircraft above a level",
        settings=MoodySettings,
        subjects="vehicle",
        kinds=(
            AlarmKind(
                name="moody", help="an aircraft is high", facts=Facts, needs=((Kind.ADSB,),),
                say=lambda subjects, _facts: f"{subjects[0]} is high.",
            ),
        ),
        gauges=(),
        scenario=simulated("head-on", 60),
    )  # fmt: skip
    mood: ClassVar[Callable[[str, Samples | None], None]] = staticmethod(lambda _method, _samples: None)

    def __init__(self, config: Config, fleet: Fleet) -> None:
        self.seen = np.zeros(fleet.capacity)
        self.mood("__init__", None)

    def step(self, window: Window) -> list[Evidence]:
        samples = window.samples.get(Kind.ADSB)
        self.mood("step", samples)
        if samples is None:
            return []
        self.seen[samples.slot] += 1.0
        alt, n = samples.col("alt_ft"), len(samples)
        severity = np.zeros(n, np.uint8)
        return [Evidence("moody", samples.slot, samples.t, samples.t, alt / 40_000.0, np.ones(n), severity)]

    def forget(self, slots: I4) -> None:
        self.mood("forget", None)
        self.seen[slots] = 0.0

    def retune(self, config: Config) -> None:
        self.mood("retune", None)

    def gauges(self) -> dict[str, float]:
        self.mood("gauges", None)
        return {}

    def snapshot(self) -> dict[str, Any]:
        self.mood("snapshot", None)
        return {"seen": self.seen}

    def restore(self, state: dict[str, Any]) -> None:
        self.mood("restore", None)
        self.seen[:] = state["seen"]


def deadly(method: str, samples: Samples | None) -> None:
    """The mood of a detector with a mistake that one altitude shows."""
    if method == "step" and samples is not None and (samples.col("alt_ft") == DEADLY_FT).any():
        raise ZeroDivisionError("division by zero")


def raising(*methods: str) -> Callable[[str, Samples | None], None]:
    def mood(method: str, _samples: Samples | None) -> None:
        if method in methods:
            raise RuntimeError("not today")

    return mood


@pytest.fixture
def mood(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], None]]:
    register(Moody)
    yield lambda work: monkeypatch.setattr(Moody, "mood", staticmethod(work))
    unregister("moody")


def second(t: float, **altitudes: float) -> Batch:
    """One report of each aircraft, far from each other."""
    n = len(IDS)
    alt = np.array([altitudes.get(name, LOW_FT) for name in IDS])
    data = {
        "lat": np.arange(n) * 1.0, "lon": t / 500 + np.zeros(n), "alt_ft": alt, "gs_kt": np.full(n, 430.0),
        "trk_deg": np.full(n, 90.0), "vs_fpm": np.zeros(n),
    }  # fmt: skip
    return Batch(IDS, {Kind.ADSB: columns_of(Kind.ADSB, np.arange(n, dtype=np.int32), np.full(n, t), data)})


def play(pipeline: Pipeline, first: int, last: int, **altitudes: float) -> list[AlarmEvent]:
    return [event for t in range(first, last) for event in pipeline.feed(second(float(t), **altitudes))]


def of(events: list[AlarmEvent], kind: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(event.state, event.subjects) for event in events if event.kind == kind]


def test_one_vehicle_that_makes_a_detector_raise_is_taken_out_and_named_and_the_others_are_watched(mood, caplog):
    mood(deadly)
    pipeline = Pipeline(CONFIG)
    events = play(pipeline, 0, 10)
    with caplog.at_level(logging.ERROR):
        events += play(pipeline, 10, 20, v07=DEADLY_FT, v03=HIGH_FT)
    assert ("raised", ("v03",)) in of(events, "moody")
    assert of(events, "watch") == [("raised", ("detector", "moody")), ("raised", ("v07",))]
    named = next(event for event in events if event.subjects == ("v07",))
    assert say(named).startswith("v07: is not watched by moody since ")
    assert ": the detector failed (step raised ZeroDivisionError" in say(named)
    assert pipeline.guard.coverage.of(pipeline.fleet.slot_of["v07"])["moody"]["reason"] == "failed"
    assert pipeline.guard.coverage.of(pipeline.fleet.slot_of["v06"])["moody"]["watched"]
    # said once, with the sample that did it, to the last bit
    assert len(caplog.records) == 1
    assert '"alt_ft":13000.0' in caplog.text
    assert "v07" in caplog.text
    assert "moody" in pipeline.guard.troubles()[0]


def test_the_vehicle_comes_back_after_its_time_and_then_all_is_well(mood):
    mood(deadly)
    pipeline = Pipeline(CONFIG)
    events = play(pipeline, 0, 5, v07=DEADLY_FT)
    end = int(5 + EXCLUDE_S + WELL_S)
    events = play(pipeline, 5, end)
    assert of(events, "watch") == [("cleared", ("detector", "moody")), ("cleared", ("v07",))]
    assert pipeline.guard.troubles() == []
    assert pipeline.guard.coverage.of(pipeline.fleet.slot_of["v07"])["moody"]["watched"]


def test_a_detector_that_always_raises_pauses_and_the_others_raise_their_alarms(mood):
    pipeline = Pipeline(CONFIG)
    play(pipeline, 0, 5)
    mood(raising("step"))
    asked = []
    pipeline.on_evidence = lambda window, found: asked.append({evidence.kind for evidence in found})
    events = play(pipeline, 5, 20)
    fence = next(fence for fence in pipeline.guard.fences if fence.name == "moody")
    assert fence.failures["step"] == FAILURES  # and then it was not asked again
    assert fence.blind
    assert all("kinematics" in kinds for kinds in asked)
    assert of(events, "watch")[0] == ("raised", ("detector", "moody"))
    assert not any(len(subjects) == 1 for _, subjects in of(events, "watch"))  # no alarm for each vehicle
    assert pipeline.guard.coverage.counts()["moody"] == {"failed": len(IDS)}
    mood(raising())
    events = play(pipeline, 20, int(20 + PAUSE_S + WELL_S))
    assert ("cleared", ("detector", "moody")) in of(events, "watch")
    assert pipeline.guard.coverage.counts()["moody"] == {"watched": len(IDS)}


def test_alarms_of_a_detector_that_pauses_stay_and_say_so(mood):
    pipeline = Pipeline(CONFIG)
    events = play(pipeline, 0, 5, v03=HIGH_FT)
    mood(raising("step"))
    events = play(pipeline, 5, 25, v03=HIGH_FT)
    assert {state for state, _ in of(events, "moody")} == {"updated"}
    last = next(event for event in reversed(events) if event.kind == "moody")
    assert last.evidence["unwatched"] == "the detector moody failed"
    assert say(last).endswith("; not judged now: the detector moody failed.")
    mood(raising())
    events = play(pipeline, 25, 60)
    assert ("cleared", ("v03",)) in of(events, "moody")


@pytest.mark.parametrize("method", ["forget", "retune", "gauges", "snapshot"])
def test_whatever_method_raises_the_pipeline_goes_on(mood, method):
    mood(raising(method))
    pipeline = Pipeline(CONFIG)
    play(pipeline, 0, 3)
    pipeline.retune(CONFIG)
    assert "kinematics_reports" in pipeline.gauges()
    assert "kinematics" in pipeline.snapshot()["detectors"]
    pipeline.guard.forget(np.array([0], np.int32), 3.0)
    assert ("moody", method) in pipeline.guard.failures()
    said = [*pipeline.guard.troubles(), *pipeline.guard.warnings()]
    assert any(f"{method} raised RuntimeError: not today" in words for words in said)
    assert ("raised", ("v01",)) in of(play(pipeline, 4, 9, v01=HIGH_FT), "moody")


def test_evidence_that_the_alarms_cannot_take_is_a_failure_of_the_detector(mood, monkeypatch):
    n = len(IDS)
    bad = Evidence("conflict", np.zeros(n, np.int32), *(np.zeros(n),) * 4, np.zeros(n, np.uint8))
    monkeypatch.setattr(Moody, "step", lambda _self, _window: [bad])
    pipeline = Pipeline(CONFIG)
    play(pipeline, 0, 3)
    assert "a kind that it does not declare" in pipeline.guard.troubles()[0]


def test_the_fence_is_in_the_snapshot_and_a_restart_changes_no_byte(mood):
    mood(deadly)
    pipeline, twin = Pipeline(CONFIG), Pipeline(CONFIG)
    events, again = [], []
    for t in range(150):
        altitudes = {"v07": DEADLY_FT if t in {20, 21, 95} else LOW_FT, "v03": HIGH_FT}
        events += pipeline.feed(second(float(t), **altitudes))
        again += twin.feed(second(float(t), **altitudes))
        if t % 7 == 0:
            state = decode_state(bytes(StateEncoder().encode(twin.snapshot())))
            twin = Pipeline(CONFIG)
            twin.restore(state)
    assert [event for event in events if event.kind in {"watch", "moody"}]
    assert events == again
