"""Between the Transport and its connections: what a connection is given, and what it must do."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from watchkeeper.config.schema import Broker

OnMessage = Callable[[str, bytes], None]

# Unacknowledged QoS 1 messages on the line: enough to hide a round trip, few enough to send again after a break.
MAX_IN_FLIGHT = 100
# After each read the socket rests this long, so that the next read brings many messages instead of one: most of the
# cost of a message is that of waking up.
GATHER_S = 0.003
# A broker that takes longer than this to answer CONNECT or SUBSCRIBE is treated as not there.
ANSWER_TIMEOUT_S = 10.0
# The longest packet that MQTT has.
MAX_PACKET_BYTES = 268_435_460
# A refused subscription is asked for again after this time: brokers get other rules while they run.
RESUBSCRIBE_S = 30.0


@dataclass(frozen=True, slots=True)
class Will:
    """What the broker publishes for us when we vanish without a goodbye."""

    topic: str
    payload: bytes
    qos: int = 1
    retain: bool = True


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the broker listens."""

    host: str
    port: int
    tls: bool


def parse_url(url: str) -> Endpoint:
    """The endpoint of `mqtt://host[:port]` or `mqtts://host[:port]`.

    >>> parse_url("mqtts://broker.example")
    Endpoint(host='broker.example', port=8883, tls=True)
    """
    parts = urlsplit(url)
    if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname:
        raise ValueError(f"not an MQTT address: {url!r} (expected mqtt://host:port or mqtts://host:port)")
    tls = parts.scheme == "mqtts"
    return Endpoint(parts.hostname, parts.port or (8883 if tls else 1883), tls)


@dataclass(frozen=True, slots=True)
class Wiring:
    """What a connection needs to know, the same for each attempt."""

    broker: Broker
    endpoint: Endpoint
    tls: ssl.SSLContext | None
    filters: tuple[str, ...]
    will: Will | None
    on_message: OnMessage
    on_sent: Callable[[int, str], None]
    """To be called with the packet id when the broker has answered a message (QoS 1) or it is written out (QoS 0), and
    with the reason, in words, if the broker refused it; empty: taken."""
    on_subscribed: Callable[[Mapping[str, str]], None]
    """To be called when the broker has answered a subscription, with all filters that are refused now, and why."""
    on_session: Callable[[bool], None]
    """To be called when the broker has greeted us: whether it has kept our session, and what was sent to it."""
    manual_ack: bool
    """Acknowledge only when `Connection.acknowledge` says so, not as soon as `on_message` has returned."""
    max_payload_bytes: int
    """The rest of a longer payload may be thrown away: it is refused for its length."""


class RefusedError(Exception):
    """The message can never go over this connection; the text says why."""


class UnsupportedVersionError(ConnectionError):
    """The broker does not speak this version of MQTT."""


class Connection(Protocol):
    """One connection after another through one client library; never two at once."""

    async def hold(self, up: Callable[[], None]) -> None:
        """Connect, subscribe, call `up` and stay. Raises OSError when refused or lost; says goodbye when cancelled."""
        ...

    def send(self, topic: str, payload: bytes, qos: int, retain: bool) -> int | None:
        """Hand over one message. Its packet id, 0 when there is nothing to wait for, None when the line is full.

        Raises RefusedError.
        """
        ...

    def acknowledge(self, count: int) -> None:
        """Acknowledge the `count` oldest of the messages that this connection has delivered (QoS 0 ones count too)."""
        ...

    def stop_reading(self) -> None:
        """Deliver and acknowledge nothing that arrives from now on, on this connection and on later ones."""
        ...
