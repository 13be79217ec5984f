"""Settings of the detector `gps_imu`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import field

from watchkeeper.config.detectors.debounce import Debounce
from watchkeeper.config.section import Flag, Section, about, text

# The words of detectors.gps_imu_state.CHANNELS, which this layer must not import; a test holds the two together.
Channel = Literal[
    "jump", "velocity_jump",
    "position", "velocity", "vertical", "step", "velocity_step",
    "position_against_velocity", "altitude_against_velocity", "drift", "vertical_drift", "noise", "velocity_noise",
    "heading", "delay", "timing", "turn", "force", "accuracy",
    "freeze", "imu_stuck",
    "replay", "interference", "axis_stuck", "imu_saturated", "vibration",
]  # fmt: skip


class GpsImu(Section, frozen=True):
    """Residual between what the GPS says and what the IMU says."""

    enabled: Flag = True
    threshold: Annotated[
        float,
        about(
            "sigma",
            "score that counts as anomalous; 2.576 is what a vehicle itself reaches at nominal_rate",
            ge=1,
            le=1000,
            live=True,
        ),
    ] = 2.576
    nominal_rate: Annotated[
        float,
        about(
            "ratio", "share of a healthy vehicle's fixes that reach its calibrated level", ge=0.001, le=0.1, live=True
        ),
    ] = 0.01
    caution_ratio: Annotated[
        float, about("ratio", "score over threshold at which an advisory becomes a caution", ge=1, le=1000, live=True)
    ] = 2.0
    warning_ratio: Annotated[
        float, about("ratio", "score over threshold at which it becomes a warning", ge=1, le=1000, live=True)
    ] = 4.0
    warmup_s: Annotated[
        float,
        about(
            "s", "good data that a vehicle must have shown before anything is said about it", ge=0, le=3600, live=True
        ),
    ] = 20.0
    recover_s: Annotated[
        float,
        about(
            "s",
            "a GPS that agrees with itself for this long is believed again, whatever the IMU says",
            ge=1,
            le=3600,
            live=True,
        ),
    ] = 27.0
    lasting_m: Annotated[
        float,
        about(
            "m",
            "a position that was displaced by this much without a reason stays an alarm until it comes back; more than "
            "the few metres that a receiver shifts by itself after an outage or a change of satellites",
            ge=1,
            le=100_000,
            live=True,
        ),
    ] = 8.0
    gps_delay_s: Annotated[
        float,
        about("s", "how old a fix is at its time stamp; 0.1 to 0.3 on common receivers", ge=0, le=0.45, live=True),
    ] = 0.2
    learn_delay: Annotated[
        bool, text("whether each receiver's delay is learned, beginning with gps_delay_s", live=True)
    ] = True
    learn_scale: Annotated[
        bool,
        text("whether each vehicle is judged by what it has shown, or by fixed levels: the same for all", live=True),
    ] = True
    channels_off: Annotated[
        tuple[Channel, ...],
        about("", "channels that do not count, where they mean nothing on your vehicles", live=True),
    ] = ()
    imu_gap_s: Annotated[
        float, about("s", "longer pauses between IMU samples are bridged with less trust", ge=0.01, le=1, live=True)
    ] = 0.15
    position_std_m: Annotated[
        float,
        about(
            "m", "GPS position noise from fix to fix, horizontal; twice as much vertically", ge=0.01, le=100, live=True
        ),
    ] = 0.85
    velocity_std_mps: Annotated[
        float, about("m/s", "GPS velocity noise, horizontal; half as much again vertically", ge=0.01, le=20, live=True)
    ] = 0.3
    timing_std_s: Annotated[
        float,
        about(
            "s", "jitter of the fix's time: speed and acceleration times this add to the noise", ge=0, le=1, live=True
        ),
    ] = 0.035
    attitude: Annotated[
        Literal["own", "ahrs"],
        text(
            "where roll, pitch and yaw come from: the IMU alone, or the vehicle's AHRS (only if that does not use GPS)",
            live=True,
        ),
    ] = "own"
    gyro_noise: Annotated[
        float,
        about(
            "rad/s/rtHz", "attitude random walk, several times a data sheet's for vibration", ge=1e-6, le=0.1, live=True
        ),
    ] = 7e-4
    accel_noise: Annotated[
        float, about("m/s2/rtHz", "velocity random walk; measured vibration is added to it", ge=1e-5, le=10, live=True)
    ] = 0.05
    gyro_walk: Annotated[float, about("rad/s per rt s", "how fast a gyro bias wanders", ge=0, le=0.01, live=True)] = (
        5e-5
    )
    accel_walk: Annotated[
        float, about("m/s2 per rt s", "how fast an accelerometer bias wanders", ge=0, le=1, live=True)
    ] = 1e-3
    model: Annotated[
        Literal["off", "hst"],
        text("opinion of an online model of the fleet in the evidence: none, or half-space trees", live=True),
    ] = "off"
    model_budget: Annotated[
        int,
        about(
            "epochs", "GPS epochs per tick and bucket of vehicles that the model looks at", ge=0, le=10_000, live=True
        ),
    ] = 8
    # rise_s: a little less than the interval of a 1 Hz receiver, so that a single fix does not lift an alarm
    debounce: Debounce = field(default_factory=lambda: Debounce(least_s=0.5, strong=8.0, rise_s=0.9))
