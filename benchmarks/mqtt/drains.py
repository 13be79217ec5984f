"""Peers of `bench live --transport-only`: other ways to take MQTT messages off a broker, as their authors show them.

Each is a coroutine `(port, on_message, up)` that subscribes to `telemetry/#` at QoS 1, calls `up` and goes on until it
is cancelled. gmqtt is measured where it is installed.
"""

from __future__ import annotations

import asyncio
import importlib.util
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import aiomqtt
import numpy as np
from paho.mqtt.client import Client as Paho
from paho.mqtt.enums import CallbackAPIVersion

from watchkeeper.benchmarks.mqtt.load import connect_packet, mqtt_packet, mqtt_string
from watchkeeper.streams.mqtt.wiring import GATHER_S

OnMessage = Callable[[str, bytes], None]
Drain = Callable[[int, OnMessage, Callable[[], None]], Coroutine[Any, Any, None]]

FILTER = "telemetry/#"
READ_BYTES = 262_144


async def plain_socket(port: int, on_message: OnMessage, up: Callable[[], None]) -> None:
    """The floor: all packets have the length of the first, and their ids are copied by NumPy."""
    line = socket.create_connection(("127.0.0.1", port))
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    line.sendall(connect_packet("floor") + mqtt_packet(0x82, b"\x00\x01" + mqtt_string(FILTER) + b"\x01"))
    # CONNACK and SUBACK
    line.recv(9, socket.MSG_WAITALL)
    line.setblocking(False)
    up()
    rest = b""
    try:
        while True:
            await asyncio.sleep(GATHER_S)
            try:
                data = rest + line.recv(READ_BYTES)
            except BlockingIOError:
                continue
            size = 2 + data[1] if data[1] < 0x80 else 3 + (data[1] & 0x7F | data[2] << 7)
            count = len(data) // size
            rest = data[count * size :]
            start = 2 if data[1] < 0x80 else 3
            id_at = start + 2 + int.from_bytes(data[start : start + 2], "big")
            packets = np.frombuffer(data, np.uint8, count * size).reshape(count, size)
            pubacks = np.empty((count, 4), np.uint8)
            pubacks[:, :2] = 0x40, 0x02
            pubacks[:, 2:] = packets[:, id_at : id_at + 2]
            line.setblocking(True)
            line.sendall(pubacks.tobytes())
            line.setblocking(False)
            for _ in range(count):
                on_message("", b"")
    finally:
        line.close()


async def aiomqtt_generator(port: int, on_message: OnMessage, up: Callable[[], None]) -> None:
    """`async for message in client.messages`."""
    async with aiomqtt.Client("127.0.0.1", port, identifier="aiomqtt") as client:
        await client.subscribe(FILTER, 1)
        up()
        async for message in client.messages:
            on_message(message.topic.value, bytes(message.payload))


async def paho_thread(port: int, on_message: OnMessage, up: Callable[[], None]) -> None:
    """`client.on_message` and `client.loop_start()`, a thread of paho's own."""
    client: Any = Paho(CallbackAPIVersion.VERSION2, client_id="paho")
    client.on_connect = lambda *_: client.subscribe(FILTER, 1)
    client.on_subscribe = lambda *_: up()
    client.on_message = lambda _client, _userdata, message: on_message(message.topic, message.payload)
    client.connect("127.0.0.1", port)
    client.loop_start()
    try:
        await asyncio.Event().wait()
    finally:
        client.disconnect()
        client.loop_stop()


async def gmqtt_callback(port: int, on_message: OnMessage, up: Callable[[], None]) -> None:
    """`client.on_message` of gmqtt, which acknowledges when the callback has returned."""
    gmqtt: Any = __import__("gmqtt")
    client = gmqtt.Client("gmqtt")

    async def take(_client: Any, topic: str, payload: bytes, _qos: int, _properties: Any) -> int:
        on_message(topic, payload)
        return 0

    client.on_connect = lambda *_: client.subscribe(FILTER, qos=1)
    client.on_subscribe = lambda *_: up()
    client.on_message = take
    await client.connect("127.0.0.1", port)
    try:
        await asyncio.Event().wait()
    finally:
        await client.disconnect()


PEERS: dict[str, Drain] = {
    "plain socket": plain_socket,
    "paho": paho_thread,
    "aiomqtt generator": aiomqtt_generator,
}
if importlib.util.find_spec("gmqtt") is not None:
    PEERS["gmqtt"] = gmqtt_callback
