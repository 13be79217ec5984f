"""Frames in every form that docs/messages.md allows, what the encoder leaves out, and how it cuts a batch."""

from __future__ import annotations

import math
import struct
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.config.schema import Limits, Topics
from watchkeeper.streams.batch import Batch, Columns
from watchkeeper.streams.codec.decode import Decoder
from watchkeeper.streams.codec.encode import FRAME_SPAN_S, encode_batch, encode_frame, encode_sample
from watchkeeper.streams.messages import FIELDS, ID_MAX, Drop, Kind

TOPICS = Topics()
ADSB_FIELDS = len(FIELDS[Kind.ADSB])


def decoded(frame: dict[str, Any], limits: Limits | None = None, topic: str = "telemetry/adsb") -> Batch | str:
    """What becomes of one frame: a batch, or the reason why there is none."""
    bad: list[str] = []
    decoder = Decoder(TOPICS, limits or Limits(), lambda _topic, reason, _payload: bad.append(reason))
    decoder.add(topic, msgspec.msgpack.encode(frame))
    batch = decoder.take()
    assert (batch is None) == bool(bad)
    return bad[0] if batch is None else batch


def good(frame: dict[str, Any], limits: Limits | None = None) -> Batch:
    batch = decoded(frame, limits)
    assert isinstance(batch, Batch)
    return batch


def f8(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}d", *values)


def f4(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


@given(st.lists(st.floats(-90, 90, width=32), min_size=1, max_size=9))
@settings(max_examples=40, deadline=None)
def test_columns_of_f4_f8_and_numbers_are_the_same_numbers(lat):
    bad: list[str] = []
    decoder = Decoder(TOPICS, Limits(), lambda _topic, reason, _payload: bad.append(reason))
    ids = [f"a{i}" for i in range(len(lat))]
    for column in (f4(*lat), f8(*lat), lat):
        for t in (7.0, f4(*[7.0] * len(lat)), f8(*[7.0] * len(lat)), [7.0] * len(lat)):
            frame = {"id": ids, "t": t, "lat": column, "lon": column}
            decoder.add("telemetry/adsb", msgspec.msgpack.encode(frame))
            assert bad == []
            cols = decoder.take().kinds[Kind.ADSB]
            assert cols.data[0].tolist() == lat
            assert cols.t.tolist() == [7.0] * len(lat)
            # kernels are compiled for arrays that can be written
            assert cols.t.dtype == cols.data.dtype == np.float64
            assert cols.t.flags.writeable


def test_a_column_has_one_value_per_id_and_nan_or_null_for_absent():
    cols = good(
        {"id": ["a", "b"], "t": 1.0, "lat": [1, 2], "lon": f4(3, 4), "alt_ft": [None, 5.0], "nic": f4(math.nan, 6)}
    )
    np.testing.assert_array_equal(
        cols.kinds[Kind.ADSB].data[[0, 1, 2, 7]], [[1, 2], [3, 4], [math.nan, 5], [math.nan, 6]]
    )
    assert np.isnan(cols.kinds[Kind.ADSB].data[3]).all()


@pytest.mark.parametrize(
    "change",
    [
        {"lat": f8(1, 2, 3)}, {"lat": f8(1, 2) + b"\0"}, {"lat": f8(1)[:-1]}, {"lat": b""}, {"lat": f4(1)},
        {"lat": b"12"}, {"lat": [1.0]}, {"lat": [1.0, 2.0, 3.0]}, {"t": f8(1)[:4]}, {"t": [1.0]}, {"callsign": ["A"]},
        {"callsign": ["A", "B", "C"]}, {"via": ["g"]}, {"via": ["g", "g", "g"]}, {"v": 0}, {"v": 2}, {"id": []},
    ],
)  # fmt: skip
def test_a_frame_whose_columns_do_not_fit_is_refused_as_a_whole(change):
    assert decoded({"id": ["a", "b"], "t": 1.0, "lat": [1, 2], "lon": [1, 2], **change}) == Drop.FRAME


def test_a_frame_may_have_as_many_rows_as_the_limit_says():
    limits = Limits(max_frame_rows=3)
    for n, refused in ((3, False), (4, True)):
        frame = {"id": ["a", "b", "c", "d"][:n], "t": 1.0, "lat": [1.0] * n, "lon": [1.0] * n}
        assert (decoded(frame, limits) == Drop.FRAME) == refused


def test_gateways_of_a_frame_are_one_name_or_one_per_row():
    frame: dict[str, Any] = {"id": ["a", "b", "c"], "t": 1.0, "lat": [1.0] * 3, "lon": [1.0] * 3}
    for via, vias, index in [
        (None, [], [-1, -1, -1]), ("", [], [-1, -1, -1]), ("g", ["g"], [0, 0, 0]),
        (["g", "", "h"], ["g", "h"], [0, -1, 1]),
        # a name that cannot be one counts as none
        ("g\n", [], [-1, -1, -1]), (["g\n", "h", "x" * (ID_MAX + 1)], ["h"], [-1, 0, -1]),
    ]:  # fmt: skip
        batch = good({**frame, "via": via})
        assert (batch.vias, batch.kinds[Kind.ADSB].via.tolist()) == (vias, index)


def test_callsigns_of_a_frame_are_cut_to_the_longest_name_and_may_be_absent():
    frame = {"id": ["a", "b", "c"], "t": 1.0, "lat": [1.0] * 3, "lon": [1.0] * 3}
    assert good(frame).callsigns == {}
    assert good({**frame, "callsign": ["DLH4", None, "x" * 70]}).callsigns == {"a": "DLH4", "c": "x" * ID_MAX}


def frame_of(payload: bytes) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.msgpack.decode(payload)
    return made


def test_the_encoder_leaves_out_what_all_rows_lack_and_says_once_what_all_share():
    data = np.full((ADSB_FIELDS, 2), math.nan)
    data[:2] = [[1.0], [2.0]]
    data[3, 1] = 5.0
    t = np.array([4.0, 4.0])
    bare = frame_of(encode_frame(Kind.ADSB, ["a", "b"], t, data))
    assert bare == {"v": 1, "id": ["a", "b"], "t": 4.0, "lat": f8(1, 1), "lon": f8(2, 2), "gs_kt": f8(math.nan, 5)}
    assert frame_of(encode_frame(Kind.ADSB, ["a", "b"], np.array([4.0, 5.0]), data))["t"] == f8(4, 5)
    for via, said in ((["g", "g"], "g"), (["g", ""], ["g", ""]), (["g", "h"], ["g", "h"]), (["", ""], None)):
        assert frame_of(encode_frame(Kind.ADSB, ["a", "b"], t, data, via=via)).get("via") == said
    for signs, said in (({"b": "B"}, [None, "B"]), ({"c": "C"}, None), ({}, None)):
        assert frame_of(encode_frame(Kind.ADSB, ["a", "b"], t, data, callsigns=signs)).get("callsign") == said


def test_a_frame_of_one_row_says_its_gateway_and_one_with_too_few_columns_is_an_error():
    data = np.ones((ADSB_FIELDS, 1))
    assert frame_of(encode_frame(Kind.ADSB, ["a"], np.ones(1), data, via=["g"]))["via"] == "g"
    with pytest.raises(ValueError, match="shorter"):
        encode_frame(Kind.ADSB, ["a"], np.ones(1), data[:-1])


def test_a_sample_has_a_name_only_when_it_is_given_one():
    for encoding, decode in (("json", msgspec.json.decode), ("msgpack", msgspec.msgpack.decode)):
        values = {"lat": 1.0, "lon": math.nan, "via": "g", "callsign": "C"}
        bare = {"t": 2.0, "lat": 1.0, "via": "g", "callsign": "C"}
        assert decode(encode_sample(Kind.ADSB, 2.0, values, encoding=encoding)) == bare
        assert decode(encode_sample(Kind.ADSB, 2.0, values, name="a", encoding=encoding)) == {**bare, "id": "a"}


def columns(kind: Kind, seq: list[int], t: list[float], via: list[int] | None = None) -> Columns:
    n = len(seq)
    return Columns(
        np.array(seq),
        np.zeros(n, np.int32),
        np.array(via or [-1] * n, np.int32),
        np.array(t),
        np.ones((len(FIELDS[kind]), n)),
    )


def cut(batch: Batch, **options: int) -> list[tuple[str, int]]:
    """The topic of each frame and how many samples it has."""
    return [(topic, len(frame_of(payload)["id"])) for topic, payload in encode_batch(batch, TOPICS, **options)]


def test_samples_within_the_span_share_a_frame_and_later_ones_do_not():
    span = FRAME_SPAN_S
    assert span == 0.05
    t = [0.0, 0.02, span, span + 0.001, span + 0.002]
    assert cut(Batch(["a"], {Kind.ADSB: columns(Kind.ADSB, [0, 1, 2, 3, 4], t)})) == [
        ("telemetry/adsb", 3),
        ("telemetry/adsb", 2),
    ]
    # a sample that is late goes with those among which it arrived
    t = [1.0, 0.2, 1.04, 1.2]
    assert cut(Batch(["a"], {Kind.ADSB: columns(Kind.ADSB, [0, 1, 2, 3], t)})) == [
        ("telemetry/adsb", 3),
        ("telemetry/adsb", 1),
    ]


def test_a_frame_has_no_more_rows_than_asked_for_and_every_sample_is_in_one():
    kinds = {
        Kind.ADSB: columns(Kind.ADSB, [0, 2, 4, 5], [1.0] * 4),
        Kind.ROUTE: columns(Kind.ROUTE, [1, 3, 6], [1.0] * 3),
    }
    adsb, route = "telemetry/adsb", "telemetry/route"
    assert cut(Batch(["a"], kinds)) == [(adsb, 4), (route, 3)]
    assert cut(Batch(["a"], kinds), max_rows=3) == [(adsb, 2), (route, 1), (adsb, 2), (route, 1), (route, 1)]
    many = Batch(["a"], {Kind.ADSB: columns(Kind.ADSB, list(range(2001)), [1.0] * 2001)})
    assert [rows for _, rows in cut(many)] == [1000, 1000, 1]


def test_a_batch_as_frames_keeps_gateways_by_row_and_says_callsigns_with_positions_only():
    kinds = {
        Kind.ADSB: columns(Kind.ADSB, [0, 1, 2], [1.0] * 3, [0, -1, 1]),
        Kind.ROUTE: columns(Kind.ROUTE, [3], [1.0]),
    }
    adsb, route = (
        frame_of(payload) for _, payload in encode_batch(Batch(["a"], kinds, ["g", "h"], {"a": "A"}), TOPICS)
    )
    assert (adsb["via"], adsb["callsign"]) == (["g", "", "h"], ["A"] * 3)
    assert "via" not in route
    assert "callsign" not in route
