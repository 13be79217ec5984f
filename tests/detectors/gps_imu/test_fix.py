"""One fix against the filter, on a vehicle made by hand: what is predicted, what is fused, and when nothing is said."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from watchkeeper.config.schema import DEFAULT, FleetLimits
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.gps_imu.constants import DELAY_PRIOR, LEVEL_FIRST, SETTLE_S, USUAL_FIRST
from watchkeeper.detectors.gps_imu.detector import GpsImu
from watchkeeper.detectors.gps_imu.eskf import POS, VEL
from watchkeeper.detectors.gps_imu.fix import Heard, _update, take_gps
from watchkeeper.detectors.gps_imu.kernel import PATH
from watchkeeper.detectors.gps_imu.slow.state import Slow
from watchkeeper.detectors.gps_imu.state import (
    ACCURACY,
    AGAINST,
    ALIGNING,
    CHANNELS,
    DRIFT,
    FREEZE,
    LEVELLING,
    POSITION,
    STEP,
    STUCK,
    TRACKING,
    VELOCITY,
    VERTICAL,
    Vehicle,
    Work,
)
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.streams.geo import GRAVITY_MS2
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import COLUMN, FIELDS, Kind

PAR = GpsImu(DEFAULT, Fleet(FleetLimits(max_vehicles=1)))._settings
GPS = COLUMN[Kind.GPS]
T, DT = 1000.0, 0.2
VELOCITY_MS = np.array([20.0, 5.0, -1.0])
POSITION_M = np.array([100.0, 50.0, -30.0])


@njit
def _take(table, slow, par, work, t, data, path, sigma):
    return take_gps(table[0], slow[0], par, work[0], Heard(t, data, 0, path), sigma)


@njit
def _fuse(table, par, work, sigma):
    _update(table[0], par, work[0], sigma)


class Made:
    """A vehicle in steady flight, known for long, that got its last fix DT ago; the next one agrees unless changed."""

    def __init__(self, **changed: Any) -> None:
        self.table, self.slow, self.work = blank(Vehicle, 1), blank(Slow, 1), blank(Work, 1)
        self.sigma = np.zeros(len(CHANNELS))
        # nothing is known of the receiver's own path
        self.path = np.full(len(PATH), np.nan)
        row = self.table[0]
        before = {
            "phase": TRACKING, "placed": 1, "quat": [1.0, 0.0, 0.0, 0.0], "vel": VELOCITY_MS, "pos": POSITION_M,
            "delay_s": 0.1, "delay_weight": DELAY_PRIOR, "horizon": T - 0.1, "epoch_s": DT,
            "epoch_force": [0.0, 0.0, -GRAVITY_MS2 * DT], "fix_t": T - DT, "told": VELOCITY_MS[:2],
            "fix": [*(POSITION_M - DT * VELOCITY_MS), *VELOCITY_MS], "usual": USUAL_FIRST, "usual_score": LEVEL_FIRST,
            "good_s": 1e4, "interval": DT, "beats": 60,
            "cov": np.diag([1e-4] * 3 + [0.04] * 3 + [1.0] * 3 + [1e-6] * 3 + [1e-3] * 3 + [0.0]),
        }  # fmt: skip
        for name, value in {**before, **changed}.items():
            row[name] = value
        self.fix = np.concatenate((POSITION_M, VELOCITY_MS))

    def take(self, t: float = T, par: Any = PAR, **fields: float) -> float:
        """The score of a fix at t; fields of it may differ from what is expected."""
        data = np.full((1, len(FIELDS[Kind.GPS])), np.nan)
        for k, name in enumerate(("gps_x", "gps_y", "gps_z", "gps_vx", "gps_vy", "gps_vz")):
            data[0, GPS[name]] = self.fix[k]
        for name, value in fields.items():
            data[0, GPS[name]] = value
        return float(_take(self.table, self.slow, par, self.work, t, data, self.path, self.sigma))

    def __getitem__(self, name: str) -> Any:
        return self.table[0][name]


def residual(made: Made) -> list[float]:
    return made.work[0]["residual"].tolist()


# -- what is predicted ---------------------------------------------------------------------------------------------


def test_a_fix_that_says_what_the_filter_does_has_no_residual_and_scores_next_to_nothing():
    made = Made()
    assert made.take() < 0.2 * PAR.threshold
    assert residual(made) == pytest.approx([0.0] * 6, abs=1e-9)
    assert made["pos"] == pytest.approx(POSITION_M)
    assert made["vel"] == pytest.approx(VELOCITY_MS)


def test_a_fix_is_compared_with_the_filter_at_the_moment_that_it_was_measured():
    # the IMU has told up to 0.04 s before that moment; velocities are 0.05 s older than positions
    pushed = np.array([3.0, -2.0, 1.0])  # m/s2
    made = Made(
        horizon=T - 0.14, lead_s=0.05, epoch_force=DT * (pushed - [0.0, 0.0, GRAVITY_MS2]), pos=POSITION_M - 1.0,
    )  # fmt: skip
    made.take()
    assert residual(made)[:3] == pytest.approx(1.0 - 0.09 * VELOCITY_MS)
    assert residual(made)[3:] == pytest.approx(-0.04 * pushed)
    assert made.work[0]["moved"] == pytest.approx(DT * pushed)
    assert made.work[0]["force"] == pytest.approx(DT * (pushed - [0.0, 0.0, GRAVITY_MS2]))


def test_what_was_summed_since_the_last_fix_is_used_once():
    made = Made(epoch_turn=0.3)
    made.take()
    assert made["epoch_force"].tolist() == [0.0] * 3
    assert (made["epoch_s"], made["epoch_turn"]) == (0.0, 0.0)
    assert made.work[0]["turned"] == 0.3


def test_the_last_strong_acceleration_fades_while_a_receiver_settles():
    made = Made(accel=10.0)
    made.take()
    assert made["accel"] == pytest.approx(10.0 * math.exp(-DT / SETTLE_S))
    made = Made(accel=1.0, epoch_force=[DT * 2.0, DT * 6.0, DT * (3.0 - GRAVITY_MS2)])
    made.take()
    assert made["accel"] == pytest.approx(7.0)


@pytest.mark.parametrize(("push", "unpushed_s"), [(0.4, 7.0 + DT), (0.6, 0.0)])
def test_the_imu_feels_a_push(push, unpushed_s):
    made = Made(leaning=[0.0, 0.0, -GRAVITY_MS2], unpushed_s=7.0, epoch_force=[DT * push, 0.0, -DT * GRAVITY_MS2])
    made.take()
    assert made["unpushed_s"] == unpushed_s


def test_a_receiver_may_be_wrong_by_its_timing_error_times_the_speed():
    still, fast = Made(vel=[0.0] * 3, fix=[*POSITION_M, 0.0, 0.0, 0.0]), Made()
    still.take(gps_vx=0.0, gps_vy=0.0, gps_vz=0.0)
    fast.take()
    more = fast.work[0]["variance"][:3] - still.work[0]["variance"][:3]
    assert more == pytest.approx([PAR.timing_std_s**2 * (VELOCITY_MS**2).sum()] * 3)


def test_distances_are_those_of_mahalanobis():
    made = Made(pos=POSITION_M - [3.0, -4.0, 2.0], vel=VELOCITY_MS - [0.5, 0.2, -0.3])
    made.take()
    distance, variance = made.work[0]["distance"], made.work[0]["variance"]
    assert distance[POSITION] == pytest.approx(5.0 / math.sqrt(1.0 + variance[0]))
    assert distance[VELOCITY] == pytest.approx(math.hypot(0.5, 0.2) / math.sqrt(0.04 + variance[3]))
    vertical = 4.0 / (1.0 + variance[2]) + 0.09 / (0.04 + variance[5])
    assert distance[VERTICAL] == pytest.approx(math.sqrt(vertical))


@pytest.mark.parametrize(("gap_s", "wider"), [(2.0 * DT, False), (1.8, True)])
def test_after_a_gap_the_filter_is_less_sure_whatever_the_levels_were(gap_s, wider):
    usual = np.array(USUAL_FIRST)
    usual[[POSITION, VELOCITY, VERTICAL]] = 0.25
    made = Made(fix_t=T - gap_s, usual=usual, pos=POSITION_M - [0.6, -0.8, 0.0])
    made.take()
    way, speed = 0.15 * (gap_s**2 - DT**2), 0.3 * math.sqrt(gap_s**2 - DT**2)
    distance, variance = made.work[0]["distance"], made.work[0]["variance"]
    expected = 1.0 + variance[0] + wider * (way / 0.25) ** 2
    assert distance[POSITION] == pytest.approx(1.0 / math.sqrt(expected))
    # a filter that knows little of its velocity follows the fix
    assert bool(made["cov"][VEL, VEL] > 0.04) == wider
    assert not wider or made["cov"][VEL, VEL] < 0.04 + (speed / 0.25) ** 2


def test_what_jumped_a_moment_ago_and_is_still_off_is_a_step():
    made = Made(pos=POSITION_M - [3.0, 0.0, 0.0], jumped=[9.0, 0.0, 0.0])
    made.take()
    distance = made.work[0]["distance"]
    assert distance[STEP] == pytest.approx(math.sqrt(9.0 * math.exp(-DT / 2.0) * distance[POSITION]))


def test_what_jumped_upwards_a_moment_ago_and_is_still_off_is_a_step_too():
    made = Made(pos=POSITION_M - [0.0, 0.0, 3.0], jumped=[0.0, 0.0, 9.0])
    made.take()
    distance = made.work[0]["distance"]
    assert distance[STEP] == pytest.approx(math.sqrt(9.0 * math.exp(-DT / 2.0) * distance[VERTICAL]))


def test_a_velocity_that_lags_behind_the_acceleration_adds_up():
    made = Made(epoch_force=[DT * 3.0, DT * 1.0, -DT * GRAVITY_MS2], vel=VELOCITY_MS + np.array([0.3, 0.1, 0.0]))
    made.take()
    assert made["along"] == pytest.approx([-1.0, 0.0, 10.0], abs=1e-9)


def test_fixes_off_the_beat_are_noticed():
    made = Made(interval=0.25)
    made.take()
    assert made["beats"] == 50  # within a quarter of the interval: no slip
    assert made["beat_s"] == pytest.approx(-0.05 * math.exp(-DT / 20.0))


def test_the_configured_delay_holds_until_there_is_another():
    made = Made(delay_s=0.0, delay_weight=0.0, horizon=T - PAR.gps_delay_s)
    made.take()
    assert made["delay_s"] == pytest.approx(PAR.gps_delay_s, abs=1e-3)
    assert made["delay_weight"] >= DELAY_PRIOR
    known = Made(delay_s=0.05, horizon=T - 0.05)
    known.take()
    assert known["delay_s"] == pytest.approx(0.05, abs=1e-3)


@pytest.mark.parametrize(("bins_s", "left"), [((-0.14, -0.12, -0.1), 0), ((-0.12, -0.1, -0.09), 1)])
def test_the_filter_goes_on_as_far_as_the_fix_was_measured(bins_s, left):
    made = Made(horizon=T - 0.16, bin_count=3)
    made["bin_t"][:3] = T + np.array(bins_s)
    made["bins"][:3, 5] = -GRAVITY_MS2 * 0.02
    made.take()
    assert made["bin_count"] == left
    assert made["horizon"] == pytest.approx(T - 0.1)


# -- when nothing is said ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", [0, LEVELLING])
def test_before_it_is_level_a_vehicle_is_not_judged_nor_placed(phase):
    made = Made(phase=phase, placed=0)
    assert math.isnan(made.take())
    assert (made["placed"], made["fix_t"]) == (0, T - DT)


def test_a_fix_without_position_says_nothing():
    made = Made()
    assert math.isnan(made.take(gps_x=math.nan))
    assert math.isnan(made.take(fix=1.0))
    assert made["fix_t"] == T - DT


def test_the_first_fix_places_the_vehicle():
    made = Made(placed=0, pos=[0.0] * 3, vel=[0.0] * 3, shift=[9.0] * 3, usual=0.0)
    assert math.isnan(made.take())
    assert made["pos"] == pytest.approx(POSITION_M)
    assert made["vel"] == pytest.approx(VELOCITY_MS)
    assert made["shift"].tolist() == [0.0] * 3
    assert (made["placed"], made["fix_t"]) == (1, T)
    assert made["usual"] == pytest.approx(USUAL_FIRST)


@pytest.mark.parametrize(
    ("pause_s", "latched", "again"), [(10.0, 0, False), (10.25, 0, True), (10.25, 1, False), (60.0, 0, True)]
)
def test_after_a_long_pause_position_begins_again_unless_the_gps_is_accused(pause_s, latched, again):
    made = Made(fix_t=T - pause_s, latched=latched, shift=[9.0] * 3, pos=POSITION_M + 2.0)
    assert math.isnan(made.take()) is again
    assert made["fix_t"] == T
    if again:
        assert made["shift"].tolist() == [0.0] * 3
        assert made["pos"].tolist() == POSITION_M.tolist()


@pytest.mark.parametrize(("placed", "established"), [(1, True), (0, False)])
def test_after_a_long_pause_a_displaced_position_may_be_back(placed, established):
    # 40 m away before, and the fix is 39 m from where the filter was
    made = Made(fix_t=T - 30.0, placed=placed, away=[40.0, 0.0, 0.0], away_t=T - 99.0, farthest=40.0)
    made.take(gps_x=POSITION_M[0] - 39.0)
    assert bool(made["away_t"] == 0.0) is established


@pytest.mark.parametrize(
    ("changed", "t", "judged"),
    [
        ({}, T - DT, False), ({}, T - DT - 0.1, False), ({}, T - DT + 0.01, True), ({"epoch_s": 0.0}, T, False),
        ({"delay_s": 0.125, "horizon": T - 0.375}, T, True), ({"delay_s": 0.125, "horizon": T - 0.5}, T, False),
    ],
)  # fmt: skip
def test_a_fix_is_judged_only_where_time_and_imu_have_gone_on(changed, t, judged):
    made = Made(**{"horizon": t - 0.1, **changed})
    assert math.isfinite(made.take(t, PAR._replace(imu_gap_s=0.25))) is judged
    assert made["fix_t"] == (t if judged else T - DT)
    assert made["phase"] == TRACKING


def test_a_filter_out_of_its_range_begins_again():
    made = Made(vel=[1e200, 0.0, 0.0])
    assert math.isnan(made.take())
    assert (made["phase"], made["placed"]) == (LEVELLING, 0)
    assert made["fix_t"] == T - DT


# -- what is learned -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "fields", "lessons", "delay"),
    [
        ({}, {}, 1, True), ({"latched": 1}, {}, 0, False), ({}, {"gps_x": 300.0}, 0, False),
        ({"vel": [0.1, 0.0, 0.0], "fix": [*POSITION_M, 0.1, 0.0, 0.0]},
         {"gps_vx": 0.1, "gps_vy": 0.001, "gps_vz": 0.0}, 0, False),
        ({"phase": ALIGNING}, {}, 0, False), ({"loose_mps": 0.5}, {}, 1, False),
        # a course that is held in both fixes: a speed without direction
        ({"loose_mps": 0.5, "told": [0.5, 0.0], "vel": [0.0, 0.0, -2.0], "fix": [*POSITION_M, 0.0, 0.0, -2.0]},
         {"gps_vx": 0.5, "gps_vy": 0.0, "gps_vz": -2.0}, 1, False),
        # the error estimate has doubled: the score is at the threshold, and that is suspicious
        ({"accuracy": [0.0, 0.0, 1.0, 0.0]}, {"eph": 2.0}, 0, False),
    ],
)  # fmt: skip
def test_only_a_healthy_vehicle_in_motion_teaches(changed, fields, lessons, delay):
    made = Made(**{"epoch_force": [DT * 0.4, 0.0, -GRAVITY_MS2 * DT], **changed})
    made.take(**fields)
    assert made["lessons"] == lessons
    assert bool(made["delay_weight"] > DELAY_PRIOR) is delay
    assert bool(made["lead_weight"] > 0.0) is delay


def test_a_delay_is_not_learned_where_the_configuration_says_so():
    made = Made(epoch_force=[DT * 0.4, 0.0, -GRAVITY_MS2 * DT])
    made.take(par=PAR._replace(learn_delay=False))
    assert made["delay_weight"] == DELAY_PRIOR
    assert made["lessons"] == 1


@pytest.mark.parametrize(
    ("changed", "healthy"),
    [({}, True), ({"latched": 1}, False), ({"suspect_run": 1}, False), ({"phase": ALIGNING}, False)],
)
def test_the_usual_accuracy_and_force_are_those_of_a_healthy_vehicle(changed, healthy):
    made = Made(accuracy=[0.0, 0.0, 1.0, 0.0], epoch_force=[0.0, 0.0, -2.0 * GRAVITY_MS2 * DT], **changed)
    made.take(eph=4.0)
    assert made.sigma[ACCURACY] == pytest.approx(2.0 * PAR.threshold)
    assert bool(made["accuracy"][0] > 0.0) is healthy
    assert made["force"][0] > 0.1
    assert bool(made["force"][1] > 0.0) is healthy


def test_a_channel_that_is_off_has_no_part_in_the_score():
    weight = tuple(0.0 if c == ACCURACY else w for c, w in enumerate(PAR.weight))
    made = Made(accuracy=[0.0, 0.0, 1.0, 0.0])
    assert made.take(par=PAR._replace(weight=weight), eph=16.0) < PAR.threshold
    assert made.sigma[ACCURACY] == 0.0


def test_epochs_over_the_level_wait_if_this_fix_alone_shows_them():
    position, velocity = Made(), Made()
    position.take(gps_x=POSITION_M[0] + 30.0)
    velocity.take(gps_vx=VELOCITY_MS[0] + 8.0)
    assert position["unsure"] == velocity["unsure"] == 1
    slow = Made(drift=[50.0, 0.0, 0.0])
    assert slow.take() >= PAR.nominal_sigma
    assert slow["unsure"] == 0


def test_an_unchanged_fix_is_counted_and_a_changed_one_ends_that():
    made = Made(freeze_run=3)
    made.take()
    assert made["freeze_run"] == 0
    same = Made(freeze_run=3, fix=[*POSITION_M, *VELOCITY_MS])
    same.take()
    assert same["freeze_run"] == 4


# -- while the attitude is not known -------------------------------------------------------------------------------


def test_while_the_attitude_is_not_known_every_push_is_uncertainty():
    made = Made(phase=ALIGNING, epoch_force=[DT * 5.0, 0.0, -GRAVITY_MS2 * DT])
    made.take()
    assert made["cov"][:3, :3].tolist() == np.zeros((3, 3)).tolist()
    assert made["cov"][VEL, VEL] > 0.02
    assert made["span_s"] == pytest.approx(DT)
    tracking = Made(epoch_force=[DT * 5.0, 0.0, -GRAVITY_MS2 * DT])
    tracking.take()
    assert tracking["cov"][0, 0] > 0.0
    assert tracking["span_s"] == 0.0


def test_what_is_suspicious_does_not_help_to_find_the_attitude():
    for changed, fields in (
        ({}, {"gps_x": POSITION_M[0] + 500.0}),
        ({"accuracy": [0.0, 0.0, 1.0, 0.0]}, {"eph": 2.0}),  # exactly at the threshold
    ):
        made = Made(phase=ALIGNING, **changed)
        made.take(**fields)
        assert made["span_s"] == 0.0


@pytest.mark.parametrize("pushed", [(5.0, 0.0, 0.0), (0.0, 5.0, 0.0), (3.0, 4.0, 2.0), (0.0, 0.0, 5.0)])
def test_while_the_attitude_is_not_known_a_horizontal_push_counts_twice_its_square(pushed):
    made = Made(phase=ALIGNING, epoch_force=DT * (np.array(pushed) - [0.0, 0.0, GRAVITY_MS2]))
    made.take()
    before = 0.04 + 2.0 * DT**2 * (pushed[0] ** 2 + pushed[1] ** 2)
    variance = made.work[0]["variance"][3]
    assert made["cov"][VEL, VEL] == pytest.approx(before * variance / (before + variance))


@pytest.mark.parametrize(("ahrs", "phase"), [(True, TRACKING), (False, ALIGNING)])
def test_an_ahrs_is_asked_where_the_configuration_says_so(ahrs, phase):
    made = Made(phase=ALIGNING, ahrs=[0.0, 0.0, 0.5])
    made.take(par=PAR._replace(ahrs=ahrs))
    assert made["phase"] == phase


def test_the_covariance_is_brought_up_to_the_fix():
    made, moved = Made(), Made(step_s=DT, step_rot=DT * np.eye(3).ravel())
    made.take()
    moved.take()
    assert moved["step_s"] == 0.0
    assert moved["cov"][POS, VEL] > made["cov"][POS, VEL]


# -- what is fused -------------------------------------------------------------------------------------------------


def test_a_fix_is_fused_as_the_textbook_says():
    made = Made(pos=POSITION_M - [1.0, -0.5, 2.0], vel=VELOCITY_MS - [0.1, 0.2, -0.1])
    before = np.concatenate((made["vel"], made["pos"]))
    cov = made["cov"][:15, :15].copy()
    made.take()
    h = np.zeros((6, 15))
    h[:, [POS, POS + 1, POS + 2, VEL, VEL + 1, VEL + 2]] = np.eye(6)
    r = np.diag(made.work[0]["variance"])
    gain = cov @ h.T @ np.linalg.inv(h @ cov @ h.T + r)
    error = gain @ np.array(residual(made))
    assert np.concatenate((made["vel"], made["pos"])) == pytest.approx(before + error[3:9])
    assert made["cov"][:15, :15] == pytest.approx(cov - gain @ h @ cov, abs=1e-12)
    # how far the fix is left from the filter
    assert made["left"] == pytest.approx(self_left := np.array(residual(made))[:3] - error[6:9])
    assert np.abs(self_left).min() > 0.1


def test_what_the_position_moved_by_without_a_reason_adds_up():
    made = Made(left=[0.5, 0.0, 0.0], shift=[2.0, 0.0, 0.0])
    made.take(gps_x=POSITION_M[0] + 0.1)
    assert made["shift"][0] == pytest.approx(2.0 * math.exp(-DT / 15.0) + 0.1 - 0.5)


class Fusing:
    """A vehicle whose filter is off by one in all six components, with variances of one."""

    def __init__(self, held: int = 0, residual: float = 1.0, **ratios: float) -> None:
        self.table, self.work, self.sigma = blank(Vehicle, 1), blank(Work, 1), np.zeros(len(CHANNELS))
        self.table[0]["quat"] = [1.0, 0.0, 0.0, 0.0]
        self.table[0]["cov"] = np.eye(16)
        self.table[0]["held"] = held
        self.work[0]["residual"] = residual
        self.work[0]["variance"] = 1.0
        for name, ratio in ratios.items():
            self.work[0]["ratio"][CHANNELS.index(name)] = ratio

    def fused(self) -> list[float]:
        """How far position and velocity went: half way where the measurement counts fully."""
        _fuse(self.table, PAR, self.work, self.sigma)
        assert self.work[0]["count"] == 0
        return [*self.table[0]["pos"].tolist(), *self.table[0]["vel"].tolist()]


HALF, NONE = [0.5] * 6, [0.0] * 6
NO_POSITION, NO_VELOCITY, NO_VERTICAL = [0, 0, 0, 0.5, 0.5, 0], [0.5, 0.5, 0.5, 0, 0, 0.5], [0.5, 0.5, 0, 0.5, 0.5, 0]
SPEED_ONLY = [0.0, 0.0, 0.0, 0.5, 0.5, 0.0]


@pytest.mark.parametrize(
    ("ratios", "held", "expected"),
    [
        ({}, 0, HALF), ({"position": 1.99}, 0, None), ({"position": 2.0}, 0, [0, 0, 0.5, 0.5, 0.5, 0.5]),
        ({"vertical": 2.0}, 0, NO_VERTICAL),
        # the velocity alone is wrong: neither it nor a position that fits it
        ({"velocity": 2.0}, 0, NONE),
        # position and velocity contradict each other: the position is, or the velocity if the IMU says so
        ({"position_against_velocity": 2.0}, 0, SPEED_ONLY),
        ({"position_against_velocity": 2.0, "velocity": 2.0}, 0, NO_VELOCITY),
        ({}, 1 << POSITION, [0, 0, 0.5, 0.5, 0.5, 0.5]), ({}, 1 << VERTICAL, NO_VERTICAL), ({}, 1 << VELOCITY, NONE),
        ({}, 1 << DRIFT, NONE), ({}, 1 << AGAINST, HALF),
        ({"position_against_velocity": 2.0}, 1 << DRIFT, NO_VELOCITY),
        ({"position_against_velocity": 2.0}, 1 << VELOCITY, NO_VELOCITY),
    ],
)  # fmt: skip
def test_what_is_suspect_is_not_fused(ratios, held, expected):
    found = Fusing(held, **ratios).fused()
    if expected is None:
        assert 0.0 < found[0] < 0.5
    else:
        assert found == pytest.approx(expected)


@pytest.mark.parametrize(("ratio", "weaker"), [(0.8, 1.0), (0.4, 1.0), (1.2, 2.25), (1.6, 4.0)])
@pytest.mark.parametrize(("name", "rows"), [("position", [0, 1]), ("vertical", [2, 5]), ("velocity", [3, 4])])
def test_what_is_on_the_way_to_be_suspect_counts_less(name, rows, ratio, weaker):
    found = Fusing(**{name: ratio}).fused()
    for k in range(6):
        assert found[k] == pytest.approx(1.0 / (1.0 + weaker) if k in rows else 0.5)


@pytest.mark.parametrize("channel", [FREEZE, STUCK])
def test_nothing_is_fused_while_a_sensor_stands_still(channel):
    for sigma, expected in ((PAR.threshold, NONE), (0.99 * PAR.threshold, HALF)):
        fusing = Fusing()
        fusing.sigma[channel] = sigma
        assert fusing.fused() == pytest.approx(expected)


def test_what_a_fix_does_not_say_is_not_fused():
    for absent, rows in (((2,), [2]), ((5,), [5]), ((3, 4), [3, 4]), ((0, 1), [0, 1])):
        fusing = Fusing()
        fusing.work[0]["residual"][list(absent)] = np.nan
        found = fusing.fused()
        assert found == pytest.approx([0.0 if k in rows else 0.5 for k in range(6)])


def test_each_component_is_fused_with_its_own_variance():
    fusing = Fusing()
    fusing.work[0]["variance"] = np.arange(1.0, 7.0)
    fusing.work[0]["residual"] = np.arange(2.0, 8.0)
    assert fusing.fused() == pytest.approx([1.0] * 6)
