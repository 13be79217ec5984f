"""One section per detector: its thresholds, each with default, range, unit and reason, and its debounce rule.

Adding a detector adds one section here. Profiles (config/*.toml) only change the debounce counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import field

from watchkeeper.config.section import Flag, Section, about, spell, tables, text

# The words of streams.messages.Kind, which this layer must not import; a test holds the two together.
Stream = Literal["adsb", "gps", "imu", "action", "route", "link"]


class Debounce(Section, frozen=True):
    """From scores to alarms. Everything counts measurement epochs: new evidence, never one reading used twice."""

    n: Annotated[int, about("epochs", "how many of the last m must be over the threshold to raise", ge=1, le=64)] = 5
    m: Annotated[int, about("epochs", "window for n; n = m means n in a row", ge=1, le=64)] = 5
    clear_n: Annotated[int, about("epochs", "this many in a row under the clearing level to clear", ge=1, le=64)] = 5
    clear_ratio: Annotated[
        float, about("ratio", "clearing level over raising threshold: the hysteresis", ge=0.05, le=1.0)
    ] = 0.8
    min_on_s: Annotated[
        float, about("s", "an alarm stays up at least this long, so that people can see it", ge=0, le=3600)
    ] = 5.0
    bridge_s: Annotated[
        float,
        about(
            "s", "a gap between epochs up to this long is bridged; a longer one starts the count again", ge=0.1, le=3600
        ),
    ] = 15.0
    lost_s: Annotated[
        float, about("s", "an active alarm with no new evidence for this long is cleared as lost", ge=1, le=86_400)
    ] = 60.0


class Zone(Section, frozen=True, kw_only=True):
    """Other minima in an area, in an altitude band, or in both.

    Without `lat`, `lon` and `radius_nm` a zone is everywhere, without `floor_ft` and `ceiling_ft` at every level. The
    first zone in the file that holds an aircraft applies to it; in none, the minima of `[detectors.conflict]` do. Of a
    pair the larger minima count: 3 NM is enough only where both may have it. An aircraft of unknown altitude is in no
    zone that has a floor or a ceiling.
    """

    name: Annotated[str, text("for people", pattern=r"\S", form="text that is not blank")]
    lat: Annotated[float, about("deg", "latitude of the centre, north", ge=-90, le=90)] | None = None
    lon: Annotated[float, about("deg", "longitude of the centre, east", ge=-180, le=180)] | None = None
    radius_nm: Annotated[float, about("NM", "distance from the centre; 0: everywhere", ge=0, le=2000)] = 0.0
    # the ranges of the two leave room for each other's default: only two written values can clash
    floor_ft: Annotated[float, about("ft", "from this altitude on; -2000: no floor", ge=-2000, le=99_900)] = -2000.0
    ceiling_ft: Annotated[float, about("ft", "below this altitude; 100_000: no ceiling", ge=-1900, le=100_000)] = (
        100_000.0
    )
    separation_nm: Annotated[float, about("NM", "horizontal minimum in the zone (3 terminal)", ge=0.01, le=50)]
    vertical_ft: Annotated[float, about("ft", "vertical minimum in the zone", ge=10, le=10_000)] = 1000.0

    def clashes(self) -> Iterator[tuple[str, str]]:
        """A band upside down, or half a place."""
        if self.floor_ft >= self.ceiling_ft:
            yield "floor_ft", f"not below ceiling_ft, which is {spell(self.ceiling_ft)}"
        for name, angle_deg in (("lat", self.lat), ("lon", self.lon)):
            if self.radius_nm > 0 and angle_deg is None:
                yield name, "missing: a zone with a radius_nm has a centre"
        if self.radius_nm == 0 and (self.lat, self.lon) != (None, None):
            yield "radius_nm", "missing: with lat and lon it must be more than 0 (leave all three out for everywhere)"


class Conflict(Section, frozen=True):
    """Predicted loss of separation between two aircraft."""

    enabled: Flag = True
    horizon_s: Annotated[
        float, about("s", "how far ahead we look; straight-line prediction is poor beyond", ge=1, le=1800)
    ] = 120.0
    separation_nm: Annotated[
        float,
        about("NM", "horizontal minimum; exactly this much is separated (5 en route, 3 terminal)", ge=0.01, le=50),
    ] = 5.0
    vertical_ft: Annotated[float, about("ft", "vertical minimum; exactly this much is separated", ge=10, le=10_000)] = (
        1000.0
    )
    altitude_step_ft: Annotated[
        float,
        about(
            "ft", "altitudes come in steps: one step less than the vertical minimum is still the minimum", ge=0, le=200
        ),
    ] = 25.0
    max_age_s: Annotated[
        float, about("s", "an aircraft unheard for longer is not extrapolated and cannot conflict", ge=1, le=300)
    ] = 15.0
    probability: Annotated[
        float, about("", "probability of losing separation within the horizon that counts as a conflict", ge=0.05, le=1)
    ] = 0.5
    turn_hold_s: Annotated[
        float, about("s", "a turn is expected to go on for this long, then to end", ge=0, le=120)
    ] = 20.0
    level_off: Annotated[
        float,
        about(
            "",
            "probability that who closes in vertically stops short of the other's level, if nothing says",
            ge=0,
            le=1,
        ),
    ] = 0.2
    act_s: Annotated[
        float,
        about("s", "how long until somebody acts on a predicted loss, on average: discounts far ones", ge=10, le=1e6),
    ] = 300.0
    caution_s: Annotated[
        float, about("s", "time to loss of separation below which an advisory becomes a caution", ge=0, le=1800)
    ] = 80.0
    warning_s: Annotated[
        float, about("s", "time to loss of separation below which it becomes a warning", ge=0, le=1800)
    ] = 40.0
    min_gs_kt: Annotated[
        float, about("kt", "slower aircraft without an on-ground flag count as parked", ge=0, le=200)
    ] = 30.0
    assume_same_level: Annotated[
        bool, text("take an aircraft of unknown altitude to be at everyone's level, instead of leaving it out")
    ] = False
    zones: Annotated[
        tuple[Zone, ...],
        tables("other minima in some areas or altitude bands; the first that applies counts", at_most=1000),
    ] = ()
    max_pairs: Annotated[
        int, about("pairs", "conflicting pairs followed at once; further ones are counted", ge=10, le=10_000_000)
    ] = 200_000
    debounce: Debounce = field(default_factory=lambda: Debounce(clear_n=10, clear_ratio=0.6))


class Los(Section, frozen=True):
    """Separation lost now (same minima as `conflict`)."""

    enabled: Flag = True
    debounce: Debounce = field(default_factory=lambda: Debounce(n=2, m=3, clear_n=3))


# The words of detectors.gps_imu_state.CHANNELS, which this layer must not import; a test holds the two together.
Channel = Literal[
    "jump", "velocity_jump",
    "position", "velocity", "vertical", "step", "velocity_step",
    "position_against_velocity", "altitude_against_velocity", "drift", "vertical_drift", "noise", "velocity_noise",
    "heading", "delay", "timing", "turn", "force", "accuracy",
    "freeze", "imu_stuck",
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
        ),
    ] = 2.576
    nominal_rate: Annotated[
        float,
        about("ratio", "share of a healthy vehicle's fixes that reach its calibrated level", ge=0.001, le=0.1),
    ] = 0.01
    caution_ratio: Annotated[
        float, about("ratio", "score over threshold at which an advisory becomes a caution", ge=1, le=1000)
    ] = 2.0
    warning_ratio: Annotated[
        float, about("ratio", "score over threshold at which it becomes a warning", ge=1, le=1000)
    ] = 4.0
    warmup_s: Annotated[
        float, about("s", "good data that a vehicle must have shown before anything is said about it", ge=0, le=3600)
    ] = 20.0
    recover_s: Annotated[
        float,
        about(
            "s", "a GPS that agrees with itself for this long is believed again, whatever the IMU says", ge=1, le=3600
        ),
    ] = 27.0
    gps_delay_s: Annotated[
        float, about("s", "how old a fix is at its time stamp; 0.1 to 0.3 on common receivers", ge=0, le=0.45)
    ] = 0.2
    learn_delay: Annotated[bool, text("whether each receiver's delay is learned, beginning with gps_delay_s")] = True
    learn_scale: Annotated[
        bool, text("whether each vehicle is judged by what it has shown, or by fixed levels: the same for all")
    ] = True
    channels_off: Annotated[
        tuple[Channel, ...], about("", "channels that do not count, where they mean nothing on your vehicles")
    ] = ()
    imu_gap_s: Annotated[
        float, about("s", "longer pauses between IMU samples are bridged with less trust", ge=0.01, le=1)
    ] = 0.15
    position_std_m: Annotated[
        float, about("m", "GPS position noise from fix to fix, horizontal; twice as much vertically", ge=0.01, le=100)
    ] = 0.85
    velocity_std_mps: Annotated[
        float, about("m/s", "GPS velocity noise, horizontal; half as much again vertically", ge=0.01, le=20)
    ] = 0.3
    timing_std_s: Annotated[
        float, about("s", "jitter of the fix's time: speed and acceleration times this add to the noise", ge=0, le=1)
    ] = 0.035
    attitude: Annotated[
        Literal["own", "ahrs"],
        text(
            "where roll, pitch and yaw come from: the IMU alone, or the vehicle's AHRS (only if that does not use GPS)"
        ),
    ] = "own"
    gyro_noise: Annotated[
        float, about("rad/s/rtHz", "attitude random walk, several times a data sheet's for vibration", ge=1e-6, le=0.1)
    ] = 7e-4
    accel_noise: Annotated[
        float, about("m/s2/rtHz", "velocity random walk; measured vibration is added to it", ge=1e-5, le=10)
    ] = 0.05
    gyro_walk: Annotated[float, about("rad/s per rt s", "how fast a gyro bias wanders", ge=0, le=0.01)] = 5e-5
    accel_walk: Annotated[float, about("m/s2 per rt s", "how fast an accelerometer bias wanders", ge=0, le=1)] = 1e-3
    model: Annotated[
        Literal["off", "hst"],
        text("opinion of an online model of the fleet in the evidence: none, or half-space trees (river)"),
    ] = "hst"
    model_budget: Annotated[
        int, about("epochs", "GPS epochs per tick that the model looks at; each costs about 60 us", ge=0, le=10_000)
    ] = 8
    debounce: Debounce = field(default_factory=Debounce)


class Kinematics(Section, frozen=True):
    """A track that contradicts itself: jumps, speed against displacement, duplicate ids; altitude only beside those."""

    enabled: Flag = True
    jump_speed_kt: Annotated[
        float, about("kt", "implied speed between two positions that no aircraft flies", ge=100, le=20_000)
    ] = 1500.0
    speed_error_kt: Annotated[
        float, about("kt", "displacement speed against reported speed, beyond report noise", ge=5, le=5000)
    ] = 150.0
    climb_fpm: Annotated[
        float, about("ft/min", "implied vertical rate that no aircraft flies", ge=1000, le=200_000)
    ] = 30_000.0
    position_noise_m: Annotated[
        float,
        about("m", "position and time-stamp noise that displacement must exceed to mean anything", ge=1, le=10_000),
    ] = 400.0
    debounce: Debounce = field(default_factory=lambda: Debounce(n=3, m=5))


class GnssInterference(Section, frozen=True):
    """Many aircraft in one area whose own accuracy reports collapse together: jamming, or spoofing that they notice."""

    enabled: Flag = True
    nacp_min: Annotated[
        int,
        about("category", "NACp below this is poor: 8 is 93 m (95 %), the least that airspace rules ask", ge=1, le=11),
    ] = 8
    nic_min: Annotated[
        int, about("category", "NIC below this is poor: 7 is 370 m, the least that airspace rules ask", ge=1, le=11)
    ] = 7
    drop: Annotated[
        float, about("categories", "a collapse is at least this much worse than the aircraft's own past", ge=1, le=11)
    ] = 3.0
    past_s: Annotated[
        float, about("s", "memory of what an aircraft reports while it is well; a longer break ends it", ge=10, le=7200)
    ] = 600.0
    min_past_s: Annotated[
        float, about("s", "an aircraft heard for less than this has no past to compare with", ge=0, le=3600)
    ] = 60.0
    accept_s: Annotated[
        float, about("s", "a collapse of one aircraft that lasts longer becomes its new normal", ge=60, le=86_400)
    ] = 3600.0
    max_age_s: Annotated[
        float, about("s", "an accuracy report older than this says nothing about now", ge=1, le=300)
    ] = 30.0
    resolution: Annotated[
        int, about("", "H3 resolution of the cells: 3 has edges of 69 km, 4 of 26 km, 5 of 10 km", ge=2, le=7)
    ] = 4
    min_aircraft: Annotated[
        int,
        about("aircraft", "fewer collapsed than this in a cell and its neighbours are no interference", ge=2, le=1000),
    ] = 3
    share: Annotated[
        float,
        about("ratio", "collapsed aircraft over all that could tell, in a cell and its neighbours", ge=0.05, le=1),
    ] = 0.5
    hold_s: Annotated[
        float, about("s", "a cell stays part of its area for this long after it was last affected", ge=0, le=3600)
    ] = 60.0
    caution_aircraft: Annotated[
        int, about("aircraft", "collapsed aircraft at which an advisory becomes a caution", ge=2, le=100_000)
    ] = 6
    warning_aircraft: Annotated[
        int, about("aircraft", "collapsed aircraft at which it becomes a warning", ge=2, le=100_000)
    ] = 15
    debounce: Debounce = field(default_factory=lambda: Debounce(n=3, m=5, clear_n=10, min_on_s=30.0, lost_s=120.0))


class Silence(Section, frozen=True):
    """A stream that stopped."""

    enabled: Flag = True
    streams: Annotated[
        tuple[Stream, ...], about("", "kinds watched; adsb is left out because aircraft leave coverage all the time")
    ] = ("gps", "imu")
    min_silence_s: Annotated[float, about("s", "never alarm before this long", ge=0.1, le=3600)] = 3.0
    factor: Annotated[
        float, about("intervals", "alarm after this many usual intervals between samples", ge=2, le=1000)
    ] = 10.0
    min_samples: Annotated[
        int, about("samples", "a stream must have spoken this often before silence means anything", ge=2, le=10_000)
    ] = 5
    debounce: Debounce = field(default_factory=lambda: Debounce(n=1, m=1, clear_n=1, min_on_s=0.0, lost_s=3600.0))


class Intent(Section, frozen=True):
    """A controller that acts with no conflict ("ghost") or leaves one alone ("missed"); needs the action stream.

    Horizon, minima and `max_age_s` are those of `[detectors.conflict]`; its zones do not apply.
    """

    enabled: Flag = True
    step_s: Annotated[float, about("s", "how often commands are judged; a controller's own period", ge=1, le=300)] = (
        10.0
    )
    turn_deg: Annotated[float, about("deg", "smaller commanded turns are trimming", ge=0.1, le=180)] = 3.0
    speed_kt: Annotated[float, about("kt", "smaller commanded speed changes are trimming", ge=0.1, le=500)] = 5.0
    ghost_needs_threat: Annotated[
        bool, text("a deliberate command is a ghost only if somebody passes within 6 NM, as the evaluation counts it")
    ] = False
    response_s: Annotated[
        float, about("s", "a conflict that nobody has acted upon for this long is missed", ge=1, le=1800)
    ] = 30.0
    alert_n: Annotated[int, about("steps", "of the running tally: an alert is this many of alert_m", ge=1, le=64)] = 2
    alert_m: Annotated[int, about("steps", "window for alert_n", ge=1, le=64)] = 3
    lag_steps: Annotated[
        int, about("steps", "of the tally: an alert counts this much longer at both ends", ge=0, le=64)
    ] = 1
    iou: Annotated[
        float, about("ratio", "of the tally: overlap over union that makes an alert answer a conflict", ge=0.01, le=1)
    ] = 0.1
    # the epochs are steps: two of three, as an alert is counted
    debounce: Debounce = field(default_factory=lambda: Debounce(n=2, m=3, clear_n=2, bridge_s=60.0, lost_s=120.0))


class Link(Section, frozen=True):
    """A link that got slow, lossy or thin, judged by each vehicle's own past."""

    enabled: Flag = True
    streams: Annotated[
        tuple[Stream, ...], about("", "kinds watched; adsb is left out because reception comes and goes with range")
    ] = ("gps", "imu")
    latency_s: Annotated[
        float, about("s", "latency over (or under) what is usual that counts; a radio queue adds more", ge=0.01, le=60)
    ] = 0.2
    loss: Annotated[
        float, about("share", "missing samples that count; a gap of 2 s in the window is less", ge=0.05, le=0.95)
    ] = 0.3
    window_s: Annotated[float, about("s", "samples are counted over this long", ge=2, le=60)] = 10.0
    past_s: Annotated[float, about("s", "memory of what is usual, while all is well", ge=10, le=7200)] = 120.0
    min_past_s: Annotated[
        float, about("s", "a vehicle heard for less than this has no past to compare with", ge=1, le=3600)
    ] = 20.0
    caution_ratio: Annotated[
        float, about("ratio", "score over threshold at which an advisory becomes a caution", ge=1, le=1000)
    ] = 2.0
    debounce: Debounce = field(default_factory=lambda: Debounce(n=3, m=4, clear_n=5))


class Detectors(Section, frozen=True):
    """All detectors."""

    conflict: Conflict = field(default_factory=Conflict)
    los: Los = field(default_factory=Los)
    gps_imu: GpsImu = field(default_factory=GpsImu)
    kinematics: Kinematics = field(default_factory=Kinematics)
    silence: Silence = field(default_factory=Silence)
    gnss_interference: GnssInterference = field(default_factory=GnssInterference)
    intent: Intent = field(default_factory=Intent)
    link: Link = field(default_factory=Link)
