"""intent: ghosts and missed conflicts, live; and its running figures equal those of the evaluation at every moment."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest

from watchkeeper.config.schema import DEFAULT, Config
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.warmup import warm_up
from watchkeeper.detectors.intent.detector import Intent
from watchkeeper.evaluation.conflicts.command import HallucinationDetector
from watchkeeper.evaluation.conflicts.episode import Episode
from watchkeeper.evaluation.conflicts.log import read_log
from watchkeeper.streams.batch import Batch, slice_batch
from watchkeeper.streams.foreign.states import StateEncoder, decode_state
from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.simulate import simulate

_OFF = {
    name: {"enabled": False} for name in ("conflict", "los", "gps_imu", "kinematics", "silence", "gnss_interference")
}
SMALL = msgspec.convert({"fleet": {"max_vehicles": 100}, "detectors": _OFF}, Config)
SHARED = ("tp", "fp", "fn", "tn", "num_conflict_steps", "precision", "recall", "alert_duty_cycle", "avg_lead_time_s")


def adsb(name: str, t: float, lat: float, lon: float, trk: float = 90.0, **values: float) -> dict[str, Any]:
    fields = {"alt_ft": 35_000.0, "gs_kt": 360.0, "vs_fpm": 0.0, **values}
    return {"id": name, "t": t, "lat": lat, "lon": lon, "trk_deg": trk, **fields}


def action(name: str, t: float, turn: float = 0.0, faster: float = 0.0) -> dict[str, Any]:
    return {"id": name, "t": t, "heading_delta_deg": turn, "speed_delta_kt": faster}


def route(name: str, lat: float, lon: float, t: float = 0.0, **values: float) -> dict[str, Any]:
    return {"id": name, "t": t, "lat": lat, "lon": lon, **values}


class Scene:
    """Two aircraft that fly at each other along the equator, 40 NM apart at first, 2 NM nearer per step of 10 s."""

    def __init__(self, bench, config: Config = DEFAULT, aside_nm: float = 0.0, **b_values: float) -> None:
        self.bench = bench(Intent, config)
        self.aside, self.b_values = aside_nm, b_values

    def step(self, k: int, commands: dict[str, float], **more: Any) -> dict[str, tuple[float, tuple[str, ...]]]:
        t = 10.0 * k
        there = [
            adsb("a", t, 0.0, k / 60.0),
            adsb("b", t, self.aside / 60.0, (40.0 - k) / 60.0, 270.0, **self.b_values),
        ]
        found = self.bench.tick(t, adsb=there, action=[action(n, t, turn) for n, turn in commands.items()], **more)
        return self.read(found)

    def read(self, found: list[Evidence]) -> dict[str, tuple[float, tuple[str, ...]]]:
        if not found:
            return {}
        (ev,) = found
        names = [self.bench.fleet.ids[s] for s in ev.a]
        causes = [tuple(c for i, c in enumerate(ev.causes) if bits >> i & 1) for bits in ev.cause_bits.tolist()]
        return {n: (float(s), c) for n, s, c in zip(names, ev.score, causes, strict=True)}


def test_nothing_happens_before_the_first_command(bench):
    scene = bench(Intent)
    for k in range(30):
        assert scene.tick(float(k), adsb=[adsb("a", float(k), 0.0, k / 600.0)]) == []
    assert scene.detector.gauges()["steps"] == 0.0
    assert scene.detector._present is None  # no memory either


def test_the_warm_up_goes_through_a_whole_step(monkeypatch):
    seen = []
    judge = Intent._judge

    def noted(self, t, since_t):
        found = judge(self, t, since_t)
        seen.append(self._present.n)
        return found

    monkeypatch.setattr(Intent, "_judge", noted)
    warm_up(DEFAULT)
    assert max(seen) >= 2  # so that pairs are looked at as well


def test_looks_once_per_step_and_only_at_steps(bench):
    scene = bench(Intent)
    looked = [
        k for k in range(41)
        if scene.tick(float(k), adsb=[adsb("a", float(k), 0.0, 0.0)], action=[action("a", float(k))] if k >= 3 else [])
    ]  # fmt: skip
    assert looked == [10, 20, 30, 40]
    assert scene.detector.gauges()["steps"] == 4.0


def test_a_conflict_that_is_left_alone_is_missed_after_the_response_time(bench):
    # conflict from step 6 on (see tests/evaluation/conflicts/test_metrics.py); response_s is 30 s
    scene = Scene(bench)
    found = [scene.step(k, {"a": 0.0, "b": 0.0}) for k in range(24)]
    assert [k for k, rows in enumerate(found) if rows["a"][1] == ("missed",)] == list(range(9, 23))
    assert found[8]["b"][0] == pytest.approx(20.0 / 30.0)
    assert found[9]["b"][0] == 1.0
    assert scene.bench.detector.gauges()["missed"] == 0.0
    assert scene.bench.detector.gauges()["fn"] == 1.0


@pytest.mark.parametrize("who", ["a", "b"])
def test_a_command_to_either_of_the_two_answers_a_conflict(bench, who):
    scene = Scene(bench)
    found = [scene.step(k, {"a": 0.0, "b": 0.0} | ({who: 5.0} if k == 8 else {})) for k in range(24)]
    assert not any(causes for rows in found for _, causes in rows.values())
    # one command is no alert, which takes two of three steps: the tally still counts a miss, the alarm does not
    assert scene.bench.detector.gauges()["fn"] == 1.0


def test_a_command_shortly_before_the_conflict_answers_it_too(bench):
    # a pair 5.5 NM aside becomes a conflict when b turns
    scene = Scene(bench, aside_nm=5.5)
    found = [scene.step(k, {"a": 5.0 if k == 12 else 0.0}) for k in range(14)]
    scene.aside = 4.0
    found += [scene.step(k, {"a": 0.0}) for k in range(14, 22)]
    assert not any("missed" in causes for rows in found for _, causes in rows.values())


def test_a_deliberate_command_with_nobody_near_is_a_ghost(bench):
    scene = bench(Intent)
    rows = []
    for k in range(6):
        t = 10.0 * k
        found = scene.tick(t, adsb=[adsb("a", t, 0.0, k / 60.0)], action=[action("a", t, 12.0 if k in (2, 3) else 1.0)])
        rows.append((float(found[0].score[0]), found[0].cause_bits.tolist()))
    assert rows == [(0.0, [0]), (0.0, [0]), (4.0, [1]), (4.0, [1]), (0.0, [0]), (0.0, [0])]


def test_with_ghost_needs_threat_somebody_must_be_near(bench):
    section = msgspec.structs.replace(DEFAULT.detectors.intent, ghost_needs_threat=True)
    config = msgspec.structs.replace(DEFAULT, detectors=msgspec.structs.replace(DEFAULT.detectors, intent=section))
    for aside, ghost in ((5.5, True), (8.0, False)):
        scene = Scene(bench, config, aside_nm=aside)
        found = [scene.step(k, {"a": 9.0 if k in (10, 11) else 0.0}) for k in range(14)]
        assert any("ghost" in causes for rows in found for _, causes in rows.values()) == ghost


def test_turning_towards_the_waypoint_is_no_ghost(bench):
    for turn, ghost in ((-10.0, False), (10.0, True)):
        scene = bench(Intent)
        scene.tick(0.0, adsb=[adsb("a", 0.0, 0.0, 0.0)], route=[route("a", 2.0, 2.0)])
        (ev,) = scene.tick(10.0, adsb=[adsb("a", 10.0, 0.0, 1 / 60)], action=[action("a", 10.0, turn)])
        assert (ev.cause_bits.tolist() == [1]) == ghost


def test_a_command_right_after_a_conflict_is_no_ghost(bench):
    # the last conflict is at step 22; turning back within 30 s belongs to it, later it does not
    for step, ghost in ((25, False), (26, True)):
        scene = Scene(bench)
        found = [scene.step(k, {"a": 9.0 if k == step else 0.0, "b": 5.0 if k == 8 else 0.0}) for k in range(28)]
        assert ("ghost" in found[step]["a"][1]) == ghost


def test_an_aircraft_that_nobody_commands_is_an_intruder_but_has_no_evidence(bench):
    scene = Scene(bench)
    found = [scene.step(k, {"a": 0.0}) for k in range(12)]
    assert all(set(rows) == {"a"} for rows in found)
    assert found[11]["a"][1] == ("missed",)
    # and two of them are no business of a controller
    scene = Scene(bench)
    found = [scene.step(k, {"c": 0.0}) for k in range(12)]
    assert all(rows == {} for rows in found)
    assert scene.bench.detector.gauges()["num_conflict_steps"] == 0.0


def test_vertical_separation_age_and_the_ground_keep_an_aircraft_out(bench):
    for values in ({"alt_ft": 36_000.0}, {"on_ground": 1.0}, {"gs_kt": math.nan}):
        scene = Scene(bench, **values)
        for k in range(12):
            scene.step(k, {"a": 0.0})
        assert scene.bench.detector.gauges()["num_conflict_steps"] == 0.0
    scene = Scene(bench)
    for k in range(7):
        scene.step(k, {"a": 0.0})
    assert scene.bench.detector.gauges()["num_conflict_steps"] == 1.0
    for t in (70.0, 80.0):  # b is silent: 10 s later it still counts, 20 s later it does not
        scene.bench.tick(t, adsb=[adsb("a", t, 0.0, t / 600.0)], action=[action("a", t)])
    assert scene.bench.detector.gauges()["num_conflict_steps"] == 2.0


def test_arrived_aircraft_take_no_part(bench):
    scene = Scene(bench)
    for k in range(12):
        more = {"route": [route("b", 0.0, 1.0, reached=1.0)]} if k == 0 else {}
        scene.step(k, {"a": 0.0, "b": 0.0}, **more)
    assert scene.bench.detector.gauges()["num_conflict_steps"] == 0.0
    # a new waypoint, and it flies again
    scene.step(12, {"a": 0.0}, route=[route("b", 0.0, -1.0, t=120.0)])
    assert scene.bench.detector.gauges()["num_conflict_steps"] == 1.0


def test_alarms_have_a_life_and_say_with_whom():
    pipeline = Pipeline(SMALL)
    simulation = simulate("controlled", seed=3)
    events = [e for batch in simulation.batches() for e in pipeline.feed(batch)] + pipeline.finish()
    role = {name: v["role"] for name, v in simulation.truth()["vehicles"].items()}
    intent = [e for e in events if e.kind == "intent"]
    raised = [(role[e.subjects[0]], e.evidence["causes"], e.severity) for e in intent if e.state == "raised"]
    assert raised == [
        ("ghost", ["ghost"], "caution"),
        ("wary", ["ghost"], "caution"),
        ("missed", ["missed"], "warning"),
        ("missed", ["missed"], "warning"),
    ]
    assert sum(e.state == "cleared" for e in intent) == 4
    first, second = (e for e in intent if e.state == "raised" and e.severity == "warning")
    assert (first.evidence["with"], second.evidence["with"]) == (second.subjects[0], first.subjects[0])
    assert {e.severity for e in intent if role[e.subjects[0]] == "missed"} == {"warning"}


# -- live equals offline ---------------------------------------------------------------------------------------


@cache
def recording(seed: int) -> tuple[Batch, ...]:
    return tuple(simulate("controlled", seed=seed, noise=seed % 2 == 1).batches())


def figures(pipeline: Pipeline) -> dict[str, float]:
    return {n.removeprefix("intent_"): v for n, v in pipeline.gauges().items() if n.startswith("intent_")}


def equal(live: dict[str, float], offline: dict[str, float]) -> None:
    assert {n: live[n] for n in SHARED} == pytest.approx({n: offline[n] for n in SHARED}, nan_ok=True)


def first_steps(episode: Episode, n: int) -> Episode:
    """The episode as it was after n steps."""
    columns = {f.name: getattr(episode, f.name) for f in fields(episode)}
    cut = {k: v[:n] for k, v in columns.items() if isinstance(v, np.ndarray) and k != "completed"}
    return replace(episode, **cut)


@pytest.mark.parametrize("seed", [0, 1])
def test_after_every_step_the_gauges_are_what_the_evaluation_says_of_the_recording_so_far(tmp_path, seed):
    path = tmp_path / "whole.wklog"
    with LogWriter(path) as writer:
        for batch in recording(seed):
            writer.write(batch)
    whole = read_log(path, 10.0)
    pipeline = Pipeline(SMALL)
    seen = 0
    for batch in recording(seed):
        pipeline.feed(batch)
        live = figures(pipeline)
        if live["steps"] > seen:
            seen = int(live["steps"])
            equal(live, HallucinationDetector().examine(first_steps(whole, seen)).metrics)
    pipeline.finish()
    assert figures(pipeline)["steps"] == len(whole.t) == (61 if seed else 60)
    found = HallucinationDetector().examine(whole).metrics
    equal(figures(pipeline), found)
    assert (found["tp"], found["fp"], found["fn"]) == (1, 1, 1)  # a bit of everything


def test_how_the_stream_is_cut_and_a_restart_change_nothing():
    whole, pieces = Pipeline(SMALL), Pipeline(SMALL)
    for i, batch in enumerate(recording(1)):
        whole.feed(batch)
        for start in range(0, len(batch), 7):
            pieces.feed(slice_batch(batch, start, start + 7))
        if i in (75, 250, 400):
            state = decode_state(bytes(StateEncoder().encode(pieces.snapshot())))
            pieces = Pipeline(SMALL)
            pieces.restore(state)
    whole.finish()
    pieces.finish()
    assert figures(pieces) == pytest.approx(figures(whole), nan_ok=True)


def test_a_gap_in_the_recording_counts_as_quiet_steps_in_both(tmp_path):
    # the recording, and again 13 minutes after its end: ticks are skipped, steps and vehicles are not forgotten
    first = recording(0)
    path = tmp_path / "gap.wklog"
    pipeline = Pipeline(SMALL)
    with LogWriter(path) as writer:
        for shift in (0.0, 1400.0):
            for batch in first:
                later = _shifted(batch, shift)
                pipeline.feed(later)
                writer.write(later)
    pipeline.finish()
    live = figures(pipeline)
    found = HallucinationDetector().examine(read_log(path, 10.0))
    assert live["steps"] == len(found.episode.t) == 60 + 80 + 60
    equal(live, found.metrics)


def _shifted(batch: Batch, shift_s: float) -> Batch:
    return Batch(batch.ids, {k: replace(c, t=c.t + shift_s) for k, c in batch.kinds.items()}, batch.vias)


def test_a_window_without_samples_is_fine(bench):
    scene = bench(Intent)
    scene.tick(0.0, adsb=[adsb("a", 0.0, 0.0, 0.0)], action=[action("a", 0.0)])
    assert len(scene.detector.step(Window(10.0, {}))[0]) == 1
    assert len(scene.detector.step(Window(30.0, {}))[0]) == 0  # a is too old by now
    assert Kind.ACTION not in scene.fleet.ring
