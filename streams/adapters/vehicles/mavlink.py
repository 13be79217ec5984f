"""MAVLink, from a vehicle or a ground station (UDP, TCP, serial) and from its recordings (`.tlog`); extra `mavlink`.

pymavlink (LGPL) decodes; these messages are used, of every system on the line:

    HIGHRES_IMU                 IMU in SI units
    RAW_IMU, SCALED_IMU         IMU in milli-g and mrad/s, where there is nothing better (in this order)
    GPS_RAW_INT                 GPS: position, speed and course as velocity north and east, fix, satellites, HDOP,
                                accuracy; the vertical velocity is not in it
    ADSB_VEHICLE                other traffic that the vehicle hears: ADS-B
    OPEN_DRONE_ID_*             Remote ID of drones, see remoteid.py
    HEARTBEAT, SYS_STATUS …     signals: battery, motors, radio, mode and arming, see mavlink_signals.py

Estimates of the autopilot (ATTITUDE, GLOBAL_POSITION_INT …) are not read. Vehicles are called `mav` and their system
id. Body axes are forward, right, down, the local frame is north, east, down.

Times: where a message has Unix time it is used. Otherwise it has the time since boot, and arrival says when that was
(senderclock.py). A .tlog has the arrival of each packet as eight bytes of microseconds before it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from watchkeeper.config.adapters.mavlink import Mavlink as Settings
from watchkeeper.streams.adapters.base import AdapterDeclaration, FeedLog, Sample, Way
from watchkeeper.streams.adapters.receivers.reports import squawk_of
from watchkeeper.streams.adapters.rows import Rows
from watchkeeper.streams.adapters.senderclock import SenderClock
from watchkeeper.streams.adapters.vehicles.mavlink_signals import signals_of
from watchkeeper.streams.adapters.vehicles.remoteid import RemoteId
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.geo import FT_M, GRAVITY_MS2, KT_MS
from watchkeeper.streams.logs.base import Format
from watchkeeper.streams.messages import Drop, Kind
from watchkeeper.streams.signals import matcher

MILLI_G_MS2 = 1e-3 * GRAVITY_MS2
# Of several IMU messages of one system the best counts, and once it was seen the others do not.
_IMU_RANK = {"SCALED_IMU": 1, "RAW_IMU": 2, "HIGHRES_IMU": 3}
_UNKNOWN_U8, _UNKNOWN_U16 = 255, 65_535
# Seconds since 1970 that no time since boot reaches.
_UNIX_S = 1e9
# Bits of ADSB_VEHICLE.flags: what is valid.
_COORDS, _ALTITUDE, _HEADING, _VELOCITY, _CALLSIGN, _SQUAWK, _CLIMB = 1, 2, 4, 8, 16, 32, 128
_PRESSURE_ALTITUDE = 0
# Numbered as the categories of DO-260B are; what is beyond them says nothing to us.
CATEGORY_MOST = 24
# A frame's first byte: bytes besides the payload, of MAVLink 1 and 2; a signature is 13 more.
_OVERHEAD = {0xFE: 8, 0xFD: 12}
_SIGNED, _SIGNATURE = 1, 13
_STAMP_BYTES = 8


class Mavlink:
    """One line, live; see adapters/base.py."""

    def __init__(self, *, via: str = "", signals: Sequence[str] = ("*",)) -> None:
        # an optional dependency, and a large one: imported when somebody speaks MAVLink
        from pymavlink.dialects.v20 import ardupilotmega  # noqa: PLC0415

        self.refused: Counter[str] = Counter()
        self._parser = ardupilotmega.MAVLink(None)
        self._parser.robust_parsing = True
        self._rows = Rows(via)
        self._clocks: dict[int, SenderClock] = {}
        self._imu: dict[int, int] = {}
        self._callsigns: dict[str, str] = {}
        self._remote_id = RemoteId()
        self._autopilots: set[int] = set()
        self._signals = matcher(signals) if signals else None

    def push(self, data: bytes, now: float) -> None:
        """See Feed."""
        for message in self._parser.parse_buffer(data) or ():
            kind = message.get_type()
            self._take_signals(message, kind, now)
            if kind == "BAD_DATA":
                self.refused[Drop.SYNTAX] += 1
            elif kind in _IMU_RANK:
                self._take_imu(message, kind, now)
            elif kind == "GPS_RAW_INT":
                self._take_gps(message, now)
            elif kind == "ADSB_VEHICLE":
                self._take_adsb(message, now)
            elif kind == "OPEN_DRONE_ID_BASIC_ID":
                self._remote_id.name(message)
            elif kind == "OPEN_DRONE_ID_SYSTEM":
                self._remote_id.system(message)
            elif kind == "OPEN_DRONE_ID_LOCATION":
                found = self._remote_id.location(message, now)
                if isinstance(found, str):
                    self.refused[found] += 1
                else:
                    self._rows.add(Kind.ADSB, *found)

    def close(self) -> None:
        """See Feed."""

    def take(self) -> Batch | None:
        """See Feed."""
        batch = self._rows.take(self._callsigns)
        self._callsigns = {}
        return batch

    def _time(self, message: Any, seconds: float, now: float) -> float:
        if seconds > _UNIX_S:
            return seconds
        return self._clocks.setdefault(message.get_srcSystem(), SenderClock()).time(seconds, now)

    def _take_signals(self, message: Any, kind: str, now: float) -> None:
        """Named numbers of autopilots: whoever has sent a heartbeat is one."""
        if kind == "BAD_DATA" or self._signals is None:
            return
        system = message.get_srcSystem()
        found = signals_of(message, kind)
        if kind == "HEARTBEAT" and found:
            self._autopilots.add(system)
        if system not in self._autopilots:
            return
        found = {name: value for name, value in found.items() if self._signals.match(name)}
        if found:
            stamp = getattr(message, "time_boot_ms", 0) / 1e3 or getattr(message, "time_usec", 0) / 1e6
            self._rows.add_signals(_name(system), self._time(message, stamp, now) if stamp else now, found)

    def _take_imu(self, message: Any, kind: str, now: float) -> None:
        system, rank = message.get_srcSystem(), _IMU_RANK[kind]
        if rank < self._imu.get(system, 0) or getattr(message, "id", 0) != 0:
            return
        self._imu[system] = rank
        seconds = message.time_boot_ms / 1e3 if kind == "SCALED_IMU" else message.time_usec / 1e6
        accel, rate = (1.0, 1.0) if kind == "HIGHRES_IMU" else (MILLI_G_MS2, 1e-3)
        values = {f"imu_a{axis}": accel * getattr(message, f"{axis}acc") for axis in "xyz"}
        values |= {f"imu_w{axis}": rate * getattr(message, f"{axis}gyro") for axis in "xyz"}
        self._rows.add(Kind.IMU, _name(system), self._time(message, seconds, now), values)

    def _take_gps(self, message: Any, now: float) -> None:
        values = {"fix": float(message.fix_type)}
        if message.lat or message.lon:  # both 0: there never was a fix
            values |= {"lat": message.lat * 1e-7, "lon": message.lon * 1e-7, "alt_m": message.alt * 1e-3}
        if _UNKNOWN_U16 not in (message.vel, message.cog):
            speed_ms, course = message.vel * 1e-2, math.radians(message.cog * 1e-2)
            values |= {"gps_vx": speed_ms * math.cos(course), "gps_vy": speed_ms * math.sin(course)}
        if message.satellites_visible != _UNKNOWN_U8:
            values["sats"] = float(message.satellites_visible)
        if message.eph != _UNKNOWN_U16:
            values["hdop"] = message.eph * 1e-2
        for field, millimetres in (("eph", message.h_acc), ("epv", message.v_acc), ("speed_acc", message.vel_acc)):
            if millimetres:  # 0: MAVLink 1, or not known
                values[field] = millimetres * 1e-3
        system = message.get_srcSystem()
        self._rows.add(Kind.GPS, _name(system), self._time(message, message.time_usec / 1e6, now), values)

    def _take_adsb(self, message: Any, now: float) -> None:
        flags = message.flags
        if not flags & _COORDS:
            return
        name = f"{message.ICAO_address:06x}"
        values = {"lat": message.lat * 1e-7, "lon": message.lon * 1e-7}
        if message.emitter_type:
            values["category"] = float(min(message.emitter_type, CATEGORY_MOST))
        if flags & _ALTITUDE and message.altitude_type == _PRESSURE_ALTITUDE:
            values["alt_ft"] = message.altitude * 1e-3 / FT_M
        if flags & _VELOCITY:
            values["gs_kt"] = message.hor_velocity * 1e-2 / KT_MS
        if flags & _HEADING:
            values["trk_deg"] = message.heading * 1e-2
        if flags & _CLIMB:
            values["vs_fpm"] = message.ver_velocity * 1e-2 / FT_M * 60.0
        if flags & _SQUAWK and (code := squawk_of(message.squawk)) is not None:
            values["squawk"] = code
        if flags & _CALLSIGN:
            self._callsigns[name] = message.callsign.strip("\0 ")
        self._rows.add(Kind.ADSB, name, now - message.tslc, values)


def _name(system: int) -> str:
    return f"mav{system}"


class Tlog(Mavlink):
    """A recording: each packet behind the time of its arrival."""

    def __init__(self) -> None:
        super().__init__()
        self._rest = b""

    def push(self, data: bytes, now: float) -> None:  # noqa: ARG002  the file has its own
        """See Feed."""
        for stamp_us, packet in self._packets(self._rest + data):
            super().push(packet, stamp_us / 1e6)

    def close(self) -> None:
        """See Feed."""
        if self._rest:
            self.refused[Drop.SYNTAX] += 1
        self._rest = b""

    def _packets(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        at, skipped = 0, False
        while at + _STAMP_BYTES + 3 <= len(data):
            start = at + _STAMP_BYTES
            size = _size(data, start)
            if size == 0:
                # not at a packet: some program wrote half of one
                self.refused[Drop.SYNTAX] += not skipped
                skipped = True
                at = _next_frame(data, start + 1) - _STAMP_BYTES
                continue
            if start + size > len(data):
                break
            skipped = False
            yield int.from_bytes(data[at:start], "big"), data[start : start + size]
            at = start + size
        self._rest = data[at:]


def _next_frame(data: bytes, at: int) -> int:
    """Where the next byte is that a frame may begin with; the end if there is none."""
    found = (data.find(first, at) for first in _OVERHEAD)
    return min((place for place in found if place >= 0), default=len(data))


def _size(data: bytes, at: int) -> int:
    """How long the frame that begins here is; 0 if none does."""
    overhead = _OVERHEAD.get(data[at], 0)
    if not overhead:
        return 0
    signed = data[at] == 0xFD and data[at + 2] & _SIGNED
    return overhead + data[at + 1] + (_SIGNATURE if signed else 0)


def open_tlog(path: Path) -> FeedLog:
    """A recording of a ground station."""
    return FeedLog(path, "tlog", Tlog)


MAVLINK = AdapterDeclaration(
    name="mavlink",
    help="MAVLink of vehicles and ground stations, and their .tlog",
    docs="adapters/mavlink.md",
    settings=Settings,
    feed=f"{__name__}:Mavlink",
    takes=("via", "signals"),
    ways=(Way.STREAM,),
    sample=Sample(
        # RAW_IMU, then GPS_RAW_INT, of system 1
        data=bytes.fromhex(
            "fd1300000001001b000040420f00000000000a00fbff18fc010002000318e8"
            "fd1e0000010100180000e0c81000000000004c52401c44f417054072070050007800fa002823030b9328"
        ),
        settings={"url": "udp://0.0.0.0:14550"},
    ),
    extra="watchkeeper[mavlink]",
    formats=(Format("tlog", f"{__name__}:open_tlog", (".tlog", ".tlog.gz")),),
)
