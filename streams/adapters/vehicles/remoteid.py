"""Remote ID of drones (ASTM F3411) as OpenDroneID carries it over MAVLink. Used by mavlink.py.

    OPEN_DRONE_ID_BASIC_ID    the drone's id: serial number, registration, session
    OPEN_DRONE_ID_SYSTEM      where its operator is
    OPEN_DRONE_ID_LOCATION    position, altitude, speed, direction, accuracy, seconds since the full hour (UTC)

`id_or_mac` tells which drone a message is of; it is empty for the sender's own. A drone is called by its id, so
locations before the first BASIC_ID are refused. It is an aircraft (`adsb`): pressure altitude where there is one, else
that of GNSS. The steps of its accuracy are those of NACp.
"""

from __future__ import annotations

from math import isnan
from typing import Any

from watchkeeper.streams.adapters.receivers.reports import DRONE
from watchkeeper.streams.geo import FT_M, KT_MS, inverse
from watchkeeper.streams.messages import Drop

HOUR_S = 3600.0
NAMES_MAX = 10_000
_ON_GROUND, _AIRBORNE = 1, 2
# What stands for "not known" in each field.
_NO_ALTITUDE_M, _NO_SPEED, _NO_DIRECTION, _NO_CLIMB, _NO_TIME = -1000.0, 25_500, 36_000, 6_300, 3600.0
_NACP_MOST = 11
_LAT_MOST = 90.0


class RemoteId:
    """The drones of one line."""

    def __init__(self) -> None:
        self._names: dict[bytes, str] = {}
        self._operators: dict[bytes, tuple[float, float]] = {}

    def name(self, message: Any) -> None:
        """BASIC_ID: the id of a drone."""
        text = bytes(message.uas_id).partition(b"\0")[0].decode("ascii", "replace").strip()
        if text:
            if len(self._names) >= NAMES_MAX:
                del self._names[next(iter(self._names))]
            self._names[_key(message)] = text

    def system(self, message: Any) -> None:
        """SYSTEM: where the operator of a drone is."""
        if message.operator_latitude or message.operator_longitude:  # both 0: not known
            if len(self._operators) >= NAMES_MAX:
                del self._operators[next(iter(self._operators))]
            self._operators[_key(message)] = message.operator_latitude * 1e-7, message.operator_longitude * 1e-7

    def location(self, message: Any, now: float) -> tuple[str, float, dict[str, float]] | str:
        """LOCATION: a sample, or why there is none."""
        name = self._names.get(_key(message))
        if name is None:
            return Drop.ID
        if isnan(now):
            return Drop.TIME
        if not (message.latitude or message.longitude):  # both 0: not known
            return Drop.MISSING
        values = {"category": DRONE, "lat": message.latitude * 1e-7, "lon": message.longitude * 1e-7}
        operator = self._operators.get(_key(message))
        if operator is not None and abs(operator[0]) <= _LAT_MOST and abs(values["lat"]) <= _LAT_MOST:
            values["operator_m"] = inverse(values["lat"], values["lon"], *operator)[0]
        altitudes = [a for a in (message.altitude_barometric, message.altitude_geodetic) if a != _NO_ALTITUDE_M]
        if altitudes:
            values["alt_ft"] = altitudes[0] / FT_M
        if message.speed_horizontal < _NO_SPEED:
            values["gs_kt"] = message.speed_horizontal * 1e-2 / KT_MS
        if message.direction < _NO_DIRECTION:
            values["trk_deg"] = message.direction * 1e-2
        if abs(message.speed_vertical) < _NO_CLIMB:
            values["vs_fpm"] = message.speed_vertical * 1e-2 / FT_M * 60.0
        if message.horizontal_accuracy:
            values["nacp"] = float(min(message.horizontal_accuracy, _NACP_MOST))
        if message.status in (_ON_GROUND, _AIRBORNE):
            values["on_ground"] = float(message.status == _ON_GROUND)
        return name, _time(message.timestamp, now), values


def _key(message: Any) -> bytes:
    return bytes(message.id_or_mac).rstrip(b"\0") or bytes((message.get_srcSystem(),))


def _time(seconds: float, now: float) -> float:
    """The moment next to `now` that is so many seconds after a full hour."""
    if not 0.0 <= seconds < _NO_TIME:
        return now
    return seconds + HOUR_S * round((now - seconds) / HOUR_S)
