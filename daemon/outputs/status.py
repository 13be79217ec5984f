"""Our state at the broker: `<output>/status`, retained, "online" while we are there and "offline" by our last will."""

from __future__ import annotations

import os
import socket
import time

import msgspec

from watchkeeper.config.schema import Config
from watchkeeper.streams.messages import escape_id
from watchkeeper.streams.mqtt.transport import Transport


def status_topic(output: str) -> str:
    """Where our state is published."""
    return f"{output}/status"


def status_payload(state: str, version: str) -> bytes:
    """`online` or `offline`, and who says so when."""
    instance = f"{socket.gethostname()}:{os.getpid()}"
    return msgspec.json.encode({"state": state, "t": round(time.time(), 3), "version": version, "instance": instance})


def instance_topic(output: str, client_id: str) -> str:
    """Where it says that this client publishes below this prefix."""
    return f"{output}/instance/{escape_id(client_id)}"


def say_hello(transport: Transport, config: Config, version: str) -> bytes:
    """The first messages after each connect, and what they were."""
    greeting = status_payload("online", version)
    transport.post(status_topic(config.topics.output), greeting, retain=True)
    transport.post(instance_topic(config.topics.output, config.broker.client_id), greeting, retain=True)
    return greeting


async def say_goodbye(transport: Transport, output: str, version: str) -> None:
    """The last message of an orderly shutdown."""
    if transport.connected:
        await transport.publish(status_topic(output), status_payload("offline", version), qos=1, retain=True)
