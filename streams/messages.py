"""The wire schema: which streams there are, their fields, units and ranges. Everything else reads it from here.

A sample is one reading of one vehicle at one time `t` (Unix seconds, or seconds of a simulation). Every field
is a float64; NaN means absent. `id` names the vehicle, `via` the gateway that it came through, `callsign` is
for people to read. Units are those of the source (feet and knots for ADS-B, SI for GPS and IMU); detectors
convert once.

Topics: `telemetry/<kind>/<id>` carries one sample, `telemetry/<kind>` a columnar frame (see codec/decode.py).
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from enum import IntEnum
from typing import Any
from urllib.parse import quote, unquote


class Kind(IntEnum):
    """The input streams; the value is the index into every per-kind table."""

    ADSB = 0
    GPS = 1
    IMU = 2
    ACTION = 3
    ROUTE = 4
    LINK = 5
    SIGNAL = 6

    word: str
    """The name in topics, CSV and config: `adsb`, `gps` and so on."""

    def __init__(self, _value: int) -> None:
        self.word = self._name_.lower()


KIND_OF_WORD: dict[str, Kind] = {kind.word: kind for kind in Kind}


@dataclass(frozen=True, slots=True)
class Field:
    """One column of a stream. A finite value outside [lo, hi] makes the whole sample bad input.

    So does one that is nearer to zero than `least` without being zero: no sensor means that.
    """

    name: str
    unit: str
    lo: float
    hi: float
    doc: str
    required: bool = False
    least: float = 0.0


# Ranges say what a sensor can possibly mean, not what is plausible: an altitude spike of 123,100 ft occurs in real
# ADS-B and must reach `kinematics`, a latitude of 91 degrees must not reach anything.
_LAT = ("deg", -90.0, 90.0)
_LON = ("deg", -180.0, 360.0)  # some sources count 0..360; the fleet wraps to [-180, 180)
_LOCAL = ("m", -1e7, 1e7)  # a local frame never spans more than a quarter of the Earth
_SPEED = ("m/s", -12_000.0, 12_000.0)  # orbital speed; a spoofed jump may claim a lot
_ACCEL = ("m/s2", -5_000.0, 5_000.0)  # 500 g, past every MEMS range
_RATE = ("rad/s", -200.0, 200.0)  # past every MEMS gyro (4,000 deg/s is 70)
_ANGLE = ("rad", -1e4, 1e4)  # some autopilots count turns instead of wrapping

# Unix seconds up to the year 2100. Simulations count from 0, so small values are fine.
T_MIN, T_MAX = 0.0, 4_102_444_800.0

# A signal is a number of any meaning. Its name has eight characters in each of so many columns, each in base 96.
VALUE_MAX = 1e18
NAME_COLUMNS, NAME_MAX = 6, 96.0**8 - 1.0

FIELDS: dict[Kind, tuple[Field, ...]] = {
    Kind.ADSB: (
        Field("lat", *_LAT, "geodetic latitude, WGS84", required=True),
        Field("lon", *_LON, "longitude, WGS84", required=True),
        Field("alt_ft", "ft", -5_000.0, 200_000.0, "pressure altitude"),
        Field("gs_kt", "kt", 0.0, 5_000.0, "ground speed"),
        Field("trk_deg", "deg", -360.0, 360.0, "true track over ground"),
        Field("vs_fpm", "ft/min", -60_000.0, 60_000.0, "vertical rate"),
        Field("nacp", "", 0.0, 15.0, "navigation accuracy category, position"),
        Field("nic", "", 0.0, 15.0, "navigation integrity category"),
        Field("sel_alt_ft", "ft", -5_000.0, 200_000.0, "altitude selected by the crew"),
        Field("on_ground", "", 0.0, 1.0, "1 on the ground, 0 airborne"),
        Field("sel_hdg_deg", "deg", -360.0, 360.0, "heading selected by the crew"),
        Field("squawk", "", 0.0, 7777.0, "transponder code, its four digits read as a number"),
        Field("tcas_ra", "", 0.0, 1.0, "1 while a resolution advisory of the collision avoidance system is on"),
        Field(
            "emergency",
            "",
            0.0,
            7.0,
            "what the transponder declares (DO-260B): 0 none, 1 general, 2 medical, "
            "3 minimum fuel, 4 no radio, 5 unlawful interference, 6 downed aircraft",
        ),
        Field(
            "category",
            "",
            0.0,
            63.0,
            "what it is (DO-260B, eight to a set): 1 to 6 aeroplane, 7 rotorcraft, 9 glider, 10 balloon, "
            "11 parachutist, 12 ultralight, 14 drone, 17 and 18 vehicle; 40 ship (ours)",
        ),
        Field("operator_m", "m", 0.0, 2.1e7, "how far away the operator of a drone says to be (Remote ID)"),
    ),
    Kind.GPS: (
        Field("gps_x", *_LOCAL, "local position, first axis (east in `enu`, north in `ned`)"),
        Field("gps_y", *_LOCAL, "local position, second axis (north in `enu`, east in `ned`)"),
        Field("gps_z", *_LOCAL, "local position, third axis (up in `enu`, down in `ned`)"),
        Field("lat", *_LAT, "geodetic latitude, WGS84, instead of gps_x/y/z"),
        Field("lon", *_LON, "longitude, WGS84"),
        Field("alt_m", "m", -1_000.0, 60_000.0, "altitude, positive up"),
        Field("gps_vx", *_SPEED, "velocity along gps_x (along north or east as the local frame says)"),
        Field("gps_vy", *_SPEED, "velocity along gps_y"),
        Field("gps_vz", *_SPEED, "velocity along gps_z"),
        Field("fix", "", 0.0, 10.0, "receiver fix type: 0-1 none, 2 2-D, 3 3-D, 4+ differential"),
        Field("sats", "", 0.0, 200.0, "satellites used"),
        Field("hdop", "", 0.0, 10_000.0, "horizontal dilution of precision", least=1e-3),
        Field("eph", "m", 0.0, 1e7, "receiver's own horizontal 1-sigma estimate", least=1e-6),
        Field("epv", "m", 0.0, 1e7, "receiver's own vertical 1-sigma estimate", least=1e-6),
        Field("speed_acc", "m/s", 0.0, 1e6, "receiver's own 1-sigma estimate of its velocity", least=1e-6),
        Field("jamming", "", 0.0, 255.0, "receiver's own indicator of continuous-wave jamming, 0 none to 255 strong"),
        Field("jamming_state", "", 0.0, 10.0, "receiver's own word: 0 unknown, 1 none, 2 warning, 3 no fix any more"),
        Field("spoofing_state", "", 0.0, 10.0, "receiver's own word: 0 unknown, 1 none, 2 indicated, 3 sure"),
        Field("noise", "", 0.0, 1e6, "receiver's noise level, in its own unit", least=1e-6),
        Field("agc", "", 0.0, 1e6, "receiver's automatic gain control, in its own unit", least=1e-6),
    ),
    Kind.IMU: (
        Field("imu_ax", *_ACCEL, "specific force, body forward", required=True),
        Field("imu_ay", *_ACCEL, "specific force, body right (`frd`) or left (`flu`)", required=True),
        Field("imu_az", *_ACCEL, "specific force, body down (`frd`) or up (`flu`)", required=True),
        Field("imu_wx", *_RATE, "angular rate about body x", required=True),
        Field("imu_wy", *_RATE, "angular rate about body y", required=True),
        Field("imu_wz", *_RATE, "angular rate about body z", required=True),
        Field("roll", *_ANGLE, "roll of an external AHRS"),
        Field("pitch", *_ANGLE, "pitch of an external AHRS"),
        Field("yaw", *_ANGLE, "yaw of an external AHRS"),
    ),
    Kind.ACTION: (
        Field("heading_delta_deg", "deg", -360.0, 360.0, "commanded heading change", required=True),
        Field("speed_delta_kt", "kt", -5_000.0, 5_000.0, "commanded speed change", required=True),
    ),
    Kind.ROUTE: (
        Field("lat", *_LAT, "latitude of the waypoint", required=True),
        Field("lon", *_LON, "longitude of the waypoint", required=True),
        Field("reached", "", 0.0, 1.0, "1 once the waypoint has been reached"),
    ),
    # `id` is the device at the far end of a link, `via` the one that measured it: a gateway, or nobody (we did)
    Kind.LINK: (
        # clocks may count from 1970 or from the start of a simulation
        Field("latency_s", "s", -T_MAX, T_MAX, "arrival minus sample time since the last report; clock offset in it"),
        Field("jitter_s", "s", 0.0, 1e9, "standard deviation of the same"),
        Field("samples", "", 0.0, 1e9, "how many samples these are"),
        Field("reordered", "", 0.0, 1e9, "how many of them arrived after a newer one of their stream"),
        Field("rtt_s", "s", 0.0, 3600.0, "round trip of a small packet to the device"),
        Field("echo_t", "s", T_MIN, T_MAX, "the `t` of the ping that this answers; we make an rtt_s of it"),
        Field("carrier", "", 0.0, 1.0, "1 while the port to the device has a signal"),
        Field("heard", "ratio", 0.0, 1e6, "traffic from the device over its usual traffic"),
        Field("filtered", "1/s", 0.0, 1e9, "packets that a rule of the port refuses"),
        Field("errors", "share", 0.0, 1.0, "damaged or repeated packets"),
        Field("backlog_s", "s", 0.0, 3600.0, "how long packets wait at the port"),
        Field("load", "share", 0.0, 1.0, "how busy the device's processor is"),
    ),
    # one row per named number; the name itself is in the columns too (streams/signals.py), so that a row is whole alone
    Kind.SIGNAL: (
        Field("value", "", -VALUE_MAX, VALUE_MAX, "what was measured, in the sender's own unit", required=True),
        *(
            Field(f"name_{i}", "", 0.0, NAME_MAX, "eight characters of the signal's name", required=True)
            for i in range(NAME_COLUMNS)
        ),
    ),
}

# A GPS fix is complete with either position; the codec checks that one of the two is there, unless the receiver says
# that it has none: a fix type below FIX_MIN, or no satellite.
GPS_POSITIONS: tuple[tuple[str, ...], ...] = (("gps_x", "gps_y"), ("lat", "lon"))
FIX_MIN = 2.0

COLUMN: dict[Kind, dict[str, int]] = {
    kind: {field.name: i for i, field in enumerate(fields)} for kind, fields in FIELDS.items()
}


def _numbered(kind: Kind) -> Any:
    """The columns of a kind as a named tuple of their numbers: to a kernel constants, to the reader names."""
    return namedtuple(kind.name, COLUMN[kind])(**COLUMN[kind])


# What kernels index a batch's data with: `data[ADSB.lat, i]`.
ADSB, GPS, IMU, ACTION, ROUTE, LINK, SIGNAL = map(_numbered, Kind)

# Longest vehicle or gateway name, in characters: ICAO addresses have 6, MAVLink ids 3, callsigns 8.
ID_MAX = 64


class Drop:
    """Why a payload or sample was refused: the values of the `reason` label. A closed set keeps labels bounded."""

    TOPIC = "unknown_topic"
    SIZE = "too_large"
    SYNTAX = "malformed"
    DEPTH = "too_deep"
    TYPE = "wrong_type"
    ID = "bad_id"
    NAME = "bad_name"
    MISSING = "missing_field"
    FINITE = "not_finite"
    RANGE = "out_of_range"
    TIME = "bad_time"
    FRAME = "bad_frame"
    LATE = "late"
    DUPLICATE = "duplicate"
    TIME_JUMP = "time_jump"
    CLOCK = "clock"
    FLEET_FULL = "fleet_full"
    QUEUE_FULL = "queue_full"

    ALL: tuple[str, ...] = (
        TOPIC, SIZE, SYNTAX, DEPTH, TYPE, ID, NAME, MISSING, FINITE, RANGE, TIME, FRAME,
        LATE, DUPLICATE, TIME_JUMP, CLOCK, FLEET_FULL, QUEUE_FULL,
    )  # fmt: skip


def escape_id(name: str) -> str:
    """A vehicle id as one MQTT topic level: no `/ + # ~ % $`, control or blank characters survive.

    >>> escape_id("N1/+#~é")
    'N1%2F%2B%23%7E%C3%A9'
    """
    # quote() leaves "~" alone, but here it separates the two names of a pair
    return quote(name, safe="").replace("~", "%7E")


def unescape_id(level: str) -> str:
    """The inverse of escape_id, for ids that come from a topic."""
    return unquote(level) if "%" in level else level


def subject_topic(subjects: tuple[str, ...] | list[str]) -> str:
    """The last topic level of an alarm: `<a>` or `<a>~<b>`."""
    return "~".join(escape_id(s) for s in subjects)


def field_bounds(kind: Kind) -> tuple[list[float], list[float], list[bool]]:
    """Lower bounds, upper bounds and required flags of a kind's columns, in column order."""
    fields = FIELDS[kind]
    return [f.lo for f in fields], [f.hi for f in fields], [f.required for f in fields]
