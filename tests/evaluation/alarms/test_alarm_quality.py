"""`evaluate alarms`: each alarm and each loss gets the verdict that it deserves, and the figures follow from those."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.stats import binomtest

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.cli import main
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.replay import Replay
from watchkeeper.detectors.fleet.fleet import Samples
from watchkeeper.evaluation.alarms.api import Evaluation, alarms_of, evaluate
from watchkeeper.evaluation.alarms.flights import Reports
from watchkeeper.evaluation.alarms.probe import Tracks
from watchkeeper.evaluation.alarms.rebounce import EvidenceLog, Rebounce
from watchkeeper.evaluation.alarms.truth import Loss, minima
from watchkeeper.evaluation.alarms.verdicts import Alarm, Truth, figures, judge, wilson
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.simulate import simulate

PAIR = ("aa0001", "bb0002")


def truth_of(reports: Reports, losses: list[Loss]) -> Truth:
    sky = reports.sky(min_gs_kt=30.0)
    return Truth(sky, losses, 120.0, Tracks(sky, minima(sky, 5.0, 1000.0, ())))


def evaluated(scenes: Any, tracks: list[Any], **options: Any) -> Evaluation:
    return evaluate([scenes.batch_of(tracks)], DEFAULT, **options)


# -- the whole way: a log in, figures out --------------------------------------------------------------------


def test_two_that_meet_are_foreseen_by_as_long_as_the_alarm_was_early(scenes: Any) -> None:
    tracks = scenes.facing(60.1)
    events: list[AlarmEvent] = []
    Replay(DEFAULT, events.append).run([scenes.batch_of(tracks)])
    raised = next(event.t for event in events if event.kind == "conflict")
    f = evaluated(scenes, tracks).figures
    assert (f.losses, f.losses_eligible, f.foreseen, f.missed_all, f.late_all) == (1, 1, 1, 0, 0)
    assert (f.alarms, f.nuisance, f.nuisance_share) == (1, 0, 0.0)
    assert (f.pairs_alarmed, f.pairs_nuisance, f.pairs_nuisance_share) == (1, 0, 0.0)
    assert (f.late_all_median_s, f.late_eligible_worst_s) == (None, None)
    # separation is lost in second 221
    assert f.warning_median_s == f.warning_p10_s == scenes.t0 + 221.0 - raised > 45.0
    assert f.alarms_per_flight_hour == pytest.approx(1 / (2 * 401 / 3600))


def test_two_side_by_side_far_apart_give_neither_loss_nor_alarm(scenes: Any) -> None:
    result = evaluated(scenes, scenes.abreast(12.0), curve=True)
    f = result.figures
    assert (f.losses, f.alarms, f.pairs_alarmed) == (0, 0, 0)
    nothing = (f.pairs_nuisance_share, f.pairs_nuisance_share_95, f.nuisance_share, f.nuisance_share_95)
    assert {*nothing, f.warning_median_s, f.missed_eligible_share, f.late_eligible_share} == {None}
    assert result.curve is not None
    assert all(point.alarms == 0 for point in result.curve.points)


def test_one_that_turns_away_in_time_makes_the_alarm_a_nuisance(scenes: Any) -> None:
    first, second = scenes.facing(60.1)
    turn = 170  # 12 NM before the minimum would be undercut
    away = scenes.straight("aa0001", float(first.lat[turn]), float(first.lon[turn]), 330.0, seconds=400 - turn)
    columns = ("lat", "lon", "trk_deg")
    turned = replace(
        first, **{name: np.concatenate((getattr(first, name)[:turn], getattr(away, name))) for name in columns}
    )
    f = evaluated(scenes, [turned, second]).figures
    assert (f.losses, f.alarms, f.nuisance, f.nuisance_undecided) == (0, 1, 1, 0)
    assert f.nuisance_share == f.pairs_nuisance_share == 1.0


def test_who_disappears_before_the_horizon_leaves_the_alarm_undecided(scenes: Any) -> None:
    first, second = scenes.facing(60.1)
    f = evaluated(scenes, [first.without(first.t > 150), second]).figures
    assert (f.losses, f.nuisance, f.nuisance_undecided) == (0, 1, 1)


def test_below_the_limit_there_is_neither_loss_nor_alarm(scenes: Any) -> None:
    low = scenes.facing(60.1, alt_ft=2500.0)
    result = evaluated(scenes, [*low, scenes.straight("cc0003", 10.0, 8.0, 90.0)], min_alt_ft=3000.0)
    assert (result.aircraft, result.figures.losses, result.figures.alarms) == (1, 0, 0)
    f = evaluated(scenes, low).figures
    assert (f.losses, f.alarms) == (1, 1)


def test_of_a_climb_through_the_limit_pipeline_and_truth_get_the_same_part(scenes: Any) -> None:
    # both climb through 3,000 ft 21 s before they lose separation
    climbing = [
        replace(track, alt_ft=1000.0 + 10.0 * track.t, vs_fpm=np.full_like(track.t, 600.0))
        for track in scenes.facing(60.1)
    ]
    whole, part = evaluated(scenes, climbing), evaluated(scenes, climbing, min_alt_ft=3000.0)
    cut = evaluated(scenes, [track.without(track.t < 200) for track in climbing])
    assert (part.alarms, part.losses) == (cut.alarms, cut.losses)
    (loss,) = part.losses
    assert (loss.loss.t_start - scenes.t0, loss.loss.eligible, loss.verdict) == (221.0, False, "foreseen")
    assert part.alarms[0].alarm.t_raised >= scenes.t0 + 200.0 > whole.alarms[0].alarm.t_raised


# -- verdicts, rule by rule ---------------------------------------------------------------------------------


def verdicts(scenes: Any, alarms: list[Alarm], losses: list[tuple[float, float]]) -> tuple[list[str], list[Any]]:
    reports = Reports()
    reports.add(scenes.batch_of(scenes.abreast(20.0, seconds=2000)))
    truth = truth_of(reports, [Loss(PAIR, a, z, 4.0, 500.0, True, False) for a, z in losses])
    of_alarms, of_losses = judge(alarms, truth)
    return [v.verdict for v in of_alarms], [(v.verdict, v.warning_s) for v in of_losses]


def alarm(scenes: Any, t_raised: float, t_cleared: float | None) -> Alarm:
    return Alarm(PAIR, t_raised, t_cleared, "caution")


@pytest.mark.parametrize(
    ("raised", "cleared", "loss", "verdict"),
    [
        (100.0, 110.0, (220.0, 230.0), "true"),  # begins just within the horizon
        (100.0, 110.0, (221.0, 230.0), "nuisance"),
        (100.0, 300.0, (300.0, 310.0), "true"),  # begins while the alarm is on
        (100.0, 300.0, (301.0, 310.0), "nuisance"),
        (100.0, None, (900.0, 910.0), "true"),
        (100.0, 110.0, (50.0, 100.0), "true"),  # was going on when it was raised
        (100.0, 110.0, (50.0, 99.0), "nuisance"),
    ],
)
def test_an_alarm_is_true_if_a_loss_falls_into_its_life_or_horizon(
    scenes: Any, raised: float, cleared: float | None, loss: tuple[float, float], verdict: str
) -> None:
    assert verdicts(scenes, [alarm(scenes, raised, cleared)], [loss])[0] == [verdict]


@pytest.mark.parametrize(
    ("alarms", "expected"),
    [
        ([(140.0, 300.0)], ("foreseen", 60.0)),
        ([(200.0, 300.0)], ("foreseen", 0.0)),
        ([(140.0, 170.0)], ("foreseen", 60.0)),  # cleared 30 s before: it did warn
        ([(140.0, 169.0)], ("missed", None)),
        ([(120.0, 150.0), (150.0, 175.0), (180.0, 260.0)], ("foreseen", 50.0)),  # the earliest that still holds
        ([(201.0, 300.0)], ("late", -1.0)),
        ([(230.0, 300.0)], ("late", -30.0)),
        ([(231.0, 300.0)], ("missed", None)),  # after it was over
        ([(100.0, 110.0), (205.0, None)], ("late", -5.0)),
        ([], ("missed", None)),
    ],
)
def test_a_loss_is_foreseen_by_an_alarm_that_was_up_shortly_before(
    scenes: Any, alarms: list[tuple[float, float | None]], expected: tuple[str, float | None]
) -> None:
    assert verdicts(scenes, [alarm(scenes, *times) for times in alarms], [(200.0, 230.0)])[1] == [expected]


def test_an_alarm_of_another_pair_foresees_nothing(scenes: Any) -> None:
    reports = Reports()
    third = replace(scenes.abreast(20.0)[0], name="cc0003")
    reports.add(scenes.batch_of([*scenes.abreast(20.0), third]))
    truth = truth_of(reports, [Loss(PAIR, 200.0, 230.0, 4.0, 500.0, True, False)])
    ((of_alarm,), (of_loss,)) = judge([Alarm(("aa0001", "cc0003"), 150.0, 250.0)], truth)
    assert (of_alarm.verdict, of_loss.verdict) == ("nuisance", "missed")


def test_the_figures_add_up(scenes: Any) -> None:
    reports = Reports()
    reports.add(scenes.batch_of(scenes.abreast(20.0, seconds=2000)))
    # begins, eligible, marginal: foreseen, missed, late, foreseen, late, late, missed
    rows = [(200, 1, 0), (600, 1, 1), (900, 0, 0), (1200, 1, 0), (1400, 1, 1), (1600, 1, 0), (1800, 0, 0)]
    lost = [Loss(PAIR, t, t + 30.0, 4.0, 500.0, bool(eligible), bool(marginal)) for t, eligible, marginal in rows]
    truth = truth_of(reports, lost)
    times = [(100, 240), (400, 410), (925, 960), (1150, 1240), (1404, 1460), (1610, 1660)]
    f = figures(*judge([alarm(scenes, *pair) for pair in times], truth), truth.sky)
    assert (f.losses, f.losses_eligible, f.losses_marginal, f.foreseen) == (7, 5, 2, 2)
    assert (f.missed_all, f.missed_eligible, f.missed_eligible_marginal, f.missed_eligible_share) == (2, 1, 1, 0.2)
    assert (f.late_all, f.late_all_median_s, f.late_all_worst_s) == (3, 10.0, 25.0)
    assert (f.late_eligible, f.late_eligible_marginal, f.late_eligible_share) == (2, 1, 0.4)
    assert (f.late_eligible_median_s, f.late_eligible_worst_s) == (7.0, 10.0)
    assert (f.alarms, f.alarms_true, f.nuisance) == (6, 5, 1)
    assert f.warning_median_s == 75.0
    assert f.warning_p10_s == pytest.approx(55.0)
    # of the eligible: 100 s, missed, 50 s, -4 s, -10 s
    assert (f.warning_eligible_median_s, f.early_eligible) == (-4.0, 2)
    assert f.alarms_per_flight_hour == pytest.approx(6 / (2 * 2001 / 3600))


def test_in_view_is_counted_from_when_the_later_of_the_two_was_last_out_of_sight(scenes: Any) -> None:
    first, second = scenes.abreast(20.0, seconds=2000)
    broken = second.without((second.t > 300) & (second.t < 340))
    late = first.without(first.t < 100)
    reports = Reports()
    reports.add(scenes.batch_of([late, broken]))
    t0 = scenes.t0
    lost = [Loss(PAIR, t0 + t, t0 + t + 30.0, 4.0, 500.0, True, False) for t in (150.0, 250.0, 380.0, 600.0)]
    truth = truth_of(reports, lost)
    of_losses = judge([], truth)[1]
    assert [v.in_view_s for v in of_losses] == [50.0, 150.0, 40.0, 260.0]
    f = figures([], of_losses, truth.sky)
    assert (f.in_view_eligible, f.early_eligible, f.warning_eligible_median_s) == (3, 0, None)


def test_a_pair_is_a_nuisance_if_it_never_loses_separation_however_often_it_is_alarmed(scenes: Any) -> None:
    others = [replace(scenes.abreast(20.0, seconds=2000)[0], name=name) for name in ("cc0003", "dd0004")]
    reports = Reports()
    reports.add(scenes.batch_of([*scenes.abreast(20.0, seconds=2000), *others]))
    truth = truth_of(reports, [Loss(PAIR, 1500.0, 1530.0, 4.0, 500.0, True, False)])
    early = [Alarm(PAIR, 100.0, 110.0)]  # long before the loss: the alarm is a nuisance, the pair is none
    never = [Alarm(("aa0001", "cc0003"), float(t), t + 10.0) for t in (100, 300, 500)]
    once = [Alarm(("cc0003", "dd0004"), 700.0, 710.0)]
    f = figures(*judge([*early, *never, *once], truth), truth.sky)
    assert (f.pairs_alarmed, f.pairs_nuisance) == (3, 2)
    assert f.pairs_nuisance_share == pytest.approx(2 / 3)
    assert f.pairs_nuisance_share_95 == wilson(2, 3)
    assert (f.alarms, f.nuisance) == (5, 5)
    assert f.nuisance_share_95 == wilson(5, 5)


@pytest.mark.parametrize(("part", "whole"), [(0, 7), (3, 10), (61, 100), (5, 5)])
def test_the_interval_is_wilsons(part: int, whole: int) -> None:
    expected = binomtest(part, whole).proportion_ci(method="wilson")
    assert wilson(part, whole) == pytest.approx((expected.low, expected.high), abs=1e-6)


# -- the trade-off ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "rule"), [("random", {}), ("random", {"n": 3, "m": 5}), ("crossing", {"n": 1, "m": 1})]
)
def test_the_configured_rule_worked_out_again_gives_the_pipelines_own_alarms(
    scenario: str, rule: dict[str, int]
) -> None:
    c = DEFAULT.detectors.conflict
    c = msgspec.structs.replace(c, debounce=msgspec.structs.replace(c.debounce, **rule))
    config = msgspec.structs.replace(DEFAULT, detectors=msgspec.structs.replace(DEFAULT.detectors, conflict=c))
    log = EvidenceLog("conflict", config.time.tick_s, c.probability)
    pipeline = Pipeline(config, on_evidence=lambda window, found: log.tick(window, found, pipeline.fleet.ids))
    simulation = simulate(scenario, seed=3, vehicles=200 if scenario == "random" else None, seconds=600)
    events = [event for batch in simulation.batches() for event in pipeline.feed(batch)] + pipeline.finish()
    own = [(a.pair, a.t_raised, a.t_cleared) for a in alarms_of(events)]
    (again,) = Rebounce(log, c.debounce).alarms(c.debounce.n, c.debounce.m, [log.threshold])
    assert [(a.pair, a.t_raised, a.t_cleared) for a in again] == own
    assert len(own) > (10 if scenario == "random" else 0)


def rebounced(
    rows: list[tuple[float, float]], rule: Debounce, threshold: float, reports_until: float = 500.0
) -> list[tuple[float, float | None]]:
    """Alarms of one pair that reports every second; `rows` are the ticks with evidence and its scores."""
    log, scores = EvidenceLog("conflict", 1.0, 1.0), dict(rows)
    for t in np.arange(1.0, 501.0):
        heard = t <= reports_until
        slots, times = np.array([0, 1], np.int32), np.array([t, t])
        samples = {Kind.ADSB: Samples(Kind.ADSB, slots, times, np.zeros((1, 2)), slots)} if heard else {}
        found = []
        if t in scores:
            one = np.ones(1)
            a, b = np.array([1], np.int32), np.array([0], np.int32)
            found.append(
                Evidence(
                    "conflict", a, t * one, min(t, reports_until) * one, scores[t] * one, one, a.astype(np.uint8), b
                )
            )
        log.tick(Window(float(t), samples), found, ["x", "y"])
    return [(a.t_raised, a.t_cleared) for a in Rebounce(log, rule).alarms(rule.n, rule.m, [threshold])[0]]


RULE = Debounce(n=3, m=3, clear_n=5, clear_ratio=0.8, min_on_s=5.0, bridge_s=15.0, lost_s=60.0)


def test_a_higher_threshold_raises_later_and_a_tick_without_evidence_breaks_the_row() -> None:
    rising = [(t, t / 100.0) for t in np.arange(10.0, 91.0)]
    assert rebounced(rising, RULE, 0.3) == [(32.0, 95.0)]
    assert rebounced(rising, RULE, 0.6) == [(62.0, 95.0)]
    assert rebounced(rising, RULE, 0.9) == []
    gap = [(t, score) for t, score in rising if t != 31.0]
    assert rebounced(gap, RULE, 0.3) == [(34.0, 95.0)]


def test_an_alarm_ends_by_evidence_by_silence_or_not_at_all() -> None:
    steady = [(float(t), 1.0) for t in range(10, 41)]
    assert rebounced(steady, RULE, 0.5) == [(12.0, 45.0)]
    # nobody heard after 40: given up in the first tick more than 60 s later
    assert rebounced(steady, RULE, 0.5, reports_until=40.0) == [(12.0, 101.0)]
    lasting = [(float(t), 1.0) for t in range(10, 501)]
    assert rebounced(lasting, RULE, 0.5) == [(12.0, None)]


def test_two_encounters_of_one_pair_are_two_alarms() -> None:
    twice = [(float(t), 1.0) for t in (*range(10, 20), *range(200, 220))]
    assert rebounced(twice, RULE, 0.5) == [(12.0, 24.0), (202.0, 224.0)]


def test_the_curve_contains_the_configured_point(scenes: Any) -> None:
    result = evaluated(scenes, scenes.facing(60.1), curve=True)
    assert result.curve is not None
    own = result.curve.configured
    at = [p for p in result.curve.points if (p.n, p.threshold) == (own.n, own.threshold)]
    assert at == [own]
    assert {point.n for point in result.curve.points} >= {1, 3, 5, 10}
    warnings = [p.warning_median_s for p in result.curve.points if p.threshold == own.threshold]
    assert warnings == sorted(warnings, reverse=True)  # counting longer never warns sooner


# -- the command --------------------------------------------------------------------------------------------


@pytest.fixture
def log(scenes: Any, tmp_path: Path) -> Path:
    path = tmp_path / "meeting.csv"
    names = ("t", "lat", "lon", "alt_ft", "gs_kt", "trk_deg", "vs_fpm", "on_ground")
    rows = [
        (track.name, scenes.t0 + row[0], *row[1:])
        for track in scenes.facing(60.1)
        for row in zip(*(getattr(track, name).tolist() for name in names), strict=True)
    ]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("id", *names), *sorted(rows, key=lambda row: row[1])])
    return path


def test_the_command_prints_a_table_and_writes_json_and_a_plot(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    out, plot = tmp_path / "metrics.json", tmp_path / "curve.svg"
    assert main(["evaluate", "alarms", str(log), "--out", str(out), "--plot", str(plot), "--pairs"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^nuisance share, pairs +0\.0 %   95 % interval 0\.0 % to 79\.3 %$", shown, re.MULTILINE)
    assert re.search(r"^missed, eligible +0   0\.0 % of 1; 0 marginal; 0 of all 1$", shown, re.MULTILINE)
    assert re.search(r"^late, eligible +0   0\.0 % of 1; 0 marginal; 0 of all 1$", shown, re.MULTILINE)
    assert "loss  aa0001~bb0002" in shown
    assert "alarm aa0001~bb0002" in shown
    assert "configured" in shown
    metrics = json.loads(out.read_bytes())
    assert (metrics["losses"], metrics["missed_eligible"], metrics["nuisance"]) == (1, 0, 0)
    assert (metrics["pairs_alarmed"], metrics["pairs_nuisance"], metrics["pairs_nuisance_share"]) == (1, 0, 0.0)
    assert metrics["loss_list"][0]["pair"] == ["aa0001", "bb0002"]
    assert metrics["alarm_list"][0]["verdict"] == "true"
    assert b"<svg" in plot.read_bytes()


def test_json_on_standard_output_is_nothing_but_json(log: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["evaluate", "alarms", str(log), "--out", "-", "--quiet"]) == 0
    assert json.loads(capsysbinary.readouterr().out)["losses"] == 1


def test_without_matplotlib_a_plot_is_refused_before_the_work(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["evaluate", "alarms", str(log), "--plot", "curve.png"]) == 1
    assert "watchkeeper[plots]" in capsys.readouterr().err


def test_what_cannot_be_evaluated_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str], log: Path) -> None:
    assert main(["evaluate", "alarms", str(tmp_path / "no.wklog")]) == 1
    nobody = tmp_path / "commands.csv"
    nobody.write_text("id,t,heading_delta_deg,speed_delta_kt\naa0001,1.0,10,0\n")
    assert main(["evaluate", "alarms", str(nobody)]) == 1
    assert "no ADS-B samples in" in capsys.readouterr().err
    assert main(["evaluate", "alarms", str(log), "--min-alt-ft", "36000"]) == 1
    assert "no ADS-B samples at or above 36000 ft in" in capsys.readouterr().err
    off = tmp_path / "off.toml"
    off.write_text("[detectors.conflict]\nenabled = false\n")
    assert main(["evaluate", "alarms", str(log), "-c", str(off)]) == 1
    assert "detectors.conflict.enabled" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["evaluate", "alarms", str(log), "--min-alt-ft", "-5"])
    with pytest.raises(SystemExit, match="2"):
        main(["evaluate", "alarms", str(log), "--plot", "curve.doc"])


def test_without_a_name_the_evaluations_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate"]) == 0
    assert capsys.readouterr().out.startswith("alarms ")
