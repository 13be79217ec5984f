"""The decoder at its limits: sizes, names, order, what is reported with which message, and batches of adapters."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import numpy as np
import pytest

from watchkeeper.config.schema import Limits, Topics
from watchkeeper.streams.batch import Batch, Columns
from watchkeeper.streams.codec import decode
from watchkeeper.streams.codec.decode import Decoder
from watchkeeper.streams.messages import COLUMN, FIELDS, ID_MAX, Drop, Kind


class Bench:
    """A decoder and what it refused: topic, reason and payload."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.bad: list[tuple[str, str, bytes]] = []
        self.decoder = Decoder(Topics(), limits or Limits(), lambda *refused: self.bad.append(refused))

    def add(self, topic: str, **message: Any) -> bytes:
        payload = json.dumps({"t": 1, "lat": 1, "lon": 1, **message}).encode()
        self.decoder.add(topic, payload)
        return payload

    def names(self) -> list[str]:
        """The vehicle of each ADS-B sample since the last take."""
        batch = self.decoder.take()
        return [] if batch is None else [batch.ids[v] for v in batch.kinds[Kind.ADSB].vid]

    def reasons(self) -> list[str]:
        return [reason for _, reason, _ in self.bad]


def padded(message: dict[str, Any], size: int) -> bytes:
    """A message of exactly this many bytes."""
    bare = json.dumps({**message, "x": ""}).encode()
    return json.dumps({**message, "x": "y" * (size - len(bare))}).encode()


@pytest.mark.parametrize(
    ("topic", "message", "limit"),
    [
        ("telemetry/adsb/a", {"t": 1, "lat": 1, "lon": 1}, 300),
        ("telemetry/adsb", {"t": 1, "id": ["a"], "lat": [1], "lon": [1]}, 2000),
    ],
)
def test_a_payload_of_exactly_the_limit_is_read_and_a_longer_one_is_not(topic, message, limit):
    bench = Bench(Limits(max_sample_bytes=300, max_payload_bytes=2000))
    bench.decoder.add(topic, padded(message, limit))
    assert bench.names() == ["a"]
    assert bench.bad == []
    bench.decoder.add(topic, padded(message, limit + 1))
    assert bench.names() == []
    assert bench.reasons() == [Drop.SIZE]


def test_a_name_may_have_one_to_64_characters_that_can_be_printed():
    bench = Bench()
    for name in ("x", "y" * ID_MAX, "z" * (ID_MAX + 1), "a\n", ""):
        bench.add("telemetry/adsb", id=[name], lat=[1], lon=[1])
    assert bench.names() == ["x", "y" * ID_MAX]
    assert bench.reasons() == [Drop.ID] * 3


def test_a_name_in_the_payload_must_agree_with_the_topic():
    bench = Bench()
    bench.add("telemetry/adsb/a%2Fb", id="a/b")
    bench.add("telemetry/adsb/a", id="b")
    bench.add("telemetry/adsb/a", id="")
    assert bench.names() == ["a/b"]
    assert bench.reasons() == [Drop.ID] * 2


def test_a_single_sample_has_its_vehicle_in_the_topic():
    bench = Bench()
    for values in ({"lat": 1, "lon": 1}, {"lat": [1], "lon": [1]}, {}):
        bench.decoder.add("telemetry/adsb", json.dumps({"t": 1, "id": "a", **values}).encode())
    assert bench.decoder.take() is None
    assert bench.reasons() == [Drop.TYPE] * 3


def test_the_gateway_and_the_callsign_of_a_sample():
    bench = Bench()
    for name, more in {"a": {"via": "g"}, "b": {}, "c": {"via": ""}, "d": {"via": "\n"}, "e": {"via": "h"}}.items():
        bench.add(f"telemetry/adsb/{name}", **more)
    bench.add("telemetry/adsb/a", callsign="x" * 70)
    bench.add("telemetry/adsb/b", callsign="")
    batch = bench.decoder.take()
    assert batch.kinds[Kind.ADSB].via.tolist() == [0, -1, -1, -1, 1, -1, -1]
    assert (batch.vias, batch.callsigns) == (["g", "h"], {"a": "x" * ID_MAX})
    # nothing of it is kept for the next batch
    bench.add("telemetry/adsb/z")
    batch = bench.decoder.take()
    assert (batch.ids, batch.vias, batch.callsigns) == (["z"], [], {})
    assert batch.kinds[Kind.ADSB].seq.tolist() == [0]


@pytest.mark.parametrize(("kind", "field"), [("adsb", "on_ground"), ("route", "reached"), ("link", "carrier")])
def test_true_and_false_are_numbers_where_a_field_is_a_yes_or_no(kind, field):
    bench = Bench()
    bench.add(f"telemetry/{kind}/a", **{field: True})
    bench.add(f"telemetry/{kind}/a", **{field: False})
    (cols,) = bench.decoder.take().kinds.values()
    assert cols.data[COLUMN[Kind[kind.upper()]][field]].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(("kind", "field"), [("adsb", "nacp"), ("link", "errors"), ("link", "samples"), ("gps", "lat")])
def test_true_is_no_number_elsewhere(kind, field):
    bench = Bench()
    bench.add(f"telemetry/{kind}/a", **{field: True})
    assert bench.decoder.take() is None
    assert bench.reasons() == [Drop.TYPE]


def test_pending_counts_the_samples_that_wait():
    bench = Bench()
    assert bench.decoder.pending == 0
    bench.add("telemetry/adsb/a")
    bench.add("telemetry/adsb", id=["a", "b"], lat=[1, 2], lon=[1, 2])
    bench.add("telemetry/route/a")
    assert bench.decoder.pending == 4
    batch = bench.decoder.take()
    assert batch.kinds[Kind.ADSB].seq.tolist() == [0, 1, 2]
    assert batch.kinds[Kind.ROUTE].seq.tolist() == [3]
    assert bench.decoder.pending == 0


def test_each_refused_row_is_reported_with_the_message_that_carried_it():
    bench = Bench()
    bench.add("telemetry/adsb/a")
    second = bench.add("telemetry/adsb/b", lat=91)
    frame = bench.add("telemetry/adsb", id=["c", "d", "e"], lat=[91, 1, 92], lon=[1, 1, 1])
    bench.add("telemetry/adsb", id=["f"], lat=[1], lon=[1])
    bench.add("telemetry/adsb/g")
    last = bench.add("telemetry/adsb/h", t=-1)
    assert bench.names() == ["a", "d", "f", "g"]
    assert bench.bad == [
        ("telemetry/adsb/b", Drop.RANGE, second),
        ("telemetry/adsb", Drop.RANGE, frame), ("telemetry/adsb", Drop.RANGE, frame),
        ("telemetry/adsb/h", Drop.TIME, last),
    ]  # fmt: skip


def test_topics_that_are_remembered_are_bounded(monkeypatch):
    monkeypatch.setattr(decode, "TOPICS_REMEMBERED", 3)
    bench, kept = Bench(), []
    for name in "abcde":
        bench.add(f"telemetry/adsb/{name}")
        bench.add(f"telemetry/adsb/{name}")
        kept.append(len(bench.decoder._topics))
    assert kept == [1, 2, 3, 1, 2]
    assert bench.names() == list("aabbccddee")


def adapter_batch(ids: list[str], vid: list[int], lat: list[float], via: list[int], callsigns: dict[str, str]) -> Batch:
    data = np.full((len(FIELDS[Kind.ADSB]), len(vid)), math.nan)
    data[0], data[1] = lat, 5.0
    seq, t = np.arange(len(vid)) * 2, np.arange(1.0, len(vid) + 1)
    route = Columns(np.array([1]), np.zeros(1, np.int32), np.full(1, -1, np.int32), np.ones(1), np.ones((3, 1)))
    cols = Columns(seq, np.array(vid, np.int32), np.array(via, np.int32), t, data)
    return Batch(ids, {Kind.ROUTE: route, Kind.ADSB: cols}, ["g", "h\n"], callsigns)


def test_a_batch_of_an_adapter_joins_the_messages_in_order():
    bench = Bench()
    bench.add("telemetry/adsb/first", via="f")
    known = {"a": "A" * 70, "b": "", "unheard": "U"}
    bench.decoder.add_batch(adapter_batch(["a", "b"], [0, 1, 0], [1.0, 2.0, 3.0], [0, 1, -1], known))
    assert bench.decoder.pending == 6
    bench.add("telemetry/adsb/last")
    batch = bench.decoder.take()
    cols = batch.kinds[Kind.ADSB]
    assert cols.seq.tolist() == [0, 1, 3, 5, 6]
    assert batch.kinds[Kind.ROUTE].seq.tolist() == [2]
    assert [batch.ids[v] for v in cols.vid] == ["first", "a", "b", "a", "last"]
    # a gateway whose name is none is no gateway
    assert (batch.vias, cols.via.tolist()) == (["f", "g"], [0, 1, -1, -1, -1])
    assert batch.callsigns == {"a": "A" * ID_MAX}
    assert bench.bad == []


def test_rows_of_a_batch_that_cannot_be_used_are_reported_as_the_messages_they_would_have_been():
    bench = Bench()
    bench.decoder.add_batch(adapter_batch(["a/b", "\ud800"], [0, 1, 0], [1.0, 2.0, 91.0], [0, 0, 0], {}))
    assert bench.names() == ["a/b"]
    assert [(topic, reason) for topic, reason, _ in bench.bad] == [
        ("telemetry/adsb", Drop.ID), ("telemetry/adsb/a%2Fb", Drop.RANGE)
    ]  # fmt: skip
    assert [msgspec.json.decode(payload) for *_, payload in bench.bad] == [
        {"t": 2.0, "id": "?", "lat": 2.0, "lon": 5.0}, {"t": 3.0, "lat": 91.0, "lon": 5.0}
    ]  # fmt: skip


def test_a_batch_without_a_usable_sample_adds_none():
    bench = Bench()
    bench.decoder.add_batch(adapter_batch(["\n"], [0, 0], [1.0, 2.0], [-1, -1], {}))
    assert bench.decoder.pending == 0
    assert bench.decoder.take() is None
    assert bench.reasons() == [Drop.ID] * 3
