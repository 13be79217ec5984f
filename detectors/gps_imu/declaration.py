"""What the detector `gps_imu` declares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from msgspec import defstruct

from watchkeeper.config.detectors.gps_imu import GpsImu
from watchkeeper.detectors.declaration import AlarmKind, Declaration, Facts, Gauge, PerVehicle, fact, simulated
from watchkeeper.detectors.gps_imu.constants import VERTICAL_POSITION
from watchkeeper.detectors.gps_imu.naming.pattern import NAMES
from watchkeeper.detectors.gps_imu.state import CHANNELS
from watchkeeper.detectors.words import WHEN, listed, size
from watchkeeper.streams.messages import Kind

# Channel to what it means, and to what the sentence says of now and of the past ({}: how much), in CHANNELS' order.
_MEANING: dict[str, tuple[str, str, str]] = {
    "jump": (
        "the position changed by something else than the GPS's own velocity",
        "GPS position jumps, {} from where the IMU puts it",
        "GPS position jumped, {} from where the IMU put it",
    ),
    "velocity_jump": (
        "the velocity changed by something else than the IMU felt",
        "GPS velocity jumps, {} off what the IMU gives",
        "GPS velocity jumped, {} off what the IMU gave",
    ),
    "position": (
        "the fix is not where the filter is, horizontally",
        "GPS position is {} from where the IMU puts it",
        "GPS position was {} from where the IMU put it",
    ),
    "velocity": (
        "the velocity is not the filter's, horizontally",
        "GPS velocity is {} off what the IMU gives",
        "GPS velocity was {} off what the IMU gave",
    ),
    "vertical": (
        "altitude or vertical speed are not the filter's",
        "GPS altitude is {} off what the IMU gives",
        "GPS altitude was {} off what the IMU gave",
    ),
    "step": (
        "the position jumped, and is still off 2 s later",
        "GPS position stepped {} from where the IMU puts it",
        "GPS position stepped {} from where the IMU put it",
    ),
    "velocity_step": (
        "the velocity jumped, and is still off 2 s later",
        "GPS velocity stepped {} from what the IMU gives",
        "GPS velocity stepped {} from what the IMU gave",
    ),
    "position_against_velocity": (
        "the GPS's own position and velocity do not belong together",
        "GPS position and GPS velocity disagree by {}",
        "GPS position and GPS velocity disagreed by {}",
    ),
    "altitude_against_velocity": (
        "the GPS's own altitude and vertical speed do not belong together",
        "GPS altitude moves other than its vertical speed says, {} off what the IMU gives",
        "GPS altitude moved other than its vertical speed said, {} off what the IMU gave",
    ),
    "drift": (
        "the velocity is off to one side: an IMU bias, or a GPS that is pulled away",
        "GPS drifts away from the IMU at {}",
        "GPS drifted away from the IMU, at worst at {}",
    ),
    "vertical_drift": (
        "the vertical speed is off to one side: an IMU bias, or a GPS that is pulled up or down",
        "GPS drifts away from the IMU vertically at {}",
        "GPS drifted away from the IMU vertically, at worst at {}",
    ),
    "noise": (
        "positions scatter far more than they did",
        "GPS positions scatter far more than before ({})",
        "GPS positions scattered far more than before ({})",
    ),
    "velocity_noise": (
        "velocities scatter far more than they did",
        "GPS velocities scatter far more than before ({})",
        "GPS velocities scattered far more than before ({})",
    ),
    "heading": (
        "velocity errors across the acceleration: a wrong yaw",
        "GPS and IMU disagree about the heading ({})",
        "GPS and IMU disagreed about the heading ({})",
    ),
    "delay": (
        "velocity errors along the acceleration: a wrong time",
        "GPS fixes come with the wrong delay ({})",
        "GPS fixes came with the wrong delay ({})",
    ),
    "timing": (
        "fixes are off their beat: a clock stepped",
        "the clock of the GPS receiver stepped ({})",
        "the clock of the GPS receiver stepped ({})",
    ),
    "turn": (
        "course and gyros disagree, on vehicles that turn by banking",
        "GPS course and gyros disagree, velocity {} off",
        "GPS course and gyros disagreed, velocity {} off",
    ),
    "force": (
        "IMU and GPS disagree about the size of the specific force",
        "GPS and IMU disagree about the acceleration, velocity {} off",
        "GPS and IMU disagreed about the acceleration, velocity {} off",
    ),
    "accuracy": (
        "the receiver says so itself: eph or hdop has doubled, or satellites have halved",
        "the GPS receiver reports poor accuracy itself ({})",
        "the GPS receiver reported poor accuracy itself ({})",
    ),
    "freeze": (
        "the same fix again and again from a vehicle that moves",
        "the GPS repeats one fix while the vehicle moves ({})",
        "the GPS repeated one fix while the vehicle moved ({})",
    ),
    "imu_stuck": (
        "the same IMU sample again and again under a GPS that changes",
        "the IMU repeats one sample while the GPS moves ({})",
        "the IMU repeated one sample while the GPS moved ({})",
    ),
    "replay": (
        "fixes equal earlier ones to the last digit, in order: a recording is played again",
        "GPS fixes are those of an earlier time, played again ({})",
        "GPS fixes were those of an earlier time, played again ({})",
    ),
    "interference": (
        "the receiver says so itself: jamming, spoofing, more noise or less gain than usual",
        "the GPS receiver reports interference itself ({})",
        "the GPS receiver reported interference itself ({})",
    ),
    "axis_stuck": (
        "an axis of the IMU does not change while others do",
        "an axis of the IMU is stuck ({})",
        "an axis of the IMU was stuck ({})",
    ),
    "imu_saturated": (
        "an axis of the IMU is at the end of its range again and again",
        "an axis of the IMU is at the end of its range ({})",
        "an axis of the IMU was at the end of its range ({})",
    ),
    "vibration": (
        "the IMU is shaken far more than before",
        "the IMU is shaken far more than before ({})",
        "the IMU was shaken far more than before ({})",
    ),
}
CAUSES: dict[str, str] = {channel: _MEANING[channel][0] for channel in CHANNELS} | {
    "model": "the online model of the fleet has hardly ever seen such a combination",
    "recovering": "nothing is wrong at this fix, but the verdict has not been taken back yet",
    "not_reestablished": "the position moved away without a reason and has not come back since",
}
# The displacement of a position that is not re-established, by axis; and since when.
DISPLACED = ("displaced_north_m", "displaced_east_m", "displaced_down_m")
SINCE = "displaced_since_t"

# What it is, by the pattern of the channels since it began.
_LIKELY: dict[str, str] = {
    "spoofing": "somebody makes the receiver say another position or velocity",
    "jamming": "the receiver is jammed",
    "receiver_fault": "the receiver scatters by itself",
    "frozen_receiver": "the receiver repeats itself",
    "clock": "the receiver's clock is off",
    "imu_bias": "a bias of accelerometers or gyros",
    "imu_scale": "a wrong scale of accelerometers or gyros",
    "imu_stuck": "accelerometers or gyros are stuck",
    "imu_saturation": "accelerometers or gyros are at the end of their range",
}

_OFF: dict[str, tuple[str, str]] = {
    "position_off_m": ("m", "horizontal distance of the fix from where the IMU puts the vehicle"),
    "altitude_off_m": ("m", "vertical distance of the fix from where the IMU puts the vehicle"),
    "velocity_off_mps": ("m/s", "horizontal difference between the GPS's velocity and what the IMU gives"),
    "climb_off_mps": ("m/s", "vertical difference between the GPS's velocity and what the IMU gives"),
}

ResidualFacts: type[Facts] = defstruct(  # type: ignore[assignment]
    "ResidualFacts",
    [
        (
            f"{channel}_sigma",
            Annotated[float | None, fact("sigma", f"how far from normal: {_MEANING[channel][0]}")],
            None,
        )
        for channel in CHANNELS
    ]
    + [("model_sigma", Annotated[float | None, fact("sigma", "how unusual the online model finds it")], None)]
    + [(name, Annotated[float | None, fact(*of)], None) for name, of in _OFF.items()]
    + [
        (name, Annotated[float | None, fact("m", "how far the position moved away; null when it is established")], None)
        for name in DISPLACED
    ]
    + [(SINCE, Annotated[float | None, fact("s", "event time since when it is not re-established")], None)]
    + [
        (f"{name}_p", Annotated[float | None, fact("of 1", f"how likely it is that {_LIKELY[name]}")], None)
        for name in NAMES
    ],
    bases=(Facts,),
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    namespace={"__doc__": "Distances of one fix from what the IMU says, channel by channel."},
    module=__name__,
)


# The figure that says how much, of each cause that has one in metres or metres per second; of the others it is sigma.
_SIZE: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("jump", "position", "step", "position_against_velocity"), ("position_off_m", "m")),
    **dict.fromkeys(
        ("velocity_jump", "velocity", "velocity_step", "drift", "force", "turn"), ("velocity_off_mps", "m/s")
    ),
    **dict.fromkeys(("vertical", "altitude_against_velocity"), ("altitude_off_m", "m")),
    "vertical_drift": ("climb_off_mps", "m/s"),
}
# Of these the figure says how much only where the position itself is off by a good part of it.
_OWN_SIZE = frozenset({"jump", "step", "position_against_velocity"})
OWN_PART = 0.25


def _say(subjects: Sequence[str], facts: Any, *, over: bool = False) -> str:
    who = listed(subjects)
    named = [cause for cause in facts.causes if cause in _MEANING]
    named.sort(key=lambda cause: -(getattr(facts, f"{cause}_sigma") or 0.0))
    if facts.displaced_since_t is not None and not over:
        return _say_displaced(who, facts)
    if not named:
        return f"{who}: GPS and IMU disagreed, worst {WHEN}" if over else ""
    cause = named[0]
    figure, unit = _SIZE.get(cause, (f"{cause}_sigma", "sigma"))
    value = getattr(facts, figure)
    # a jump back to where the vehicle really is ends near zero: its size is not where it ended
    sigma = getattr(facts, f"{cause}_sigma")
    if value is None or (cause in _OWN_SIZE and (facts.position_sigma or 0.0) < OWN_PART * (sigma or 0.0)):
        value, unit = sigma, "sigma"
    present, past = _MEANING[cause][1:]
    how_much = "" if value is None else size(value, unit)
    return f"{who}: {(past if over else present).format(how_much)} {WHEN}"


def _say_displaced(who: str, facts: Any) -> str:
    north, east, down = (getattr(facts, name) or 0.0 for name in DISPLACED)
    across = math.hypot(north, east)
    course = math.degrees(math.atan2(east, north)) % 360.0
    way = f"{size(across, 'm')} towards {course:.0f}°"
    if abs(down) > VERTICAL_POSITION * across:
        way = f"{size(abs(down), 'm')} {'down' if down > 0.0 else 'up'}"
    return f"{who}: GPS position moved {way} without a reason and has not come back {WHEN}"


DECLARATION = Declaration(
    name="gps_imu",
    help="vehicles whose GPS and IMU contradict each other or themselves: spoofed, jammed or failing sensors",
    settings=GpsImu,
    subjects="vehicle",
    alone=True,
    per_vehicle=PerVehicle(
        axes=dict.fromkeys(
            ("table", "slow", "doubts", "sole.receivers", "sole.axes", "patterns", "judged_t", "seen_t", "key"), 0
        ),
        buckets=("models",),
    ),
    state_version=7,
    kinds=(
        AlarmKind(
            name="gps_imu",
            help="what the GPS says contradicts what the IMU says, or either of them itself",
            facts=ResidualFacts,
            say=_say,
            was=partial(_say, over=True),
            needs=((Kind.GPS,), (Kind.IMU,)),
            causes=CAUSES,
            accepts=("not_reestablished",),
            threshold=lambda settings: float(settings.threshold),
        ),
    ),
    gauges=(
        Gauge(name="vehicles", help="Vehicles whose GPS and IMU disagree now, before debouncing"),
        Gauge(name="displaced", help="Vehicles whose position moved away and is not re-established"),
        Gauge(name="fixes", help="GPS fixes judged in the last tick"),
        Gauge(name="model_epochs", help="Epochs that the fleet's model has learned from", counter=True),
    ),
    scenario=simulated("demo", 80),
    scratch=("_work", "_space", "_coefficients"),
)
