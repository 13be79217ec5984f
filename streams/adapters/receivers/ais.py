"""AIS of ships: `!AIVDM` sentences of receivers and services, live and recorded.

    !AIVDM,<parts>,<part>,<sequence>,<channel>,<payload>,<fill bits>*hh

A payload is text of six bits a character. Positions come in messages 1, 2, 3 (class A), 18, 19 (class B) and 27 (by
satellite), names in 5 and 24. A ship is called by its MMSI, its name is the callsign for people. Samples are of kind
`adsb` with `on_ground` 1: a ship is watched by kinematics and silence, and is no conflict for aircraft.

Time: that of a tag block; live without one the arrival. A recording without tag blocks has no time and is refused.
"""

from __future__ import annotations

from collections import Counter
from math import isnan
from pathlib import Path

from watchkeeper.config.adapters.ais import Ais as Settings
from watchkeeper.streams.adapters.base import AdapterDeclaration, FeedLog, LineFeed, Sample, Way
from watchkeeper.streams.adapters.receivers.reports import SHIP, Reports
from watchkeeper.streams.adapters.sentences import SENTENCE_MAX, Sentence, sentence_of
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.base import Format
from watchkeeper.streams.messages import Drop

CHECKSUM = "checksum"
# Messages have at most five parts, and some channels are heard at a time.
PARTS_MAX, UNFINISHED_MAX = 5, 64
_CLASS_A, _CLASS_B, _FAR, _STATIC, _NAME = (1, 2, 3), (18, 19), 27, 5, 24
# Where speed begins, in bits; position, course and heading follow in one order.
_SPEED_BIT = dict.fromkeys(_CLASS_A, 50) | dict.fromkeys(_CLASS_B, 46)
_LEAST_BITS = dict.fromkeys((*_CLASS_A, *_CLASS_B), 168) | {_FAR: 95, _STATIC: 232, _NAME: 160}
_NO_SPEED, _NO_COURSE, _NO_LON, _NO_LAT = 1023, 3600, 181.0, 91.0
_LETTERS = "@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_ !\"#$%&'()*+,-./0123456789:;<=>?"


class _Bits:
    """The bits of a payload."""

    def __init__(self, payload: str, fill: int) -> None:
        value = 0
        for c in payload:
            code = ord(c) - 48
            code = code - 8 if code > 40 else code
            if not 0 <= code < 64:
                raise ValueError(payload)
            value = value << 6 | code
        self.count = 6 * len(payload) - fill
        self._value = value >> fill

    def unsigned(self, at: int, size: int) -> int:
        """A whole number."""
        return self._value >> self.count - at - size & (1 << size) - 1

    def signed(self, at: int, size: int) -> int:
        """A whole number in two's complement."""
        value = self.unsigned(at, size)
        return value - (1 << size) if value >> size - 1 else value

    def text(self, at: int, letters: int) -> str:
        """Text of six bits a letter, up to the first @."""
        found = "".join(_LETTERS[self.unsigned(at + 6 * k, 6)] for k in range(letters))
        return found.partition("@")[0].strip()


class Ais(LineFeed):
    """One receiver; see adapters/base.py."""

    def __init__(self, *, via: str = "") -> None:
        super().__init__(SENTENCE_MAX)
        self.refused: Counter[str] = Counter()
        self._reports = Reports(via=via)
        # (sequence, channel) to the parts so far and the time of the first
        self._parts: dict[tuple[str, str], tuple[list[str], float]] = {}

    def take(self) -> Batch | None:
        """See Feed."""
        return self._reports.take()

    def _line(self, line: bytes | None, now: float) -> None:
        if line is None:
            self.refused[Drop.SIZE] += 1
            return
        if not (text := line.strip()) or text[:1] == b"#":
            return
        sentence = sentence_of(text)
        if sentence is None:
            self.refused[CHECKSUM if text[:1] in b"!$\\" else Drop.SYNTAX] += 1
        elif sentence.word in ("VDM", "VDO"):
            try:
                self._part(sentence, now)
            except (ValueError, IndexError):
                self.refused[Drop.SYNTAX] += 1

    def _part(self, sentence: Sentence, now: float) -> None:
        many, number, sequence, channel, payload, fill = sentence.cells[:6]
        count, part, bits = int(many), int(number), int(fill)
        if not (1 <= part <= count <= PARTS_MAX and 0 <= bits < 6 and payload):
            raise ValueError(sentence.cells)
        t = now if sentence.t is None else sentence.t
        key = (sequence, channel)
        if count > 1:
            before, began = self._parts.pop(key, ([], t))
            if len(before) != part - 1:  # a part was lost: the message is too
                self.refused[Drop.MISSING] += 1
                before, began = [], t
                if part > 1:
                    return
            before = [*before, payload]
            if part < count:
                if len(self._parts) >= UNFINISHED_MAX:
                    del self._parts[next(iter(self._parts))]
                self._parts[key] = before, began
                return
            payload, t = "".join(before), began
        self._message(_Bits(payload, bits), t)

    def _message(self, bits: _Bits, t: float) -> None:
        kind = bits.unsigned(0, 6) if bits.count >= 38 else 0
        if bits.count < _LEAST_BITS.get(kind, 0):
            self.refused[Drop.MISSING] += 1
            return
        if kind not in _LEAST_BITS:
            return
        name = f"{bits.unsigned(8, 30):09d}"
        if kind == _STATIC or (kind == _NAME and bits.unsigned(38, 2) == 0):
            self._reports.call(name, bits.text(112 if kind == _STATIC else 40, 20))
        elif kind != _NAME:
            if isnan(t):
                self.refused[Drop.TIME] += 1
                return
            lat, lon, values = _far(bits) if kind == _FAR else _near(bits, _SPEED_BIT[kind])
            if lat != _NO_LAT and lon != _NO_LON:
                self._reports.place(name, t, lat, lon, {**values, "alt_ft": 0.0, "on_ground": 1.0, "category": SHIP})


def _near(bits: _Bits, at: int) -> tuple[float, float, dict[str, float]]:
    """Latitude, longitude and motion of messages 1, 2, 3, 18 and 19."""
    values = {}
    if (speed := bits.unsigned(at, 10)) != _NO_SPEED:
        values["gs_kt"] = speed / 10.0
    if (course := bits.unsigned(at + 66, 12)) < _NO_COURSE:
        values["trk_deg"] = course / 10.0
    return bits.signed(at + 39, 27) / 600_000.0, bits.signed(at + 11, 28) / 600_000.0, values


def _far(bits: _Bits) -> tuple[float, float, dict[str, float]]:
    """The same of message 27, in tenths of a minute and whole knots."""
    values = {}
    if (speed := bits.unsigned(79, 6)) != 63:
        values["gs_kt"] = float(speed)
    if (course := bits.unsigned(85, 9)) < 360:
        values["trk_deg"] = float(course)
    return bits.signed(62, 17) / 600.0, bits.signed(44, 18) / 600.0, values


def open_ais(path: Path) -> FeedLog:
    """A recording."""
    return FeedLog(path, "ais", Ais)


AIS = AdapterDeclaration(
    name="ais",
    help="AIS of ships: AIVDM sentences",
    docs="adapters/ships.md",
    settings=Settings,
    feed=f"{__name__}:Ais",
    ways=(Way.STREAM,),
    datagrams=True,
    sample=Sample(
        data=b"\\s:pier,c:1709294400*36\\!AIVDM,1,1,,A,15M67FO01sG@9s0E`Ah3RBnuP000,0*3C\r\n",
        settings={"url": "udp://0.0.0.0:10110"},
    ),
    formats=(Format("ais", f"{__name__}:open_ais", (".ais", ".ais.gz", ".aivdm")),),
)
