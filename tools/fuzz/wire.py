"""Targets: what comes over the network besides telemetry: MQTT packets, our own retained topics, HTTP bodies, wishes.

A broker's packets end the connection at worst, with MalformedError and nothing else. A retained message that is none of
ours is removed or left alone. A body that is no acknowledgement is answered with 400.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import mqtt5
import msgspec

from tools.fuzz.mutate import mutated
from tools.fuzz.run import Case, Target
from tools.fuzz.state import events
from tools.fuzz.trees import edited_json
from watchkeeper.config.guests import default
from watchkeeper.daemon.live.http import Request
from watchkeeper.daemon.live.viewer import parse_wish
from watchkeeper.daemon.outputs.readback.echo import Echo
from watchkeeper.streams.foreign.decode import ForeignError, from_json
from watchkeeper.streams.mqtt.packets import MalformedError, Splitter


def packet_target() -> Case:
    """A broker's bytes, in pieces of any size."""
    packets: list[mqtt5.Packet] = [
        mqtt5.ConnAckPacket(), mqtt5.PublishPacket("telemetry/adsb/a", b"{}"), mqtt5.PubAckPacket(1),
        mqtt5.PublishPacket("telemetry/gps/d1", b"x" * 300, qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=7),
        mqtt5.SubAckPacket(2, [mqtt5.SubAckReasonCode.GRANTED_QOS_AT_LEAST_ONCE]), mqtt5.PingRespPacket(),
        mqtt5.DisconnectPacket(),
    ]  # fmt: skip
    seeds = [_written([packet]) for packet in packets] + [_written(packets)]

    def case(draw: random.Random) -> str:
        heard: list[object] = []
        splitter = Splitter(lambda *message: heard.append(message), heard.append, max_payload_bytes=10_000)
        data = mutated(draw, seeds)
        piece = draw.choice((1, 7, len(data) + 1)) if len(data) < 5000 else len(data) + 1
        try:
            for at in range(0, len(data), piece):
                splitter.feed(data[at : at + piece])
        except MalformedError:
            return "refused"
        return "read" if heard else "part"

    return case


def _written(packets: Sequence[mqtt5.Packet]) -> bytes:
    return b"".join(packet.write() for packet in packets)


def echo_target() -> Case:
    """What a broker has retained below our own topics."""
    topics = default().topics
    seeds = [msgspec.json.encode(event) for event in events()]
    places = [f"{topics.output}/{place}".encode() for place in ("alarm/silence/a", "incident/x", "watch/a", "status",
                                                                "instance/other")]  # fmt: skip

    def case(draw: random.Random) -> str:
        echo = Echo(topics, "watchkeeper", lambda: 0)
        echo.connected(b"hello")
        for _ in range(5):
            topic = mutated(draw, places).decode("utf-8", "replace")
            echo.put(topic, edited_json(draw, draw.choice(seeds)) if draw.random() < 0.5 else mutated(draw, seeds))
        echo.put(f"{topics.output}/status", b"hello")
        assert all(isinstance(sentence, str) for sentence in echo.health())
        return "read"

    return case


def body_target(read: Callable[[bytes], object]) -> Case:
    """What a page or a script sends us."""
    seeds = [b'{"by": "anna", "on": true}', b'{"select": "uav-1", "network": true, "rate": 2}', b"{}"]

    def case(draw: random.Random) -> str:
        data = edited_json(draw, draw.choice(seeds)) if draw.random() < 0.5 else mutated(draw, seeds)[:4096]
        try:
            read(data)
        except ForeignError:
            return "refused"
        return "read"

    return case


def _acknowledgements() -> Case:
    return body_target(lambda data: from_json(data, Request))


def _wishes() -> Case:
    return body_target(lambda data: parse_wish(data.decode("utf-8", "replace")))


TARGETS: dict[str, Target] = {
    "mqtt packets": packet_target,
    "mqtt retained": echo_target,
    "http acknowledgement": _acknowledgements,
    "http wish": _wishes,
}
