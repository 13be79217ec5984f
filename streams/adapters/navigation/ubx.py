"""UBX of u-blox receivers, live and recorded: the GPS of one vehicle.

A message: b5 62, class, number, length (two bytes, little-endian), payload, two bytes of checksum (8-bit Fletcher).

    NAV-PVT     01 07   time, fix, satellites, position, altitude, velocity north, east, down, accuracy: a sample
    NAV-DOP     01 04   hdop
    NAV-STATUS  01 03   spoofing_state
    MON-RF      0a 38   noise, agc, jamming, jamming_state, of the worst antenna

The last three are taken along by the next NAV-PVT. Receivers send NMEA between these messages; it is passed over.
"""

from __future__ import annotations

import struct
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from watchkeeper.config.adapters.ubx import Ubx as Settings
from watchkeeper.streams.adapters.base import AdapterDeclaration, FeedLog, Sample, Way
from watchkeeper.streams.adapters.navigation.epochs import Said
from watchkeeper.streams.adapters.rows import Rows
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.base import Format
from watchkeeper.streams.messages import Drop, Kind

SYNC = b"\xb5\x62"
CHECKSUM = "checksum"
# Longer than every message that is sent without being asked for.
PAYLOAD_MAX = 8192
# More than a second of NMEA at 115,200 baud: so many bytes without a message are another protocol.
STRANGE_BYTES = 12_000
_PVT, _DOP, _STATUS, _RF = (1, 7), (1, 4), (1, 3), (10, 56)
# iTOW year month day hour min sec valid tAcc nano fix flags flags2 numSV lon lat height hMSL hAcc vAcc velN velE velD
# gSpeed headMot sAcc
_PVT_FORM = struct.Struct("<IHBBBBBBIiBBBBiiiiIIiiiiiI")
_VALID_TIME = 0b11
_FIX_OK, _DIFFERENTIAL = 1, 2
# fixType: none, dead reckoning, 2-D, 3-D, 3-D with dead reckoning, time only
_FIX = {0: 0.0, 1: 1.0, 2: 2.0, 3: 3.0, 4: 3.0, 5: 0.0}


class Ubx:
    """One receiver; see adapters/base.py."""

    def __init__(self, *, via: str = "", id: str = "gps") -> None:  # noqa: A002  a setting
        self.refused: Counter[str] = Counter()
        self._name = id
        self._rows = Rows(via)
        self._said = Said()
        self._t = 0.0
        self._rest = b""
        self._strange = 0
        self._messages = 0

    def take(self) -> Batch | None:
        """See Feed."""
        return self._rows.take()

    def push(self, data: bytes, now: float) -> None:  # noqa: ARG002  messages have their own time
        """See Feed."""
        data, at = self._rest + data, 0
        while True:
            start = data.find(SYNC, at)
            if start < 0:
                # the last byte may be the first half of a mark
                keep = data[-1:] if data[-1:] == SYNC[:1] and len(data) > at else b""
                self._skip(len(data) - at - len(keep))
                self._rest = keep
                return
            self._skip(start - at)
            if len(data) < start + 6:
                break
            length = int.from_bytes(data[start + 4 : start + 6], "little")
            if length > PAYLOAD_MAX:
                self.refused[Drop.SIZE] += 1
                at = start + 1
                continue
            if len(data) < start + length + 8:
                break
            if _fletcher(data[start + 2 : start + 6 + length]) != data[start + 6 + length : start + 8 + length]:
                self.refused[CHECKSUM] += 1
                at = start + 1
                continue
            at = start + length + 8
            self._strange, self._messages = 0, self._messages + 1
            self._message((data[start + 2], data[start + 3]), data[start + 6 : start + 6 + length])
        self._rest = data[start:]

    def close(self) -> None:
        """See Feed."""
        if len(self._rest) > 1 or not self._messages:
            self.refused[Drop.SYNTAX] += 1
        self._rest = b""

    def _skip(self, count: int) -> None:
        before, self._strange = self._strange, self._strange + count
        if before <= STRANGE_BYTES < self._strange:
            self.refused[Drop.SYNTAX] += 1

    def _message(self, number: tuple[int, int], payload: bytes) -> None:
        try:
            if number == _PVT:
                self._position(payload)
            elif number == _DOP:
                self._said.note(self._t, {"hdop": int.from_bytes(payload[12:14], "little") * 0.01})
            elif number == _STATUS:
                self._said.note(self._t, {"spoofing_state": float(payload[7] >> 3 & 3)})
            elif number == _RF:
                self._said.note(self._t, _radio(payload))
        except (struct.error, IndexError, ValueError, OverflowError):
            self.refused[Drop.TYPE] += 1

    def _position(self, payload: bytes) -> None:
        (_, year, month, day, hour, minute, second, valid, _, nano, fix, flags, _, sats, lon, lat, _, alt, h_acc, v_acc,
         north, east, down, _, _, s_acc) = _PVT_FORM.unpack_from(payload)  # fmt: skip
        if valid & _VALID_TIME != _VALID_TIME:
            self.refused[Drop.TIME] += 1
            return
        # 60 is a leap second, and nano may be negative
        begin = datetime(year, month, day, hour, minute, tzinfo=UTC)
        self._t = (begin + timedelta(seconds=second)).timestamp() + nano * 1e-9
        kind = _FIX.get(fix, 0.0) if flags & _FIX_OK else 0.0
        if kind == 3.0:
            carrier = flags >> 6 & 3
            kind = (4.0 if flags & _DIFFERENTIAL else 3.0) if not carrier else 4.0 + carrier
        values = {"fix": kind, "sats": float(sats)}
        if kind >= 1.0:
            values |= {"lat": lat * 1e-7, "lon": lon * 1e-7, "alt_m": alt * 1e-3}
            values |= {"gps_vx": north * 1e-3, "gps_vy": east * 1e-3, "gps_vz": down * 1e-3}
        values |= {"eph": h_acc * 1e-3, "epv": v_acc * 1e-3, "speed_acc": s_acc * 1e-3}
        self._rows.add(Kind.GPS, self._name, self._t, {**self._said.take(self._t), **values})


def _radio(payload: bytes) -> dict[str, float]:
    """Of several antennas the one that is jammed most."""
    blocks = [payload[at : at + 24] for at in range(4, 4 + 24 * payload[1], 24)]
    worst = max(blocks, key=lambda block: (block[1] & 3, block[16]))
    noise, agc = (int.from_bytes(worst[at : at + 2], "little") for at in (12, 14))
    return {"noise": noise, "agc": agc, "jamming": float(worst[16]), "jamming_state": float(worst[1] & 3)}


def _fletcher(data: bytes) -> bytes:
    a = b = 0
    for byte in data:
        a = a + byte & 0xFF
        b = b + a & 0xFF
    return bytes((a, b))


def open_ubx(path: Path) -> FeedLog:
    """A recording, such as u-center writes."""
    return FeedLog(path, "ubx", Ubx)


UBX = AdapterDeclaration(
    name="ubx",
    help="UBX of u-blox receivers, with their words on jamming and spoofing",
    docs="adapters/navigation.md",
    settings=Settings,
    feed=f"{__name__}:Ubx",
    takes=("via", "id"),
    ways=(Way.STREAM,),
    sample=Sample(
        # NAV-STATUS, then NAV-PVT
        data=bytes.fromhex(
            "b562010310005040531c0301000800000000000000001f9ab56201075c005040531ce80703010c000007000000000065cd1d"
            "03010009c0b4b3ffc046b21e18f0010080380100dc050000c4090000e8030000d00700009cffffffbc08000000000000c800"
            "0000000000007800000000000000000000000000000090a3"
        ),
        settings={"url": "serial:///dev/ttyACM0?baud=115200", "id": "rover"},
    ),
    formats=(Format("ubx", f"{__name__}:open_ubx", (".ubx", ".ubx.gz")),),
)
