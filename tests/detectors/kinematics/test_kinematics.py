"""kinematics: honest tracks pass, contradictions are named, a spike is one epoch and a teleport is many."""

import math

import numpy as np
from geographiclib.geodesic import Geodesic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from watchkeeper.detectors.kernels.reports import REACQUIRE
from watchkeeper.detectors.kinematics.detector import CAUSES, Kinematics

KT = 1852.0 / 3600.0


def fly(lat, lon, track, gs_kt, seconds, *, alt_ft=30000.0, dt=1.0, name="a"):
    """An aircraft on a geodesic, one report every dt."""
    line = Geodesic.WGS84.Line(lat, lon, track)
    rows = []
    for i in range(int(seconds / dt)):
        at = line.Position(gs_kt * KT * i * dt)
        rows.append(
            {"id": name, "t": 10.0 + i * dt, "lat": at["lat2"], "lon": at["lon2"], "alt_ft": alt_ft, "gs_kt": gs_kt}
        )
    return rows


def scores(bench, rows):
    """Score and causes of each report, fed second by second."""
    b = bench(Kinematics)
    found = {}
    ticks = sorted({math.ceil(r["t"]) for r in rows})
    for tick in ticks:
        for ev in b.tick(float(tick), adsb=[r for r in rows if math.ceil(r["t"]) == tick]):
            for i in range(len(ev)):
                causes = [c for k, c in enumerate(CAUSES) if int(ev.cause_bits[i]) >> k & 1]
                found[b.fleet.ids[ev.a[i]], round(float(ev.t[i]), 3)] = (float(ev.score[i]), causes)
    return found


@given(
    lat=st.floats(-89.9, 89.9), lon=st.floats(-180, 179.9), track=st.floats(0, 360), gs=st.floats(60, 1100),
    dt=st.sampled_from([0.5, 1.0, 5.0]),
)  # fmt: skip
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_aircraft_on_a_geodesic_anywhere_never_contradicts_itself(bench, lat, lon, track, gs, dt):
    assert max(s for s, _ in scores(bench, fly(lat, lon, track, gs, 60, dt=dt)).values()) < 0.8


def test_honest_flight_with_noise_is_quiet(bench):
    rng = np.random.default_rng(0)
    for lat, track in [(50.0, 90.0), (89.9, 10.0), (0.0, 270.0), (-60.0, 200.0)]:
        rows = fly(lat, 179.99, track, 480.0, 120)
        for r in rows:
            r["lat"] = max(-90.0, min(90.0, r["lat"] + rng.normal(0, 20) / 111_000))
            r["gs_kt"] = round(r["gs_kt"] + rng.normal(0, 3))
            r["alt_ft"] = r["alt_ft"] + 25 * round(rng.normal(0, 1))
        assert max(s for s, _ in scores(bench, rows).values()) < 0.5


def test_a_position_spike_is_one_anomalous_epoch(bench):
    rows = fly(50, 8, 90, 450, 30)
    rows[15]["lat"] += 1.0
    anomalous = {t: c for (_, t), (s, c) in scores(bench, rows).items() if s >= 1}
    assert anomalous == {25.0: ["jump"]}


def test_an_altitude_spike_is_named_but_is_no_anomaly(bench):
    rows = fly(50, 8, 90, 450, 30)
    rows[15]["alt_ft"] = 123_100.0
    found = scores(bench, rows)
    assert max(s for s, _ in found.values()) < 0.5
    assert {t: c for (_, t), (_, c) in found.items() if c} == {25.0: ["climb"]}


def test_wrong_altitudes_in_a_row_that_agree_with_each_other_are_no_anomaly_either(bench):
    rows = fly(50, 8, 90, 130, 60, alt_ft=1800.0)
    for i, r in enumerate(rows[15:45]):
        r["alt_ft"] = 20_475.0 + 25 * (i % 5)
    assert max(s for s, _ in scores(bench, rows).values()) < 0.5


def test_altitude_adds_weight_to_a_position_that_contradicts_itself(bench):
    rows = fly(50, 8, 90, 450, 30)
    rows[15]["lat"] += 0.02
    (plain, _) = scores(bench, rows)["a", 25.0]
    rows[15]["alt_ft"] = 120_000.0
    (both, causes) = scores(bench, rows)["a", 25.0]
    assert causes == ["jump", "climb"]
    assert both > 10 * plain > 10


def test_a_teleport_stays_anomalous_until_the_new_place_is_believed(bench):
    rows = fly(50, 8, 90, 450, 60)
    for r in rows[20:]:
        r["lat"] += 2.0
    assert len({r["lon"] for r in rows}) == 60
    anomalous = sorted(t for (_, t), (s, _) in scores(bench, rows).items() if s >= 1)
    assert anomalous == [30.0 + i for i in range(REACQUIRE)]


def test_reported_speed_that_the_displacement_does_not_show_is_named(bench):
    rows = fly(50, 8, 90, 450, 60)
    for r in rows:
        r["gs_kt"] = 100.0
    found = scores(bench, rows)
    assert ["speed"] in [c for s, c in found.values() if s >= 1]
    assert not any("jump" in c for _, c in found.values())


def test_a_wrong_speed_stays_anomalous_at_every_rate_so_that_it_can_become_an_alarm(bench):
    for dt in (0.5, 1.0, 5.0):
        rows = fly(50, 8, 90, 450, 120, dt=dt)
        for r in rows[int(60 / dt) :]:
            r["gs_kt"] = 20.0
        late = [s >= 1 for (_, t), (s, _) in sorted(scores(bench, rows).items()) if t > 110]
        assert all(late), dt


def test_positions_stamped_late_by_some_seconds_are_no_contradiction(bench):
    """A feed that resamples to 10 s: each position is up to 8 s older than it says."""
    lag_s = [0, 7, 1, 8, 0, 6, 2, 8, 1, 7, 0, 8]
    exact = {r["t"]: r for r in fly(50, 8, 10, 480, 130)}
    rows = [{**exact[20.0 + 10 * i - lag], "t": 20.0 + 10 * i} for i, lag in enumerate(lag_s[1:], 1)]
    assert max(s for s, _ in scores(bench, rows).values()) < 0.8


def test_on_the_ground_the_speed_column_is_left_over_from_the_air(bench):
    rows = fly(50, 8, 90, 15, 120)
    for r in rows:
        r.update(gs_kt=468.0, on_ground=1.0)
    assert max(s for s, _ in scores(bench, rows).values()) < 0.5
    for r in rows:
        r.update(on_ground=0.0)
    assert max(s for s, _ in scores(bench, rows).values()) > 1


def test_a_velocity_that_the_feed_holds_for_minutes_is_no_contradiction(bench):
    rows = fly(50, 8, 90, 300, 300)
    for i, r in enumerate(rows):
        r.update(gs_kt=300.0 if i < 30 else 560.0, trk_deg=90.0)
    found = scores(bench, rows)
    late = [s for (_, t), (s, _) in found.items() if t > 110]
    assert max(late) < 0.8
    for i, r in enumerate(rows):
        r.update(trk_deg=90.0 + i % 2)
    assert max(s for (_, t), (s, _) in scores(bench, rows).items() if t > 110) > 0.5


def test_two_aircraft_with_one_address_are_called_a_duplicate(bench):
    rows = fly(50, 8, 90, 450, 40, dt=2.0) + [{**r, "t": r["t"] + 1.0} for r in fly(47, 3, 0, 400, 40, dt=2.0)]
    causes = [c for s, c in scores(bench, rows).values() if s >= 1]
    assert any("duplicate_id" in c for c in causes)


def test_a_spike_that_a_feed_repeats_is_still_one_epoch(bench):
    rows = fly(50, 8, 90, 450, 40)
    for r in rows[15:25]:
        r["alt_ft"] = 35_000.0
    for r in rows[30:34]:
        r.update(lat=52.0, lon=8.5)
    anomalous = {t: c for (_, t), (s, c) in scores(bench, rows).items() if s >= 1}
    assert anomalous == {40.0: ["jump"]}


def test_positions_that_a_feed_repeats_do_not_make_the_next_one_a_jump(bench):
    rows = fly(50, 8, 90, 450, 60)
    held = [{**r, "lat": rows[i - i % 9]["lat"], "lon": rows[i - i % 9]["lon"]} for i, r in enumerate(rows)]
    assert max(s for s, _ in scores(bench, held).values()) < 0.8


def test_a_position_held_for_minutes_and_then_caught_up_is_no_jump(bench):
    rows = fly(50, 8, 90, 270, 200)
    for r in rows[20:170]:
        r.update(lat=rows[20]["lat"], lon=rows[20]["lon"])
    assert max(s for s, _ in scores(bench, rows).values()) < 0.8


def test_a_position_that_comes_back_further_than_the_speed_reaches_is_a_contradiction(bench):
    """Jammed for ten minutes, heard all the while, then 500 km away: 1,600 kt would be a jump, 1,000 is not."""
    rows = fly(50, 8, 90, 440, 650)
    for r in rows[20:620]:
        r.update(lat=rows[20]["lat"], lon=rows[20]["lon"])
    for r in rows[620:]:
        r["lat"] += 2.8
    found = scores(bench, rows)
    assert max(s for (_, t), (s, _) in found.items() if t < 630) < 0.8
    assert [c for (_, t), (s, c) in sorted(found.items()) if t >= 630 and s >= 1][:3] == [["speed"]] * 3


def test_missing_speed_and_altitude_are_no_contradiction(bench):
    rows = fly(50, 8, 90, 450, 40)
    for r in rows[::2]:
        del r["gs_kt"], r["alt_ft"]
    assert max(s for s, _ in scores(bench, rows).values()) < 0.5


def test_a_long_break_starts_a_new_track(bench):
    rows = fly(50, 8, 90, 450, 10) + [{**r, "t": r["t"] + 200.0} for r in fly(20, 100, 90, 450, 10)]
    assert max(s for s, _ in scores(bench, rows).values()) < 0.5


def test_forgetting_and_snapshots(bench):
    rows = fly(50, 8, 90, 450, 12)
    b = bench(Kinematics)
    for r in rows[:10]:
        b.tick(r["t"], adsb=[r])
    copy = bench(Kinematics)
    copy.fleet.slot_for("a")
    copy.detector.restore(b.detector.snapshot())
    far = {**rows[10], "lat": 10.0}
    (same,), (again,) = b.tick(20.0, adsb=[far]), copy.tick(20.0, adsb=[far])
    assert same.score[0] == again.score[0] > 1
    b.detector.forget(np.array([0], np.int32))
    (fresh,) = b.tick(21.0, adsb=[{**rows[11], "t": 21.0}])
    assert fresh.score[0] == 0
