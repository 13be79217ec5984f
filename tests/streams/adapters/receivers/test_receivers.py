"""Receivers' formats: SBS, Beast, AVR and readsb's JSON. However a stream is cut, its samples are the same."""

from __future__ import annotations

import gzip
import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import rs1090
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.fuzz import seals
from watchkeeper.streams.adapters.base import Feed, Lines
from watchkeeper.streams.adapters.receivers import cpr
from watchkeeper.streams.adapters.receivers.modes import Avr, Beast
from watchkeeper.streams.adapters.receivers.readsb import Readsb, ReadsbTrace
from watchkeeper.streams.adapters.receivers.reports import Reports
from watchkeeper.streams.adapters.receivers.sbs import Sbs
from watchkeeper.streams.adapters.receivers.squitter import Squitters
from watchkeeper.streams.adapters.senderclock import SenderClock
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.messages import COLUMN, Kind

from where import SAMPLES

Row = tuple[str, float, dict[str, float]]


def rows(*batches: Batch | None) -> list[Row]:
    """Samples as (id, t, fields that are there)."""
    found: list[Row] = []
    for batch in batches:
        if batch is None:
            continue
        cols = batch.kinds[Kind.ADSB]
        for i in range(len(cols)):
            values = {name: float(cols.data[c, i]) for name, c in COLUMN[Kind.ADSB].items()}
            there = {name: value for name, value in values.items() if not math.isnan(value)}
            found.append((batch.ids[cols.vid[i]], float(cols.t[i]), there))
    return found


def recording(name: str) -> Path:
    path = SAMPLES / name
    if not path.exists():
        pytest.skip(f"no {path}: run `make data`")
    return path


# -- SBS ----------------------------------------------------------------------------------------------------------

SBS = b"""\
MSG,1,1,1,4CA7B3,1,2024/03/01,12:00:00.100,2024/03/01,12:00:00.200,EIN4TR  ,,,,,,,,,,,0\r
MSG,4,1,1,4CA7B3,1,2024/03/01,12:00:00.300,2024/03/01,12:00:00.300,,,450,91.5,,,-640,,,,,0\r
MSG,3,1,1,4CA7B3,1,2024/03/01,12:00:00.500,2024/03/01,12:00:00.500,,35000,,,51.25,-0.5,,,0,0,0,0\r
MSG,3,1,1,4CA7B3,1,2024/03/01,12:00:01.000,2024/03/01,12:00:01.000,,35000,,,51.26,-0.4,,,0,0,0,0\r
MSG,2,1,1,400F01,1,2024/03/01,12:00:01.500,2024/03/01,12:00:01.500,,0,12,270,51.5,-0.4,,,,,,-1\r
STA,,5,179,400AE7,10103,2008/11/28,14:58:51.153,2008/11/28,14:58:51.153,RM\r
"""
NOON = 1_709_294_400.0


def test_sbs_velocity_goes_with_the_next_position_once() -> None:
    feed = Sbs()
    feed.push(SBS, math.nan)
    batch = feed.take()
    first, second, third = rows(batch)
    assert first == (
        "4ca7b3",
        pytest.approx(NOON + 0.5, abs=1e-6),
        {"lat": 51.25, "lon": -0.5, "alt_ft": 35000, "gs_kt": 450, "trk_deg": 91.5, "vs_fpm": -640, "on_ground": 0},
    )
    assert second[2].keys() == {"lat", "lon", "alt_ft", "on_ground"}
    assert third[0] == "400f01"
    assert third[2]["on_ground"] == 1
    assert batch is not None
    assert batch.callsigns == {"4ca7b3": "EIN4TR"}
    assert not feed.refused
    assert feed.take() is None


def test_sbs_live_takes_the_time_of_arrival_unless_told_otherwise() -> None:
    position = SBS.split(b"\n")[2] + b"\n"
    for times, t in (("arrival", 99.0), ("message", NOON + 0.5)):
        feed = Sbs(times=times)  # type: ignore[arg-type]
        feed.push(position, 99.0)
        assert rows(feed.take())[0][1] == pytest.approx(t, abs=1e-6)


def test_sbs_a_velocity_of_long_ago_is_not_taken_along() -> None:
    feed = Sbs(times="arrival")
    lines = SBS.split(b"\n")
    feed.push(lines[1] + b"\n", 100.0)
    feed.push(lines[2] + b"\n", 103.0)
    assert "gs_kt" not in rows(feed.take())[0][2]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"MSG,3,1,1,XYZ,1,2024/03/01,12:00:00.5,,,,,,,51,0", "bad_id"),
        (b"MSG,3,1,1,4CA7B3,1,2024/13/01,12:00:00.5,,,,,,,51,0", "bad_time"),
        (b"MSG,3,1,1,4CA7B3,1,2024/03/01,noon,,,,,,,51,0", "bad_time"),
        (b"MSG,3,1,1,4CA7B3,1,2024/03/01,12:00:00.5,,,,high,,,51,0", "wrong_type"),
        (b"GET / HTTP/1.1", "malformed"),
        (b"MSG,3," + b"9" * 600, "too_large"),
    ],
)
def test_sbs_bad_lines_are_counted_and_the_next_is_read(line: bytes, reason: str) -> None:
    feed = Sbs()
    feed.push(line + b"\n" + SBS, math.nan)
    assert feed.refused == {reason: 1}
    assert len(rows(feed.take())) == 3


# -- Beast and AVR: frames that everybody knows, see "The 1090 MHz Riddle" -------------------------------------------

EVEN, ODD = "8D40621D58C382D690C8AC2863A7", "8D40621D58C386435CC412692AD6"
VELOCITY = "8D485020994409940838175B284F"


def beast(frame: str, counter: int) -> bytes:
    body = counter.to_bytes(6, "big") + b"\x20" + bytes.fromhex(frame)
    return b"\x1a\x33" + body.replace(b"\x1a", b"\x1a\x1a")


def avr(frame: str, counter: int) -> bytes:
    return b"@%012X%s;\n" % (counter, frame.encode())


@pytest.mark.parametrize(("make", "write"), [(Beast, beast), (Avr, avr)])
def test_a_position_is_known_once_enough_halves_agree(
    make: Callable[[], Feed], write: Callable[[str, int], bytes]
) -> None:
    feed = make()
    for k in range(8):
        # counters with 0x1a in them, which Beast must double
        feed.push(write((EVEN, ODD)[k % 2], 0x1A1A00000000 + k * 6_000_000), math.nan)
    found = rows(feed.take())
    assert found
    for name, t, values in found:
        assert name == "40621d"
        assert 0.0 <= t <= 3.5
        # the two halves were sent a mile apart
        assert values["lat"] == pytest.approx(52.2572, abs=0.03)
        assert values["lon"] == pytest.approx(3.9194, abs=0.03)
        assert (values["alt_ft"], values["nic"], values["on_ground"]) == (38_000, 8, 0)
    assert not feed.refused


@pytest.mark.parametrize("write", [beast, avr])
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_raw_frames_are_the_same_however_the_stream_is_cut(
    write: Callable[[str, int], bytes], data: st.DataObject
) -> None:
    frames = [(EVEN, ODD, VELOCITY)[k % 3] for k in range(18)]
    stream = b"".join(write(frame, 0x1A001A000000 + k * 3_000_000) for k, frame in enumerate(frames))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    make = Beast if write is beast else Avr
    whole, pieces = make(), make()
    whole.push(stream, math.nan)
    for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        pieces.push(stream[a:b], math.nan)
    assert rows(whole.take()) == rows(pieces.take()) != []


@given(st.binary(max_size=400))
@settings(max_examples=200, deadline=None)
def test_noise_never_raises_and_a_good_message_behind_it_is_read(noise: bytes) -> None:
    for feed, good in ((Beast(), beast(VELOCITY, 5)), (Avr(), b"\n" + avr(VELOCITY, 5)), (Sbs(), b"\n" + SBS)):
        feed.push(noise, 1.0)
        feed.push(good * 2, 1.0)
        feed.close()
        feed.take()


def test_a_damaged_frame_is_refused_by_its_checksum() -> None:
    feed = Avr()
    feed.push(avr(EVEN[:-1] + "0", 1), math.nan)
    feed.push(b"*" + EVEN.encode() + b";\n", math.nan)  # no counter, in a file: no time
    assert feed.refused == {"checksum": 1, "bad_time": 1}


def test_a_senders_clock_says_when_messages_were_made_and_is_not_believed_when_it_jumps() -> None:
    clock = SenderClock()
    assert clock.time(100.0, 1000.0) == 1000.0
    assert clock.time(101.0, 1001.3) == 1001.0  # 0.3 s late on the way
    assert clock.time(102.0, 1001.9) == 1001.9  # earlier than thought: the first was late itself
    assert clock.time(5.0, 1003.0) == 1003.0  # it was started again
    recorded = SenderClock()
    assert [recorded.time(s, math.nan) for s in (50.0, 51.0, 3.0, 4.0)] == [0.0, 1.0, 1.0, 2.0]


def test_beast_recording_of_a_real_receiver_has_every_frame() -> None:
    source = open_log(recording("dump1090/sample_dump1090.bin"))
    assert source.info().format == "beast"
    [(name, t, values)] = rows(*source.batches())  # four halves of one aircraft: the last is sure
    assert (name, round(t, 3)) == ("48520a", 12.675)
    assert (values.pop("lat"), values.pop("lon")) == pytest.approx((43.656647, 1.229638), abs=1e-6)
    assert values == {"alt_ft": 38_000, "nic": 8, "on_ground": 0}  # all else is older than HOLD_S
    assert source.info().problems == ()


def test_raw_frames_of_a_real_flight_give_the_positions_of_another_decoder() -> None:
    # rs1090 paired the same frames in one go: 57,793 of them, from the ground at Paris to the ground at Toulouse
    messages = [json.loads(line) for line in recording("rs1090/full_flight_short.jsonl").read_text().splitlines()]
    refused: Counter[str] = Counter()
    squitters = Squitters(refused)
    for at in range(0, len(messages), 500):
        squitters.add([(message["frame"], message["timestamp"]) for message in messages[at : at + 500]])
    ours = {t: values for _, t, values in rows(squitters.take())}
    theirs = {m["timestamp"]: m for m in messages if m["df"] == "17" and "latitude" in m}
    both = ours.keys() & theirs.keys()
    assert len(both) == len(ours) > 6900
    for t in both:
        mine, other = ours[t], theirs[t]
        assert (mine["lat"], mine["lon"]) == (other["latitude"], other["longitude"])
        assert mine.get("alt_ft", other.get("altitude")) == other.get("altitude")
    assert not refused
    # what Comm-B adds: the altitudes that the crew selected, one after the other, and the squawk
    selected = [values["sel_alt_ft"] for values in ours.values() if "sel_alt_ft" in values]
    assert {alt for alt in selected if selected.count(alt) > 1} >= {12_000, 15_000, 19_000, 35_000, 5000, 3000}
    assert max(values["squawk"] for values in ours.values() if "squawk" in values) == 4546


def sealed(message: str) -> str:
    """A frame with its parity."""
    return message + seals.parity(bytes.fromhex(message)).hex()


def test_resolution_advisories_squawks_and_addresses_that_are_not_icaos() -> None:
    refused: Counter[str] = Counter()
    squitters = Squitters(refused)
    on, off = (0xE2 << 48 | 1 << 47 | ended << 29 for ended in (0, 1))  # BDS 3,0 behind TC 28, subtype 2
    heard = [sealed(EVEN[:22]), sealed(ODD[:22])] * 3
    for ra, t in ((on, 1.0), (off, 2.0)):
        squitters.add([(sealed(f"8d40621d{ra:014x}"), t)])
        squitters.add([(frame, t + 0.1 * k) for k, frame in enumerate(heard)])
    assert [values["tcas_ra"] for _, _, values in rows(squitters.take()) if "tcas_ra" in values] == [1.0, 0.0]
    state = 28 << 51 | 1 << 48 | 4 << 45 | 0o7600 << 32  # TC 28, subtype 1: no communication
    squitters.add([(sealed(f"8d40621d{state:014x}"), 2.8)])
    squitters.add([(frame, 2.9 + 0.1 * k) for k, frame in enumerate(heard)])
    assert [values["emergency"] for _, _, values in rows(squitters.take()) if "emergency" in values] == [4.0]
    # format 18: rs1090 takes any parity, we do not; an anonymous address has a mark
    other = [sealed("91" + frame[2:22]) for frame in (EVEN, ODD)] * 3
    squitters.add([(frame, 3.0 + 0.1 * k) for k, frame in enumerate(other)] + [(other[0][:-1] + "0", 4.0)])
    assert {name for name, _, _ in rows(squitters.take())} == {"~40621d"}
    assert refused == {"checksum": 1}


@given(st.floats(-86.0, 86.0), st.floats(-180.0, 179.9), st.floats(0.0, 0.002), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_track_is_where_rs1090_pairs_it(lat: float, lon: float, step: float, east: bool) -> None:
    """Halves of a straight flight, written by the formula of DO-260B, read by us and by rs1090's own pairing."""
    frames = []
    for k in range(8):
        at = lat + (0 if east else step * k), lon + (step * k if east else 0)
        me = 11 << 51 | 0xC38 << 36 | (k % 2) << 34 | _encoded(*at, odd=k % 2)
        frames.append((sealed(f"8d40621d{me:014x}"), float(k) / 2))
    squitters = Squitters(Counter())
    squitters.add(frames)
    ours = {t: (values["lat"], values["lon"]) for _, t, values in rows(squitters.take())}
    theirs = rs1090.decode([frame for frame, _ in frames], [t for _, t in frames])
    for message in theirs:
        if message["timestamp"] in ours and message.get("latitude") is not None:
            assert ours[message["timestamp"]] == pytest.approx((message["latitude"], message["longitude"]), abs=1e-9)


def _encoded(lat: float, lon: float, *, odd: int) -> int:
    """34 bits of compact position."""
    size = 360.0 / (60 - odd)
    yz = math.floor(2**17 * (lat % size) / size + 0.5)
    rlat = size * (yz / 2**17 + math.floor(lat / size))
    wide = 360.0 / max(cpr.zones_of(rlat) - odd, 1)
    xz = math.floor(2**17 * (lon % wide) / wide + 0.5)
    return (yz % 2**17) << 17 | xz % 2**17


# -- readsb ---------------------------------------------------------------------------------------------------------


def test_aircraft_json_with_bytes_that_are_no_text_is_counted() -> None:
    feed = Readsb()
    feed.push(b'{"now": 1.0, "aircraft": [{"hex": "\xff"}, {"hex": "4ca7b3", "lat": 1, "lon": 2, "seen_pos": 0}]}', 1.0)
    assert feed.refused == {"wrong_type": 1}
    assert len(rows(feed.take())) == 1


def test_aircraft_json_gives_each_position_once() -> None:
    feed = Readsb(via="roof")
    look = {
        "now": 1000.0,
        "aircraft": [
            {"hex": "4ca7b3", "lat": 51.0, "lon": 1.0, "seen_pos": 0.4, "alt_baro": 30000, "gs": 400.5, "track": 90.0,
             "geom_rate": -64, "nic": 8, "nac_p": 9, "nav_altitude_mcp": 24000, "flight": "EIN4TR  "},
            {"hex": "~2b0001", "lat": 51.0, "lon": 1.0, "seen_pos": 1.0, "alt_baro": "ground", "gs": 5.0},
            {"hex": "400f01", "alt_baro": 12000},
            {"hex": "400f02", "lat": "north", "lon": 1.0, "seen_pos": 0.0},
        ],
    }  # fmt: skip
    feed.push(json.dumps(look).encode(), 5.0)
    batch = feed.take()
    assert rows(batch) == [
        ("4ca7b3", 999.6, {"lat": 51.0, "lon": 1.0, "alt_ft": 30000, "gs_kt": 400.5, "trk_deg": 90.0, "vs_fpm": -64,
                           "nic": 8, "nacp": 9, "sel_alt_ft": 24000, "on_ground": 0}),
        ("~2b0001", 999.0, {"lat": 51.0, "lon": 1.0, "gs_kt": 5.0, "on_ground": 1}),
    ]  # fmt: skip
    assert batch is not None
    assert (batch.vias, batch.callsigns) == (["roof"], {"4ca7b3": "EIN4TR"})
    assert feed.refused == {"wrong_type": 1}
    feed.push(json.dumps({**look, "now": 1001.0, "aircraft": [{**look["aircraft"][0], "seen_pos": 1.4}]}).encode(), 6.0)  # type: ignore[index]
    assert feed.take() is None
    feed.push(b'{"now": 3}', 7.0)
    assert feed.refused == {"wrong_type": 1, "malformed": 1}


def test_sbs_and_json_have_what_a_transponder_declares() -> None:
    line = b"MSG,3,1,1,4CA7B3,1,2024/03/01,12:00:00.500,2024/03/01,12:00:00.500,,35000,,,51.25,-0.5,,%s,0,0,0,0\r\n"
    feed = Sbs()
    feed.push(line % b"7700" + line % b"21" + line % b"9999", math.nan)
    assert [values.get("squawk") for _, _, values in rows(feed.take())] == [7700.0, 21.0, None]
    assert not feed.refused, "a position is worth as much with a code that cannot be read"
    look = Readsb()
    craft = {"hex": "4ca7b3", "lat": 51.0, "lon": 1.0, "squawk": "7600", "emergency": "nordo"}
    advisory = {"ARA": "1100000", "RAT": "0", "MTE": "0"}
    for k, more in enumerate(({}, {"acas_ra": advisory}, {"acas_ra": advisory | {"RAT": "1"}}, {"acas_ra": 7})):
        document = {"now": 1000.0 + k, "aircraft": [craft | {"seen_pos": 0.1} | more]}
        look.push(json.dumps(document).encode(), math.nan)
    told = [values for _, _, values in rows(look.take())]
    assert {(values["squawk"], values["emergency"]) for values in told} == {(7600.0, 4.0)}
    assert [values.get("tcas_ra") for values in told] == [None, 1.0, 0.0, None]
    trace = ReadsbTrace()
    details = {"squawk": "7500", "emergency": "unlawful", "nav_heading": 90.0, "acas_ra": advisory}
    row = [1.0, 51.0, 1.0, 30_000, 400.0, 90.0, 0, 64, details]
    trace.push(json.dumps({"icao": "4ca7b3", "timestamp": 1000.0, "trace": [row]}).encode(), math.nan)
    ((_, _, values),) = rows(trace.take())
    names = ("squawk", "emergency", "sel_hdg_deg", "tcas_ra")
    assert [values[name] for name in names] == [7500.0, 5.0, 90.0, 1.0]


def test_trace_of_a_real_aircraft_has_the_values_of_the_file(tmp_path: Path) -> None:
    path = recording("readsb/trace_full_ac671b.json")
    document = json.loads(path.read_bytes())
    packed = tmp_path / "trace.json"  # tar1090 serves them packed, without saying so in the name
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for file in (path, packed):
        source = open_log(file)
        found = rows(*source.batches())
        assert source.info().format == "readsb trace"
        fresh = [row for row in document["trace"] if not row[6] & 1]
        assert len(found) == len(fresh) > 2000
        for (name, t, values), row in zip(found, fresh, strict=True):
            assert (name, t) == ("ac671b", document["timestamp"] + row[0])
            assert (values["lat"], values["lon"]) == (row[1], row[2])
            if isinstance(row[3], (int, float)) and not row[6] & 8:
                assert values["alt_ft"] == row[3]
            assert values.get("gs_kt") == row[4]


# -- the pieces -----------------------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=12), max_size=8))
def test_lines_are_those_of_split_for_any_cut(pieces: list[bytes]) -> None:
    lines = Lines(limit=1000)
    found = [line for piece in pieces for line in lines.push(piece)] + list(lines.close())
    # empty lines say nothing and are left out
    assert found == [line for line in b"".join(pieces).split(b"\n") if line]


def test_the_table_of_aircraft_is_bounded_and_forgets() -> None:
    reports = Reports(limit=3)
    for k in range(5):
        reports.note(f"a{k}", float(k), {"gs_kt": 100.0 + k})
    for k in (4, 3, 2, 0):
        reports.place(f"a{k}", 5.0, 1.0, 2.0, {})
    # a2 spoke too long ago, a0 had to make room
    assert [v.get("gs_kt") for _, _, v in rows(reports.take())] == [104.0, 103.0, None, None]
    assert len(reports) == 0
