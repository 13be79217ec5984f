"""Our state at the broker: `<output>/status`, retained, "online" while we are there and "offline" by our last will."""

from __future__ import annotations

import os
import socket
import time

import msgspec

from watchkeeper.streams.mqtt.transport import Transport


def status_topic(output: str) -> str:
    """Where our state is published."""
    return f"{output}/status"


def status_payload(state: str, version: str) -> bytes:
    """`online` or `offline`, and who says so when."""
    instance = f"{socket.gethostname()}:{os.getpid()}"
    return msgspec.json.encode({"state": state, "t": round(time.time(), 3), "version": version, "instance": instance})


def say_hello(transport: Transport, output: str, version: str) -> None:
    """The first message after each connect."""
    transport.post(status_topic(output), status_payload("online", version), retain=True)


async def say_goodbye(transport: Transport, output: str, version: str) -> None:
    """The last message of an orderly shutdown."""
    if transport.connected:
        await transport.publish(status_topic(output), status_payload("offline", version), qos=1, retain=True)
