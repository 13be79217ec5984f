"""One clock that is off among good ones: the alarms of the others stay the same bytes, and the offender is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.detectors.alarms.events import AlarmEvent, encode_event
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.sentence import say
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.simulate import simulate
from watchkeeper.streams.simulate.network import NetworkFault, network_batches, network_source

CONFIG = Config(fleet=FleetLimits(max_vehicles=400))
WrongTime = Callable[[np.ndarray], np.ndarray]
WRONG: dict[str, WrongTime] = {
    "20 s ahead": lambda t: t + 20.0,
    "an hour ahead": lambda t: t + 3600.0,
    "an hour behind": lambda t: t - 3600.0,
    "creeping": lambda t: t + 29.0 * (t - 1.7e9),
    "jittering": lambda t: t + 20.0 * np.sin(1.7 * (t - 1.7e9) ** 2),
}


def changed(batches: Iterator[Batch], name: str, wrong: WrongTime | None) -> Iterator[Batch]:
    """The same samples in the same order, with other times for one vehicle; None: without that vehicle."""
    for batch in batches:
        vid = batch.ids.index(name) if name in batch.ids else -1
        kinds = {}
        for kind, cols in batch.kinds.items():
            its = cols.vid == vid
            kinds[kind] = cols.take(~its) if wrong is None else replace(cols, t=np.where(its, wrong(cols.t), cols.t))
        yield batch.having(kinds)


def watch(batches: Iterator[Batch]) -> list[AlarmEvent]:
    pipeline = Pipeline(CONFIG)
    return [event for batch in batches for event in pipeline.feed(batch)] + pipeline.finish()


def about_others(events: list[AlarmEvent], name: str) -> list[bytes]:
    return [encode_event(event) for event in events if name not in event.subjects]


def traffic() -> Iterator[Batch]:
    """Nineteen aircraft and drones: a conflict, silences, lying sensors, incidents."""
    return simulate("demo", seed=4, seconds=80.0, vehicles=22).batches()


@pytest.fixture(scope="module")
def offender() -> str:
    """An aircraft that has nothing to do with any of it."""
    return next(iter(traffic())).ids[5]


@pytest.fixture(scope="module")
def undisturbed(offender: str) -> list[bytes]:
    lines = about_others(watch(changed(traffic(), offender, None)), offender)
    assert len(lines) > 20
    return lines


@pytest.mark.parametrize("how", WRONG)
def test_the_others_are_watched_as_if_it_were_not_there(how: str, offender: str, undisturbed: list[bytes]) -> None:
    events = watch(changed(traffic(), offender, WRONG[how]))
    assert about_others(events, offender) == undisturbed
    clock = [event for event in events if event.kind == "clock"]
    assert clock[0].subjects == (offender,)
    assert clock[0].t - 1.7e9 <= 10.0
    assert say(clock[0]).startswith(f"{offender}: ")


@pytest.mark.parametrize("how", ["20 s ahead", "an hour ahead", "an hour behind"])
def test_a_steady_offset_does_not_hide_its_sender(how: str) -> None:
    def pair(wrong: WrongTime) -> list[AlarmEvent]:
        batches = simulate("head-on", seed=4, seconds=150.0, vehicles=22).batches()
        events = watch(changed(batches, "ddf0a8", wrong))
        return [e for e in events if e.state == "raised" and e.kind in {"conflict", "los"} and "ddf0a8" in e.subjects]

    right, wrong = pair(lambda t: t), pair(WRONG[how])
    assert right
    assert [(e.kind, e.subjects) for e in wrong] == [(e.kind, e.subjects) for e in right]
    # the conflict is there from the start, and learning the offset takes four reports
    assert max(abs(a.t_raised - b.t_raised) for a, b in zip(wrong, right, strict=True)) <= 4.0


@pytest.mark.parametrize("apart_s", [0.0, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0])
def test_two_aircraft_head_on_are_seen_however_far_apart_their_clocks_are(apart_s: float) -> None:
    batches = simulate("head-on", seed=4, seconds=150.0, vehicles=2).batches()
    first = next(iter(simulate("head-on", seed=4, seconds=1.0, vehicles=2).batches())).ids[0]
    raised = [e for e in watch(changed(batches, first, lambda t: t + apart_s)) if e.state == "raised"]
    conflict = [event for event in raised if event.kind == "conflict"]
    assert len(conflict) == 1
    clocks = [event for event in raised if event.kind == "clock"]
    assert bool(clocks) == (apart_s > 1.5)


def test_a_gateway_with_a_wrong_clock_is_named_once() -> None:
    source = network_source(3, 8, 4, 60.0, NetworkFault("loss", "gw-1", 55.0, 0.1))

    def batches() -> Iterator[Batch]:
        for batch in network_batches(source, 60.0):
            gateway = batch.vias.index("gw-2") if "gw-2" in batch.vias else -2
            yield batch.having(
                {
                    kind: replace(cols, t=np.where(cols.via == gateway, cols.t + 40.0, cols.t))
                    for kind, cols in batch.kinds.items()
                }
            )

    clock = [event for event in watch(batches()) if event.kind == "clock"]
    active = {event.subjects for event in clock if event.t > 1.7e9 + 30.0}
    assert active == {("gw-2",)}
    assert "gateway gw-2" in say(clock[-1])
