"""The codec: what goes in comes out as columns in any encoding; what cannot be used is reported, never raised."""

import json
import math

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.config.schema import Limits, Topics
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.codec.decode import Decoder
from watchkeeper.streams.codec.encode import encode_batch, encode_frame, encode_sample, frame_topic, sample_topic
from watchkeeper.streams.messages import COLUMN, FIELDS, Drop, Kind, escape_id, unescape_id

TOPICS = Topics()
AIRCRAFT = {"lat": 50.0, "lon": 8.0, "alt_ft": 30000.0, "gs_kt": 450.0, "trk_deg": 90.0, "vs_fpm": 0.0}


class Bench:
    """A decoder and what it complained about."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.bad: list[tuple[str, str]] = []
        self.decoder = Decoder(TOPICS, limits or Limits(), lambda topic, reason, _: self.bad.append((topic, reason)))

    def reason(self, topic: str, payload: bytes) -> str | None:
        self.decoder.add(topic, payload)
        assert self.decoder.take() is None
        return self.bad[-1][1] if self.bad else None


def one(batch: Batch | None, kind: Kind) -> dict[str, float]:
    assert batch is not None
    assert list(batch.kinds) == [kind]
    cols = batch.kinds[kind]
    return {"t": cols.t[0], **{f.name: cols.data[c, 0] for c, f in enumerate(FIELDS[kind])}}


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
def test_a_sample_arrives_with_every_field_and_the_rest_absent(encoding):
    bench = Bench()
    payload = encode_sample(Kind.ADSB, 12.5, AIRCRAFT, encoding=encoding)
    bench.decoder.add("telemetry/adsb/abc123", payload)
    batch = bench.decoder.take()
    row = one(batch, Kind.ADSB)
    assert batch.ids == ["abc123"]
    assert row["t"] == 12.5
    assert {k: row[k] for k in AIRCRAFT} == AIRCRAFT
    assert math.isnan(row["nacp"])
    assert bench.bad == []
    assert bench.decoder.take() is None


def test_json_written_by_hand_works_with_null_true_and_integers():
    bench = Bench()
    payload = b'{"t": 5, "lat": 50, "lon": 8, "alt_ft": null, "on_ground": true, "callsign": "DLH4", "future": [1]}'
    bench.decoder.add("telemetry/adsb/3c6444", payload)
    batch = bench.decoder.take()
    row = one(batch, Kind.ADSB)
    assert (row["t"], row["lat"], row["on_ground"]) == (5.0, 50.0, 1.0)
    assert math.isnan(row["alt_ft"])
    assert batch.callsigns == {"3c6444": "DLH4"}


def test_arrival_order_is_kept_across_kinds_samples_and_frames():
    bench = Bench()
    add = bench.decoder.add
    imu = {"imu_ax": 0, "imu_ay": 0, "imu_az": -9.8, "imu_wx": 0, "imu_wy": 0, "imu_wz": 0}
    add("telemetry/imu/d", encode_sample(Kind.IMU, 1.0, imu))
    add("telemetry/adsb/a", encode_sample(Kind.ADSB, 1.1, AIRCRAFT))
    data = np.full((len(FIELDS[Kind.ADSB]), 2), np.nan)
    data[:2] = 10.0
    add("telemetry/adsb", encode_frame(Kind.ADSB, ["b", "c"], np.array([1.2, 1.3]), data))
    add("telemetry/adsb/a", encode_sample(Kind.ADSB, 1.4, AIRCRAFT))
    batch = bench.decoder.take()
    assert batch.kinds[Kind.IMU].seq.tolist() == [0]
    assert batch.kinds[Kind.ADSB].seq.tolist() == [1, 2, 3, 4]
    assert batch.kinds[Kind.ADSB].t.tolist() == [1.1, 1.2, 1.3, 1.4]
    assert [batch.ids[v] for v in batch.kinds[Kind.ADSB].vid] == ["a", "b", "c", "a"]


finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def rows(draw, kind: Kind):
    n = draw(st.integers(1, 12))
    ids = draw(st.lists(st.text("abcXYZ019/+#~% é", min_size=1, max_size=8), min_size=n, max_size=n))
    t = np.array(draw(st.lists(st.floats(0, 2e9), min_size=n, max_size=n)))
    data = np.full((len(FIELDS[kind]), n), np.nan)
    for c, field in enumerate(FIELDS[kind]):
        for i in range(n):
            if field.required or field.name in {"gps_x", "gps_y"} or draw(st.booleans()):
                data[c, i] = draw(st.floats(field.least or field.lo, field.hi))
    return ids, t, data


# signals have names of their own in place of fields: test_signals.py
@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.SIGNAL])
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_frames_and_samples_round_trip_to_the_bit(kind, data):
    ids, t, table = data.draw(rows(kind))
    framed, single = Bench(), Bench()
    framed.decoder.add(frame_topic(TOPICS, kind), encode_frame(kind, ids, t, table))
    encoding = data.draw(st.sampled_from(["json", "msgpack"]))
    for i, name in enumerate(ids):
        values = {f.name: float(table[c, i]) for c, f in enumerate(FIELDS[kind])}
        payload = encode_sample(kind, float(t[i]), values, encoding=encoding)
        single.decoder.add(sample_topic(TOPICS, kind, name), payload)
    for bench in (framed, single):
        assert bench.bad == []
        batch = bench.decoder.take()
        cols = batch.kinds[kind]
        assert [batch.ids[v] for v in cols.vid] == ids
        np.testing.assert_array_equal(cols.t, t)
        for name, column, sent in zip(COLUMN[kind], cols.data, table, strict=True):
            # angles come in one convention; those that were in it already keep their bits like everything else
            lo, hi = {"lon": (-180.0, 180.0), "trk_deg": (0.0, 360.0)}.get(name, (-math.inf, math.inf))
            out = (sent < lo) | (sent >= hi)
            np.testing.assert_array_equal(column[~out], sent[~out])
            assert ((column[out] >= lo) & (column[out] < hi)).all()
            assert np.allclose((column[out] - sent[out] + 180.0) % 360.0, 180.0)


def test_a_batch_sent_as_frames_comes_back_the_same():
    bench, again = Bench(), Bench()
    for i in range(200):
        named = {**AIRCRAFT, "callsign": f"C{i % 3}"}
        bench.decoder.add(f"telemetry/adsb/a{i % 3}", encode_sample(Kind.ADSB, i * 0.01, named))
        route = {"lat": 1.0, "lon": 2.0, "via": "gw"}
        bench.decoder.add(f"telemetry/route/a{i % 3}", encode_sample(Kind.ROUTE, i * 0.01, route))
    batch = bench.decoder.take()
    frames = list(encode_batch(batch, TOPICS))
    assert len(frames) < 100
    for topic, payload in frames:
        again.decoder.add(topic, payload)
    copy = again.decoder.take()
    assert copy.vias == ["gw"]
    assert copy.callsigns == batch.callsigns
    for kind, cols in batch.kinds.items():
        other = copy.kinds[kind]
        # between kinds, places may change by one frame's span
        assert np.abs(other.seq - cols.seq).max() <= 12
        assert [copy.ids[v] for v in other.vid] == [batch.ids[v] for v in cols.vid]
        np.testing.assert_array_equal(other.t, cols.t)
        np.testing.assert_array_equal(other.data, cols.data)
        np.testing.assert_array_equal(other.via, cols.via)


def deep(n: int) -> bytes:
    return b'{"t":1,"x":' + b"[" * n + b"]" * n + b"}"


@pytest.mark.parametrize(
    ("topic", "payload", "reason"),
    [
        ("telemetry/sonar/a", b"{}", Drop.TOPIC),
        ("other/adsb/a", b"{}", Drop.TOPIC),
        ("telemetry/adsb/a/b", b"{}", Drop.TOPIC),
        ("telemetry/adsb/a", b"", Drop.SYNTAX),
        ("telemetry/adsb/a", b'{"t":1,"lat":5', Drop.SYNTAX),
        ("telemetry/adsb/a", b'{"t":1,"lat":NaN,"lon":1}', Drop.SYNTAX),
        ("telemetry/adsb/a", b"\xc1\xff\x00", Drop.SYNTAX),
        ("telemetry/adsb/a", b'{"t":"now","lat":5,"lon":5}', Drop.TYPE),
        ("telemetry/adsb/a", b'{"t":1,"lat":true,"lon":5}', Drop.TYPE),
        ("telemetry/adsb/a", b"[1,2,3]", Drop.TYPE),
        ("telemetry/adsb/a", b'{"lat":5,"lon":5}', Drop.MISSING),
        ("telemetry/adsb/a", b'{"t":1,"lat":5}', Drop.MISSING),
        ("telemetry/adsb/a", b'{"t":1,"id":"b","lat":5,"lon":5}', Drop.ID),
        ("telemetry/adsb/" + "x" * 65, b'{"t":1,"lat":5,"lon":5}', Drop.ID),
        ("telemetry/adsb/a%0Ab", b'{"t":1,"lat":5,"lon":5}', Drop.ID),
        ("telemetry/adsb/a", b'{"t":1,"lat":95,"lon":5}', Drop.RANGE),
        ("telemetry/adsb/a", b'{"t":-1,"lat":5,"lon":5}', Drop.TIME),
        ("telemetry/adsb/a", b'{"t":1e12,"lat":5,"lon":5}', Drop.TIME),
        ("telemetry/adsb/a", msgspec.msgpack.encode({"t": 1.0, "lat": math.inf, "lon": 5.0}), Drop.FINITE),
        ("telemetry/adsb/a", msgspec.msgpack.encode({"t": math.nan, "lat": 1.0, "lon": 5.0}), Drop.TIME),
        ("telemetry/adsb/a", msgspec.msgpack.encode({"t": 1.0, "lat": math.nan, "lon": 5.0}), Drop.MISSING),
        ("telemetry/adsb/a", b'{"t":1,"lat":1,"lon":1,"x":"' + b"y" * 9000 + b'"}', Drop.SIZE),
        # deep enough for every Python: from 3.12 on some thousand levels are read
        ("telemetry/adsb", deep(40_000), Drop.DEPTH),
        ("telemetry/gps/a", b'{"t":1,"gps_vx":1}', Drop.MISSING),
        ("telemetry/adsb", b'{"v":2,"id":["a"],"t":1,"lat":[1],"lon":[1]}', Drop.FRAME),
        ("telemetry/adsb", b'{"v":1,"id":[],"t":1}', Drop.FRAME),
        ("telemetry/adsb", b'{"v":1,"id":["a","b"],"t":1,"lat":[1],"lon":[1,2]}', Drop.FRAME),
        ("telemetry/adsb", msgspec.msgpack.encode({"id": ["a"], "t": 1.0, "lat": b"abc", "lon": b"abc"}), Drop.FRAME),
        ("telemetry/adsb", b'{"v":1,"id":[""],"t":1,"lat":[1],"lon":[1]}', Drop.ID),
    ],
)
def test_each_sort_of_bad_input_is_named(topic, payload, reason):
    bench = Bench()
    assert bench.reason(topic, payload) == reason
    assert len(bench.bad) == 1


def test_one_bad_row_of_a_frame_does_not_spoil_the_others():
    bench = Bench()
    bench.decoder.add("telemetry/adsb", b'{"id":["a","b","c"],"t":1,"lat":[1,91,3],"lon":[1,2,3]}')
    batch = bench.decoder.take()
    assert [batch.ids[v] for v in batch.kinds[Kind.ADSB].vid] == ["a", "c"]
    assert bench.bad == [("telemetry/adsb", Drop.RANGE)]


@given(st.binary(max_size=300), st.sampled_from(["telemetry/adsb/a", "telemetry/gps", "telemetry/imu/x", "t/x", ""]))
@settings(max_examples=500, deadline=None)
def test_no_bytes_whatever_raise(payload, topic):
    bench = Bench()
    bench.decoder.add(topic, payload)
    batch = bench.decoder.take()
    assert (batch is not None) + len(bench.bad) >= 1


@given(
    st.dictionaries(
        st.sampled_from([*COLUMN[Kind.GPS], "t", "id", "via"]), st.none() | st.booleans() | finite | st.text()
    )
)
@settings(max_examples=300, deadline=None)
def test_no_json_object_whatever_raises(message):
    bench = Bench()
    bench.decoder.add("telemetry/gps/a", json.dumps(message).encode())
    batch = bench.decoder.take()
    assert (batch is not None) + len(bench.bad) == 1


@given(st.text(min_size=1, max_size=20))
def test_an_escaped_id_is_one_harmless_topic_level_and_comes_back(name):
    level = escape_id(name)
    assert not set(level) & set("/+#~ $\0")
    assert unescape_id(level) == name


def test_encoding_an_unknown_field_names_the_known_ones():
    with pytest.raises(ValueError, match="adsb has no field 'altitude'; it has lat, lon, alt_ft"):
        encode_sample(Kind.ADSB, 1.0, {"altitude": 1.0})
