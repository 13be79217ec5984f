"""The worst moment of an alarm: the highest score or the least figure, whatever is told, saved or read in between."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.config.schema import DEFAULT, FleetLimits
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, AlarmBook, AlarmEvent, Moment, encode_event
from watchkeeper.detectors.alarms.subjects import Vehicles
from watchkeeper.detectors.alarms.watch import Watch
from watchkeeper.detectors.base import Evidence
from watchkeeper.detectors.catalog import detector_kinds
from watchkeeper.detectors.declaration import AlarmKind
from watchkeeper.detectors.fleet.fleet import Fleet

RULE = Debounce(n=1, m=1, clear_n=2, clear_ratio=1.0, min_on_s=0.0)
HIGHEST = replace(detector_kinds()["kinematics"], name="odd")
LEAST = replace(HIGHEST, least="distance_m")
# (score, distance) of each tick; the score counts from 1
TRACES = st.lists(
    st.tuples(st.sampled_from([0.0, 0.5, 1.0, 2.0, 2.5, 3.0]), st.sampled_from([1.0, 2.0, 3.0])), max_size=40
)


class Bench:
    """One vehicle under one watch."""

    def __init__(self, kind: AlarmKind) -> None:
        self.kind = kind
        self.fleet = Fleet(FleetLimits(max_vehicles=4))
        self.fleet.slot_for("v")
        self.book = AlarmBook(DEFAULT.alarms, lambda event, _called: event)
        self.watch = self.fresh()

    def fresh(self) -> Watch:
        return Watch(self.kind, RULE, Vehicles(self.fleet), self.book)

    def step(self, t: float, score: float, distance_m: float) -> list[AlarmEvent]:
        one = np.ones(1)
        evidence = Evidence(
            "odd", np.zeros(1, np.int32), one * t, one * t, one * score, one, np.zeros(1, np.uint8),
            numbers={"distance_m": one * distance_m, "seen_t": one * t}, causes=("far",),
            cause_bits=np.ones(1, np.int64),
        )  # fmt: skip
        return self.watch.step(evidence, t)

    def run(self, trace: list[tuple[float, float]], *, restarts: bool = False) -> list[AlarmEvent]:
        events = []
        for i, (score, distance_m) in enumerate(trace):
            if restarts:
                saved = msgspec.msgpack.decode(msgspec.msgpack.encode(self.book.snapshot()))
                state, self.watch = self.watch.snapshot(), self.fresh()
                self.watch.restore(state)
                self.book.restore(saved)
            events += self.step(float(i), score, distance_m)
        return events


def expected(trace: list[tuple[float, float]], event: AlarmEvent, *, least: bool) -> Moment:
    """The worst of the ticks from raised to this event, by looking at all of them; the clearing one does not count."""
    first, last = int(event.t_raised), int(event.t) - (event.state == CLEARED)
    ticks = range(first, last + 1)
    at = min(ticks, key=lambda i: trace[i][1] if least else -trace[i][0])
    score, distance_m = trace[at]
    return Moment(float(at), score, {"causes": ["far"], "distance_m": distance_m, "seen_t": float(at)})


@given(TRACES)
def test_it_is_the_highest_score_so_far_with_the_figures_of_then(trace: list[tuple[float, float]]) -> None:
    for event in Bench(HIGHEST).run(trace):
        assert event.worst == expected(trace, event, least=False)


@given(TRACES)
def test_it_is_the_least_figure_where_the_kind_says_so(trace: list[tuple[float, float]]) -> None:
    for event in Bench(LEAST).run(trace):
        assert event.worst == expected(trace, event, least=True)


@given(TRACES, st.sampled_from([HIGHEST, LEAST]))
def test_a_restart_at_every_tick_changes_no_byte(trace: list[tuple[float, float]], kind: AlarmKind) -> None:
    through, restarted = Bench(kind).run(trace), Bench(kind).run(trace, restarts=True)
    assert [encode_event(event) for event in through] == [encode_event(event) for event in restarted]


def test_an_alarm_that_is_given_up_keeps_the_worst_that_nobody_was_told() -> None:
    bench = Bench(HIGHEST)
    assert [event.state for event in bench.run([(2.0, 1.0), (3.0, 1.0), (1.5, 1.0)])] == [RAISED]
    [end] = bench.watch.end(9.0, "clock_reset")
    assert end.worst == Moment(1.0, 3.0, {"causes": ["far"], "distance_m": 1.0, "seen_t": 1.0})


def test_an_alarm_of_a_journal_goes_on_with_its_worst() -> None:
    first = Bench(HIGHEST)
    first.run([(2.0, 1.0), (3.0, 1.0)])
    told = first.watch.end(2.0, "clock_reset")[0]
    bench = Bench(HIGHEST)
    line = encode_event(msgspec.structs.replace(told, state="updated", t_cleared=None, ended=None))
    event = AlarmEvent.of(line)
    assert bench.watch.adopt(event)
    bench.book.adopt(event)
    bench.step(3.0, 2.5, 1.0)
    assert bench.watch.end(4.0, "forgotten")[0].worst == told.worst


def test_a_journal_of_an_earlier_version_has_neither_and_is_read() -> None:
    [event] = Bench(HIGHEST).run([(2.0, 1.0)])
    plain = {key: value for key, value in msgspec.to_builtins(event).items() if key not in {"say", "worst"}}
    earlier = AlarmEvent.of(msgspec.json.encode(plain))
    assert (earlier.say, earlier.worst) == ("", None)
    bench = Bench(HIGHEST)
    assert bench.watch.adopt(earlier)
    bench.book.adopt(earlier)
    bench.step(1.0, 2.5, 1.0)
    end = bench.watch.end(2.0, "forgotten")[0]
    assert end.worst is not None
    assert end.worst.score == 2.5
