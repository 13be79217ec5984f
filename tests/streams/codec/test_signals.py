"""The stream `signal`: samples and frames of any names become the same rows, survive logs, tables and brokers."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.config.schema import Limits, Topics
from watchkeeper.daemon.replay.publish import samples_of
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.codec.decode import Decoder
from watchkeeper.streams.codec.encode import encode_batch
from watchkeeper.streams.frames.read import FrameLog
from watchkeeper.streams.frames.write import samples_frame
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.logs.target import write_log
from watchkeeper.streams.logs.wklog import LogReader, LogWriter
from watchkeeper.streams.messages import SIGNAL, Kind
from watchkeeper.streams.signals import label_of, names_in
from watchkeeper.streams.split import split

QUAD = {"t": 1000.0, "battery_v": 15.2, "armed": True, "mode": "MISSION", "absent": None}


def decoded(*messages: tuple[str, bytes]) -> tuple[Batch | None, list[str]]:
    refused: list[str] = []
    decoder = Decoder(Topics(), Limits(), lambda _topic, reason, _payload: refused.append(reason))
    for topic, payload in messages:
        decoder.add(topic, payload)
    return decoder.take(), refused


def rows(batch: Batch) -> list[tuple[str, float, str, float]]:
    cols = batch.kinds[Kind.SIGNAL]
    names = names_in(cols.data[SIGNAL.name_0 :])
    ids = [batch.ids[v] for v in cols.vid.tolist()]
    return list(zip(ids, cols.t.tolist(), names, cols.data[SIGNAL.value].tolist(), strict=True))


@pytest.mark.parametrize("encode", [lambda m: json.dumps(m).encode(), msgspec.msgpack.encode])
def test_a_sample_has_a_row_for_each_number(encode):
    batch, refused = decoded(("telemetry/signal/quad-3", encode(QUAD)))
    found = rows(batch)
    assert not refused
    assert [(name, value) for _, _, name, value in found[:2]] == [("battery_v", 15.2), ("armed", 1.0)]
    assert label_of(found[2][3]) == "MISSION"
    assert len(found) == 3


def test_a_frame_wide_or_long_has_the_rows_of_its_samples():
    values = np.array([1.5, np.nan])
    wide = {"v": 1, "id": ["a", "b"], "t": 7.0, "rpm": values.tobytes(), "temp": [20.0, 21.0]}
    long = {"v": 1, "id": ["a", "a", "b"], "t": 7.0, "signal": ["rpm", "temp", "temp"], "value": [1.5, 20.0, 21.0]}
    expected = [("a", 7.0, "rpm", 1.5), ("a", 7.0, "temp", 20.0), ("b", 7.0, "temp", 21.0)]
    for frame in (wide, long):
        batch, refused = decoded(("telemetry/signal", msgspec.msgpack.encode(frame)))
        assert (rows(batch), refused) == (expected, [])


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b'{"t":1,"a b":3}', "bad_name"),
        (b'{"t":1}', "missing_field"),
        (b'{"x":1}', "missing_field"),
        (b'{"t":1,"x":{}}', "wrong_type"),
        (b'{"t":1,"x":1e30}', "out_of_range"),
        (b'{"t":-1,"x":1}', "bad_time"),
        (b'{"t":1,"id":"other","x":1}', "bad_id"),
        (b'{"t":1,"via":3,"x":1}', "wrong_type"),
    ],
)
def test_a_bad_sample_is_refused_with_its_reason(payload, reason):
    assert decoded(("telemetry/signal/q", payload)) == (None, [reason])


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        ({"id": ["a"], "t": 1, "x": [1, 2]}, "bad_frame"),
        ({"id": ["a"], "t": 1, "x": "word"}, "wrong_type"),
        ({"id": "a", "t": 1, "x": [1]}, "wrong_type"),
        ({"id": ["a"], "t": 1}, "missing_field"),
        ({"id": ["a"], "x": [1]}, "missing_field"),
        ({"id": ["a"], "t": 1, "signal": ["x", "y"], "value": [1]}, "bad_frame"),
        ({"id": ["a"], "t": 1, "signal": [3], "value": [1]}, "bad_name"),
        ({"id": ["a"], "t": 1, "via": [3], "x": [1]}, "wrong_type"),
        ({"id": ["a"], "t": 1, "x": [[1]]}, "wrong_type"),
        ({"id": ["a"], "t": 1, "v": 2, "x": [1]}, "bad_frame"),
    ],
)
def test_a_bad_frame_is_refused_with_its_reason(frame, reason):
    assert decoded(("telemetry/signal", json.dumps(frame).encode())) == (None, [reason])


@given(st.dictionaries(st.text(max_size=5), st.recursive(st.none() | st.floats() | st.text(max_size=3), st.lists)))
def test_no_map_makes_the_decoder_raise(found):
    payload = msgspec.msgpack.encode({"t": 5.0, "id": ["a"], **found})
    decoded(("telemetry/signal", payload), ("telemetry/signal/a", payload))


@pytest.fixture
def batch() -> Batch:
    frames = [
        {"v": 1, "id": [f"quad-{i}" for i in range(5)], "t": 1000.0 + k, "via": "gw-1",
         "battery.cell_v[0]": [4.0 - 0.01 * k - 0.1 * i for i in range(5)], "mode": ["MISSION"] * 5}
        for k in range(200)
    ]  # fmt: skip
    found, refused = decoded(*(("telemetry/signal", json.dumps(frame).encode()) for frame in frames))
    assert not refused
    return found


def test_a_log_gives_back_every_bit_in_few_bytes(batch, tmp_path):
    path = tmp_path / "signals.wklog"
    with LogWriter(path) as log:
        log.write(batch)
    (back,) = LogReader(path).batches()
    assert rows(back) == rows(batch)
    assert path.stat().st_size < 16 * len(batch), "the three columns of names take three bytes a row, not 48"


def test_a_broker_gives_back_every_row(batch):
    for messages in (encode_batch(batch, Topics()), samples_of(batch, Topics())):
        back, refused = decoded(*messages)
        assert (rows(back), refused) == (rows(batch), [])


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.parquet"])
def test_a_table_gives_back_every_row(batch, tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    write_log(path, lambda _doing: iter([batch]))
    found = [row for part in open_log(path).batches() for row in rows(part)]
    assert found == rows(batch)


def test_a_frame_of_pandas_gives_back_every_row(batch):
    pytest.importorskip("pandas")
    back = [row for part in FrameLog(samples_frame([batch], "pandas")).batches() for row in rows(part)]
    assert sorted(back) == sorted(rows(batch))


def test_vehicles_can_be_spread_over_parts(batch):
    part = np.arange(len(batch.ids), dtype=np.int32) % 2
    assert sorted(row for half in split(batch, part, 2) for row in rows(half)) == sorted(rows(batch))
