"""Simulated drones: IMU and GPS tell of one and the same motion, errors are of the stated size, faults stay in their
windows."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from watchkeeper.streams.messages import COLUMN, Kind
from watchkeeper.streams.simulate import Simulation, simulate
from watchkeeper.streams.simulate.faults import KINDS
from watchkeeper.streams.simulate.missions import draw_missions

GRAVITY = 9.80665


def tables(sim: Simulation, kind: Kind) -> dict[str, np.ndarray]:
    """Every drone's samples of one kind in order of time: row 0 is t, then the fields."""
    number: dict[str, int] = {}
    pieces = []
    for batch in sim.batches():
        columns = batch.kinds.get(kind)
        if columns is not None:
            ids = np.array([number.setdefault(name, len(number)) for name in batch.ids])
            pieces.append(np.vstack((ids[columns.vid], columns.t - sim.t0, columns.data)))
    table = np.hstack(pieces)
    table = table[:, np.lexsort((table[1], table[0]))]
    edges = np.searchsorted(table[0], np.arange(len(number) + 1))
    parts = {name: table[1:, edges[i] : edges[i + 1]] for name, i in number.items()}
    return {name: part for name, part in parts.items() if part.size}


def gps(table: np.ndarray, *names: str) -> np.ndarray:
    return table[[1 + COLUMN[Kind.GPS][n] for n in names]]


def acceleration_ned(imu: np.ndarray) -> np.ndarray:
    """What the IMU and its attitude say about the acceleration over ground."""
    force, (roll, pitch, yaw) = imu[1:4], imu[7:10]
    cr, sr, cp, sp, cy, sy = np.cos(roll), np.sin(roll), np.cos(pitch), np.sin(pitch), np.cos(yaw), np.sin(yaw)
    rotation = np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )
    return np.einsum("ijn,jn->in", rotation, force) + np.array([[0.0], [0.0], [GRAVITY]])


def integral(t: np.ndarray, y: np.ndarray) -> np.ndarray:
    steps = (y[:, 1:] + y[:, :-1]) / 2.0 * np.diff(t)
    return np.concatenate((np.zeros((len(y), 1)), np.cumsum(steps, axis=1)), axis=1)


@pytest.fixture(scope="module")
def perfect() -> Simulation:
    return simulate("drones", vehicles=6, seconds=600.0, rate_hz=100.0, noise=False, faults=False)


def test_integrating_a_perfect_imu_gives_the_velocity_of_the_gps_over_a_whole_mission(perfect):
    imu, fixes = tables(perfect, Kind.IMU), tables(perfect, Kind.GPS)
    for name, table in imu.items():
        velocity = gps(fixes[name], "gps_vx", "gps_vy", "gps_vz")
        flown = integral(table[0], acceleration_ned(table))
        at_fix = np.array([np.interp(fixes[name][0], table[0], axis) for axis in flown])
        assert np.abs(at_fix + velocity[:, :1] - velocity).max() < 2e-3
        assert np.hypot(velocity[0], velocity[1]).max() > 3.0


def test_gps_velocity_is_the_derivative_of_gps_position(perfect):
    for table in tables(perfect, Kind.GPS).values():
        position, velocity = gps(table, "gps_x", "gps_y", "gps_z"), gps(table, "gps_vx", "gps_vy", "gps_vz")
        flown = integral(table[0], velocity)
        assert np.abs(flown - (position - position[:, :1])).max() < 0.2


def test_integrating_a_perfect_gyro_gives_the_attitude(perfect):
    table = tables(perfect, Kind.IMU)["quad-1"]
    roll, pitch = table[7, 0], table[8, 0]
    yaw = table[9, 0]
    worst = 0.0
    for i in range(1, 6000):
        dt = table[0, i] - table[0, i - 1]
        p, q, r = (table[4:7, i] + table[4:7, i - 1]) / 2.0
        rates = (
            p + (q * math.sin(roll) + r * math.cos(roll)) * math.tan(pitch),
            q * math.cos(roll) - r * math.sin(roll),
            (q * math.sin(roll) + r * math.cos(roll)) / math.cos(pitch),
        )
        roll, pitch, yaw = roll + rates[0] * dt, pitch + rates[1] * dt, yaw + rates[2] * dt
        off = np.array([roll, pitch, math.remainder(yaw - table[9, i], 2 * math.pi) + table[9, i]]) - table[7:10, i]
        worst = max(worst, float(np.abs(off).max()))
    assert worst < 0.02
    assert np.ptp(table[9]) > 3.0


def test_missions_close_so_that_they_can_be_flown_for_ever():
    missions = draw_missions(np.random.default_rng(5), 30, 600.0)
    vid = np.arange(30, dtype=np.int32)
    # on the ground nothing wanders, so start and end of the cycle must be the same point
    start = missions.track(vid, -missions.offset_s)
    for cycles in (1.0 - 1e-9, 3.0):
        end = missions.track(vid, cycles * missions.cycle_s - missions.offset_s)
        assert np.abs(end - start).max() < 1e-5
    before = missions.body(vid, missions.cycle_s * (1.0 - 1e-9) - missions.offset_s)
    after = missions.body(vid, missions.cycle_s * (1.0 + 1e-9) - missions.offset_s)
    turn = np.abs((before - after + math.pi) % (2.0 * math.pi) - math.pi)
    assert turn[6:9].max() < 1e-5


def test_both_kinds_take_off_bank_hover_and_land():
    missions = draw_missions(np.random.default_rng(6), 2, 600.0)
    for vehicle, least_bank_deg, hovers in ((0, 10.0, True), (1, 20.0, False)):
        t = np.arange(0.0, missions.cycle_s[vehicle], 0.1)
        vid = np.full(len(t), vehicle, np.int32)
        track, body = missions.track(vid, t), missions.body(vid, t)
        height, speed = -track[2], np.hypot(track[3], track[4])
        assert height.min() == pytest.approx(0.0, abs=1e-6)
        assert height.max() > 25.0
        assert np.degrees(np.abs(body[6]).max()) > least_bank_deg
        in_air = body[9] == 1.0
        assert (speed[in_air].min() < 1.0) == hovers
        # at rest on the ground, where every mission begins with a few seconds, an IMU feels gravity and nothing else
        parked = (t + missions.offset_s[vehicle]) % missions.cycle_s[vehicle] < 2.5
        assert np.allclose(np.linalg.norm(body[:3, parked], axis=0), GRAVITY)
        assert np.all(body[3:6, parked] == 0.0)


def test_sensor_errors_have_the_stated_sizes():
    sim = simulate("drones", vehicles=10, seconds=240.0, faults=False)
    missions = sim._missions()
    truth = sim.truth()["vehicles"]
    position, velocity, white = [], [], []
    fixes = tables(sim, Kind.GPS)
    for i, name in enumerate(truth):
        table = fixes[name]
        latency = truth[name]["gps_latency_s"]
        assert 0.1 <= latency <= 0.2
        exact = missions.track(np.full(table.shape[1], i, np.int32), table[0] - latency)
        position.append(gps(table, "gps_x", "gps_y", "gps_z") - exact[:3])
        velocity.append(gps(table, "gps_vx", "gps_vy", "gps_vz") - exact[3:])
        white.append(np.diff(position[-1][0]).std())
        assert np.diff(table[0]).max() < 3.0
        assert 0.005 < np.std(np.diff(table[0])) < 0.3
    horizontal = np.concatenate([p[:2].ravel() for p in position])
    assert 0.5 < horizontal.std() < 1.6
    assert np.concatenate([v[:2].ravel() for v in velocity]).std() == pytest.approx(0.08, rel=0.1)
    # the error wanders: from fix to fix it changes by far less than its size
    assert np.mean(white) < 0.15
    biases = np.array([v["accel_bias_mps2"] for v in truth.values()])
    assert 0.02 < biases.std() < 0.1


def test_gps_content_lags_its_stamp_by_the_latency_in_the_truth():
    sim = simulate("drones", vehicles=4, seconds=200.0, faults=False, seed=9)
    missions = sim._missions()
    table = tables(sim, Kind.GPS)["wing-2"]
    velocity = gps(table, "gps_vx", "gps_vy")
    vid = np.full(table.shape[1], 1, np.int32)

    def misfit(lag: float) -> float:
        return float(((missions.track(vid, table[0] - lag)[3:5] - velocity) ** 2).sum())

    lags = np.arange(0.0, 0.3, 0.005)
    best = lags[int(np.argmin([misfit(lag) for lag in lags]))]
    assert best == pytest.approx(sim.truth()["vehicles"]["wing-2"]["gps_latency_s"], abs=0.015)


def test_noisy_imu_and_gps_still_agree_from_fix_to_fix():
    """The residual of a filter that knows the latency must be noise, not dynamics."""
    sim = simulate("drones", vehicles=6, seconds=200.0, rate_hz=100.0, faults=False)
    imu, fixes = tables(sim, Kind.IMU), tables(sim, Kind.GPS)
    for name, table in fixes.items():
        latency = sim.truth()["vehicles"][name]["gps_latency_s"]
        samples = imu[name]
        flown = integral(samples[0], acceleration_ned(samples))
        inside = (table[0] > 1.0) & (table[0] < 199.0)
        t = table[0, inside] - latency
        velocity = gps(table, "gps_vx", "gps_vy")[:, inside]
        residual = np.diff(velocity) - np.diff(np.array([np.interp(t, samples[0], axis) for axis in flown[:2]]))
        assert residual.std() < 0.2
        # differences of white noise: neighbours correlate at -1/2, the next but one not at all
        lagged = [np.corrcoef(residual[0, :-k], residual[0, k:])[0, 1] for k in (1, 2)]
        assert lagged[0] == pytest.approx(-0.5, abs=0.15)
        assert lagged[1] == pytest.approx(0.0, abs=0.15)


@pytest.mark.parametrize("scenario", ["drones", "mixed", "demo"])
def test_faults_change_their_own_stream_inside_their_own_window_and_nothing_else(scenario):
    options = {"seconds": 200.0, "rate_hz": 20.0, "vehicles": 22}
    sim, clean = simulate(scenario, **options), simulate(scenario, faults=False, **options)
    faults = sim.truth()["faults"]
    assert clean.truth()["faults"] == []
    assert faults
    for kind in (Kind.GPS, Kind.IMU):
        attacked, untouched = tables(sim, kind), tables(clean, kind)
        assert list(attacked) == list(untouched)
        for name, table in attacked.items():
            own = [f for f in faults if f["id"] == name and f["stream"] == kind.word]
            reference = untouched[name]

            def outside(t: np.ndarray, own: list[dict[str, Any]] = own) -> np.ndarray:
                inside = np.zeros(len(t), bool)
                for f in own:
                    inside |= (t >= f["t_start"] - sim.t0) & (t < f["t_end"] - sim.t0)
                return ~inside

            np.testing.assert_array_equal(table[:, outside(table[0])], reference[:, outside(reference[0])])
            for f in own:
                window = (table[0] >= f["t_start"] - sim.t0) & (table[0] < f["t_end"] - sim.t0)
                if f["kind"] == "silence":
                    assert not window.any()
                else:
                    same = (reference[0] >= f["t_start"] - sim.t0) & (reference[0] < f["t_end"] - sim.t0)
                    _check_effect(f, table[:, window], reference[:, same], sim.t0)


def _check_effect(f: dict[str, Any], attacked: np.ndarray, clean: np.ndarray, t0: float) -> None:
    change = attacked[1:] - clean[1:]
    position, velocity, force = np.linalg.norm(change[:3], axis=0), np.linalg.norm(change[6:9], axis=0), change[:3]
    s = attacked[0] - (f["t_start"] - t0)
    if f["kind"] == "gps_bias":
        assert np.allclose(position, f["magnitude"])
        assert np.all(velocity == 0.0)
    elif f["kind"] == "gps_velocity":
        assert np.all(position == 0.0)
        assert np.allclose(velocity, f["magnitude"])
    elif f["kind"] == "gps_drift":
        assert np.allclose(velocity[s > 4.0], f["magnitude"])
        # where it has led the position is the integral of how fast it led it
        assert np.allclose(np.diff(position), (velocity[1:] + velocity[:-1]) / 2.0 * np.diff(s), atol=0.02)
    elif f["kind"] in ("gps_freeze", "imu_stuck"):
        rows = attacked[1:10]
        assert np.all((rows == rows[:, :1]) | np.isnan(rows))
        assert np.any(change[:3, 1:] != 0.0)
    else:
        assert f["kind"] == "imu_bias"
        assert np.allclose(np.linalg.norm(force, axis=0), f["magnitude"])
        assert np.all(change[3:6] == 0.0)


def test_long_runs_warm_up_for_40_s_recover_at_the_end_and_show_every_kind():
    sim = simulate("drones", vehicles=20, seconds=600.0)
    truth = sim.truth()
    faults = truth["faults"]
    assert {f["kind"] for f in faults} == set(KINDS)
    assert min(f["t_start"] for f in faults) >= sim.t0 + 40.0
    assert max(f["t_end"] for f in faults) <= sim.t0 + 580.0
    assert {truth["vehicles"][f["id"]]["kind"] for f in faults} == {"quad", "wing"}
    assert len({f["id"] for f in faults}) == 10
    by_vehicle = defaultdict(set)
    for f in faults:
        by_vehicle[f["id"]].add((f["t_start"], f["t_end"]))
    for windows in by_vehicle.values():
        ordered = sorted(windows)
        assert all(later[0] - earlier[1] >= 80.0 for earlier, later in pairwise(ordered))


@pytest.mark.parametrize("scenario", ["drones", "mixed", "demo"])
def test_a_run_of_a_minute_has_its_faults_between_20_and_40_s(scenario):
    sim = simulate(scenario, seconds=60.0, vehicles=44)
    faults = sim.truth()["faults"]
    assert len(faults) >= 2
    assert all(20.0 <= f["t_start"] - sim.t0 < 25.0 and 35.0 < f["t_end"] - sim.t0 <= 40.0 for f in faults)


def test_the_demo_has_a_jump_and_a_silence_on_two_drones_and_leaves_one_alone():
    truth = simulate("demo").truth()
    kinds = {f["kind"]: f["id"] for f in truth["faults"]}
    assert {"gps_bias", "silence"} <= set(kinds)
    assert len(set(kinds.values())) == len(kinds) == 4
    assert sum(v["kind"] != "aircraft" for v in truth["vehicles"].values()) == 5


def test_without_ahrs_no_attitude_is_reported_and_the_rest_is_the_same():
    without = tables(simulate("drones", vehicles=2, seconds=5.0, ahrs=False), Kind.IMU)
    with_ahrs = tables(simulate("drones", vehicles=2, seconds=5.0), Kind.IMU)
    for name, table in without.items():
        assert np.isnan(table[7:10]).all()
        np.testing.assert_array_equal(table[:7], with_ahrs[name][:7])


def test_a_longer_demo_repeats_itself_with_other_aircraft_and_other_drones():
    truth = simulate("demo", seconds=170.0).truth()
    assert sum(v.get("role") == "pair" for v in truth["vehicles"].values()) == 4
    jumps = [f["id"] for f in truth["faults"] if f["kind"] == "gps_bias"]
    assert len(jumps) == len(set(jumps)) == 2
    assert truth["pairs"] == []
