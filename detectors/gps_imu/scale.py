"""From distances to sigmas to one calibrated score, by what this vehicle has shown while healthy.

Two layers. Each channel's distance is divided by the level that it usually reaches, so that quiet and loud channels
weigh alike. Then the largest of them is divided by the level that it reaches in the nominal share of epochs: 1 % of a
healthy vehicle's epochs are at or over 2.576 sigma, the two-sided 1 % point of a normal variable, on any airframe.
That level follows the vehicle by adaptive conformal inference: each epoch over it lifts it by a step, each epoch below
lowers it by a hundredth of one, so over time the share comes out right whatever the distribution is. Score first, learn
after, and not from what is being called anomalous: epochs over the level wait until the run has ended harmlessly, and
only so many of them are learned as a healthy vehicle could show.
"""

from __future__ import annotations

import math

from watchkeeper.detectors.gps_imu.constants import (
    ACTIVE_ACCEL,
    ACTIVE_SPEED,
    ACTIVE_VIBRATION,
    BEAT_AND_PATH,
    BEAT_SLOW_S,
    BIN_S,
    CREDIT_MAX,
    CREDIT_SHARE,
    EARLY,
    FREEZE_EPOCHS,
    FREEZE_SEEN_MAX,
    FROZEN_S,
    GAP_DRIFT,
    LEANING_S,
    LEVEL_FIRST,
    LEVEL_MAX,
    LEVEL_MIN,
    LEVEL_STEP,
    PUSH_SIGMA,
    PUSHED_S,
    STILL_S,
    STUCK_NOISY,
    STUCK_S,
    USUAL_AGAIN_S,
    USUAL_FALL_S,
    USUAL_FIRST,
    USUAL_MISTAKE,
    USUAL_OVER,
    USUAL_RANGE,
    USUAL_UP,
)
from watchkeeper.detectors.gps_imu.eskf import POS, VEL
from watchkeeper.detectors.gps_imu.state import (
    AGAINST,
    AGAINST_VERTICAL,
    DRIFT,
    FREEZE,
    INSTANT,
    JUMP,
    JUMP_VELOCITY,
    MOVING,
    POSITION,
    REPLAY,
    REST,
    SCALED,
    STEP,
    STOOD_GPS,
    STUCK,
    TIMING,
    TRACKING,
    VELOCITY,
    VERTICAL,
    Settings,
    Vehicle,
    Work,
)
from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit


@njit(cache=True)
def is_moving(row: Vehicle, speed: float) -> bool:
    """Whether the vehicle is doing anything that the sensors should show."""
    return row.accel > ACTIVE_ACCEL or speed > ACTIVE_SPEED


@njit(cache=True)
def feel_push(row: Vehicle, work: Work, span: float) -> None:
    """Whether the IMU feels motion, without a word of the GPS and whatever the attitude is wrong by.

    A wrong tilt is a force that stays, a gyro bias one that turns slowly; motion is a force that changes at once, by
    more than what vibration leaves of itself in the mean of an epoch.
    """
    mean = row.leaning
    if mean[0] == 0.0 and mean[1] == 0.0 and mean[2] == 0.0:
        for k in range(3):
            mean[k] = work.force[k] / span
    keep = math.exp(-span / LEANING_S)
    off = 0.0
    for k in range(3):
        change = work.force[k] / span - mean[k]
        off += change * change
        mean[k] += (1.0 - keep) * change
    shaken = PUSH_SIGMA**2 * row.vibration * min(1.0, BIN_S / span)
    row.unpushed_s = 0.0 if off > ACTIVE_ACCEL**2 + shaken else row.unpushed_s + span


@njit(cache=True)
def expect(row: Vehicle) -> None:
    """Set the usual distances of a vehicle of which nothing is known."""
    if row.usual[0] == 0.0:
        for c in range(SCALED):
            row.usual[c] = USUAL_FIRST[c]
        row.usual_score[:] = LEVEL_FIRST
        row.credit = CREDIT_MAX


@njit(cache=True)
def widen(row: Vehicle, dt: float) -> None:
    """Let the filter be less sure after a gap between fixes, in which the IMU alone has told where the vehicle is.

    The levels know what it is wrong by over the usual interval, as a part of what it might be; that part must not
    shrink what it is wrong by over a longer one.
    """
    beyond = max(dt * dt - row.interval * row.interval, 0.0)
    speed, way = GAP_DRIFT * math.sqrt(beyond), 0.5 * GAP_DRIFT * beyond
    for k in range(3):
        position = min(1.0, row.usual[VERTICAL if k == 2 else POSITION])
        velocity = min(1.0, row.usual[VERTICAL if k == 2 else VELOCITY])
        row.cov[POS + k, POS + k] += (way / position) ** 2
        row.cov[VEL + k, VEL + k] += (speed / velocity) ** 2


@njit(cache=True)
def scale_channels(
    row: Vehicle, par: Settings, work: Work, path: F8, sigma: F8, changed: bool, moving: bool, dt: float
) -> float:  # fmt: skip
    """Fill `sigma` for all channels and return the fused score.

    `path` is what the receiver shows by itself (alone/): where it is known, that is what position against velocity is
    judged by, because it has limits from a budget of its own.
    """
    level = row.usual_score[MOVING if moving else REST]
    unit = par.nominal_sigma / level
    # neither calm at rest nor few jumps make the slow errors of a receiver any smaller
    lasting = par.nominal_sigma / max(level, row.usual_score[MOVING], 1.0)
    for c in range(SCALED):
        work.ratio[c] = work.distance[c] / row.usual[c]
        sigma[c] = par.weight[c] * (unit if c < INSTANT else lasting) * work.ratio[c]
    work.against = max(sigma[AGAINST], sigma[AGAINST_VERTICAL])
    if not math.isnan(path[0]):
        sigma[AGAINST], sigma[AGAINST_VERTICAL] = path[0], path[1]
        sigma[STEP] = max(sigma[STEP], path[2])
        sigma[REPLAY] = path[3]
    for k in range(2):
        sigma[DRIFT + k] = max(sigma[DRIFT + k], (par.weight[DRIFT + k] > 0.0) * par.threshold * work.slow[k])
    seen = 1.0 + row.freeze_seen
    in_use = moving or row.vibration > ACTIVE_VIBRATION
    frozen = par.threshold * row.freeze_run / (FREEZE_EPOCHS * seen)
    # neither by its speed nor by its acceleration, which are only what the filter thinks without fixes
    pushed = row.unpushed_s < PUSHED_S
    row.still_s = 0.0 if pushed or changed or row.vibration > ACTIVE_VIBRATION else row.still_s + dt
    known = row.good_s >= par.warmup_s or row.told_early == 1
    if changed:
        row.frozen_s = 0.0
    elif pushed and row.latched == 1:
        row.frozen_s += dt
    elif not known:
        row.frozen_s = max(0.0, row.frozen_s - dt)  # a parked vehicle is touched now and then
    # once told, a freeze goes on when the vehicle pauses; for good if it has really moved under the same fix. Before
    # the warm-up is over a pause is good data: a latch from the first seconds would otherwise never let it be over
    told = known and row.latched == 1 and row.stood & STOOD_GPS != 0
    goes_on = told and (row.still_s < STILL_S or row.frozen_s >= FROZEN_S)
    sigma[FREEZE] = par.weight[FREEZE] * frozen if in_use or goes_on else 0.0
    # a simulator without noise repeats both sensors at rest: only an IMU that stands still under a moving GPS is stuck
    stuck = changed and row.imu_varied > STUCK_NOISY
    sigma[STUCK] = par.weight[STUCK] * par.threshold * row.stuck_s / STUCK_S if stuck else 0.0
    # a beat that shifts alone may be fixes that were lost on the way: a clock that steps moves the path as well
    if row.interval >= BEAT_SLOW_S:
        path = max(sigma[JUMP], sigma[POSITION], sigma[STEP], sigma[AGAINST])
        sigma[TIMING] = min(sigma[TIMING], BEAT_AND_PATH * path)
    return fused(sigma)


@njit(cache=True)
def fused(sigma: F8) -> float:
    """One score of all channels: hardly more than the largest, because they share their errors.

    Two at 0.92 of the threshold reach it.
    """
    total = 0.0
    for c in range(STUCK + 1):
        total += sigma[c] ** 8
    return float(max(math.sqrt(math.sqrt(math.sqrt(total))), sigma[REPLAY]))


@njit(cache=True)
def without_return(row: Vehicle, work: Work, sigma: F8, score: float) -> float:
    """The score if a velocity jump in a run of suspicious epochs counts only as far as it does not undo the last one.

    White noise that happens to alternate is a row of jumps, each of which the level rightly calls one in a hundred:
    together they are not one in a hundred to the power of their number. The level is taught by the whole jump.
    """
    if work.there_and_back >= 1.0 or row.suspect_run == 0:
        return score
    sigma[JUMP_VELOCITY] *= work.there_and_back
    return fused(sigma)


@njit(cache=True)
def learn(row: Vehicle, par: Settings, distance: F8, dt: float) -> None:
    """Move the usual distances towards what this epoch of a healthy, moving vehicle showed."""
    if row.phase != TRACKING or not par.learn_scale:
        return
    times = EARLY if row.good_s < par.warmup_s else 1
    row.lessons += 1
    row.lesson_s += min(dt, USUAL_AGAIN_S)
    again = row.lesson_s >= USUAL_AGAIN_S
    if again:
        row.lesson_s -= USUAL_AGAIN_S
    fall = math.exp(-dt / USUAL_FALL_S)
    for c in range(SCALED):
        above = distance[c] > row.usual[c]
        step = USUAL_UP if above and (again or row.above & (1 << c) == 0) else fall
        first = USUAL_FIRST[c]
        row.usual[c] = min(max(row.usual[c] * step**times, first / USUAL_RANGE), first * USUAL_RANGE)
        if above:
            row.above |= 1 << c
        elif distance[c] < USUAL_OVER * row.usual[c]:
            row.above &= ~(1 << c)


@njit(cache=True)
def learn_from_mistake(row: Vehicle) -> None:
    """A verdict that took itself back was none: the channels that spoke for it are usually higher than thought."""
    for c in range(SCALED):
        if row.blamed & (1 << c) != 0:
            row.usual[c] = min(row.usual[c] * USUAL_MISTAKE, USUAL_FIRST[c] * USUAL_RANGE)
    row.blamed = 0


@njit(cache=True)
def calibrate(row: Vehicle, par: Settings, score: float, instant: float, moving: bool) -> None:
    """Move the level of this regime by what the instant channels just showed; latched vehicles teach nothing."""
    if row.latched == 1 or not par.learn_scale:
        row.unsure = 0
        return
    row.credit = min(row.credit + CREDIT_SHARE * par.nominal_rate, CREDIT_MAX)
    if score >= par.nominal_sigma:
        # what a channel with memory shows for seconds would teach the level an attack that grows
        row.unsure += instant >= par.nominal_sigma
        return
    steps = -par.nominal_rate
    if row.unsure > 0:
        learned = min(float(row.unsure), row.credit)
        row.credit -= learned
        row.unsure = 0
        steps += learned
    regime = MOVING if moving else REST
    level = row.usual_score[regime] * math.exp(LEVEL_STEP * steps)
    row.usual_score[regime] = min(max(level, LEVEL_MIN), LEVEL_MAX)


@njit(cache=True)
def count_freeze(row: Vehicle, changed: bool) -> None:
    """Length of the present run of identical fixes, and the longest harmless one."""
    if not changed:
        row.freeze_run += 1
        return
    if row.latched == 0 and row.freeze_run > row.freeze_seen:
        row.freeze_seen = min(row.freeze_run, FREEZE_SEEN_MAX)
    row.freeze_run = 0
