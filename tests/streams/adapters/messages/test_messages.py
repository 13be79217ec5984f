"""Messages on a stream are those of MQTT: however it is cut, packed or damaged, the alarms are the same bytes."""

from __future__ import annotations

import asyncio
import gzip
import json
import math
import random
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import zstandard
from waiting import until

from watchkeeper.config.adapters.messages import Messages as Settings
from watchkeeper.config.detectors import Detectors
from watchkeeper.config.detectors.conflict import Conflict
from watchkeeper.config.schema import DEFAULT, Broker, Config, FleetLimits
from watchkeeper.daemon.background import end
from watchkeeper.daemon.intake.sources import LiveSource
from watchkeeper.detectors.alarms.events import encode_event
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.adapters.messages.adapter import Messages
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.check import checked
from watchkeeper.streams.codec.decode import Decoder
from watchkeeper.streams.codec.encode import encode_frame, encode_sample, frame_topic, sample_topic
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.messages import COLUMN, Kind
from watchkeeper.streams.simulate import simulate

from where import SAMPLES

# small tables, so that a pipeline is made in a few milliseconds
CONFIG = Config(fleet=FleetLimits(max_vehicles=100), detectors=Detectors(conflict=Conflict(max_pairs=1000)))


@cache
def meeting() -> list[tuple[str, bytes]]:
    """Topic and payload of two aircraft that meet head on: samples, and from half a minute on frames."""
    found = []
    for s, batch in enumerate(simulate("head-on", seed=1, seconds=60.0, vehicles=2).batches()):
        [(kind, cols)] = batch.kinds.items()
        if s < 30:
            for row in range(len(cols)):
                name = batch.ids[cols.vid[row]]
                values = dict(zip(COLUMN[kind], cols.data[:, row].tolist(), strict=True))
                payload = encode_sample(kind, float(cols.t[row]), values, encoding="msgpack")
                found.append((sample_topic(DEFAULT.topics, kind, name), payload))
        else:
            payload = encode_frame(kind, [batch.ids[v] for v in cols.vid], cols.t, cols.data)
            found.append((frame_topic(DEFAULT.topics, kind), payload))
    return found


@cache
def stream() -> list[bytes]:
    """The same on a stream: `kind` and `id` are in the message."""
    out = []
    for topic, payload in meeting():
        kind, _, name = topic.removeprefix("telemetry/").partition("/")
        message = msgspec.msgpack.decode(payload)
        out.append(msgspec.msgpack.encode({"kind": kind, **({"id": name} if name else {}), **message}))
    return out


def alarms(batches: Iterator[Batch] | list[Batch]) -> bytes:
    pipeline = Pipeline(CONFIG)
    events = [event for batch in batches for event in pipeline.feed(checked(batch))] + pipeline.finish()
    return b"\n".join(map(encode_event, events))


@cache
def over_mqtt() -> bytes:
    decoder = Decoder(DEFAULT.topics, DEFAULT.limits, lambda *bad: pytest.fail(str(bad)))
    for topic, payload in meeting():
        decoder.add(topic, payload)
    batch = decoder.take()
    assert batch is not None
    found = alarms([batch])
    assert found.count(b'"state":"raised"') > 0
    return found


def pushed(data: bytes, size: int, feed: Messages | None = None) -> tuple[list[Batch], Messages]:
    feed, found = feed or Messages(), []
    for at in range(0, len(data), size):
        feed.push(data[at : at + size], math.nan)
        found.append(feed.take())
    feed.close()
    return [batch for batch in (*found, feed.take()) if batch is not None], feed


def as_json() -> bytes:
    """Frames of plain lists, as a person would write them."""
    lines = []
    for raw in stream():
        message = msgspec.msgpack.decode(raw)
        frame = isinstance(message["id"], list)
        lines.append(json.dumps({k: _listed(v) if frame else v for k, v in message.items()}))
    return "\r\n".join(lines).encode()


def _listed(value: Any) -> Any:
    if not isinstance(value, bytes):
        return value
    return [None if x != x else x for x in np.frombuffer(value, "<f8").tolist()]


FORMS: dict[str, Callable[[], bytes]] = {
    "msgpack": lambda: b"".join(stream()),
    "json lines": as_json,
    "gzip": lambda: gzip.compress(b"".join(stream())),
    "zstd": lambda: zstandard.compress(b"".join(stream()[:50])) + zstandard.compress(b"".join(stream()[50:])),
}


@pytest.mark.parametrize("form", FORMS)
def test_however_it_is_cut_and_packed_the_alarms_are_those_of_mqtt(form: str) -> None:
    data = FORMS[form]()
    for size in (1, 777, 1 << 20):
        batches, feed = pushed(data, size)
        assert not feed.refused
        assert alarms(batches) == over_mqtt()


def test_after_garbage_the_next_message_is_found_and_what_was_lost_is_counted() -> None:
    draw, parts = random.Random(3), []
    for k, message in enumerate(stream()):
        if k % 5 == 2:
            parts.append(draw.randbytes(draw.randrange(1, 300)))
        if k % 7 == 3:
            parts.append(message[: draw.randrange(1, len(message))])  # a sender that was cut off, and sends it again
        parts.append(message)
    data = b"".join(parts)
    counts = []
    for size in (1, 777, 1 << 20):
        batches, feed = pushed(data, size)
        assert alarms(batches) == over_mqtt()
        counts.append(feed.refused)
    assert counts[0] == counts[1] == counts[2]
    assert counts[0].total() >= len(stream()) // 7


def test_a_socket_that_is_cut_mid_message_and_continued_gives_the_alarms_of_mqtt(tmp_path: Path) -> None:
    """Single bytes over TCP, then a Unix socket that closes mid-message and sends that message again afterwards."""
    config = msgspec.structs.replace(DEFAULT, broker=Broker(reconnect_min_s=0.05, reconnect_max_s=0.1))
    messages, samples = stream(), sum(map(len, pushed(b"".join(stream()), 1 << 20)[0]))
    half = len(messages) // 2

    async def heard(serve: Callable[[int, asyncio.StreamWriter], Any], path: Path | None) -> tuple[list[Batch], int]:
        batches: list[Batch] = []
        visits = iter(range(99))

        async def visit(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await serve(next(visits), writer)
            writer.close()

        if path is None:
            server = await asyncio.start_server(visit, "127.0.0.1", 0)
            url = f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        else:
            server, url = await asyncio.start_unix_server(visit, path), f"unix://{path}"
        live = LiveSource(Settings(url=url), config, batches.append)
        task = asyncio.create_task(live.run())
        await until(lambda: sum(map(len, batches)) >= samples)
        await end(task)
        server.close()
        return batches, live.refused.total()

    async def bytewise(visit: int, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"".join(messages) if visit == 0 else b"":
            writer.write(bytes([byte]))
        await writer.drain()

    async def cut(visit: int, writer: asyncio.StreamWriter) -> None:
        sent = b"".join(messages[:half]) + messages[half][:9] if visit == 0 else b"".join(messages[half:])
        writer.write(sent if visit < 2 else b"")
        await writer.drain()

    for serve, path in ((bytewise, None), (cut, tmp_path / "s")):
        batches, _ = asyncio.run(heard(serve, path))
        assert alarms([join(batches)]) == over_mqtt()


def test_a_damaged_pack_ends_the_connection_with_a_counted_reason() -> None:
    checksum = zstandard.ZstdCompressor(write_checksum=True)
    for packed in (gzip.compress(b"".join(stream())), checksum.compress(b"".join(stream()))):
        damaged, feed = packed[:200] + bytes(64) + packed[264:], Messages()
        with pytest.raises(OSError, match="damaged"):
            feed.push(damaged, math.nan)
        assert feed.refused.total() >= 1
    bomb = Messages()
    with pytest.raises(OSError, match="100 times"):
        bomb.push(gzip.compress(bytes(64 << 20)), math.nan)


def test_replay_reads_standard_input_and_files_of_messages(tmp_path: Path) -> None:
    file = tmp_path / "meeting.msgpack"
    file.write_bytes(zstandard.compress(b"".join(stream())))  # told by its content, not by its name
    command = [sys.executable, "-m", "watchkeeper.daemon.cli", "replay", "--alarms", "-"]
    from_file = subprocess.run([*command, str(file)], capture_output=True, check=True)
    from_pipe = subprocess.run([*command, "-"], input=b"".join(stream()), capture_output=True, check=True)
    assert from_pipe.stdout == from_file.stdout == over_mqtt() + b"\n"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"id": "a", "t": 1, "lat": 1, "lon": 2}, "missing_field"),
        ({"kind": "sonar", "id": "a", "t": 1}, "wrong_type"),
        ({"kind": "gps", "t": 1, "lat": 1, "lon": 2}, "bad_id"),
        ({"kind": "gps", "id": "a", "t": "noon", "lat": 1, "lon": 2}, "wrong_type"),
        ({"kind": "gps", "id": "a", "t": 1, "lat": 95, "lon": 2}, "out_of_range"),
    ],
)
def test_a_wrong_message_is_counted_by_its_reason(message: dict[str, Any], reason: str) -> None:
    good = {"kind": "gps", "id": "a", "t": 2.0, "lat": 1.0, "lon": 2.0}
    for write, behind in ((msgspec.msgpack.encode, b""), (msgspec.json.encode, b"\n")):
        batches, feed = pushed(write(message) + behind + write(good) + behind, 11)
        assert feed.refused == {reason: 1}
        assert sum(map(len, batches)) == 1
    batches, feed = pushed(msgspec.json.encode({**good, "kind": None}), 5, Messages(kind="gps", via="mast"))
    assert batches[0].vias == ["mast"]


def test_lines_of_receivers_programs_are_read(tmp_path: Path) -> None:
    line = {
        "now": 1000.0,
        "hex": "4CA7B3",
        "lat": 51.0,
        "lon": 1.0,
        "seen_pos": 0.5,
        "squawk": "7700",
        "alt_baro": 3000,
    }
    path = tmp_path / "readsb.jsonl"
    path.write_text(json.dumps(line) + "\n" + json.dumps({**line, "now": 1001.0}) + "\n")
    log = open_log(path)
    [batch] = log.batches()
    assert (batch.ids, batch.kinds[Kind.ADSB].t.tolist()) == (["4ca7b3"], [999.5, 1000.5])
    flight = SAMPLES / "rs1090/full_flight_short.jsonl"
    if not flight.exists():
        pytest.skip(f"no {flight}: run `make data`")
    log = open_log(flight)
    assert sum(map(len, log.batches())) == 6966
    assert log.info().problems == ()
