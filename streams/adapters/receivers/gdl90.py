"""GDL 90, the language of cockpit receivers (Stratux, SkyEcho, Stratus …), usually UDP port 4000; live and recorded.

A message between two 7e, with 7d before a changed 7d or 7e, ends with a CRC of 16 bits (polynomial 1021, low byte
first). "GDL 90 Data Interface Specification", 560-1058-00 Rev A:

     0   heartbeat         seconds since midnight UTC
    10   ownship report    as a traffic report
    20   traffic report    st aaaaaa llllll nnnnnn ddda ni hh hvv vtt ee cccccccc px: alert, kind of address, address,
                           latitude and longitude (24 bits, 180/2^23 deg), pressure altitude (12 bits, 25 ft from
                           -1,000), misc, NIC and NACp, speed [kt] and climb [64 ft/min] (12 bits each), track (360/256
                           deg), category, callsign, emergency (as DO-260B numbers it)

Other messages (uplink, ownship's geometric altitude, programs' own) say nothing to us. An address that is not ICAO's
has a leading `~`. Reports of aircraft without a position (0, 0 with NIC 0) are left out.

Time: live the arrival; in a recording the seconds of the heartbeat before, which begin at 0.
"""

from __future__ import annotations

from collections import Counter
from math import isnan, nan
from pathlib import Path

from watchkeeper.config.adapters.gdl90 import Gdl90 as Settings
from watchkeeper.streams.adapters.base import AdapterDeclaration, FeedLog, Lines, Sample, Way
from watchkeeper.streams.adapters.receivers.reports import Reports
from watchkeeper.streams.adapters.senderclock import SenderClock
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.base import Format
from watchkeeper.streams.messages import Drop

CHECKSUM = "checksum"
FLAG, ESCAPE, CHANGED = b"\x7e", 0x7D, 0x20
# The longest message, an uplink, has 436 bytes, each of which may be escaped.
MESSAGE_MAX = 1024
HEARTBEAT, OWNSHIP, TRAFFIC = 0, 10, 20
HEARTBEAT_BYTES, REPORT_BYTES = 7, 28
DEG = 180.0 / (1 << 23)
NO_ALTITUDE = NO_SPEED = 0xFFF
NO_CLIMB = 0x800
# In 64 ft/min, either way; codes beyond it say that there is none, or are not used.
CLIMB_MOST = 0x1FE
AIRBORNE, TRUE_TRACK = 8, 1
# The categories of GDL 90 end here; our own for ships is beyond.
CATEGORIES = 40
_NOT_ICAO = (1, 3, 4)


def _table() -> list[int]:
    table = []
    for byte in range(256):
        rest = byte << 8
        for _ in range(8):
            rest = (rest << 1 ^ (0x1021 if rest & 0x8000 else 0)) & 0xFFFF
        table.append(rest)
    return table


_CRC = _table()


def crc(data: bytes) -> int:
    """The checksum of a message."""
    rest = 0
    for byte in data:
        rest = _CRC[rest >> 8] ^ (rest << 8 & 0xFFFF) ^ byte
    return rest


class Gdl90:
    """One receiver; see adapters/base.py."""

    def __init__(self, *, via: str = "") -> None:
        self.refused: Counter[str] = Counter()
        self._lines = Lines(MESSAGE_MAX, FLAG)
        self._reports = Reports(via=via)
        self._clock = SenderClock()
        self._beat_t = nan

    def take(self) -> Batch | None:
        """See Feed."""
        return self._reports.take()

    def push(self, data: bytes, now: float) -> None:
        """See Feed."""
        for framed in self._lines.push(data):
            if framed is None:
                self.refused[Drop.SIZE] += 1
                continue
            message = _plain(framed)
            if len(message) < 3:
                self.refused[Drop.SYNTAX] += 1
            elif crc(message[:-2]) != int.from_bytes(message[-2:], "little"):
                self.refused[CHECKSUM] += 1
            else:
                self._message(message[:-2], now)

    def close(self) -> None:
        """See Feed."""
        self.refused[Drop.SYNTAX] += sum(1 for _ in self._lines.close())
        self.refused += Counter()  # without zeros

    def _message(self, data: bytes, now: float) -> None:
        kind = data[0]
        if kind == HEARTBEAT and len(data) >= HEARTBEAT_BYTES and isnan(now):
            self._beat_t = self._clock.time(float((data[2] >> 7) << 16 | data[4] << 8 | data[3]), nan)
        if kind not in (OWNSHIP, TRAFFIC):
            return
        if len(data) < REPORT_BYTES:
            self.refused[Drop.MISSING] += 1
            return
        t = self._beat_t if isnan(now) else now
        if isnan(t):
            self.refused[Drop.TIME] += 1
            return
        lat, lon = (_signed(data[at : at + 3]) * DEG for at in (5, 8))
        nic, nacp = data[13] >> 4, data[13] & 15
        if lat == lon == 0.0 and not nic:
            return
        quality = {"nic": float(nic), "nacp": float(nacp), "emergency": float(min(data[27] >> 4, 7))}
        if 0 < data[18] < CATEGORIES:
            quality["category"] = float(data[18])
        name = ("~" if data[1] & 15 in _NOT_ICAO else "") + data[2:5].hex()
        self._reports.call(name, data[19:27].decode("ascii", "replace").strip("\0 "))
        self._reports.place(name, t, lat, lon, {**quality, **_motion(data)})


def _motion(data: bytes) -> dict[str, float]:
    misc = data[12] & 15
    values = {"on_ground": float(not misc & AIRBORNE)}
    if (altitude := data[11] << 4 | data[12] >> 4) != NO_ALTITUDE:
        values["alt_ft"] = altitude * 25.0 - 1000.0
    if (speed := data[14] << 4 | data[15] >> 4) != NO_SPEED:
        values["gs_kt"] = float(speed)
    climb = (data[15] & 15) << 8 | data[16]
    if abs(climb := climb - 4096 if climb & 0x800 else climb) <= CLIMB_MOST:
        values["vs_fpm"] = 64.0 * climb
    if misc & 3 == TRUE_TRACK:  # the others are headings, or nothing
        values["trk_deg"] = data[17] * 360.0 / 256.0
    return values


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _plain(framed: bytes) -> bytes:
    """A message without its escapes; nothing for one that ends in an escape."""
    first, *pieces = framed.split(bytes((ESCAPE,)))
    if not all(pieces):
        return b""
    return first + b"".join(bytes((piece[0] ^ CHANGED,)) + piece[1:] for piece in pieces)


def open_gdl90(path: Path) -> FeedLog:
    """A recording."""
    return FeedLog(path, "gdl90", Gdl90)


GDL90 = AdapterDeclaration(
    name="gdl90",
    help="GDL 90 of cockpit receivers (Stratux, SkyEcho)",
    docs="adapters/gdl90.md",
    settings=Settings,
    feed=f"{__name__}:Gdl90",
    ways=(Way.STREAM,),
    datagrams=True,
    sample=Sample(
        # a heartbeat, and the traffic report that the specification explains
        data=bytes.fromhex("7e008141dbd00802b38b7e7e1400ab45491fef15a889780f09a907b00120014e383235562020200057d67e"),
        settings={"url": "udp://0.0.0.0:4000"},
    ),
    formats=(Format("gdl90", f"{__name__}:open_gdl90", (".gdl90", ".gdl90.gz", ".gdl")),),
)
