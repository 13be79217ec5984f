"""`evaluate alarms` without flattery: second addresses, alarms that were heeded, shifted traffic, calibration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from watchkeeper.config.schema import DEFAULT
from watchkeeper.evaluation.alarms.against import differences
from watchkeeper.evaluation.alarms.api import Evaluation, evaluate
from watchkeeper.evaluation.alarms.calibration import calibration
from watchkeeper.evaluation.alarms.flights import Reports
from watchkeeper.evaluation.alarms.ghosts import ghosts
from watchkeeper.evaluation.alarms.probe import Tracks, time_to_loss_s
from watchkeeper.evaluation.alarms.rebounce import EvidenceLog
from watchkeeper.evaluation.alarms.shifted import Shift, shifted
from watchkeeper.evaluation.alarms.truth import Loss, minima
from watchkeeper.evaluation.alarms.verdicts import Alarm, AlarmVerdict, Truth
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.messages import Kind

PAIR = ("aa0001", "bb0002")


def evaluated(scenes: Any, tracks: list[Any], **options: Any) -> Evaluation:
    return evaluate([scenes.batch_of(tracks)], DEFAULT, **options)


def sky_of(scenes: Any, tracks: list[Any]) -> Any:
    reports = Reports()
    reports.add(scenes.batch_of(tracks))
    return reports.sky(min_gs_kt=30.0)


def test_a_second_address_next_to_its_aircraft_is_no_loss_and_a_real_neighbour_is(scenes: Any) -> None:
    first, second = scenes.abreast(0.05)
    own, radar = sorted((first.name, "~2b0001"))
    assert ghosts(sky_of(scenes, [first, replace(second, name="~2b0001")])) == {(own, radar)}
    assert evaluated(scenes, [first, replace(second, name="~2b0001")]).figures.losses == 0
    # two aircraft with addresses of their own, and a radar target that comes from elsewhere, are pairs
    assert evaluated(scenes, [first, second]).figures.losses == 1
    one, other = scenes.facing(60.1)
    assert ghosts(sky_of(scenes, [one, replace(other, name="~2b0002")])) == set()


def test_the_straight_line_says_when_separation_is_lost(scenes: Any) -> None:
    sky = sky_of(scenes, scenes.facing(60.1))
    tracks = Tracks(sky, minima(sky, 5.0, 1000.0, ()))
    # 60.1 NM at 900 kt: 5 NM are left after 220.4 s
    assert time_to_loss_s(tracks, PAIR, int(scenes.t0) + 150, 120.0) == pytest.approx(70.4, abs=0.2)
    assert np.isnan(time_to_loss_s(tracks, PAIR, int(scenes.t0) + 50, 120.0))
    assert np.isnan(time_to_loss_s(tracks, ("aa0001", "nobody"), int(scenes.t0) + 150, 120.0))


def test_an_alarm_that_was_right_and_heeded_is_valid(scenes: Any) -> None:
    first, second = scenes.facing(60.1)
    # at second 190, half a minute before the loss, one of them climbs away at 6,000 ft a minute
    climbs = second.t >= 190
    up = replace(
        second,
        alt_ft=second.alt_ft + np.clip(100.0 * (second.t - 190.0), 0.0, 4000.0),
        vs_fpm=np.where(climbs & (second.t < 230), 6000.0, 0.0),
    )
    result = evaluated(scenes, [first, up])
    assert result.figures.losses == 0
    assert [v.verdict for v in result.alarms] == ["valid"]
    assert (result.figures.alarms_valid, result.figures.nuisance, result.figures.pairs_nuisance) == (1, 1, 1)


def test_the_breakdown_counts_each_loss_at_the_look_aheads_it_was_in_view_for(scenes: Any) -> None:
    result = evaluated(scenes, scenes.facing(60.1))
    warned_s = result.losses[0].warning_s
    assert warned_s is not None
    rows = {row.ahead_s: row for row in result.look_ahead}
    assert [row.losses for row in rows.values()] == [1] * len(rows)
    assert [row.alarmed for row in rows.values()] == [int(warned_s >= ahead_s) for ahead_s in rows]
    assert rows[90].straight == 1
    (band,) = result.airspace
    assert (band.floor_ft, band.losses, band.late_or_missed, band.pairs_alarmed, band.pairs_nuisance) == (
        24_500,
        1,
        0,
        1,
        0,
    )


def test_shifted_flights_are_flown_as_they_were_at_other_times(scenes: Any) -> None:
    tracks = [replace(track, name=f"{track.name}{k}") for k in range(20) for track in scenes.abreast(20.0)]
    batch = scenes.batch_of(tracks)
    moved = list(shifted([batch], Shift(hours=0.5, seed=3)))
    again = list(shifted([batch], Shift(hours=0.5, seed=3)))
    assert [b.kinds[Kind.ADSB].t.tobytes() for b in moved] == [b.kinds[Kind.ADSB].t.tobytes() for b in again]
    by_id = _flights(moved)
    assert set(by_id) == set(batch.ids)
    for name, (t, lat) in by_id.items():
        old_t, old_lat = _flights([batch])[name]
        assert np.array_equal(t - t[0], old_t - old_t[0])
        assert np.array_equal(lat, old_lat)
        assert 0.0 <= t[0] - scenes.t0 < 1800.0
    assert len({t[0] for t, _ in by_id.values()}) > 30
    halves = [set(_flights(shifted([batch], Shift(0.5, 3, half)))) for half in ("first", "second")]
    assert halves[0] | halves[1] == set(batch.ids)
    assert not halves[0] & halves[1]
    assert all(halves)


def _flights(batches: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for batch in batches:
        assert isinstance(batch, Batch)
        cols = batch.kinds[Kind.ADSB]
        for vid in np.unique(cols.vid).tolist():
            rows = cols.vid == vid
            found.setdefault(batch.ids[vid], []).append((cols.t[rows], cols.data[0, rows]))
    return {
        name: (np.concatenate([p[0] for p in ps]), np.concatenate([p[1] for p in ps])) for name, ps in found.items()
    }


def test_probabilities_that_come_true_as_often_as_they_say_are_calibrated(scenes: Any) -> None:
    """Sixty pairs about which 0.3 is said and of which three in ten lose separation; then 0.9 of the same."""
    names = [f"a{k:03}" for k in range(120)]
    tracks = [replace(scenes.abreast(20.0)[0], name=name) for name in names]
    sky = sky_of(scenes, tracks)
    pairs = [(names[2 * k], names[2 * k + 1]) for k in range(60)]
    t0 = scenes.t0
    lost = [
        Loss(pair, t0 + 200.0, t0 + 230.0, 4.0, 500.0, True, False)
        for pair in pairs[::10] + pairs[1::10] + pairs[2::10]
    ]
    truth = Truth(sky, lost, 120.0, Tracks(sky, minima(sky, 5.0, 1000.0, ())))
    for said, right in ((0.3, True), (0.9, False)):
        log = EvidenceLog("conflict", 1.0, 0.5)
        log.number.update({name: i for i, name in enumerate(names)})
        for second in (150.0, 160.0, 210.0, 390.0):
            rows = np.array([[2 * k, 2 * k + 1, t0 + second, t0 + second, said, 1.0] for k in range(60)]).T
            log._rows.append(rows)
        found = calibration(log, truth)
        # at 210 s the lost are lost, and at 390 s nobody knows the next 120 s
        assert found.statements == 60 + 60 + 42
        (only,) = found.bins
        assert (only.said, only.pairs, only.right) == (pytest.approx(said), 60, right)
        came_true = 36 / 162
        assert only.came_true == pytest.approx(came_true)
        assert found.brier == pytest.approx(came_true * (1 - said) ** 2 + (1 - came_true) * said**2)


def test_alarms_of_two_runs_are_matched_once_each_by_pair_and_time() -> None:
    def run(*times: tuple[float, float | None]) -> list[AlarmVerdict]:
        return [AlarmVerdict(Alarm(PAIR, raised, cleared), "true", undecided=False) for raised, cleared in times]

    found = differences(run((100.0, 150.0), (160.0, 170.0), (900.0, None)), run((110.0, 190.0), (500.0, 510.0)))
    assert [(d.one is not None, d.other is not None, d.earlier_s) for d in found] == [
        (True, True, 10.0),
        (True, False, None),
        (False, True, None),
        (True, False, None),
    ]
