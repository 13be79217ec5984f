"""ROS recordings, read with rosbags (extra `ros`, no ROS needed): ROS 1 `.bag`, ROS 2 folders, `.db3` and `.mcap`.

    sensor_msgs/NavSatFix                     GPS: latitude, longitude, altitude; status as fix; the covariance, where
                                              it is known, as eph and epv
    geometry_msgs/TwistStamped or             its velocity: a topic next to the fix whose name ends in vel or velocity,
    TwistWithCovarianceStamped                joined to fixes of the same stamp (within SAME_S)
    sensor_msgs/Imu                           IMU: angular_velocity, linear_acceleration; the orientation is an
                                              estimate and not read
    battery, temperatures, plain numbers …    signals, see rosbag_signals.py
    what `[recordings]` names                 numbers of any other messages, as signals, see chosen.py

Frames: ROS counts body axes forward, left, up and the world east, north, up (REP 103). They are turned into forward,
right, down and north, east, down, which are our defaults.

Times: a message's own stamp, and where that is 0 the time of recording.

Vehicles: a first level of topics under which there are both a fix and an IMU is a vehicle, `/uav1/fix` and
`/uav1/imu/data` for example. If there is none, the whole bag is one, called after the file. Of several topics of one
type of one vehicle the one with the most messages is read.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from watchkeeper.config.recordings import Recordings
from watchkeeper.streams.adapters.base import AdapterDeclaration
from watchkeeper.streams.adapters.table import Table, TableLog
from watchkeeper.streams.adapters.vehicles.chosen import Chosen
from watchkeeper.streams.adapters.vehicles.rosbag_limits import bounded
from watchkeeper.streams.adapters.vehicles.rosbag_signals import TAKE, Signals
from watchkeeper.streams.batch import F8
from watchkeeper.streams.foreign.library import library
from watchkeeper.streams.logs.base import Format, LogError
from watchkeeper.streams.messages import ID_MAX, Kind

FIX, IMU = "sensor_msgs/msg/NavSatFix", "sensor_msgs/msg/Imu"
TWISTS = ("geometry_msgs/msg/TwistStamped", "geometry_msgs/msg/TwistWithCovarianceStamped")
READ = frozenset({FIX, IMU, *TWISTS, *TAKE})
# What a topic is read as, of which only numbers that the configuration names are of interest.
CHOSEN = "chosen"
SAME_S = 0.02
# NavSatStatus: -1 no fix, 0 a fix, 1 and 2 with augmentation
_FIX_TYPE = {-1: 0.0, 0: 3.0, 1: 4.0, 2: 4.0}
_ABSENT = -1.0
# A file that `convert` wrote begins with the magic number of MCAP, an empty profile and our name as the library.
_HEADER_BYTES, _OURS = 64, b"\x0b\x00\x00\x00watchkeeper"
_IMU_FIELDS = ("imu_ax", "imu_ay", "imu_az", "imu_wx", "imu_wy", "imu_wz")
_FIX_FIELDS = ("lat", "lon", "alt_m", "fix", "eph", "epv")
_VELOCITY = ("gps_vx", "gps_vy", "gps_vz")
Row = tuple[float, ...]


def _is_ours(path: Path) -> bool:
    """Whether it is an MCAP file of `convert`; a bag may also be a folder, or not there."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _OURS in file.read(_HEADER_BYTES)


def open_rosbag(path: Path, recordings: Recordings | None = None) -> TableLog:
    """A bag. Raises LogError."""
    try:
        from rosbags.highlevel import AnyReader  # noqa: PLC0415
        from rosbags.typesys import Stores, get_typestore  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise LogError(path, 'a ROS bag needs rosbags: pip install "watchkeeper[ros]"') from error
    if _is_ours(path):
        raise LogError(path, "Watchkeeper wrote it for other programs; read the log that it was made from")
    chosen = Chosen(recordings)
    with (
        library(path, "not a ROS bag"),
        bounded(),
        # older ROS 2 bags do not say what their messages look like
        AnyReader([path], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader,
    ):
        plan, problems = _plan(reader.connections, path, chosen)
        if not plan:
            raise LogError(path, "no topic of type NavSatFix or Imu, and none with numbers")
        rows, signals, bad = _read(reader, plan, chosen)
    problems += chosen.problems()
    if bad:
        problems.append(f"{bad:,} messages not used (malformed)")
    names = list(dict.fromkeys([*(name for name, _ in rows), *signals.vehicles]))
    tables: dict[Kind, Table] = {}
    imu = {name: found for (name, what), found in rows.items() if what == IMU}
    gps = {name: found for (name, what), found in rows.items() if what == FIX}
    if imu:
        tables[Kind.IMU] = _table(names, imu, _IMU_FIELDS)
    if gps:
        joined = {name: _with_velocity(found, rows.get((name, TWISTS[0]), [])) for name, found in gps.items()}
        tables[Kind.GPS] = _table(names, joined, (*_FIX_FIELDS, *_VELOCITY))
    if signals.vehicles:
        tables[Kind.SIGNAL] = signals.table(names)
    return TableLog(path, "ros", names, tables, problems=problems, bad_rows=bad)


def _plan(connections: Iterable[Any], path: Path, chosen: Chosen) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Which topics are read, as what of which vehicle; and what is said about the others."""
    counts: Counter[tuple[str, str]] = Counter()
    for c in connections:
        counts[c.topic, c.msgtype] += c.msgcount
    levels: defaultdict[str, set[str]] = defaultdict(set)
    for topic, what in counts:
        if what in (FIX, IMU) and topic.count("/") > 1:
            levels[topic.split("/")[1]].add(what)
    vehicles = sorted(level for level, kinds in levels.items() if kinds == {FIX, IMU})
    plan: dict[str, tuple[str, str]] = {}
    left: list[str] = []
    for what in (FIX, IMU):
        best: dict[str, str] = {}
        for (topic, _), _ in sorted((c for c in counts.items() if c[0][1] == what), key=lambda c: (-c[1], c[0])):
            level = topic.split("/")[1]
            name = level if level in vehicles else "" if vehicles else path.stem
            if name and name not in best:
                best[name] = topic
                plan[topic] = (name[:ID_MAX], what)
            else:
                left.append(topic)
    for topic, what in counts:
        for fix, (name, kind) in list(plan.items()):
            if what in TWISTS and kind == FIX and _velocity_of(topic, fix):
                plan[topic] = (name, TWISTS[0])
    for topic, what in counts:
        level = topic.split("/")[1] if topic.count("/") > 1 else ""
        name = level if level in vehicles else "" if vehicles else path.stem
        asked = topic not in plan and chosen.might(_short(topic, name))
        if (what in TAKE or asked) and name:
            plan[topic] = (name[:ID_MAX], what if what in TAKE else CHOSEN)
        elif what in TAKE:
            left.append(topic)
    left = [topic for topic in left if topic not in plan]
    return plan, [f"also there, and not read: {', '.join(sorted(left))}"] if left else []


def _velocity_of(topic: str, fix: str) -> bool:
    """Whether a topic tells the velocity of a receiver: next to its fixes, and not a command."""
    name = topic.rpartition("/")[2]
    beside = topic.rpartition("/")[0] == fix.rpartition("/")[0]
    return beside and name.endswith(("vel", "velocity")) and "cmd" not in name


def _read(
    reader: Any, plan: dict[str, tuple[str, str]], chosen: Chosen
) -> tuple[dict[tuple[str, str], list[Row]], Signals, int]:
    rows: dict[tuple[str, str], list[Row]] = {}
    signals, bad = Signals(chosen), 0
    wanted = [c for c in reader.connections if c.topic in plan and (plan[c.topic][1] == CHOSEN or c.msgtype in READ)]
    take: dict[str, Callable[[Any], Row]] = {FIX: _fix, IMU: _imu, TWISTS[0]: _twist}
    for connection, recorded_ns, raw in reader.messages(connections=wanted):
        name, what = plan[connection.topic]
        try:
            message = reader.deserialize(raw, connection.msgtype)
            header = getattr(message, "header", None)
            stamp = None if header is None else header.stamp
            t = recorded_ns * 1e-9 if stamp is None or not (stamp.sec or stamp.nanosec) else _seconds(stamp)
            if what not in take:
                signals.take(name, _short(connection.topic, name), what, t, message)
            else:
                rows.setdefault((name, what), []).append((t, *take[what](message)))
        except Exception:  # whatever a damaged message leads to: it is one message
            bad += 1
    return rows, signals, bad


def _seconds(stamp: Any) -> float:
    return float(stamp.sec + stamp.nanosec * 1e-9)


def _short(topic: str, vehicle: str) -> str:
    """A topic as the name of a signal: without its vehicle, points for slashes."""
    return topic.strip("/").removeprefix(f"{vehicle}/").replace("/", ".")


def _fix(message: Any) -> Row:
    eph = epv = math.nan
    if message.position_covariance_type:
        east, north, up = (float(message.position_covariance[i]) for i in (0, 4, 8))
        eph, epv = math.sqrt(max(0.0, 0.5 * (east + north))), math.sqrt(max(0.0, up))
    fix = _FIX_TYPE.get(int(message.status.status), math.nan)
    return float(message.latitude), float(message.longitude), float(message.altitude), fix, eph, epv


def _imu(message: Any) -> Row:
    a, w = message.linear_acceleration, message.angular_velocity
    # a driver that has not measured it says so here
    if _ABSENT in (message.linear_acceleration_covariance[0], message.angular_velocity_covariance[0]):
        return (math.nan,) * 6
    return a.x, -a.y, -a.z, w.x, -w.y, -w.z


def _twist(message: Any) -> Row:
    twist = message.twist
    east_north_up = getattr(twist, "twist", twist).linear
    return east_north_up.y, east_north_up.x, -east_north_up.z


def _with_velocity(fixes: list[Row], velocities: list[Row]) -> list[Row]:
    """Each fix with the velocity of its own moment, if there is one."""
    absent = (math.nan,) * len(_VELOCITY)
    if not velocities:
        return [(*fix, *absent) for fix in fixes]
    velocities = sorted(velocities)
    t: F8 = np.array([v[0] for v in velocities])
    at = np.clip(np.searchsorted(t, [fix[0] for fix in fixes]), 1, len(t)) - 1
    joined = []
    for fix, i in zip(fixes, at.tolist(), strict=True):
        nearest = min(velocities[i : i + 2], key=lambda v: abs(v[0] - fix[0]))
        joined.append((*fix, *(nearest[1:] if abs(nearest[0] - fix[0]) <= SAME_S else absent)))
    return joined


def _table(names: list[str], rows: dict[str, list[Row]], fields: tuple[str, ...]) -> Table:
    whole = np.array([row for found in rows.values() for row in found], np.float64).T
    vid = np.repeat([names.index(name) for name in rows], [len(found) for found in rows.values()])
    return whole[0], vid.astype(np.int32), dict(zip(fields, whole[1:], strict=True))


ROS = AdapterDeclaration(
    name="ros",
    help="bags of ROS 1 and ROS 2",
    docs="adapters/ros.md",
    extra="watchkeeper[ros]",
    formats=(
        Format("ros", f"{__name__}:open_rosbag", (".bag",), b"#ROSBAG V2.0", chooses=True),
        Format("ros", f"{__name__}:open_rosbag", (".mcap",), b"\x89MCAP0\r\n", chooses=True),
        Format("ros", f"{__name__}:open_rosbag", (".db3",), chooses=True),
    ),
)
