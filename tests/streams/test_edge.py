"""The edge: messages and adapters' batches in the order of arrival, checked, named and refused by the same rules."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from watchkeeper.config.schema import Limits, Topics
from watchkeeper.streams.batch import Batch, CheckedBatch, columns_of
from watchkeeper.streams.edge import Edge
from watchkeeper.streams.messages import COLUMN, ID_MAX, Drop, Kind

COLUMNS = COLUMN[Kind.ADSB]


class Bench:
    def __init__(self, limits: Limits | None = None) -> None:
        self.bad: list[tuple[str, str, Any]] = []
        self.edge = Edge(Topics(), limits or Limits(), lambda *letter: self.bad.append(letter))

    def add(self, *payloads: tuple[str, bytes] | Batch) -> None:
        self.edge.add([("", p, 0.0) if isinstance(p, Batch) else (*p, 0.0) for p in payloads])


def message(name: str, t: float, lat: float = 50.0) -> tuple[str, bytes]:
    return f"telemetry/adsb/{name}", json.dumps({"t": t, "lat": lat, "lon": 8.0}).encode()


def batch(names: list[str], t: float, lat: float = 50.0, via: str = "") -> Batch:
    n = len(names)
    values = {"lat": np.full(n, lat), "lon": np.full(n, 8.0)}
    cols = columns_of(
        Kind.ADSB, np.arange(n, dtype=np.int32), np.full(n, t), values, via=np.full(n, 0 if via else -1, np.int32)
    )
    return Batch(names, {Kind.ADSB: cols}, [via] if via else [], {names[0]: "C" * 100})


def told(found: CheckedBatch) -> list[tuple[str, float]]:
    cols = found.kinds[Kind.ADSB]
    assert cols.seq.tolist() == sorted(cols.seq.tolist())
    return [(found.ids[v], t) for v, t in zip(cols.vid.tolist(), cols.t.tolist(), strict=True)]


def test_messages_and_batches_keep_their_order_and_share_their_names() -> None:
    bench = Bench()
    bench.add(message("a", 1.0), batch(["b", "a"], 2.0, via="roof"), message("b", 3.0), batch(["c"], 4.0))
    (found,) = bench.edge.take()
    assert told(found) == [("a", 1.0), ("b", 2.0), ("a", 2.0), ("b", 3.0), ("c", 4.0)]
    assert found.ids == ["a", "b", "c"]
    assert [found.vias[v] if v >= 0 else "" for v in found.kinds[Kind.ADSB].via] == ["", "roof", "roof", "", ""]
    assert found.callsigns == {"b": "C" * ID_MAX, "c": "C" * ID_MAX}
    assert bench.bad == []
    assert bench.edge.take() == []


def test_a_bad_sample_of_a_batch_is_refused_as_the_message_that_would_have_carried_it() -> None:
    bench = Bench()
    bench.add(batch(["good"], 1.0), batch(["N1/x"], 2.0, lat=91.0))
    (found,) = bench.edge.take()
    assert told(found) == [("good", 1.0)]
    ((topic, reason, payload),) = bench.bad
    assert (topic, reason) == ("telemetry/adsb/N1%2Fx", Drop.RANGE)
    assert json.loads(payload) == {"t": 2.0, "lat": 91.0, "lon": 8.0}
    # and it is one: sent by hand it is refused for the same reason
    bench.add((topic, payload))
    assert bench.edge.take() == []
    assert bench.bad[1] == bench.bad[0]


def test_names_that_are_none_are_refused_with_their_samples_only() -> None:
    bench = Bench()
    bench.add(batch(["", "a", "x" * 65, "b\n", "half \ud800"], 1.0))
    (found,) = bench.edge.take()
    assert told(found) == [("a", 1.0)]
    assert [(topic, reason) for topic, reason, _ in bench.bad] == [("telemetry/adsb", Drop.ID)] * 4


def test_gateways_of_adapters_and_messages_are_in_one_table() -> None:
    bench = Bench()
    bench.add(batch(["a"], 1.0, via="roof"), batch(["b"], 1.0, via="cellar"), batch(["c"], 1.0, via="roof"))
    (found,) = bench.edge.take()
    assert found.vias == ["roof", "cellar"]
    assert found.kinds[Kind.ADSB].via.tolist() == [0, 1, 0]


def test_what_is_much_comes_in_pieces() -> None:
    bench = Bench()
    bench.add(batch([f"v{i}" for i in range(25)], 1.0), message("bad", -1.0))
    pieces = bench.edge.take(10)
    assert [len(piece) for piece in pieces] == [10, 10, 5]
    assert [name for piece in pieces for name, _ in told(piece)] == [f"v{i}" for i in range(25)]


def test_a_clock_that_jumps_by_decades_makes_no_report_and_is_named() -> None:
    bench = Bench()
    fix = {"gps_x": 0, "gps_y": 0}
    for second in range(12):
        for t in (4.1e9 + second, 0.0):
            payload = json.dumps({"t": t, **fix}).encode()
            bench.edge.add([("telemetry/gps/mad", payload, 1000.0 + second)])
        (found,) = bench.edge.take()
        assert Kind.LINK not in found.kinds
    assert {(topic, reason) for topic, reason, _ in bench.bad} == {("telemetry/link/mad", Drop.RANGE)}


def test_what_waited_in_our_queue_has_no_more_latency_than_what_did_not() -> None:
    bench = Bench()
    fix = {"gps_x": 0, "gps_y": 0}
    arrivals = [
        ("telemetry/gps/near", json.dumps({"t": 1000.0 + i / 5, **fix}).encode(), 1000.01 + i / 5) for i in range(45)
    ]
    # at first in time, then three seconds late
    for some in (*(arrivals[i : i + 1] for i in range(30)), arrivals[30:]):
        bench.edge.add(some)
        (found,) = bench.edge.take()
    latency = found.kinds[Kind.LINK].data[COLUMN[Kind.LINK]["latency_s"]]
    assert len(latency)
    np.testing.assert_allclose(latency, 0.01, atol=0.001)
