"""What gps_imu knows about receivers: their delays, held courses, clocks, accuracy, and what they leave out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.detectors.gps_imu.constants import HELD_SPEED
from watchkeeper.detectors.gps_imu.detector import CAUSES
from watchkeeper.detectors.gps_imu.read import hold_course
from watchkeeper.detectors.gps_imu.state import Vehicle, Work
from watchkeeper.detectors.kernels.records import blank

from made_flight import (
    DELAY_S,
    GPS,
    START,
    THRESHOLD,
    VXYZ,
    XYZ,
    Flight,
    Watch,
    alarm_t,
    attacked,
    config,
    flight,
    is_quiet,
    watch,
)


@pytest.mark.parametrize("configured", [0.1, 0.2, 0.3])
def test_the_delay_of_a_receiver_is_learned_from_its_velocities(configured):
    watching = Watch({"v": flight(240.0, 3)}, config(model="off", gps_delay_s=configured))
    watching.until(240.0)
    learned = watching.detector._table["delay_s"][0]
    # slowly, because the filter follows the receiver as well
    assert abs(learned - DELAY_S) <= 0.8 * abs(configured - DELAY_S) + 0.015
    fixed = Watch({"v": flight(60.0, 3)}, config(model="off", gps_delay_s=configured, learn_delay=False))
    fixed.until(60.0)
    assert fixed.detector._table["delay_s"][0] == configured


def test_a_clock_that_steps_is_off_the_beat_and_a_lost_fix_is_not():
    f = flight(120.0, 5)
    late = f.copy()
    late.gps_t[late.gps_t >= START] += 0.1
    ev = watch(late)
    named = ev.cause_bits[(ev.t >= START) & (ev.t < START + 2.0)]
    assert (named >> CAUSES.index("timing") & 1).any()
    lost = (f.gps_t > 70.0) & (f.gps_t < 70.5)
    ev = watch(Flight(f.imu_t, f.imu, f.gps_t[~lost], f.gps[:, ~lost]))
    assert not (ev.cause_bits >> CAUSES.index("timing") & 1).any()


@pytest.mark.parametrize(("field", "usual", "jammed"), [("eph", 0.8, 6.0), ("hdop", 0.7, 5.0), ("sats", 14.0, 5.0)])
def test_a_receiver_that_says_it_has_become_inaccurate_is_believed(field, usual, jammed):
    f = flight(100.0, 5)
    f.gps[GPS[field]] = usual
    f.gps[GPS[field], f.gps_t >= START] = jammed
    ev = watch(f)
    assert START < alarm_t(ev) <= START + 1.2
    named = ev.cause_bits[(ev.t >= START) & (ev.t < START + 2.0)]
    assert (named >> CAUSES.index("accuracy") & 1).all()


def test_positions_without_velocities_do():
    f = attacked("jump")
    f.gps[VXYZ] = np.nan
    ev = watch(f)
    assert START < alarm_t(ev) <= START + 1.2


@pytest.mark.parametrize(("lat", "lon"), [(47.4, 8.5), (-33.9, 179.9999), (0.0, -180.0)])
def test_latitude_and_longitude_do_as_well_as_metres(lat, lon):
    f = attacked("jump")
    n, e, d = f.gps[XYZ].copy()
    f.gps[XYZ] = np.nan
    curve = 1 - 6.694379990141e-3 * math.sin(math.radians(lat)) ** 2
    f.gps[GPS["lat"]] = lat + np.degrees(n * curve**1.5 / (6_378_137.0 * (1 - 6.694379990141e-3)))
    east = lon + np.degrees(e * math.sqrt(curve) / (6_378_137.0 * math.cos(math.radians(lat))))
    f.gps[GPS["lon"]] = (east + 180.0) % 360.0 - 180.0
    f.gps[GPS["alt_m"]] = -d
    ev = watch(f)
    assert START < alarm_t(ev) <= START + 1.2
    assert ev.score == pytest.approx(watch(attacked("jump")).score, abs=0.05)


def test_gaps_in_either_stream_are_no_anomaly():
    f = flight(120.0, seed=6)
    lost = ((f.imu_t > 50.0) & (f.imu_t < 50.4)) | ((f.imu_t > 70.0) & (f.imu_t < 75.0))
    unheard = (f.gps_t > 90.0) & (f.gps_t < 94.0)
    cut = Flight(f.imu_t[~lost], f.imu[:, ~lost], f.gps_t[~unheard], f.gps[:, ~unheard])
    ev = watch(cut)
    assert is_quiet(ev)
    assert ev.t[-1] > 115.0


def test_a_parked_vehicle_may_repeat_its_fix():
    f = flight(90.0, rest_s=1e9)
    f.gps[:, f.gps_t > 30.0] = f.gps[:, [0]]
    assert is_quiet(watch(f))


def test_a_velocity_that_is_older_than_its_position_is_noticed_and_allowed_for():
    truth, lead_s = flight(241.0, 3), 0.15
    newer = truth.copy()
    # where the vehicle will be a little later
    for k in range(3):
        newer.gps[k] = np.interp(newer.gps_t + lead_s, truth.gps_t, truth.gps[k])
    watching = Watch({"v": newer}, config(model="off"))
    found = watching.until(240.0)
    assert watching.detector._table["lead_s"][0] == pytest.approx(lead_s, abs=0.04)
    assert np.mean(np.concatenate([e.score for e in found]) >= THRESHOLD) < 0.03
    fixed = Watch({"v": newer}, config(model="off", learn_delay=False))
    fixed.until(60.0)
    assert fixed.detector._table["lead_s"][0] == 0.0


velocities = st.floats(-3.0, 3.0).map(lambda v: round(v, 3))


@given(st.tuples(velocities, velocities), st.tuples(velocities, velocities))
def test_only_a_slow_velocity_of_the_same_course_loses_its_direction(before, now):
    row, work = blank(Vehicle, 1)[0], blank(Work, 1)[0]
    row["fix_t"] = 1.0
    row["told"] = before
    work["fix"][3:5] = now
    hold_course(row, work)
    assert tuple(work["told"]) == now
    speed = math.hypot(*now)
    if work["loose_mps"] > 0.0:
        assert speed < HELD_SPEED
        assert work["loose_mps"] == pytest.approx(speed)
        assert tuple(work["fix"][3:5]) == (0.0, 0.0)
        turned = math.remainder(math.atan2(now[1], now[0]) - math.atan2(before[1], before[0]), math.tau)
        # within what rounding to a millimetre per second does to either
        assert math.hypot(*before) == 0.0 or abs(math.sin(turned)) <= 0.0016 * (1 / speed + 1 / math.hypot(*before))
    else:
        assert tuple(work["fix"][3:5]) == now


@given(st.floats(0.01, 0.95), st.floats(0.01, 0.95), st.floats(-math.pi, math.pi))
def test_a_held_course_is_found_however_the_speed_changes(before, now, course):
    row, work = blank(Vehicle, 1)[0], blank(Work, 1)[0]
    row["fix_t"] = 1.0
    row["told"] = np.round((before * math.cos(course), before * math.sin(course)), 3)
    work["fix"][3:5] = np.round((now * math.cos(course), now * math.sin(course)), 3)
    told = math.hypot(*work["fix"][3:5])
    hold_course(row, work)
    assert work["loose_mps"] == pytest.approx(told)
