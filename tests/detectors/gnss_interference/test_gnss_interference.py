"""gnss_interference: one alarm over a jammer that grows, shrinks and clears, and none for anything less."""

from __future__ import annotations

import copy
import math
from functools import cache
from typing import Any

import h3
import msgspec
import numpy as np
import pytest

from watchkeeper.config.detectors import Detectors
from watchkeeper.config.schema import Config, FleetLimits, Time
from watchkeeper.detectors.alarms.events import AlarmEvent, encode_event
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import Batch, columns_of, slice_batch
from watchkeeper.streams.messages import Kind, subject_topic
from watchkeeper.streams.simulate import simulate

KIND = "gnss_interference"
GOOD = {"nacp": 9.0, "nic": 8.0}
JAMMED = {"nacp": 0.0, "nic": 0.0}
Row = tuple[str, float, dict[str, float]]


def only(**settings: Any) -> Config:
    """A configuration in which nothing else is watched."""
    sections = {
        name: msgspec.structs.replace(section, enabled=name == KIND, **(settings if name == KIND else {}))
        for name, section in Detectors().sections().items()
    }
    return Config(fleet=FleetLimits(max_vehicles=2000), time=Time(lateness_s=0.5), detectors=Detectors(**sections))


CONFIG = only()


def batch_of(rows: list[Row]) -> Batch:
    rows = sorted(rows, key=lambda row: row[1])
    ids = list(dict.fromkeys(row[0] for row in rows))
    number = {name: i for i, name in enumerate(ids)}
    fields = sorted({name for row in rows for name in row[2]})
    columns = columns_of(
        Kind.ADSB,
        np.array([number[row[0]] for row in rows], np.int32),
        np.array([row[1] for row in rows]),
        {name: np.array([row[2].get(name, np.nan) for row in rows]) for name in fields},
        seq=np.arange(len(rows)),
    )
    return Batch(ids, {Kind.ADSB: columns})


def group(name: str, n: int, lat: float, lon: float) -> dict[str, tuple[float, float]]:
    """Aircraft around the middle of the cell at this place, all of them in it."""
    lat, lon = h3.cell_to_latlng(h3.latlng_to_cell(lat, lon, 4))
    turn = 2.0 * math.pi / n
    return {f"{name}{i}": (lat + 0.08 * math.sin(i * turn), lon + 0.1 * math.cos(i * turn)) for i in range(n)}


def reports(where: dict[str, tuple[float, float]], start: int, end: int, quality: dict[str, float]) -> list[Row]:
    """One report a second of each, from start to before end."""
    return [
        (name, float(t), {"lat": lat, "lon": lon, "alt_ft": 3e4, "gs_kt": 450.0, **quality})
        for t in range(start, end)
        for name, (lat, lon) in where.items()
    ]


def alarms(rows: list[Row], config: Config = CONFIG) -> list[AlarmEvent]:
    pipeline = Pipeline(config)
    return pipeline.feed(batch_of(rows)) + pipeline.finish()


def away_km(event: AlarmEvent, lat: float, lon: float) -> float:
    return float(h3.great_circle_distance((event.evidence["lat"], event.evidence["lon"]), (lat, lon)))


@cache
def jammed(seed: int) -> tuple[dict[str, Any], tuple[AlarmEvent, ...]]:
    sim = simulate("jamming", seed=seed, vehicles=300, seconds=800)
    pipeline = Pipeline(CONFIG)
    events = [event for batch in sim.batches() for event in pipeline.feed(batch)]
    return sim.truth()["jamming"], tuple(events + pipeline.finish())


@pytest.mark.parametrize("seed", [1, 2, 3])
class TestJammer:
    """The scenario: dozens of aircraft jammed, a few immune, a few always poor, the rest healthy."""

    def test_is_one_alarm_from_soon_after_it_comes_until_it_goes(self, seed):
        truth, events = jammed(seed)
        assert [e.state for e in events if e.state != "updated"] == ["raised", "cleared"]
        assert len({e.id for e in events}) == 1
        first_three = sorted(spans[0][0] for spans in truth["jammed"].values())[2]
        # the third aircraft may be jammed far from the first two; half the way to full reach is enough
        assert first_three <= events[0].t <= (truth["t_on"] + truth["t_full"]) / 2
        assert truth["t_fade"] < events[-1].t < truth["t_off"] + 30
        assert events[-1].evidence["share"] < 0.4

    def test_is_located_and_its_extent_grows_and_shrinks(self, seed):
        truth, events = jammed(seed)
        full = [e for e in events if truth["t_full"] <= e.t <= truth["t_fade"]]
        assert all(away_km(e, truth["lat"], truth["lon"]) < 0.25 * truth["radius_km"] for e in full)
        assert all(0.8 < e.evidence["radius_km"] / truth["radius_km"] < 1.6 for e in full)
        km2 = [e.evidence["area_km2"] for e in events]
        peak = km2.index(max(km2))
        assert km2[0] < 0.3 * km2[peak]
        assert km2[-1] < 0.8 * km2[peak]
        assert events[0].evidence["grown_km2"] > 0.0
        assert events[-1].evidence["shrunk_km2"] > 0.0
        assert truth["t_on"] < events[peak].t < truth["t_off"]

    def test_counts_the_jammed_and_lists_the_cells(self, seed):
        truth, events = jammed(seed)
        for event in events:
            ev = event.evidence
            assert ev["extent"] == sorted(ev["extent"])
            assert len(ev["extent"]) == ev["cells"]
            assert all(h3.get_resolution(cell) == 4 for cell in ev["extent"])
            assert sum(h3.cell_area(cell) for cell in ev["extent"]) == pytest.approx(ev["area_km2"], abs=0.01)
            now = sum(any(a <= event.t <= b + 2 for a, b in spans) for spans in truth["jammed"].values())
            assert ev["affected"] <= now
        assert max(e.severity for e in events) == "warning"
        most = max(events, key=lambda e: e.evidence["affected"])
        assert most.evidence["affected"] >= 15
        assert most.score == pytest.approx(most.evidence["affected"] / most.evidence["aircraft"], abs=1e-4)


def test_the_scene_without_a_jammer_is_quiet():
    pipeline = Pipeline(CONFIG)
    assert [e for b in simulate("random", seed=1, vehicles=300, seconds=240).batches() for e in pipeline.feed(b)] == []


def test_everybody_jammed_at_once_is_raised_within_seconds_and_cleared_soon_after():
    near = group("a", 6, 50.0, 8.0)
    rows = reports(near, 0, 100, GOOD) + reports(near, 100, 160, JAMMED) + reports(near, 160, 240, GOOD)
    events = alarms(rows)
    assert [(e.state, e.t) for e in events if e.state != "updated"] == [("raised", 102.0), ("cleared", 169.0)]
    assert events[0].t_onset == 100.0
    assert events[0].severity == "caution"
    assert away_km(events[0], 50.0, 8.0) < 30.0
    (name,) = events[0].subjects
    assert name.removeprefix("h3-") in events[0].evidence["extent"]
    assert subject_topic(events[0].subjects) == name


@pytest.mark.parametrize("quality", [{"nacp": 0.0}, {"nic": 0.0}, {"nacp": 5.0, "nic": 8.0}, {"nacp": 9.0, "nic": 4.0}])
def test_either_category_is_enough(quality):
    near = group("a", 4, -35.0, 179.95)
    before = {name: GOOD[name] for name in quality}
    events = alarms(reports(near, 0, 100, before) + reports(near, 100, 130, quality))
    assert [e.state for e in events][:1] == ["raised"]


def test_one_failing_aircraft_is_no_interference():
    near = group("a", 1, 50.0, 8.0)
    others = group("b", 2, 50.0, 8.05)
    rows = reports(near, 0, 100, GOOD) + reports(near, 100, 300, JAMMED)
    assert alarms(rows) == []
    assert alarms(rows + reports(others, 0, 300, GOOD)) == []


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(None, id="they are no longer heard"),
        pytest.param({}, id="they no longer send the categories"),
        pytest.param({"nacp": 7.0, "nic": 6.0}, id="a little worse is no collapse"),
        pytest.param({"nacp": 8.0, "nic": 7.0}, id="the least that rules ask is enough"),
        pytest.param({**JAMMED, "on_ground": 1.0}, id="they are on the ground"),
        pytest.param({**JAMMED, "gs_kt": 5.0}, id="they are parked"),
    ],
)
def test_these_are_no_collapse(after):
    near = group("a", 8, 50.0, 8.0)
    rows = reports(near, 0, 100, GOOD)
    assert alarms(rows + (reports(near, 100, 300, after) if after is not None else [])) == []
    assert [e.state for e in alarms(rows + reports(near, 100, 120, JAMMED))][:1] == ["raised"]


@pytest.mark.parametrize(
    "before",
    [
        pytest.param({"nacp": 4.0, "nic": 4.0}, id="always poor"),
        pytest.param(JAMMED, id="jammed since the first report"),
        pytest.param({}, id="never sent the categories"),
    ],
)
def test_aircraft_without_a_good_past_say_nothing(before):
    near = group("a", 8, 50.0, 8.0)
    assert alarms(reports(near, 0, 100, before) + reports(near, 100, 200, JAMMED)) == []


def test_newcomers_say_nothing_and_the_poor_do_not_count_as_healthy():
    near, poor = group("a", 4, 50.0, 8.0), group("p", 20, 50.0, 8.0)
    assert alarms(reports(near, 0, 50, GOOD) + reports(near, 50, 90, JAMMED)) == []
    rows = reports(near, 0, 100, GOOD) + reports(near, 100, 130, JAMMED)
    (first, *_) = alarms(rows + reports(poor, 0, 130, {"nacp": 2.0, "nic": 0.0}))
    assert (first.state, first.evidence["aircraft"]) == ("raised", 4.0)


def test_a_minority_is_no_interference():
    hit, well = group("a", 4, 50.0, 8.0), group("b", 5, 50.0, 8.0)
    rows = reports(hit, 0, 100, GOOD) + reports(hit, 100, 200, JAMMED) + reports(well, 0, 200, GOOD)
    assert alarms(rows) == []


def test_one_good_report_among_poor_ones_is_no_good_past():
    near = group("a", 8, 50.0, 8.0)
    rows = [
        (name, t, {**fields, **(GOOD if t % 20 == 0 else {"nacp": 1.0, "nic": 1.0})})
        for name, t, fields in reports(near, 0, 300, {})
    ]
    assert alarms(rows) == []


def test_a_collapse_that_lasts_becomes_the_new_normal():
    near = group("a", 4, 50.0, 8.0)
    rows = reports(near, 0, 100, GOOD) + reports(near, 100, 400, JAMMED)
    events = alarms(rows, only(accept_s=120.0))
    assert [(e.state, e.ended) for e in events if e.state != "updated"] == [
        ("raised", None),
        ("cleared", "faded"),
    ]
    assert 220.0 < events[-1].t < 290.0


def test_an_area_that_nobody_flies_through_any_more_is_given_up():
    near, far = group("a", 4, 50.0, 8.0), group("f", 2, 20.0, 8.0)
    rows = reports(near, 0, 100, GOOD) + reports(near, 100, 130, JAMMED) + reports(far, 0, 300, GOOD)
    events = alarms(rows)
    assert [(e.state, e.ended) for e in events if e.state != "updated"] == [
        ("raised", None),
        ("cleared", "faded"),
    ]


def test_far_apart_are_two_alarms_and_growing_together_the_older_goes_on():
    cells = h3.grid_path_cells(h3.latlng_to_cell(50.0, 6.0, 4), h3.latlng_to_cell(50.0, 9.5, 4))
    west, *between, east = (group(cell, 4, *h3.cell_to_latlng(cell)) for cell in cells)
    assert len(between) >= 4
    rows = reports(west, 0, 100, GOOD) + reports(west, 100, 300, JAMMED)
    rows += reports(east, 0, 120, GOOD) + reports(east, 120, 300, JAMMED)
    rows += [row for each in between for row in reports(each, 0, 200, GOOD) + reports(each, 200, 300, JAMMED)]
    events = alarms(rows)
    first, second = (e for e in events if e.state == "raised")
    assert (first.t, second.t) == (102.0, 122.0)
    assert first.evidence["lon"] < second.evidence["lon"]
    (merged,) = (e for e in events if e.state == "cleared")
    assert (merged.id, merged.ended, merged.t) == (second.id, "merged", 200.0)
    assert events[-1].id == first.id
    assert events[-1].evidence["aircraft"] == 4.0 * len(cells)


def test_a_change_of_extent_is_told_at_once():
    west, east = group("w", 6, 50.0, 6.0), group("e", 6, 50.0, 6.6)
    rows = reports(west, 0, 100, GOOD) + reports(west, 100, 150, JAMMED)
    rows += reports(east, 0, 107, GOOD) + reports(east, 107, 150, JAMMED)
    events = alarms(rows)
    raised, grown = events[:2]
    assert (raised.t, grown.t, grown.state) == (102.0, 107.0, "updated")
    assert grown.evidence["cells"] > raised.evidence["cells"]


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_events_do_not_depend_on_how_the_input_is_cut(chunk):
    near, other = group("a", 5, 50.0, 8.0), group("b", 4, 50.2, 8.6)
    rows = reports(near, 40, 110, GOOD) + reports(near, 110, 130, JAMMED)
    batch = batch_of(rows + reports(other, 40, 120, GOOD) + reports(other, 120, 130, JAMMED))
    whole, cut = Pipeline(CONFIG), Pipeline(CONFIG)
    expected = whole.feed(batch) + whole.finish()
    found = [e for i in range(0, len(batch), chunk) for e in cut.feed(slice_batch(batch, i, i + chunk))] + cut.finish()
    assert [encode_event(e) for e in found] == [encode_event(e) for e in expected] != []


class TestRestart:
    """An alarm goes on under its id, whatever of the state survives."""

    near = group("a", 6, 50.0, 8.0)
    before = reports(near, 0, 100, GOOD) + reports(near, 100, 130, JAMMED)
    after = reports(near, 130, 160, JAMMED) + reports(near, 160, 240, GOOD)

    def run(self, first: Pipeline) -> list[AlarmEvent]:
        return first.feed(batch_of(self.before))

    @pytest.mark.parametrize("away_s", [0, 45, 400])
    def test_with_a_snapshot(self, away_s):
        first = Pipeline(CONFIG)
        journal = self.run(first)
        second = Pipeline(CONFIG)
        second.restore(copy.deepcopy(first.snapshot()))
        second.away()
        second.restore_alarms(journal)
        later = [(name, t + away_s, fields) for name, t, fields in self.after]
        events = second.feed(batch_of(later)) + second.finish()
        assert [e.state for e in journal + events if e.state != "updated"] == ["raised", "cleared"]
        assert {e.id for e in journal + events} == {journal[0].id}
        assert events[-1].t == 169.0 + away_s

    def test_exactly_as_if_nothing_had_happened(self):
        whole, first, second = Pipeline(CONFIG), Pipeline(CONFIG), Pipeline(CONFIG)
        expected = whole.feed(batch_of(self.before)) + whole.feed(batch_of(self.after)) + whole.finish()
        found = first.feed(batch_of(self.before))
        second.restore(copy.deepcopy(first.snapshot()))
        found += second.feed(batch_of(self.after)) + second.finish()
        assert [encode_event(e) for e in found] == [encode_event(e) for e in expected]

    def test_with_a_snapshot_from_before_the_alarm(self):
        beside = group("b", 4, 50.0, 8.6)
        rows = self.before + reports(beside, 0, 130, GOOD)
        first, second = Pipeline(CONFIG), Pipeline(CONFIG)
        first.feed(batch_of([row for row in rows if row[1] < 95]))
        state = copy.deepcopy(first.snapshot())
        journal = first.feed(batch_of([row for row in rows if row[1] >= 95]))
        second.restore(state)
        second.restore_alarms(journal)
        # other cells are the worst now: the old name can only come from the journal
        lower = {name: where for name, where in self.near.items() if name in ("a0", "a1")}
        later = reports(lower, 130, 160, JAMMED) + reports(beside, 130, 160, JAMMED)
        alone = Pipeline(CONFIG)
        alone.restore(state)
        events, elsewhere = second.feed(batch_of(later)), alone.feed(batch_of(later))
        assert {e.id for e in events} == {journal[0].id}
        assert {e.subjects for e in elsewhere} != {journal[0].subjects}

    def test_with_nothing_but_the_journal_it_ends_once(self):
        journal = self.run(Pipeline(CONFIG))
        second = Pipeline(CONFIG)
        second.restore_alarms(journal)
        assert len(second.fleet) == 0
        events = second.feed(batch_of(self.after)) + second.finish()
        assert [(e.state, e.id) for e in events if e.state != "updated"] == [("cleared", journal[0].id)]

    def test_a_journal_that_says_it_ended_is_believed(self):
        first = Pipeline(CONFIG)
        journal = self.run(first)
        state = copy.deepcopy(first.snapshot())
        journal += first.feed(batch_of(self.after)) + first.finish()
        second = Pipeline(CONFIG)
        second.restore(state)
        assert second.active != {}
        second.restore_alarms(journal)
        assert second.active == {}

    def test_another_resolution_ends_the_areas(self):
        first = Pipeline(CONFIG)
        journal = self.run(first)
        first.retune(only(resolution=5))
        events = first.feed(batch_of(self.after)) + first.finish()
        (old,) = journal[0].subjects
        ended = [e for e in events if e.subjects == (old,) and e.state == "cleared"]
        assert [e.ended for e in ended] == ["replaced"]
        (new,) = {e.subjects for e in events if e.state == "raised"}
        assert h3.get_resolution(new[0].removeprefix("h3-")) == 5


def test_time_that_starts_again_ends_the_alarm():
    near = group("a", 6, 50.0, 8.0)
    pipeline = Pipeline(CONFIG)
    pipeline.feed(batch_of(reports(near, 1000, 1100, GOOD) + reports(near, 1100, 1130, JAMMED)))
    events = pipeline.feed(batch_of(reports(near, 0, 20, JAMMED))) + pipeline.finish()
    assert [(e.state, e.ended) for e in events if e.state != "updated"] == [("cleared", "clock_reset")]
    assert pipeline.active == {}


def test_silence_of_the_whole_input_changes_no_area():
    near = group("a", 6, 50.0, 8.0)
    rows = reports(near, 0, 100, GOOD) + reports(near, 100, 130, JAMMED)
    rest = batch_of(reports(near, 160, 200, JAMMED))
    calm, idle = Pipeline(CONFIG), Pipeline(CONFIG)
    for pipeline in (calm, idle):
        pipeline.feed(batch_of(rows))
    assert idle.advance(150.0) == []
    assert [encode_event(e) for e in idle.feed(rest)] == [encode_event(e) for e in calm.feed(rest)] != []
