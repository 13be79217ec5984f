"""gps_imu on made-up flights: quiet on clean ones, names what lies on others, depends on nothing but the samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.config.schema import DEFAULT, Frames
from watchkeeper.detectors.base import Evidence
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.gps_imu.detector import CAUSES, NUMBERS, GpsImu
from watchkeeper.detectors.gps_imu.state import ALIGNING, TRACKING
from watchkeeper.streams.foreign.states import StateEncoder, decode_state
from watchkeeper.streams.messages import FIELDS, Kind
from watchkeeper.streams.split import bucket_of

from made_flight import (
    ATTACKS,
    DELAY_S,
    END,
    GPS,
    GPS_HZ,
    IMU,
    IMU_HZ,
    START,
    THRESHOLD,
    VXYZ,
    Flight,
    G,
    Watch,
    alarm_t,
    attacked,
    config,
    flight,
    is_quiet,
    watch,
)


@pytest.mark.parametrize("heading", [0.0, 1.0, -2.5])
def test_a_clean_flight_is_judged_at_every_fix_and_raises_nothing(heading):
    f = flight(120.0, seed=1, heading=heading)
    ev = watch(f)
    assert np.array_equal(ev.t, f.gps_t[f.gps_t >= ev.t[0]])
    assert is_quiet(ev)
    assert np.array_equal(ev.epoch, ev.t)


@pytest.mark.parametrize("name", ATTACKS)
def test_each_attack_is_found_in_time_and_named(name):
    _, cause, latency_s = ATTACKS[name]
    ev = watch(attacked(name))
    assert START < alarm_t(ev) <= START + latency_s
    named = ev.cause_bits[(ev.t >= START) & (ev.t < END) & (ev.score >= THRESHOLD)]
    assert (named >> CAUSES.index(cause) & 1).any()
    assert (named != 0).all()


@pytest.mark.parametrize("name", ATTACKS)
def test_a_vehicle_is_believed_again_after_the_attack(name):
    ev = watch(attacked(name))
    after = ev.score[ev.t > END + 75.0]
    assert np.mean(after < 0.8 * THRESHOLD) > 0.9
    assert np.mean(after >= THRESHOLD) < 0.05


@pytest.mark.parametrize("name", ["jump", "drift", "freeze", "velocity", "stuck IMU"])
def test_the_filter_does_not_swallow_what_it_has_called_wrong(name):
    ev = watch(attacked(name))
    assert ev.score[(ev.t >= alarm_t(ev)) & (ev.t < END)].min() >= THRESHOLD


def test_the_further_off_the_more_severe():
    ev = watch(attacked("jump"))
    ratio = ev.score / THRESHOLD
    section = DEFAULT.detectors.gps_imu
    expected = (ratio >= section.caution_ratio).astype(int) + (ratio >= section.warning_ratio)
    assert np.array_equal(ev.severity, expected)
    assert ev.severity.max() == 2


def test_a_record_of_another_version_is_refused():
    watching = Watch({"v": flight(40.0)}, config(model="off"))
    watching.until(40.0)
    state = watching.detector.snapshot()
    fresh = GpsImu(config(model="off"), watching.fleet)
    names = list(state["table"].dtype.names)
    with pytest.raises(ValueError, match="another layout"):
        fresh.restore(state | {"table": state["table"][names[:-1]]})
    fresh.restore(state)
    assert fresh.snapshot()["table"].tobytes() == state["table"].tobytes()


def test_nothing_is_said_before_the_vehicle_has_been_good_for_the_warm_up():
    f = flight(60.0)
    assert watch(f, config(model="off", warmup_s=30.0)).t[0] >= 30.0
    f.gps[VXYZ, f.gps_t > 10.0] += np.random.default_rng(0).normal(0, 30.0, (3, (f.gps_t > 10.0).sum()))
    assert Watch({"v": f}, config(model="off", warmup_s=30.0)).until(60.0) == []


def test_a_gps_that_is_frozen_from_the_start_is_found_in_motion_and_its_end_is_heard():
    f = flight(150.0)
    frozen = f.gps_t < 60.0
    f.gps[:, frozen] = f.gps[:, [0]]
    ev = watch(f)
    # rest, then as long in motion as others need to be known
    assert 20.0 < alarm_t(ev) < 30.0
    assert set(ev.cause_bits[ev.t < 60.0].tolist()) == {1 << CAUSES.index("freeze")}
    assert ev.score[(ev.t >= alarm_t(ev)) & (ev.t < 60.0)].min() >= THRESHOLD
    assert np.mean(ev.score[ev.t > 80.0] < 0.8 * THRESHOLD) > 0.9


@pytest.mark.parametrize("shaken", [0.0, 0.3, 1.0, 3.0])
def test_a_parked_vehicle_may_repeat_its_fix_from_the_start_though_its_engine_runs(shaken):
    f = flight(120.0, rest_s=1e9)
    f.gps[:] = f.gps[:, [0]]
    f.imu[:3] += np.random.default_rng(1).normal(0.0, shaken, (3, len(f.imu_t)))
    f.imu[IMU["imu_wx"]] += 0.02  # nothing corrects the attitude: gravity seems to turn away
    found = Watch({"v": f}, config(model="off")).until(120.0)
    assert all((ev.score < THRESHOLD).all() for ev in found)


def test_east_north_up_and_forward_left_up_give_the_same_bytes():
    f = attacked("jump")
    other = f.copy()
    for first in (0, GPS["gps_vx"]):
        other.gps[first : first + 3] = f.gps[[first + 1, first, first + 2]] * [[1.0], [1.0], [-1.0]]
    other.imu[[1, 2, 4, 5]] *= -1.0
    turned = watch(other, config(model="off", frames=Frames(local="enu", body="flu")))
    assert turned.score.tobytes() == watch(f).score.tobytes()


def with_ahrs(f: Flight, rest_s: float = 3.0) -> Flight:
    """The flight with the attitude that it has: level, and the yaw of `flight`."""
    f.imu[IMU["roll"] : IMU["pitch"] + 1] = 0.0
    f.imu[IMU["yaw"]] = 1.0 + 0.05 * np.maximum(f.imu_t - rest_s, 0.0)
    return f


def test_a_profile_may_take_the_attitude_of_an_ahrs_and_sees_the_same_lies():
    cfg = config(model="off", attitude="ahrs")
    clean = watch(with_ahrs(flight(180.0, 4)), cfg)
    assert is_quiet(clean)
    ev = watch(with_ahrs(attacked("velocity")), cfg)
    assert START < alarm_t(ev) <= START + 1.6


def test_with_an_ahrs_the_yaw_is_known_without_any_acceleration():
    f = flight(40.0, rest_s=1e9)
    cfg = config(model="off", attitude="ahrs")
    own, told = Watch({"v": f}, config(model="off")), Watch({"v": with_ahrs(f.copy(), rest_s=1e9)}, cfg)
    own.until(30.0)
    told.until(30.0)
    assert own.detector._table["phase"][0] == ALIGNING
    assert told.detector._table["phase"][0] == TRACKING
    w, x, y, z = told.detector._table["quat"][0]
    assert math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)) == pytest.approx(1.0, abs=0.05)


def test_an_ahrs_in_east_north_up_and_forward_left_up_means_the_same():
    f = with_ahrs(attacked("velocity"))
    other = f.copy()
    for first in (0, GPS["gps_vx"]):
        other.gps[first : first + 3] = f.gps[[first + 1, first, first + 2]] * [[1.0], [1.0], [-1.0]]
    other.imu[[1, 2, 4, 5]] *= -1.0
    other.imu[IMU["pitch"]] *= -1.0
    other.imu[IMU["yaw"]] = math.pi / 2 - f.imu[IMU["yaw"]]
    cfg = config(model="off", attitude="ahrs")
    turned = watch(other, config(model="off", attitude="ahrs", frames=Frames(local="enu", body="flu")))
    assert turned.score == pytest.approx(watch(f, cfg).score, abs=1e-3)


def test_a_channel_that_is_switched_off_neither_counts_nor_is_named():
    f = flight(100.0, 5)
    f.gps[GPS["eph"]] = np.where(f.gps_t >= START, 6.0, 0.8)
    ev = watch(f, config(model="off", channels_off=("accuracy",)))
    assert is_quiet(ev)
    assert not (ev.cause_bits >> CAUSES.index("accuracy") & 1).any()


def test_attitude_of_an_ahrs_is_not_looked_at_by_default():
    f = flight(60.0)
    other = f.copy()
    other.imu[IMU["roll"] :] = np.random.default_rng(0).normal(size=(3, len(f.imu_t)))
    assert watch(other).score.tobytes() == watch(f).score.tobytes()


def test_a_start_in_a_steady_turn_finds_its_attitude():
    speed, rate, hz, seconds = 20.0, 0.2, IMU_HZ, 120.0
    bank = math.atan(speed * rate / G)
    rng = np.random.default_rng(2)
    imu_t = np.arange(0.0, seconds, 1 / hz)
    imu = np.full((len(FIELDS[Kind.IMU]), len(imu_t)), np.nan)
    # after a minute it levels its wings within a second and flies straight on
    roll = bank * np.clip(61.0 - imu_t, 0.0, 1.0)
    turn = G * np.tan(roll) / speed
    imu[0], imu[1], imu[2] = 0.0, 0.0, -G / np.cos(roll)
    imu[3], imu[4], imu[5] = np.gradient(roll, imu_t), turn * np.sin(roll), turn * np.cos(roll)
    imu[0:3] += rng.normal(0, 0.05, (3, len(imu_t)))
    imu[3:6] += rng.normal(0, 0.003, (3, len(imu_t)))
    course = np.concatenate(([0.0], np.cumsum(turn[:-1]) / hz))
    vel = speed * np.array([np.cos(course), np.sin(course), 0.0 * course])
    pos = np.cumsum(vel, axis=1) / hz
    gps_t = np.arange(0.3, seconds, 1 / GPS_HZ)
    gps = np.full((len(FIELDS[Kind.GPS]), len(gps_t)), np.nan)
    for k in range(3):
        gps[k] = np.interp(gps_t - DELAY_S, imu_t, pos[k]) + rng.normal(0, 0.2, len(gps_t))
        gps[GPS["gps_vx"] + k] = np.interp(gps_t - DELAY_S, imu_t, vel[k]) + rng.normal(0, 0.1, len(gps_t))
    ev = watch(Flight(imu_t, imu, gps_t, gps))
    assert len(ev) > 400
    assert is_quiet(ev)


@pytest.mark.parametrize("tick_s", [0.1, 0.7, 5.0])
def test_the_length_of_the_windows_does_not_matter(tick_s):
    f = attacked("velocity", 100.0)
    assert watch(f, tick_s=tick_s).score.tobytes() == watch(f, tick_s=1.0).score.tobytes()


def test_the_model_looks_at_no_more_than_its_budget_and_at_everybody_in_turn():
    # the budget is one bucket's
    names = [name for i in range(2000) if bucket_of(name := f"v{i}") == 0][:6]
    flights = {name: flight(60.0, seed=i) for i, name in enumerate(names)}
    fleet_watch = Watch(flights, config(model="hst", model_budget=4))
    looks: dict[int, int] = dict.fromkeys(range(6), 0)
    for _ in range(60):
        for ev in fleet_watch.until(fleet_watch.t + 1.0):
            seen = np.isfinite(ev.numbers["model_sigma"])
            assert seen.sum() <= 4
            for slot in ev.a[seen].tolist():
                looks[slot] += 1
    assert min(looks.values()) > 5


def rows(found: list[Evidence], fleet: Fleet) -> list[tuple[object, ...]]:
    return sorted(
        (fleet.ids[ev.a[i]], ev.t[i], ev.score[i].tobytes(), *(v[i].tobytes() for v in ev.numbers.values()))
        for ev in found
        for i in range(len(ev))
    )


def test_neither_slots_nor_a_snapshot_change_anything_with_the_model_on():
    # of one bucket, so that their model has seen enough to have its say
    names = [name for i in range(1000) if bucket_of(name := f"v{i}") == bucket_of("bad")][:4]
    flights = {name: flight(400.0, seed=i) for i, name in enumerate(names)} | {"bad": attacked("noise", 400.0)}
    cfg = config(model="hst", model_budget=200)
    plain = Watch(flights, cfg)
    moved = Watch(dict(reversed(flights.items())), cfg, first_slot=40)
    resumed = Watch(flights, cfg)
    first = resumed.until(300.0)
    on_disk = bytes(StateEncoder().encode(resumed.detector.snapshot()))
    resumed.detector = GpsImu(cfg, resumed.fleet)
    resumed.detector.restore(decode_state(on_disk))
    expected = rows(plain.until(400.0), plain.fleet)
    model = 3 + len(NUMBERS)  # after id, time, score and the channels
    assert any(np.frombuffer(row[model])[0] > 0.0 for row in expected)  # it has had its say
    assert rows(moved.until(400.0), moved.fleet) == expected
    assert rows(first + resumed.until(400.0), resumed.fleet) == expected


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_whatever_the_sensors_say_scores_are_finite_and_others_are_not_disturbed(seed):
    rng = np.random.default_rng(seed)
    wild = flight(40.0, seed=3)
    for kind, data in ((Kind.IMU, wild.imu), (Kind.GPS, wild.gps)):
        at = rng.random(data.shape[1]) < rng.choice([0.01, 0.2, 1.0])
        for i, f in enumerate(FIELDS[kind]):
            extreme = rng.choice([f.lo, f.hi, 0.0, np.nan if not f.required else 0.0], at.sum())
            data[i, at] = np.where(rng.random(at.sum()) < 0.5, extreme, rng.uniform(f.lo, f.hi, at.sum()))
    tame = flight(40.0, seed=8)
    cfg = config(model="off", warmup_s=0.0)
    alone, together = Watch({"tame": tame}, cfg), Watch({"tame": tame, "wild": wild}, cfg)
    found = together.until(40.0)
    assert all(np.isfinite(ev.score).all() for ev in found)
    quiet = [row for row in rows(found, together.fleet) if row[0] == "tame"]
    assert quiet == rows(alone.until(40.0), alone.fleet)
