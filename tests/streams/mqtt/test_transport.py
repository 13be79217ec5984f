"""The transport without a broker: addresses, pauses, and the outgoing queue."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.config.schema import Broker
from watchkeeper.streams.mqtt.transport import Backoff, Transport
from watchkeeper.streams.mqtt.wiring import Endpoint, parse_url


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("mqtt://127.0.0.1:1883", Endpoint("127.0.0.1", 1883, False)),
        ("mqtt://broker", Endpoint("broker", 1883, False)),
        ("mqtts://broker", Endpoint("broker", 8883, True)),
        ("mqtts://broker:443/", Endpoint("broker", 443, True)),
    ],
)
def test_an_address_names_host_port_and_tls(url: str, endpoint: Endpoint) -> None:
    assert parse_url(url) == endpoint


@pytest.mark.parametrize("url", ["http://broker", "broker:1883", "mqtt://", "mqtt://broker:99999"])
def test_an_address_that_is_not_mqtt_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"MQTT|[Pp]ort"):
        parse_url(url)


@given(min_s=st.floats(0.05, 60), max_s=st.floats(0.1, 600), attempts=st.integers(1, 40))
def test_pauses_stay_within_their_bounds_for_ever(min_s: float, max_s: float, attempts: int) -> None:
    backoff = Backoff(min_s, max_s)
    pauses = [backoff.pause_s() for _ in range(attempts)]
    assert pauses[0] == min_s
    for i, pause in enumerate(pauses):
        assert min_s <= pause <= max(min_s, min(max_s, min_s * 2**i)) + 1e-9


def test_pauses_grow_spread_out_and_start_again_after_a_reset() -> None:
    last = []
    for _ in range(200):
        backoff = Backoff(0.5, 30.0)
        last.append([backoff.pause_s() for _ in range(12)][-1])
        backoff.reset()
        assert backoff.pause_s() == 0.5
    assert max(last) > 20.0
    assert min(last) < 10.0


def offline(**settings: Any) -> Transport:
    return Transport(Broker(), subscribe=["telemetry/#"], on_message=lambda topic, payload: None, **settings)


def test_a_full_queue_drops_the_oldest_and_counts_it() -> None:
    async def scene() -> None:
        transport = offline(max_queued=3)
        sent = [transport.post("alarm", b"%d" % i) for i in range(5)]
        assert transport.dropped == 2
        assert transport.waiting == 3
        assert [f.done() for f in sent] == [True, True, False, False, False]
        assert [f.result() for f in sent[:2]] == [False, False]

    asyncio.run(scene())


def test_a_qos_0_message_does_not_wait_for_a_connection() -> None:
    async def scene() -> None:
        transport = offline()
        assert await transport.publish("deadletter", b"x", qos=0) is False
        assert (transport.dropped, transport.waiting) == (1, 0)

    asyncio.run(scene())
