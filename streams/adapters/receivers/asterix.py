"""ASTERIX of surveillance systems, categories 021 (ADS-B reports) and 062 (system tracks); extra `asterix`.

libasterix (MIT) takes records apart. A data block: category, length (two bytes, with these three), records.

    021   080 address, 131 or 130 position, 145 flight level, 160 ground speed and track, 155 or 157 climb, 146 selected
          altitude, 170 callsign, 020 category, 070 squawk, 040 on the ground, 090 NACp and NIC, 200 emergency, 260
          advisory of TCAS, 073 or 071 time of day
    062   380 address and callsign, or 040 track number with 010 its source; 105 position, 136 flight level, 185
          velocity, 220 climb, 060 squawk, 070 time of day

The bytes do not say their edition. Those of EDITIONS are tried, the newest first, until all records of a block can be
read and mean something (a position on Earth, a time of the day); that one is kept for the stream. A block that fits
none is refused (`edition`); other categories belong to other systems and are passed over.

Time of day is UTC. Live the date is that of the arrival; a recording's samples count from the midnight before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import atan2, degrees, hypot, isnan, nan
from pathlib import Path
from typing import Any

from watchkeeper.config.adapters.asterix import Asterix as Settings
from watchkeeper.streams.adapters.base import AdapterDeclaration, FeedLog, Sample, Way
from watchkeeper.streams.adapters.receivers.reports import Reports, squawk_of
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.geo import KT_MS
from watchkeeper.streams.logs.base import Format
from watchkeeper.streams.messages import Drop

DAY_S = 86_400.0
EDITION = "edition"
EDITIONS: dict[int, tuple[str, ...]] = {
    21: ("2_7", "2_6", "2_5", "2_4", "2_3", "2_2", "2_1"),
    62: ("1_21", "1_20", "1_19", "1_18", "1_17", "1_16"),
}
_HEAD_BYTES = 3
# Systems send blocks of some hundred bytes, a datagram at most; one of noise costs time by the byte, in each edition.
BLOCK_MAX = 8192
# Emitter category of 021/020 to ours (streams/messages.py).
_CATEGORY: dict[int, float] = {
    **{n: float(n) for n in range(1, 7)}, 10: 7.0, 11: 9.0, 12: 10.0, 13: 14.0, 14: 15.0, 15: 12.0, 16: 11.0, 20: 17.0,
    21: 18.0,
}  # fmt: skip
Track = tuple[str, str, float, float, float, dict[str, float]]
"""Id, callsign, time of day, latitude, longitude, and the rest."""


class _UnreadableError(Exception):
    """A record that means nothing in this edition."""


class Asterix:
    """One stream; see adapters/base.py."""

    def __init__(self, *, via: str = "") -> None:
        # an optional dependency, and a large one
        from asterix import base, generated  # noqa: PLC0415

        self.refused: Counter[str] = Counter()
        self._base = base
        self._tried = {
            category: [getattr(generated, f"Cat_{category:03d}_{edition}") for edition in editions]
            for category, editions in EDITIONS.items()
        }
        self._reports = Reports(via=via)
        self._rest = b""
        self._midnight, self._last_s = 0.0, nan

    def take(self) -> Batch | None:
        """See Feed."""
        return self._reports.take()

    def push(self, data: bytes, now: float) -> None:
        """See Feed."""
        data, at = self._rest + data, 0
        while len(data) - at >= _HEAD_BYTES:
            size = int.from_bytes(data[at + 1 : at + 3], "big")
            if size <= _HEAD_BYTES:
                # no block begins here: nothing tells where the next one does
                self.refused[Drop.SYNTAX] += 1
                at = len(data)
                break
            if at + size > len(data):
                break
            if data[at] in EDITIONS and size > BLOCK_MAX:
                self.refused[Drop.SIZE] += 1
            elif data[at] in EDITIONS:
                self._block(data[at], data[at : at + size], now)
            else:
                self.refused[Drop.SYNTAX] += data[at] == 0
            at += size
        self._rest = data[at:]

    def close(self) -> None:
        """See Feed."""
        if self._rest:
            self.refused[Drop.SYNTAX] += 1
        self._rest = b""

    def _block(self, category: int, block: bytes, now: float) -> None:
        editions = self._tried[category]
        for place, edition in enumerate(editions):
            try:
                tracks = list(self._records(edition, category, block))
            except _UnreadableError:
                continue
            if place:  # this is the one that the stream is in
                editions.insert(0, editions.pop(place))
            for track in tracks:
                self._take_in(track, now)
            return
        self.refused[EDITION] += 1

    def _records(self, edition: Any, category: int, block: bytes) -> Iterator[Track]:
        try:
            blocks: Any = self._base.RawDatablock.parse(self._base.Bits.from_bytes(block))
            records = edition.cv_uap.parse(blocks[0].get_raw_records())
            if isinstance(records, Exception):
                raise _UnreadableError
            for record in records:
                found = _report(record) if category == 21 else _track(record)
                if found is not None:
                    yield found
        except _UnreadableError:
            raise
        except Exception as error:  # whatever a library for well-formed data runs into
            raise _UnreadableError from error

    def _take_in(self, track: Track, now: float) -> None:
        name, callsign, seconds, lat, lon, values = track
        if isnan(now):
            if seconds < self._last_s - DAY_S / 2:
                self._midnight += DAY_S
            self._last_s = seconds
            t = self._midnight + seconds
        else:
            t = seconds + DAY_S * round((now - seconds) / DAY_S)
        self._reports.call(name, callsign)
        self._reports.place(name, t, lat, lon, values)


def _content(record: Any, *path: str) -> Any:
    """The content of an item or one of its parts; None where it is not there."""
    for name in path:
        item = record.get_item(name) if record is not None else None
        record = None if item is None else item.variation
    return None if record is None else record.content


def _number(record: Any, unit: str, *path: str) -> float:
    content = _content(record, *path)
    if content is None:
        return nan
    return float(content.as_quantity(unit) if unit else content.as_uint())


def _place(record: Any, *items: str) -> tuple[float, float] | None:
    for item in items:
        lat, lon = _number(record, "°", item, "LAT"), _number(record, "°", item, "LON")
        if not isnan(lat + lon):
            if abs(lat) > 90.0 or abs(lon) > 180.0:
                raise _UnreadableError
            return lat, lon
    return None


def _time(record: Any, *items: str) -> float:
    seconds = next((s for item in items if not isnan(s := _number(record, "s", item))), nan)
    if not seconds <= DAY_S:  # absent, or no time of the day
        raise _UnreadableError
    return seconds


def _known(**values: float | None) -> dict[str, float]:
    return {field: value for field, value in values.items() if value is not None and not isnan(value)}


def _squawk(record: Any, item: str) -> float | None:
    code = _content(record, item, "MODE3A")
    return None if code is None else squawk_of(f"{code.as_uint():04o}")


def _advisory(record: Any) -> float | None:
    """Whether a resolution advisory is on: the first of the 14 bits of ARA, or several threats, and not ended."""
    issued, several, ended = (_content(record, "260", part) for part in ("ARA", "MTE", "RAT"))
    if issued is None or several is None or ended is None:
        return None
    return float(bool(issued.as_uint() >> 13 or several.as_uint()) and not ended.as_uint())


def _category(record: Any) -> float | None:
    content = _content(record, "020")
    return None if content is None else _CATEGORY.get(content.as_uint())


def _report(record: Any) -> Track | None:
    """A record of category 021; None for one without an aircraft at a place."""
    address, place = _content(record, "080"), _place(record, "131", "130")
    if address is None or place is None:
        return None
    climb = _number(record, "ft/min", "155", "BVR")
    values = _known(
        alt_ft=100.0 * _number(record, "FL", "145"),
        gs_kt=3600.0 * _number(record, "NM/s", "160", "GS"),
        trk_deg=_number(record, "°", "160", "TA"),
        vs_fpm=_number(record, "ft/min", "157", "GVR") if isnan(climb) else climb,
        sel_alt_ft=_number(record, "ft", "146", "ALT"),
        nic=_number(record, "", "090", "NUCPNIC"),
        nacp=_number(record, "", "090", "NACP"),
        on_ground=_number(record, "", "040", "GBS"),
        squawk=_squawk(record, "070"),
        emergency=_number(record, "", "200", "PS"),
        tcas_ra=_advisory(record),
        category=_category(record),
    )
    return f"{address.as_uint():06x}", _text(record, "170"), _time(record, "073", "071"), *place, values


def _track(record: Any) -> Track | None:
    """A record of category 062."""
    place = _place(record, "105")
    if place is None:
        return None
    address, number = _content(record, "380", "ADR"), _content(record, "040")
    if address is not None:
        name = f"{address.as_uint():06x}"
    elif number is not None:
        source = [int(_number(record, "", "010", part)) for part in ("SAC", "SIC")]
        name = f"trk-{source[0]}-{source[1]}-{number.as_uint()}"
    else:
        raise _UnreadableError
    east, north = _number(record, "m/s", "185", "VX"), _number(record, "m/s", "185", "VY")
    values = _known(
        alt_ft=100.0 * _number(record, "FL", "136"),
        gs_kt=hypot(east, north) / KT_MS,
        trk_deg=degrees(atan2(east, north)) % 360.0,
        vs_fpm=_number(record, "ft/min", "220"),
        squawk=_squawk(record, "060"),
    )
    return name, _text(record, "380", "ID"), _time(record, "070"), *place, values


def _text(record: Any, *path: str) -> str:
    content = _content(record, *path)
    return "" if content is None else str(content.as_string()).strip()


def open_asterix(path: Path) -> FeedLog:
    """A recording: data blocks one behind the other."""
    return FeedLog(path, "asterix", Asterix)


ASTERIX = AdapterDeclaration(
    name="asterix",
    help="ASTERIX categories 021 and 062 of surveillance systems",
    docs="adapters/asterix.md",
    settings=Settings,
    feed=f"{__name__}:Asterix",
    ways=(Way.STREAM,),
    datagrams=True,
    sample=Sample(
        data=bytes.fromhex("15002683190329800102124fa4faffd27d284ca7b354604005787f9a080040001493b4512820"),
        settings={"url": "udp://0.0.0.0:8600", "via": "radar"},
    ),
    extra="watchkeeper[asterix]",
    formats=(Format("asterix", f"{__name__}:open_asterix", (".ast", ".asterix", ".ast.gz")),),
)
