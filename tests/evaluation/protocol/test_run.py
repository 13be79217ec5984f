"""The protocol's runs: what is fed is what was meant, variants keep to themselves, and the whole is the same again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from watchkeeper.config.schema import DEFAULT, Config
from watchkeeper.daemon.cli import main as watchkeeper
from watchkeeper.detectors.base import REGISTRY, Evidence, Window
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.evaluation.attacks.catalogue import catalogue, inject
from watchkeeper.evaluation.attacks.flight import Flight, Stream, read_flights
from watchkeeper.evaluation.protocol.baseline import WARMUP, innovations
from watchkeeper.evaluation.protocol.baseline import traces as baseline_traces
from watchkeeper.evaluation.protocol.cases import Clean, Judged, judged, plan, scores
from watchkeeper.evaluation.protocol.clean import shifts
from watchkeeper.evaluation.protocol.feed import Variant, batches
from watchkeeper.evaluation.protocol.run import ProtocolError, Trace, prove_independent, run
from watchkeeper.evaluation.protocol.search import smallest
from watchkeeper.evaluation.protocol.shifts import SHIFTS
from watchkeeper.evaluation.protocol.splits import MIXED, Fold, Material, Recipe, leave_one_out, read_splits, simulated
from watchkeeper.evaluation.protocol.study import study
from watchkeeper.streams.messages import COLUMN, Kind

SECONDS = 130


@pytest.fixture(scope="module")
def flights() -> list[Flight]:
    return [simulated(name, Recipe(seed, SECONDS)).from_zero() for name, seed in (("quad-a", 1), ("wing-b", 2))]


def rows_fed(variants, *, strict=True):
    """What each vehicle was fed, in order: {(id, kind): (times, data)}."""
    found: dict[tuple[str, Kind], list] = {}
    for batch in batches(variants, strict=strict):
        for kind, cols in batch.kinds.items():
            for v in np.unique(cols.vid).tolist():
                at = cols.vid == v
                found.setdefault((batch.ids[v], kind), []).append((cols.t[at], cols.data[:, at]))
    return {
        key: (np.concatenate([t for t, _ in parts]), np.concatenate([d for _, d in parts], axis=1))
        for key, parts in found.items()
    }


@pytest.mark.parametrize("name", ["gps_bias_10m", "gps_dropout", "imu_stuck", "link_loss", "gps_clock_0.5s"])
def test_every_variant_is_fed_the_attacked_flight_up_to_the_end_of_the_attack(flights, name):
    made = [inject(catalogue().find(name), flight, repeat=r) for flight in flights for r in (0, 1)]
    fed = rows_fed([*map(Variant, flights), *(Variant(m.flight, m) for m in made)], strict=False)
    for i, flight in enumerate(flights):
        for kind in (Kind.GPS, Kind.IMU):
            assert np.array_equal(fed[str(i), kind][0], flight.stream(kind).t)
            assert np.array_equal(fed[str(i), kind][1], flight.stream(kind).data, equal_nan=True)
    for i, injection in enumerate(made, len(flights)):
        for kind, rows, window, lost in (
            (Kind.GPS, injection.gps_rows, injection.gps, injection.gps_lost),
            (Kind.IMU, injection.imu_rows, injection.imu, injection.imu_lost),
        ):
            before = injection.flight.stream(kind)
            t, data = fed[str(i), kind]
            assert np.array_equal(t, np.append(before.t[: rows.start], window.t[~lost]))
            assert np.array_equal(data[:, : rows.start], before.data[:, : rows.start], equal_nan=True)
            assert np.array_equal(data[:, rows.start :], window.data[:, ~lost], equal_nan=True)


def test_the_strict_profile_takes_the_attitude_out_and_the_other_leaves_it(flights):
    made = inject(catalogue().find("imu_accel_bias_1mps2"), flights[0])
    variants = [Variant(flights[0]), Variant(flights[0], made)]
    attitude = [COLUMN[Kind.IMU][name] for name in ("roll", "pitch", "yaw")]
    for vehicle in ("0", "1"):
        assert np.isnan(rows_fed(variants)[vehicle, Kind.IMU][1][attitude]).all()
        assert np.isfinite(rows_fed(variants, strict=False)[vehicle, Kind.IMU][1][attitude]).all()


def test_a_variant_scores_as_it_does_in_a_pipeline_of_its_own(flights):
    """Together with others or alone, one slice at a time or all at once: the same bits."""
    names = ("gps_bias_20m", "gps_drift_1mps", "imu_stuck", "gps_velocity_2mps")
    made = [inject(catalogue().find(name), flight) for flight in flights for name in names]
    together = run(DEFAULT, [*map(Variant, flights), *(Variant(m.flight, m) for m in made)])
    for injection, trace in zip(made, together[len(flights) :], strict=True):
        alone = run(DEFAULT, [Variant(injection.flight, injection)])[0]
        assert trace.ratio.tobytes() == alone.ratio.tobytes()
        during = [[a[:2] for a in x.alarms if a[1] <= injection.t_end] for x in (trace, alone)]
        assert during[0] == during[1] != []


def test_many_flights_at_once_find_room_for_all_of_their_samples(flights):
    """A fleet that is nearly full lets go of silent vehicles, and turns newcomers away that come once."""
    short = simulated("quad-c", Recipe(3, 20)).from_zero()
    late = replace(short, id="quad-d", gps=Stream(short.gps.t + 30.0, short.gps.data))
    late = replace(late, imu=Stream(short.imu.t + 30.0, short.imu.data))
    traces = run(DEFAULT, [Variant(flight) for flight in (*[short] * 40, *[late] * 40)])
    assert [len(trace.t) for trace in traces] == [len(short.gps)] * 80


def test_the_scores_are_those_of_the_pipeline(flights):
    flight, seen = flights[0], {}

    def hear(window: Window, evidence: list[Evidence]) -> None:
        for found in evidence:
            if found.kind == "gps_imu":
                seen.update(zip(found.epoch.tolist(), (found.score / found.threshold).tolist(), strict=True))

    others = {name: {"enabled": name == "gps_imu"} for name in DEFAULT.detectors.sections()}
    pipeline = Pipeline(msgspec.convert({"detectors": others}, Config), on_evidence=hear)
    for batch in batches([Variant(flight)], strict=True):
        pipeline.feed(batch)
    pipeline.finish()
    trace = run(DEFAULT, [Variant(flight)])[0]
    assert {t: r for t, r in zip(trace.t.tolist(), trace.ratio.tolist(), strict=True) if r == r} == seen
    assert len(seen) > 400


def test_a_detector_that_lets_vehicles_influence_each_other_is_refused(flights, monkeypatch):
    real = REGISTRY["gps_imu"]

    class Gossip(real):
        """Adds the mean score of the whole fleet to everybody's."""

        def step(self, window):
            return [replace(found, score=found.score + found.score.mean()) for found in super().step(window)]

    monkeypatch.setitem(REGISTRY, "gps_imu", Gossip)
    variants = [Variant(flights[0]), Variant(flights[1])]
    with pytest.raises(ProtocolError, match="change another's score"):
        prove_independent(DEFAULT, variants, run(DEFAULT, variants), strict=True)
    monkeypatch.setitem(REGISTRY, "gps_imu", real)
    assert prove_independent(DEFAULT, variants, run(DEFAULT, variants), strict=True) == 2


def test_epochs_without_a_score_are_missed_unless_silence_was_noticed():
    trace = Trace(np.arange(4.0), np.array([0.5, np.nan, np.nan, 0.7]), np.array([False, False, True, False]))
    assert scores(trace).tolist() == [0.5, -np.inf, np.inf, 0.7]


def test_a_dropout_is_found_by_silence_after_its_three_seconds(flights):
    chosen = plan(flights, flights, [catalogue().find("gps_dropout")], 1)
    got = judged("", chosen, run(DEFAULT, chosen.variants))
    for case in got.cases["gps_dropout"]:
        assert not np.isfinite(case.score).any()
        found = case.t[case.score == np.inf] - case.t_start
        assert 2.0 < found.min() < 4.5
        assert (case.score[case.t - case.t_start > 5.0] == np.inf).all()
        assert case.alarm_t is not None


def test_warm_up_is_counted_and_no_negative(flights):
    chosen = plan(flights, (), (), 0)
    for flight, clean in zip(flights, judged("", chosen, run(DEFAULT, chosen.variants)).clean.values(), strict=True):
        assert clean.warmup_epochs > 50
        assert clean.warmup_epochs + len(clean.score) == len(flight.gps)
        assert np.isfinite(clean.score[0])


def test_the_baseline_is_a_kalman_filter(flights):
    """Against matrices, written out."""
    flight = flights[0]
    fixes = np.ascontiguousarray(flight.gps.data[[0, 1, 2, 6, 7, 8], :60])
    got = innovations(flight.gps.t[:60], fixes)
    x, p = fixes[[0, 3], 0], np.diag([1.0, 0.09])
    r = np.diag([1.0, 0.09])
    squares = []
    for axis in range(3):
        x, p = fixes[[axis, 3 + axis], 0].copy(), np.diag([1.0, 0.09])
        own = []
        for i in range(1, 60):
            dt = flight.gps.t[i] - flight.gps.t[i - 1]
            f = np.array([[1.0, dt], [0.0, 1.0]])
            g = np.array([dt * dt / 2.0, dt])
            x, p = f @ x, f @ p @ f.T + 4.0 * np.outer(g, g)
            e = fixes[[axis, 3 + axis], i] - x
            own.append((e**2 / (np.diag(p) + np.diag(r))).sum())
            gain = p @ np.linalg.inv(p + r)
            x, p = x + gain @ e, p - gain @ p
        squares.append(own)
    want = np.sqrt(np.sum(squares, axis=0) / 6.0)
    assert np.isnan(got[:WARMUP]).all()
    assert got[WARMUP:] == pytest.approx(want[WARMUP - 1 :], rel=1e-9)


def test_the_baseline_does_not_see_the_imu(flights):
    made = inject(catalogue().find("imu_stuck"), flights[0])
    clean, attacked = baseline_traces([Variant(flights[0]), Variant(flights[0], made)])
    assert np.array_equal(clean.ratio[: len(attacked.ratio)], attacked.ratio, equal_nan=True)


def test_bisection_finds_the_edge_of_a_made_up_detector():
    edges = {"gps_bias": 3.0, "imu_accel_saturation": 7.0, "gps_drift": 1e9, "gps_noise": 0.0}

    def recall(attacks):
        larger = {a.name: a.magnitude >= edges.get(a.family, 1.0) for a in attacks}
        smaller = {a.name: a.magnitude <= edges["imu_accel_saturation"] for a in attacks}
        return {a.name: float((smaller if "saturation" in a.family else larger)[a.name]) for a in attacks}

    found = {d.family: d for d in smallest(recall)}
    assert found["gps_bias"].magnitude == pytest.approx(3.0, rel=0.1)
    assert found["gps_bias"].bracket[0] < 3.0 <= found["gps_bias"].bracket[1]
    assert found["imu_accel_saturation"].magnitude == pytest.approx(7.0, rel=0.1)
    assert found["gps_drift"].magnitude is None
    assert found["gps_drift"].note == "missed even at the strong end"
    assert found["gps_noise"].note == "found even at the weak end"


def profiles() -> dict[str, Config]:
    return {
        name: msgspec.convert({"profile": name, "detectors": {"gps_imu": {"debounce": {"n": n, "m": n}}}}, Config)
        for name, n in (("balanced", 5), ("high-specificity", 10))
    }


def test_the_same_study_gives_the_same_figures_again(flights):
    attacks = [catalogue().find(name) for name in ("gps_bias_100m", "gps_bias_0.1m", "gps_freeze")]
    material = Material({f.id: f for f in flights}, {MIXED: leave_one_out([f.id for f in flights])})
    first, second = (
        msgspec.json.encode(study(material, profiles(), "balanced", attacks, repeats=1, search=False)) for _ in range(2)
    )
    assert first == second
    result = json.loads(first)
    assert next(iter(result)) == "failures"
    assert {f["attack"] for f in result["failures"]} == {"gps_bias_0.1m"}
    rows = {row["attack"]: row for row in result["groups"][MIXED]["attacks"]}
    assert rows["gps_bias_100m"]["event"]["alarm_recall"] == 1.0
    assert rows["gps_bias_100m"]["event"]["alarm_latency_epochs"] <= 6
    assert [a["n"] for a in result["false_alarms"]] == [5, 10]
    assert result["groups"][MIXED]["worst"] == "gps_bias_0.1m"
    assert result["settings"]["bootstrap"]["resamples"] >= 500


def test_simulated_flights_are_the_same_again_and_of_the_airframe_that_their_name_says():
    a, b = (simulated("wing-x", Recipe(7, 20)) for _ in range(2))
    assert a.imu.data.tobytes() == b.imu.data.tobytes()
    assert a.airframe == "wing"
    assert (
        np.nanmax(simulated("wing-x", Recipe(7, 120)).speed)
        > 14.0
        > np.nanmax(simulated("quad-x", Recipe(7, 120)).speed)
    )


def test_the_shipped_splits_keep_flights_apart():
    splits = read_splits()
    assert splits.overlaps() == []
    assert all(len(splits.splits[name]) >= 4 for name in ("train", "validation", "test", "shift"))
    assert {name for ids in splits.splits.values() for name in ids} == set(splits.flights)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two logs on disk, as a user has them."""
    for seed, name in ((1, "quad-a"), (3, "quad-b")):
        log = tmp_path / "logs" / f"{name}.wklog"
        log.parent.mkdir(exist_ok=True)
        words = ["--vehicles", "1", "--seconds", "130", "--seed", str(seed)]
        assert watchkeeper(["simulate", "drones", *words, "--out", str(log)]) == 0
    return tmp_path / "logs"


def test_the_command_writes_figures_and_a_report(folder, tmp_path, capfd):
    out, report = tmp_path / "results" / "metrics.json", tmp_path / "report"
    words = ["--flights", str(folder), "--out", str(out), "--report", str(report), "--repeats", "1", "--no-search"]
    assert watchkeeper(["evaluate", "protocol", *words, "--attacks", "gps_bias,imu_stuck"]) == 0
    said = capfd.readouterr().out
    assert said.index("FAILURES") < said.index("Averages")
    result = json.loads(out.read_text())
    assert next(iter(result)) == "failures"
    assert result["settings"]["refused_features"] == ["roll", "pitch", "yaw"]
    assert {f.id for f in read_flights(folder)} == {"quad-a", "quad-b"}
    page = (report / "report.html").read_text()
    assert page.index("FAILURES") < page.index("data:image/png")
    assert "http" not in page.replace("https://", "http://").split("<style>")[1]
    assert (report / "tables.md").read_text().startswith("**FAILURES")


def test_one_flight_is_not_enough(folder, capfd):
    (folder / "quad-b.wklog").unlink()
    assert watchkeeper(["evaluate", "protocol", "--flights", str(folder)]) == 1
    assert "needs two flights, there is 1" in capfd.readouterr().err


def test_an_unknown_attack_is_told_with_the_nearest(capfd):
    assert watchkeeper(["evaluate", "protocol", "--attacks", "gps_bais"]) == 1
    assert "did you mean" in capfd.readouterr().err


def test_a_class_that_is_held_out_is_calibrated_on_training_flights_of_the_others_alone(flights):
    """The test flights score 10 and the training flights at most 1: a threshold that saw a test flight would be 10."""
    quad, wing = flights
    known = {f.id: f for f in (quad, wing, replace(quad, id="quad-t"), replace(wing, id="wing-t"))}
    train, test = ("quad-t", "wing-t"), ("quad-a", "wing-b")
    level = {name: np.linspace(0.0, 1.0, 500) if name in train else np.full(500, 10.0) for name in known}
    clean = {f: Clean(f, known[f].airframe, np.arange(500.0), level[f], 0, 0, ()) for f in known}
    material = Material(known, {MIXED: [Fold(train, test)]})
    rows = {row.shift: row for row in shifts(material, Judged("", clean, {}), DEFAULT, strict=True)}
    for held, flight in (("quad", "quad-a"), ("wing", "wing-b")):
        row = rows[f"{held}, calibrated on the other classes"]
        assert row.flights == [flight]
        assert row.fpr_1 == row.fpr_5 == row.worst_fpr_1 == 1.0
    assert set(SHIFTS) < set(rows)
    assert all(rows[name].flights == list(test) for name in SHIFTS)


def test_shifts_are_the_same_again_and_change_what_they_say(flights):
    for name, make in SHIFTS.items():
        one, two = make(flights[0]), make(flights[0])
        for kind in (Kind.GPS, Kind.IMU):
            assert one.stream(kind).data.tobytes() == two.stream(kind).data.tobytes()
            assert one.stream(kind).t.tobytes() == two.stream(kind).t.tobytes()
        touched = "gps" if "gps" in name else "imu"
        other = Kind.IMU if touched == "gps" else Kind.GPS
        assert one.stream(other) is flights[0].stream(other)
        assert one.stream(Kind[touched.upper()]) is not flights[0].stream(Kind[touched.upper()])
    tilted, plain = SHIFTS["tilted_imu"](flights[0]).imu.data[:3], flights[0].imu.data[:3]
    assert np.linalg.norm(tilted, axis=0) == pytest.approx(np.linalg.norm(plain, axis=0))
    assert len(SHIFTS["slow_imu"](flights[0]).imu) == (len(flights[0].imu) + 1) // 2
