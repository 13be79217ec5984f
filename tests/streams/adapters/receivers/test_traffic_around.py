"""Gliders and ships: what ogn-parser and pyais read in the same lines. GDL 90: what its specification explains."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime
from functools import reduce
from operator import xor
from typing import Any

import ogn_parser
import pyais
import pytest

from watchkeeper.config.adapters.ogn import Ogn as OgnSettings
from watchkeeper.streams.adapters.base import Feed
from watchkeeper.streams.adapters.receivers.ais import Ais
from watchkeeper.streams.adapters.receivers.gdl90 import Gdl90, crc
from watchkeeper.streams.adapters.receivers.ogn import Ogn, hello
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.messages import COLUMN, Kind

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC).timestamp()
Row = tuple[str, float, dict[str, float]]


def pushed(feed: Feed, text: str, now: float = math.nan) -> tuple[list[Row], Batch | None]:
    feed.push(text.encode(), now)
    feed.close()
    batch = feed.take()
    if batch is None:
        return [], None
    cols = batch.kinds[Kind.ADSB]
    rows = []
    for i in range(len(cols)):
        values = dict(zip(COLUMN[Kind.ADSB], cols.data[:, i].tolist(), strict=True))
        rows.append((batch.ids[cols.vid[i]], float(cols.t[i]), {k: v for k, v in values.items() if v == v}))
    return rows, batch


# -- gliders ----------------------------------------------------------------------------------------------------------


def glider(draw: random.Random, k: int) -> str:
    place = (f"{draw.randrange(90):02d}{draw.uniform(0, 59.99):05.2f}{draw.choice('NS')}/"
             f"{draw.randrange(180):03d}{draw.uniform(0, 59.99):05.2f}{draw.choice('EW')}'")  # fmt: skip
    motion = f"{draw.randrange(1, 361):03d}/{draw.randrange(300):03d}/A={draw.randrange(30_000):06d}"
    extra = f" !W{draw.randrange(10)}{draw.randrange(10)}!" if k % 2 else ""
    address = f"id{draw.choice((5, 6, 7)):02X}{draw.randrange(1 << 24):06X}"
    tail = f"{extra} {address} {draw.randrange(-900, 900):+04d}fpm +0.5rot 8.8dB 0e +1.2kHz gps2x3"
    return f"FLR{address[4:]}>OGFLR,qAS,LFMX:/12{k % 60:02d}{k // 60 % 60:02d}h{place}{motion}{tail}"


def test_gliders_are_what_ogn_parser_reads() -> None:
    draw = random.Random(1)
    lines = [glider(draw, k) for k in range(500)]
    found, _ = pushed(Ogn(), "\r\n".join(lines) + "\r\n", NOON + 3600)
    assert len(found) == len(lines)
    for line, (name, t, values) in zip(lines, found, strict=True):
        theirs = ogn_parser.parse(line)[0]["aprs_packet"]["position"]
        assert int(name.removeprefix("~"), 16) == theirs["address"]
        assert name.startswith("~") == (theirs["address_type"] != 1)
        assert f"{datetime.fromtimestamp(t, UTC):%H%M%S}h" == theirs["timestamp"]
        assert (values["lat"], values["lon"]) == pytest.approx((theirs["latitude"], theirs["longitude"]), abs=1e-9)
        assert (values["gs_kt"], values["trk_deg"]) == (theirs["speed"], theirs["course"])
        assert (values["alt_ft"], values["vs_fpm"]) == (theirs["altitude"], theirs["climb_rate"])


def test_gliders_before_midnight_of_pilots_who_object_and_without_a_date() -> None:
    line = "FLRDDA5BA>APRS,qAS,LFMX:/235958h4415.41N/00600.03E'342/049/A=005524 id{}DDA5BA -454fpm"
    midnight = NOON + 12 * 3600
    [(_, t, _)], _ = pushed(Ogn(), line.format("06") + "\n", midnight + 3)
    assert t == midnight - 2
    remark = "# aprsc 2.1.15 2 Mar 2024 00:00:01 GMT GLIDERN1\n"
    feed = Ogn()
    assert pushed(feed, line.format("06") + "\n" + remark + line.format("46") + "\n" + line.format("06"))[0][0][1] == t
    assert feed.refused == {"bad_time": 1, "no_track": 1}
    settings = OgnSettings(url="tcp://a:1", filter="r/44/6/100")
    assert hello(settings) == b"user N0CALL pass -1 vers watchkeeper 1 filter r/44/6/100\r\n"


# -- ships ------------------------------------------------------------------------------------------------------------


def tagged(sentence: str, t: int) -> str:
    tag = f"s:pier,c:{t}"
    return f"\\{tag}*{reduce(xor, tag.encode()):02X}\\{sentence}"


def test_ships_are_what_pyais_reads() -> None:
    draw = random.Random(2)
    lines, wanted, names = [], [], {}
    for k in range(400):
        mmsi = f"{draw.randrange(1, 10**9):09d}"
        message: dict[str, Any] = {
            "type": draw.choice((1, 2, 3, 18, 19, 27)), "mmsi": mmsi, "lat": draw.uniform(-90, 90),
            "lon": draw.uniform(-180, 180), "course": draw.uniform(0, 359.9),
        }  # fmt: skip
        message["speed"] = draw.uniform(0, 60) if message["type"] == 27 else draw.uniform(0, 102.2)
        sentences = pyais.encode_dict(message, talker_id="AI", seq_id=k % 10)
        lines += [tagged(sentence, 1709294400 + k) for sentence in sentences]
        wanted.append((1709294400 + k, pyais.decode(*sentences)))
        if k % 10 == 0:
            name = f"SHIP {k}"
            lines += pyais.encode_dict({"type": 5, "mmsi": mmsi, "shipname": name}, talker_id="AI", seq_id=k % 10)
            names[mmsi] = name
    feed = Ais()
    found, batch = pushed(feed, "\r\n".join(lines))
    assert not feed.refused
    assert len(found) == len(wanted)
    for (name, t, values), (when, theirs) in zip(found, wanted, strict=True):
        assert (int(name), t) == (theirs.mmsi, when)
        # pyais rounds to six places
        assert (values["lat"], values["lon"]) == pytest.approx((theirs.lat, theirs.lon), abs=6e-7)
        assert (values["gs_kt"], values["trk_deg"]) == pytest.approx((theirs.speed, theirs.course), abs=1e-9)
        assert values["on_ground"] == 1
    assert batch is not None
    assert batch.callsigns == names


def test_ships_in_parts_that_are_lost_and_without_a_position() -> None:
    parts = pyais.encode_dict({"type": 5, "mmsi": "366053209", "shipname": "TEST"}, talker_id="AI")
    nowhere = pyais.encode_dict({"type": 1, "mmsi": "366053209", "lat": 91, "lon": 181}, talker_id="AI")
    feed = Ais()
    assert pushed(feed, "\n".join([parts[1], *nowhere]) + "\n", NOON)[0] == []
    assert feed.refused == {"missing_field": 1}
    feed = Ais()
    here = pyais.encode_dict({"type": 1, "mmsi": "366053209", "lat": 1, "lon": 2}, talker_id="AI")
    assert pushed(feed, here[0][:-1] + "x\n" + here[0])[0] == []
    assert feed.refused == {"checksum": 1, "bad_time": 1}


# -- GDL 90 -----------------------------------------------------------------------------------------------------------

# The examples of "GDL 90 Data Interface Specification", 560-1058-00 Rev A: a heartbeat with its checksum, a report.
HEARTBEAT = bytes.fromhex("7e008141dbd00802b38b7e")
REPORT = bytes.fromhex("1400ab45491fef15a889780f09a907b00120014e3832355620202000")


def framed(message: bytes) -> bytes:
    whole = message + crc(message).to_bytes(2, "little")
    escaped = whole.replace(b"\x7d", b"\x7d\x5d").replace(b"\x7e", b"\x7d\x5e")
    return b"\x7e" + escaped + b"\x7e"


def test_gdl90_is_what_its_specification_explains() -> None:
    assert framed(HEARTBEAT[1:-3]) == HEARTBEAT
    feed = Gdl90()
    feed.push(HEARTBEAT + framed(REPORT), math.nan)
    batch = feed.take()
    assert batch is not None
    assert (batch.ids, batch.callsigns) == (["ab4549"], {"ab4549": "N825V"})
    cols = batch.kinds[Kind.ADSB]
    values = dict(zip(COLUMN[Kind.ADSB], cols.data[:, 0].tolist(), strict=True))
    assert (values["lat"], values["lon"]) == pytest.approx((44.90708, -122.99488), abs=3e-5)
    wanted = {
        "alt_ft": 5000,
        "gs_kt": 123,
        "trk_deg": 45,
        "vs_fpm": 64,
        "nic": 10,
        "nacp": 9,
        "on_ground": 0,
        "emergency": 0,
    }
    assert {name: values[name] for name in wanted} == wanted
    assert not feed.refused


def test_gdl90_says_what_a_crew_declares() -> None:
    feed = Gdl90()
    feed.push(HEARTBEAT + framed(REPORT[:27] + b"\x40"), math.nan)
    batch = feed.take()
    assert batch is not None
    assert batch.kinds[Kind.ADSB].data[COLUMN[Kind.ADSB]["emergency"]].tolist() == [4.0]


def test_gdl90_escapes_and_what_is_not_known() -> None:
    feed = Gdl90()
    report = bytearray(REPORT)
    report[2:5] = b"\x7d\x7e\x7d"
    report[1] = 1  # not an ICAO address
    report[11:18] = bytes.fromhex("fff000fff80000")
    feed.push(framed(bytes(report)) + framed(b"\x14\0") + framed(REPORT)[:-4] + b"\0\0\x7e", NOON)
    batch = feed.take()
    assert batch is not None
    assert batch.ids == ["~7d7e7d"]
    there = {
        name for name, v in zip(COLUMN[Kind.ADSB], batch.kinds[Kind.ADSB].data[:, 0].tolist(), strict=True) if v == v
    }
    assert there == {"lat", "lon", "on_ground", "nic", "nacp", "emergency", "category"}
    assert feed.refused == {"missing_field": 1, "checksum": 1}


@pytest.mark.parametrize(
    ("code", "fpm"),
    [(0x000, 0.0), (0x001, 64.0), (0xFFF, -64.0), (0x1FE, 32_640.0), (0xE02, -32_640.0),
     (0x1FF, math.nan), (0x7FF, math.nan), (0x800, math.nan), (0x801, math.nan), (0xE01, math.nan)],
)  # fmt: skip
def test_gdl90_climbs_of_codes_that_are_not_used_are_none(code: int, fpm: float) -> None:
    feed = Gdl90()
    report = bytearray(REPORT)
    report[15:17] = (report[15] & 0xF0 | code >> 8, code & 0xFF)
    feed.push(framed(bytes(report)), NOON)
    batch = feed.take()
    assert batch is not None
    assert batch.kinds[Kind.ADSB].data[COLUMN[Kind.ADSB]["vs_fpm"], 0] == pytest.approx(fpm, nan_ok=True)
