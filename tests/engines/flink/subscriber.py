"""A mosquitto of our own, and somebody who hears everything that the job publishes there."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

import paho.mqtt.client as paho
from waiting import end_program

PATIENCE_S = 30.0
TOPIC = "watchkeeper/#"


class Subscriber:
    """`with Subscriber(folder) as subscriber`; the job publishes to `subscriber.url`."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = int(free.getsockname()[1])
        self.url = f"mqtt://127.0.0.1:{self._port}"
        settings = folder / "mosquitto.conf"
        settings.write_text(f"listener {self._port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n")
        self._broker = subprocess.Popen(["mosquitto", "-c", str(settings)], stderr=subprocess.DEVNULL)
        self._heard: list[tuple[str, bytes]] = []

    def __enter__(self) -> Self:
        self._client = self._subscribed(self._heard)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.disconnect()
        self._client.loop_stop()
        end_program(self._broker)

    def heard(self) -> list[tuple[str, bytes]]:
        """Topic and payload of everything that was published so far."""
        self._catch_up(self._client, self._heard)
        return list(self._heard)

    def retained(self) -> dict[str, bytes]:
        """What somebody who comes now is shown."""
        heard: list[tuple[str, bytes]] = []
        client = self._subscribed(heard)
        self._catch_up(client, heard)
        client.disconnect()
        client.loop_stop()
        return {topic: payload for topic, payload in heard if not topic.endswith("/mark")}

    def _subscribed(self, heard: list[tuple[str, bytes]]) -> paho.Client:
        ready = threading.Event()
        client = paho.Client(paho.CallbackAPIVersion.VERSION2)
        client.on_message = lambda _c, _u, message: heard.append((message.topic, message.payload))
        client.on_subscribe = lambda *_: ready.set()
        client.on_connect = lambda *_: client.subscribe(TOPIC, 1)
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            with suppress(OSError):
                client.connect("127.0.0.1", self._port)
                break
            time.sleep(0.05)
        client.loop_start()
        assert ready.wait(PATIENCE_S)
        return client

    @staticmethod
    def _catch_up(client: paho.Client, heard: list[tuple[str, bytes]]) -> None:
        """The broker delivers in order: what was published before our own mark is here when the mark is."""
        mark = (f"watchkeeper/{uuid4().hex}/mark", b"")
        client.publish(*mark, qos=1)
        until = time.monotonic() + PATIENCE_S
        while mark not in heard:
            assert time.monotonic() < until
            time.sleep(0.05)
