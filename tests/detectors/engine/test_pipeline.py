"""The pipeline: the same samples give the same bytes however they are cut; event time has a rule for everything."""

from __future__ import annotations

import copy

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.config.detectors import Detectors
from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.config.detectors.silence import Silence
from watchkeeper.config.detectors.watch import Watch as WatchSettings
from watchkeeper.config.schema import DEFAULT, Alarms, Config, Diagnosis, FleetLimits, Time
from watchkeeper.detectors.alarms.events import AlarmBook, AlarmEvent, encode_event
from watchkeeper.detectors.alarms.subjects import Pairs
from watchkeeper.detectors.alarms.watch import Watch
from watchkeeper.detectors.base import Evidence
from watchkeeper.detectors.catalog import detector_kinds
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.sentence import spoken
from watchkeeper.streams.batch import Batch, Columns, columns_of, slice_batch
from watchkeeper.streams.messages import FIELDS, Drop, Kind

# alarms by themselves; test_incidents.py is about what is made of them, tests/detectors/coverage about `watch`
ALONE = Diagnosis(enabled=False)
UNGUARDED = Detectors(watch=WatchSettings(enabled=False))
SMALL = Config(fleet=FleetLimits(max_vehicles=50), diagnosis=ALONE, detectors=UNGUARDED)


def batch_of(rows: list[tuple[Kind, str, float, dict[str, float]]]) -> Batch:
    """Rows (kind, id, t, fields) in arrival order as one batch."""
    ids = list(dict.fromkeys(r[1] for r in rows))
    kinds: dict[Kind, Columns] = {}
    for kind in dict.fromkeys(r[0] for r in rows):
        mine = [(i, r) for i, r in enumerate(rows) if r[0] is kind]
        kinds[kind] = columns_of(
            kind,
            np.array([ids.index(r[1]) for _, r in mine], np.int32),
            np.array([r[2] for _, r in mine]),
            {f.name: np.array([r[3].get(f.name, np.nan) for _, r in mine]) for f in FIELDS[kind]},
            seq=np.array([i for i, _ in mine], np.int64),
        )
    return Batch(ids, kinds)


def gps(name: str, t: float) -> tuple[Kind, str, float, dict[str, float]]:
    return Kind.GPS, name, t, {"gps_x": 0.0, "gps_y": 0.0, "gps_z": 0.0, "gps_vx": 0.0, "gps_vy": 0.0, "gps_vz": 0.0}


def adsb(name: str, t: float, lat: float, lon: float, trk: float) -> tuple[Kind, str, float, dict[str, float]]:
    return Kind.ADSB, name, t, {"lat": lat, "lon": lon, "alt_ft": 3e4, "gs_kt": 450, "trk_deg": trk, "vs_fpm": 0}


def converging(seconds: int, start: float = 100.0) -> list[tuple[Kind, str, float, dict[str, float]]]:
    """Two aircraft head-on along the equator, 1 Hz; 0.25 degrees (15 NM) apart at the start."""
    speed = 450 * 1852 / 3600 / 111_319.49  # degrees of longitude a second
    rows = []
    for i in range(seconds):
        rows.append(adsb("east", start + i, 0.0, i * speed, 90.0))
        rows.append(adsb("west", start + i, 0.0, 0.25 - i * speed, 270.0))
    return rows


def lines(events: list[AlarmEvent]) -> list[bytes]:
    return [encode_event(e) for e in events]


def run(rows, chunk: int | None = None, config: Config = SMALL) -> tuple[list[bytes], dict]:
    pipeline = Pipeline(config)
    batch = batch_of(rows)
    events: list[AlarmEvent] = []
    step = chunk or len(batch)
    for start in range(0, len(batch), step):
        events += pipeline.feed(slice_batch(batch, start, start + step))
    events += pipeline.finish()
    assert sum(pipeline.samples.values()) + sum(
        n for (_, why), n in pipeline.drops.items() if why != Drop.DUPLICATE
    ) == len(batch)
    return lines(events), dict(pipeline.drops)


def test_a_head_on_pair_raises_one_conflict_that_becomes_worse_and_clears():
    events = [msgspec.json.decode(line) for line in run(converging(120))[0]]
    conflict = [e for e in events if e["kind"] == "conflict"]
    assert conflict[0]["state"] == "raised"
    assert conflict[-1]["state"] == "cleared"
    assert {e["id"] for e in conflict} == {conflict[0]["id"]}
    assert conflict[0]["subjects"] == ["east", "west"]
    assert "warning" in {e["severity"] for e in conflict}
    los = [e for e in events if e["kind"] == "los"]
    assert [e["state"] for e in los if e["state"] != "updated"] == ["raised", "cleared"]


@pytest.mark.parametrize(
    ("off", "kinds"), [("conflict", {"los"}), ("los", {"conflict"}), ("kinematics", {"conflict", "los"})]
)
def test_a_kind_that_is_switched_off_is_off_and_the_others_are_not(off, kinds):
    detectors = msgspec.structs.replace(
        SMALL.detectors, **{off: msgspec.structs.replace(getattr(SMALL.detectors, off), enabled=False)}
    )
    config = msgspec.structs.replace(SMALL, detectors=detectors)
    assert {msgspec.json.decode(line)["kind"] for line in run(converging(120), config=config)[0]} == kinds


@st.composite
def messy(draw):
    """Two aircraft and a drone with disorder, duplicates, late samples and wrong clocks."""
    rows = converging(draw(st.integers(5, 30)))
    rows += [gps("drone", 100.0 + i * 0.2) for i in range(draw(st.integers(0, 60)))]
    rows.sort(key=lambda r: r[2])
    arrival = [r[2] + draw(st.sampled_from([0.0, 0.0, 0.0, 0.3, 0.9, 2.5, 6.0])) for r in rows]
    rows = [rows[i] for i in np.argsort(arrival, kind="stable")]
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(rows) - 1))
        kind, name, t, fields = rows[at]
        rows.insert(at, (kind, name, draw(st.sampled_from([t, t + 500.0, t + 500.0 + at, 1.0, t - 80.0])), fields))
    return rows


@given(messy(), st.integers(1, 40))
@settings(max_examples=40, deadline=None)
def test_alarms_and_counters_do_not_depend_on_chunking(rows, chunk):
    assert run(rows, chunk) == run(rows)


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_arrival_order_within_lateness_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    rows = sorted(converging(40) + [gps("drone", 100.0 + i * 0.2) for i in range(100)], key=lambda r: r[2])
    # a sample is late only if something more than lateness_s newer arrived before it
    arrival = np.array([r[2] for r in rows]) + rng.uniform(0, 0.99, len(rows))
    shuffled = [rows[i] for i in np.argsort(arrival)]
    assert run(shuffled) == run(rows)


def test_a_tick_sees_exactly_the_samples_up_to_its_end():
    seen: list[tuple[float, list[float]]] = []
    pipeline = Pipeline(SMALL, on_evidence=lambda w, _: seen.append((w.t, w.samples[Kind.GPS].t.tolist())))
    pipeline.feed(batch_of([gps("d", t) for t in (10.5, 10.2, 11.0, 11.000001, 12.0)]))
    assert seen == []  # 12.0 is not past 11 + lateness
    pipeline.feed(batch_of([gps("d", 12.1)]))
    assert seen == [(11.0, [10.2, 10.5, 11.0])]
    pipeline.finish()
    assert seen[1:] == [(12.0, [11.000001, 12.0]), (13.0, [12.1])]


def test_late_duplicate_and_jumped_samples_are_counted_by_reason():
    rows = [gps("d", t) for t in (10.0, 10.0, 15.0, 11.0, 9e8, 15.5)]
    assert run(rows)[1] == {
        ("gps", Drop.DUPLICATE): 1,
        ("gps", Drop.LATE): 1,
        ("gps", Drop.TIME_JUMP): 1,
    }


def test_an_hour_of_nothing_costs_no_ticks_for_it():
    pipeline = Pipeline(SMALL)
    pipeline.feed(batch_of([gps("d", 10.0 + i) for i in range(5)]))
    pipeline.feed(batch_of([gps("d", 1e9 + i) for i in range(10)]))
    assert pipeline.ticks < 1000
    assert pipeline.drops == {}


def test_silence_of_everything_is_noticed_and_a_paused_simulator_loses_nothing():
    pipeline = Pipeline(SMALL)
    events = pipeline.feed(batch_of([gps("d", 10.0 + 0.2 * i) for i in range(60)]))
    assert events == []
    for t in range(22, 40):
        events += pipeline.advance(float(t))
    assert [(e.kind, e.state) for e in events] == [("silence", "raised"), ("silence", "updated")]
    # the simulator goes on from where it was paused
    more = pipeline.feed(batch_of([gps("d", 22.0 + 0.2 * i) for i in range(200)])) + pipeline.finish()
    assert pipeline.drops == {}
    assert pipeline.samples["gps"] == 260
    assert [(e.kind, e.state) for e in more] == [("silence", "cleared")]


def test_live_with_idle_time_and_replay_agree():
    before = [gps("d", 10.0 + 0.2 * i) for i in range(60)]
    after = [gps("d", 40.0 + 0.2 * i) for i in range(60)]
    live = Pipeline(Config(fleet=SMALL.fleet, time=Time(max_jump_s=60.0)))
    events = live.feed(batch_of(before))
    for t in range(22, 39):
        events += live.advance(float(t))
    events += live.feed(batch_of(after)) + live.finish()
    replayed = run(before + after, config=Config(fleet=SMALL.fleet, time=Time(max_jump_s=60.0)))[0]
    assert lines(events) == replayed
    assert len(replayed) >= 2


@given(st.integers(1, 79), st.integers(1, 7))
@settings(max_examples=25, deadline=None)
def test_a_snapshot_anywhere_goes_on_with_the_same_bytes(cut, chunk):
    batch = batch_of(sorted(converging(40) + [gps("drone", 100.0 + i * 0.5) for i in range(70)], key=lambda r: r[2]))
    whole, first = Pipeline(SMALL), Pipeline(SMALL)
    expected = lines(whole.feed(batch) + whole.finish())
    found = first.feed(slice_batch(batch, 0, cut))
    second = Pipeline(SMALL)
    second.restore(copy.deepcopy(first.snapshot()))
    for start in range(cut, len(batch), chunk):
        found += second.feed(slice_batch(batch, start, start + chunk))
    assert lines(found + second.finish()) == expected


def test_time_spent_away_is_not_held_against_anybody():
    first = Pipeline(SMALL)
    first.feed(batch_of([gps("d", 10.0 + 0.2 * i) for i in range(60)]))
    second = Pipeline(SMALL)
    second.restore(copy.deepcopy(first.snapshot()))
    second.away()
    more = [gps("d", 40.0 + 0.2 * i) for i in range(60)]
    assert second.feed(batch_of(more)) + second.finish() == []


def test_after_a_crash_an_alarm_keeps_its_id_is_not_raised_twice_and_clears_once():
    rows = converging(120)
    whole = Pipeline(SMALL)
    expected = [e for e in whole.feed(batch_of(rows)) + whole.finish() if e.kind == "conflict"]
    cut = next(i for i, r in enumerate(rows) if r[2] > expected[0].t + 12)
    first = Pipeline(SMALL)
    journal = first.feed(batch_of(rows[:cut]))
    # nothing but the journal survives
    second = Pipeline(SMALL)
    second.restore_alarms(journal)
    after = second.feed(batch_of(rows[cut:])) + second.finish()
    life = [e for e in journal + after if e.kind == "conflict"]
    assert {e.id for e in life} == {expected[0].id}
    states = [e.state for e in life if e.state != "updated"]
    assert states == ["raised", "cleared"]


def test_a_journal_knows_better_than_an_older_snapshot():
    rows = converging(120)
    pipeline = Pipeline(SMALL)
    journal = pipeline.feed(batch_of(rows[:60]))
    state = copy.deepcopy(pipeline.snapshot())
    journal += pipeline.feed(batch_of(rows[60:])) + pipeline.finish()
    assert pipeline.active == {}
    again = Pipeline(SMALL)
    again.restore(state)
    assert again.active != {}
    again.restore_alarms(journal)
    assert again.active == {}
    after = again.feed(batch_of(rows[200:]))
    assert {e.id for e in after if e.state == "cleared"} <= {e.id for e in after if e.state == "raised"}


def test_an_alarm_of_a_vehicle_that_never_comes_back_ends_out_of_sight():
    first = Pipeline(SMALL)
    journal = first.feed(batch_of(converging(30)))
    second = Pipeline(SMALL)
    second.restore_alarms(journal)
    rows = [gps("other", 131.0 + i) for i in range(100)]
    after = second.feed(batch_of(rows)) + second.finish()
    assert [(e.state, e.ended) for e in after if e.kind == "conflict"] == [("cleared", "out_of_sight")]


def test_time_that_starts_again_ends_all_alarms_and_begins_afresh():
    pipeline = Pipeline(SMALL)
    events = pipeline.feed(batch_of(converging(30, start=1000.0)))
    again = pipeline.feed(batch_of(converging(30, start=10.0))) + pipeline.finish()
    ended = [e for e in again if e.kind == "conflict" and e.state == "cleared"]
    assert [e.ended for e in ended] == ["clock_reset"]
    raised = [e for e in events + again if e.kind == "conflict" and e.state == "raised"]
    assert len(raised) == 2
    assert raised[0].id != raised[1].id
    assert pipeline.drops == {}


def test_a_full_fleet_refuses_newcomers_until_someone_is_forgotten():
    config = Config(
        fleet=FleetLimits(max_vehicles=2, evict_idle_s=20.0),
        time=Time(max_jump_s=100.0),
        diagnosis=ALONE,
        detectors=UNGUARDED,
    )
    pipeline = Pipeline(config)
    pipeline.feed(batch_of([gps("a", 10.0 + i) for i in range(10)] + [gps("b", 19.0), gps("c", 19.5)]))
    assert pipeline.drops == {("gps", Drop.FLEET_FULL): 1}
    events = pipeline.feed(batch_of([gps("b", 20.0 + i) for i in range(60)]))
    assert [(e.kind, e.state, e.ended) for e in events if e.subjects == ("a",)] == [
        ("silence", "raised", None),
        ("silence", "updated", None),
        ("silence", "cleared", "forgotten"),
    ]
    pipeline.feed(batch_of([gps("c", 80.0)]))
    assert sorted(pipeline.fleet.slot_of) == ["b", "c"]


def test_the_alarm_table_is_bounded():
    pipeline = Pipeline(
        Config(fleet=FleetLimits(max_vehicles=50), alarms=Alarms(max_active=3), diagnosis=ALONE, detectors=UNGUARDED)
    )
    pipeline.feed(batch_of([gps(f"d{k}", 10.0 + i) for i in range(10) for k in range(8)]))
    events = pipeline.advance(60.0)
    assert len([e for e in events if e.state == "raised"]) == 3
    assert pipeline.book.refused == 5


def test_new_thresholds_keep_all_state():
    pipeline = Pipeline(SMALL)
    rows = converging(120)
    events = pipeline.feed(batch_of(rows[:60]))
    config = Config(fleet=SMALL.fleet, detectors=Detectors(silence=Silence(debounce=Debounce(n=2, m=2))))
    pipeline.retune(config)
    events += pipeline.feed(batch_of(rows[60:])) + pipeline.finish()
    assert [e.state for e in events if e.kind == "conflict" and e.state != "updated"] == ["raised", "cleared"]


def test_bad_samples_in_a_log_are_counted_not_believed():
    kind, name, _, fields = gps("d", 10.0)
    rows = [(kind, name, 10.0, fields), (kind, name, 10.5, {"gps_vx": 1.0}), (kind, name, 11.0, {**fields, "sats": -1})]
    pipeline = Pipeline(SMALL)
    pipeline.feed(batch_of(rows))
    assert pipeline.drops == {("gps", Drop.MISSING): 1, ("gps", Drop.RANGE): 1}
    assert pipeline.samples == {"gps": 1}


@pytest.mark.parametrize("lon", [190.0, 359.0])
def test_longitudes_of_either_convention_meet_in_one(lon):
    pipeline = Pipeline(SMALL)
    pipeline.feed(batch_of([adsb("a", 10.0, 1.0, lon, -90.0)]))
    pipeline.finish()
    value = pipeline.fleet.value[Kind.ADSB][:, 0]
    assert value[1] == lon - 360.0
    assert value[4] == 270.0


def test_a_pair_does_not_inherit_the_epochs_of_the_pair_that_had_its_cell_before() -> None:
    fleet = Fleet(DEFAULT.fleet)
    slots = np.array([fleet.slot_for(name) for name in ("a", "b", "c", "d")], np.int32)
    rule = Debounce(n=1, m=1, bridge_s=5.0, lost_s=1000.0)
    watch = Watch(detector_kinds()["los"], rule, Pairs(fleet, 1), AlarmBook(DEFAULT.alarms, spoken))

    def named(first: int, second: int, epoch: float, score: float) -> Evidence:
        one = np.ones(1)
        return Evidence(
            "los", slots[[first]], one * epoch, one * epoch, one * score, one, np.zeros(1, np.uint8),
            b=slots[[second]], sparse=True,
        )  # fmt: skip

    assert [e.state for e in watch.step(named(0, 1, 100.0, 2.0), 100.0)] == ["raised"]
    for k in range(1, 10):
        watch.step(named(0, 1, 100.0 + k, 0.0), 100.0 + k)
    watch.tidy(130.0)  # nothing left to watch: its only cell is free again
    # the next pair's reports are older than the first pair's last one
    assert [e.subjects for e in watch.step(named(2, 3, 50.0, 2.0), 130.0)] == [("c", "d")]
