"""Declared emergencies and advisories through the whole pipeline: raised, not raised, ended, out of sight."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.config.detectors import Detectors
from watchkeeper.config.detectors.emergency import Emergency
from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.sentence import say
from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.messages import Kind

NAN = float("nan")
T0 = 1000.0


def flown(
    said: Callable[[float], dict[str, float]], seconds: float = 60.0, every_s: float = 1.0, causes: tuple[str, ...] = ()
) -> list[AlarmEvent]:
    """The alarms of one aircraft that reports what `said` gives for the seconds since the start."""
    detectors = Detectors(emergency=Emergency(causes=causes)) if causes else Detectors()  # type: ignore[arg-type]
    pipeline = Pipeline(Config(fleet=FleetLimits(max_vehicles=10), detectors=detectors))
    events: list[AlarmEvent] = []
    for s in np.arange(0.0, seconds, every_s):
        fields = {
            "lat": 50.0 + s * 1e-3,
            "lon": 8.0,
            "alt_ft": 21_000.0,
            "gs_kt": 216.0,
            "trk_deg": 0.0,
            "vs_fpm": 64.0,
        }
        values = {name: np.array([value]) for name, value in (fields | said(float(s))).items()}
        columns = columns_of(Kind.ADSB, np.zeros(1, np.int32), np.array([T0 + s]), values)
        events += pipeline.feed(Batch(["4ca7b3"], {Kind.ADSB: columns}, [], {}))
    events += pipeline.reach(T0 + seconds + 300.0)
    return [event for event in events + pipeline.finish() if event.kind in ("emergency", "tcas_ra")]


def states(events: list[AlarmEvent]) -> list[tuple[str, str, float]]:
    return [(event.kind, event.state, event.t - T0) for event in events if event.state != "updated"]


@pytest.mark.parametrize(
    ("code", "cause", "severity"),
    [(7500.0, "unlawful", "warning"), (7600.0, "no_radio", "caution"), (7700.0, "general", "warning")],
)
def test_a_code_raises_an_alarm_after_four_seconds_and_its_end_clears_it(
    code: float, cause: str, severity: str
) -> None:
    events = flown(lambda s: {"squawk": code if 20 <= s < 40 else 1000.0})
    assert states(events) == [("emergency", "raised", 24.0), ("emergency", "cleared", 41.0)]
    assert events[0].severity == severity
    assert events[0].t_onset == T0 + 20.0
    assert events[0].evidence["causes"] == [cause]
    assert events[0].evidence["squawk"] == code
    assert events[-1].ended == "cause_gone"


def test_a_code_that_is_dialled_past_raises_nothing() -> None:
    assert not flown(lambda s: {"squawk": {20.0: 7000.0, 21.0: 7600.0, 22.0: 7600.0}.get(s, 7610.0)})


def test_two_reports_of_a_slow_feed_are_enough() -> None:
    events = flown(lambda s: {"squawk": 7700.0 if s >= 20 else 1000.0}, every_s=10.0)
    assert states(events)[0] == ("emergency", "raised", 30.0)


def test_reports_without_a_code_neither_raise_nor_clear() -> None:
    events = flown(lambda s: {"squawk": 7700.0} if 10 <= s < 20 else {}, seconds=200.0)
    assert states(events)[0] == ("emergency", "raised", 14.0)
    assert states(events)[-1][1] == "cleared"
    assert events[-1].ended == "out_of_sight"
    assert events[-1].t - T0 >= 19.0 + 120.0


def test_a_declared_state_counts_without_a_code() -> None:
    events = flown(lambda s: {"emergency": 3.0 if 10 <= s < 30 else 0.0})
    assert states(events) == [("emergency", "raised", 14.0), ("emergency", "cleared", 31.0)]
    assert events[0].evidence["causes"] == ["minimum_fuel"]
    assert not flown(lambda s: {"emergency": 2.0 if s > 10 else 0.0}), "a medical flight is no emergency"


def test_on_the_ground_it_is_a_caution() -> None:
    events = flown(lambda s: {"squawk": 7700.0, "on_ground": 1.0})
    assert events[0].severity == "caution"


def test_causes_that_are_not_wanted_raise_nothing() -> None:
    assert not flown(lambda s: {"squawk": 7600.0}, causes=("unlawful", "general"))
    assert flown(lambda s: {"squawk": 7500.0}, causes=("unlawful", "general"))


def test_an_advisory_is_an_alarm_of_its_own() -> None:
    events = flown(lambda s: {"tcas_ra": float(20 <= s < 45), "vs_fpm": 1500.0})
    assert states(events) == [("tcas_ra", "raised", 21.0), ("tcas_ra", "cleared", 46.0)]
    assert events[0].severity == "warning"
    assert events[0].evidence["vs_fpm"] == 1500.0
    assert not flown(lambda s: {"tcas_ra": float(s == 20)}), "one report of a register that is not labelled"


def test_the_sentence_names_code_and_altitude() -> None:
    assert "4ca7b3: declares an emergency (squawk 7700) at 21,000 ft, since" in say(
        flown(lambda s: {"squawk": 7700.0})[0]
    )
    advisory = say(flown(lambda s: {"tcas_ra": 1.0})[0])
    assert "its TCAS has a resolution advisory at 21,000 ft, vertical rate 64 ft/min" in advisory


@given(st.lists(st.sampled_from([1000.0, 7500.0, 7600.0, 7700.0, 7777.0, NAN]), min_size=12, max_size=40))
@settings(max_examples=40, deadline=None)
def test_an_alarm_needs_two_codes_in_a_row_and_four_seconds(codes: list[float]) -> None:
    events = flown(lambda s: {"squawk": codes[int(s)]}, seconds=float(len(codes)))
    known = [(s, code in (7500.0, 7600.0, 7700.0)) for s, code in enumerate(codes) if code == code]
    since, raised_at = None, None
    for s, on in known:
        since = (s if since is None else since) if on else None
        if since is not None and s - since >= 4 and raised_at is None:
            raised_at = float(s)
    first = next((event.t - T0 for event in events if event.state == "raised"), None)
    assert first == raised_at
