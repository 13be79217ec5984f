"""Messages that are read many at a time: the same as one by one, whatever they are."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.config.schema import Limits, Topics
from watchkeeper.streams.codec import decode
from watchkeeper.streams.codec.decode import Decoder
from watchkeeper.streams.codec.plain import PlainReader
from watchkeeper.streams.messages import FIELDS, Kind

encode = msgspec.msgpack.encode
NUMBERS = st.floats(width=64) | st.integers(-(2**63), 2**64 - 1) | st.integers(-40, 130) | st.none() | st.booleans()
TEXTS = st.text(max_size=40)
NAMES = [field.name for field in FIELDS[Kind.ADSB]]
PLAIN = st.fixed_dictionaries(
    {"t": st.floats(0, 2e9), "lat": st.floats(-90, 90), "lon": st.floats(-180, 180)},
    optional={
        **dict.fromkeys(NAMES[2:], st.floats(-100, 100) | st.integers(0, 100) | st.none()),
        "callsign": st.sampled_from(["DLH4", "Ärger", "", None]), "via": st.sampled_from(["east", "", None, "\n"]),
        "id": st.sampled_from(["a", "b", None]), "more": NUMBERS | TEXTS,
    },
)  # fmt: skip
ODD = st.dictionaries(
    st.sampled_from(["t", "id", "via", "callsign", *NAMES]) | TEXTS,
    NUMBERS | TEXTS | st.lists(NUMBERS, max_size=3),
    max_size=20,
)


def said(messages: list[tuple[str, bytes]], *, at_once: bool) -> Any:
    """Everything that comes of these messages, in a form that can be compared bit for bit."""
    bad: list[tuple[str, str, bytes]] = []
    decoder = Decoder(Topics(), Limits(), lambda *refused: bad.append(refused))
    if at_once:
        decoder.add_all(messages)
    else:
        for topic, payload in messages:
            decoder.add(topic, payload)
    batch = decoder.take()
    if batch is None:
        return bad
    kinds = {
        kind: [part.tobytes() for part in (cols.seq, cols.vid, cols.via, cols.t, cols.data)]
        for kind, cols in batch.kinds.items()
    }
    return bad, batch.ids, batch.vias, batch.callsigns, batch.called_t, kinds


def same(messages: list[tuple[str, bytes]]) -> None:
    assert said(messages, at_once=True) == said(messages, at_once=False)


@given(st.lists(st.tuples(st.sampled_from("abc"), PLAIN), min_size=8, max_size=20))
def test_plain_samples_are_the_same_at_once_and_one_by_one(samples):
    same([(f"telemetry/adsb/{name}", encode(sample)) for name, sample in samples])


@given(st.lists(PLAIN, min_size=8, max_size=8), ODD, st.integers(0, 8))
def test_so_are_those_around_one_that_is_not_plain(samples, odd, place):
    payloads = [encode(sample) for sample in samples]
    payloads.insert(place, encode(odd))
    same([(f"telemetry/adsb/{'ab'[i % 2]}", payload) for i, payload in enumerate(payloads)])


@given(PLAIN, st.data())
def test_and_bytes_that_something_has_changed(sample, data):
    payload = bytearray(encode(sample))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(payload) - 1)) if payload else 0
        what = data.draw(st.sampled_from(["change", "cut", "add"]))
        if what == "change" and payload:
            payload[at] = data.draw(st.integers(0, 255))
        elif what == "cut":
            del payload[at:]
        else:
            payload.insert(at, data.draw(st.integers(0, 255)))
    whole = [("telemetry/adsb/a", encode({"t": 1.0, "lat": 1.0, "lon": 2.0}))] * 7
    same([*whole, ("telemetry/adsb/a", bytes(payload))])


NUMBER_FORMS = {
    "f4": b"\xca\x3f\xc0\x00\x01",
    "f8": b"\xcb\x3f\xf8\x00\x00\x00\x00\x00\x01",
    "fixint": b"\x11",
    "negative": b"\xe3",
    "u1": b"\xcc\xfe",
    "u2": b"\xcd\xff\xfe",
    "u4": b"\xce\xff\xff\xff\xfe",
    "u8": b"\xcf\x7f\xff\xff\xff\xff\xff\xff\xff",
    "u8 to the top": b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
    "i1": b"\xd0\xfe",
    "i2": b"\xd1\x80\x00",
    "i4": b"\xd2\x80\x00\x00\x01",
    "i8": b"\xd3\xff\xdf\xff\xff\xff\xff\xff\xff",
    "i8 to the bottom": b"\xd3\x80\x00\x00\x00\x00\x00\x00\x00",
    "wider than it need be": b"\xd3\x00\x00\x00\x00\x00\x00\x00\x07",
    "null": b"\xc0",
}


@pytest.mark.parametrize("form", NUMBER_FORMS.values(), ids=NUMBER_FORMS)
def test_a_number_in_any_form_that_messagepack_has(form):
    """Read by the kernel, as msgspec reads it."""
    payload = b"\x82\xa1t\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00\xa6alt_ft" + form
    found = PlainReader(Kind.ADSB).read([payload])
    assert found is not None
    expected = msgspec.msgpack.decode(payload)["alt_ft"]
    value = found.data[NAMES.index("alt_ft")]
    assert value.tobytes() == np.array([np.nan if expected is None else expected], np.float64).tobytes()
    for cut in range(len(payload)):
        assert PlainReader(Kind.ADSB).read([payload[:cut]]) is None


def test_a_fleet_of_two_streams_is_read_at_once(monkeypatch):
    """Otherwise nothing here would notice that the kernel is never used."""
    monkeypatch.setattr(decode.Decoder, "add", lambda *_: pytest.fail("one by one"))
    imu = {"t": 1.0, "imu_ax": 0.1, "imu_ay": 0.2, "imu_az": -9.8, "via": "gate", "on_ground": True}
    messages = [(f"telemetry/imu/quad-{k}", encode(imu)) for k in range(8)]
    messages.insert(3, ("telemetry/gps/quad-0", encode({"t": 1.0, "gps_lat": 50.0, "gps_lon": 8.0, "fix": 3})))
    decoder = Decoder(Topics(), Limits(), lambda *refused: pytest.fail(str(refused)))
    decoder.add_all(messages)
    assert decoder.pending == 9


def test_after_one_that_is_not_plain_it_is_tried_again(monkeypatch):
    tried: list[int] = []
    monkeypatch.setattr(PlainReader, "read", lambda _self, payloads: tried.append(len(payloads)))
    decoder = Decoder(Topics(), Limits(), lambda *_: None)
    for _ in range(2 * (decode.WARY_GROUPS + 1)):
        decoder.add_all([("telemetry/adsb/a", b"{}")] * 8)
    assert tried == [8, 8]
