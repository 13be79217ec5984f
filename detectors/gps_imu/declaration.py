"""What the detector `gps_imu` declares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import defstruct

from watchkeeper.config.detectors.gps_imu import GpsImu
from watchkeeper.detectors.declaration import AlarmKind, Declaration, Facts, Gauge, fact, listed, simulated
from watchkeeper.detectors.gps_imu.constants import VERTICAL_POSITION
from watchkeeper.detectors.gps_imu.state import CHANNELS
from watchkeeper.streams.messages import Kind

# Channel to what it means, and to the words of the sentence; in the order of CHANNELS.
_MEANING: dict[str, tuple[str, str]] = {
    "jump": ("the position changed by something else than the GPS's own velocity", "the position jumped"),
    "velocity_jump": ("the velocity changed by something else than the IMU felt", "the velocity jumped"),
    "position": ("the fix is not where the filter is, horizontally", "the position is off"),
    "velocity": ("the velocity is not the filter's, horizontally", "the velocity is off"),
    "vertical": ("altitude or vertical speed are not the filter's", "altitude or vertical speed is off"),
    "step": ("what jumped is still off after 2 s", "the position has stepped away"),
    "velocity_step": ("the same for the velocity", "the velocity has stepped away"),
    "position_against_velocity": (
        "the GPS's own position and velocity do not belong together",
        "position and velocity do not belong together",
    ),
    "altitude_against_velocity": ("the same vertically", "altitude and vertical speed do not belong together"),
    "drift": ("the velocity is off to one side: an IMU bias, or a GPS that is pulled away", "it drifts to one side"),
    "vertical_drift": ("the same vertically", "it drifts vertically"),
    "noise": ("positions scatter far more than they did", "positions scatter"),
    "velocity_noise": ("velocities scatter far more than they did", "velocities scatter"),
    "heading": ("velocity errors across the acceleration: a wrong yaw", "the heading is wrong"),
    "delay": ("velocity errors along the acceleration: a wrong time", "fixes come with the wrong delay"),
    "timing": ("fixes are off their beat: a clock stepped", "the receiver's clock stepped"),
    "turn": ("course and gyros disagree, on vehicles that turn by banking", "course and gyros disagree"),
    "force": ("IMU and GPS disagree about the size of the specific force", "accelerations disagree"),
    "accuracy": (
        "the receiver says so itself: eph or hdop has doubled, or satellites have halved",
        "the receiver reports poor accuracy",
    ),
    "freeze": ("the same fix again and again from a vehicle that moves", "the GPS is frozen"),
    "imu_stuck": ("the same IMU sample again and again under a GPS that changes", "the IMU is stuck"),
}
CAUSES: dict[str, str] = {channel: _MEANING[channel][0] for channel in CHANNELS} | {
    "model": "the online model of the fleet has hardly ever seen such a combination",
    "recovering": "nothing is wrong at this fix, but the verdict has not been taken back yet",
    "not_reestablished": "the position moved away without a reason and has not come back since",
}
# The displacement of a position that is not re-established, by axis; and since when.
DISPLACED = ("displaced_north_m", "displaced_east_m", "displaced_down_m")
SINCE = "displaced_since_t"

ResidualFacts: type[Facts] = defstruct(  # type: ignore[assignment]
    "ResidualFacts",
    [
        (f"{channel}_sigma", Annotated[float | None, fact("sigma", f"distance of the channel `{channel}`")], None)
        for channel in CHANNELS
    ]
    + [("model_sigma", Annotated[float | None, fact("sigma", "how unusual the online model finds it")], None)]
    + [
        (name, Annotated[float | None, fact("m", "how far the position moved away; null when it is established")], None)
        for name in DISPLACED
    ]
    + [(SINCE, Annotated[float | None, fact("s", "event time since when it is not re-established")], None)],
    bases=(Facts,),
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    namespace={"__doc__": "Distances of one fix from what the IMU says, channel by channel."},
    module=__name__,
)


def _say(subjects: Sequence[str], facts: Any) -> str:
    named = [cause for cause in facts.causes if cause in _MEANING]
    named.sort(key=lambda cause: -(getattr(facts, f"{cause}_sigma") or 0.0))
    if facts.displaced_since_t is not None:
        return _say_displaced(subjects, facts, bool(named))
    if not named:
        return f"GPS and IMU of {listed(subjects)} disagree; they are being compared until they agree again."
    words = listed([_MEANING[cause][1] for cause in named[:3]])
    return f"GPS and IMU of {listed(subjects)} disagree: {words}."


def _say_displaced(subjects: Sequence[str], facts: Any, more: bool) -> str:
    north, east, down = (getattr(facts, name) or 0.0 for name in DISPLACED)
    across = math.hypot(north, east)
    course = math.degrees(math.atan2(east, north)) % 360.0
    way = f"{across:,.0f} m towards {course:03.0f} degrees"
    if abs(down) > VERTICAL_POSITION * across:
        way = f"{abs(down):,.0f} m {'down' if down > 0.0 else 'up'}"
    now = "GPS and IMU disagree again" if more else "GPS and IMU agree since"
    return f"The GPS position of {listed(subjects)} moved {way} and is not re-established; {now}."


DECLARATION = Declaration(
    name="gps_imu",
    help="vehicles whose GPS contradicts their IMU: spoofed, jammed or failing sensors",
    settings=GpsImu,
    subjects="vehicle",
    state_version=4,
    kinds=(
        AlarmKind(
            name="gps_imu",
            help="what the GPS says contradicts what the IMU says",
            facts=ResidualFacts,
            say=_say,
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
    scratch=("_work", "_space"),
)
