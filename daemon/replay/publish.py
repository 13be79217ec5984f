"""Publishes samples to a broker, in order, at a chosen speed: the `--to-mqtt` of `replay` and `simulate`.

Every message goes with QoS 1 and only so many wait for their acknowledgement at once: a slow broker slows the
source, and nothing is left out.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec
import numpy as np

from watchkeeper.config.schema import Broker, Config, Topics
from watchkeeper.daemon.background import end
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.codec.encode import encode_batch, encode_sample, sample_topic
from watchkeeper.streams.codec.signals import spoken
from watchkeeper.streams.logs.chunks import numbered
from watchkeeper.streams.logs.pacing import Pacer, groups
from watchkeeper.streams.messages import FIELDS, Kind
from watchkeeper.streams.mqtt.transport import Transport, make_transport
from watchkeeper.streams.signals import names_in

# Messages handed over and not yet acknowledged.
WINDOW = 500
# A broker that cannot be reached for this long at the start is a mistake in the address, most likely.
CONNECT_TIMEOUT_S = 10.0


@dataclass(slots=True)
class Published:
    """What went out."""

    samples: int = 0
    messages: int = 0


def guest(broker: Broker, url: str | None) -> Broker:
    """The broker for a command that runs in parallel with the daemon: its own name, and no session that outlives it.

    With the daemon's client id the broker would close the daemon's connection.
    """
    name = f"{broker.client_id}-{secrets.token_hex(4)}"
    return msgspec.structs.replace(broker, url=url or broker.url, client_id=name, session_expiry_s=0)


async def connect(transport: Transport, connected: asyncio.Event) -> None:
    """Wait for the first connection; raises ConnectionError with the broker's last word."""
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            await connected.wait()
    except TimeoutError as error:
        raise ConnectionError(f"no broker within {CONNECT_TIMEOUT_S:.0f} s: {transport.last_error}") from error


async def publish(
    batches: Iterable[Batch], config: Config, url: str, pacer: Pacer, *, by_sample: bool = False
) -> Published:
    """Publish everything and wait until the broker has it. Raises ConnectionError."""
    connected = asyncio.Event()
    transport = make_transport(
        guest(config.broker, url), subscribe=[], on_message=lambda _topic, _payload: None, on_connect=connected.set
    )
    running = asyncio.create_task(transport.run())
    done = Published()
    waiting: deque[asyncio.Future[bool]] = deque()
    try:
        await connect(transport, connected)
        for due_t, batch in groups(batches, pacer.speed):
            await asyncio.sleep(pacer.delay_s(due_t))
            for topic, payload in samples_of(batch, config.topics) if by_sample else encode_batch(batch, config.topics):
                waiting.append(transport.post(topic, payload))
                done.messages += 1
                while len(waiting) > WINDOW:
                    await _acknowledged(waiting.popleft(), transport)
            done.samples += len(batch)
        while waiting:
            await _acknowledged(waiting.popleft(), transport)
    finally:
        await end(running)
    return done


async def _acknowledged(sent: asyncio.Future[bool], transport: Transport) -> None:
    if not await sent:
        raise ConnectionError("; ".join(transport.health()) or "the broker did not take a message")


def samples_of(batch: Batch, topics: Topics) -> Iterator[tuple[str, bytes]]:
    """Every sample as a message of its own, in arrival order."""
    batch = numbered(batch)
    messages: list[tuple[str, bytes]] = [("", b"")] * len(batch)
    for kind, cols in batch.kinds.items():
        names = [field.name for field in FIELDS[kind]]
        topic_of = {v: sample_topic(topics, kind, batch.ids[v]) for v in set(cols.vid.tolist())}
        rows = zip(
            cols.seq.tolist(), cols.vid.tolist(), cols.via.tolist(), cols.t.tolist(), cols.data.T.tolist(), strict=True
        )
        for seq, vid, via, t, row in rows:
            values: dict[str, float | str]
            if kind is Kind.SIGNAL:
                values = spoken(names_in(np.array(row[1:]).reshape(-1, 1))[0], row[0])
            else:
                values = dict(zip(names, row, strict=True))
            if via >= 0:
                values["via"] = batch.vias[via]
            if kind is Kind.ADSB and batch.ids[vid] in batch.callsigns:
                values["callsign"] = batch.callsigns[batch.ids[vid]]
            messages[seq] = topic_of[vid], encode_sample(kind, t, values)
    return iter(messages)
