"""Half requests, floods of connections and slow senders do not keep the daemon from anybody else."""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from watchkeeper.config.loader import load
from watchkeeper.daemon import handles as handles_module
from watchkeeper.daemon.app import App
from watchkeeper.daemon.handles import KEPT_BACK, Handles
from watchkeeper.daemon.http import asked as page
from watchkeeper.daemon.http import door

HALF = b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow:"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    settings = {
        "http": {"port": 0, "host": "0.0.0.0", "max_connections": 40, "max_per_peer": 20},
        "fleet": {"max_vehicles": 10}, "detectors": {"conflict": {"max_pairs": 10}},
        "sinks": {"state_dir": str(tmp_path)},
    }  # fmt: skip
    made = App(load(None, env={}, overrides=settings))
    yield made
    made.close()


async def half(port: int, peer: str) -> socket.socket:
    line = socket.socket()
    line.setblocking(False)
    line.bind((peer, 0))
    loop = asyncio.get_running_loop()
    await loop.sock_connect(line, ("127.0.0.1", port))
    await loop.sock_sendall(line, HALF)
    return line


async def ask(port: int, peer: str) -> int:
    connector = aiohttp.TCPConnector(local_addr=(peer, 0))
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(f"http://127.0.0.1:{port}/healthz") as answer,
    ):
        return answer.status


def test_half_requests_shut_nobody_else_out_and_end(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "HEAD_S", 1.0)

    async def main() -> None:
        assert app.http is not None
        await app.http.start()
        port = app.http.port
        loop = asyncio.get_running_loop()
        lines = [await half(port, "127.0.0.9") for _ in range(60)]
        refused = [line for line in lines if (await _peek(loop, line)).startswith(b"HTTP/1.1 503")]
        assert len(refused) == 40
        assert app.http.door.refused["peer"] == 40
        # others are served meanwhile, even when all places are taken by silent ones
        assert await ask(port, "127.0.0.10") == 200
        more = [await half(port, "127.0.0.11") for _ in range(20)]
        await asyncio.sleep(0.05)
        assert await ask(port, "127.0.0.10") == 200
        assert app.http.door.refused["all"] >= 1
        async with asyncio.timeout(10):
            while app.http.door._open:
                await asyncio.sleep(0.05)
        assert app.http.door.refused["head"] >= 38
        assert await ask(port, "127.0.0.9") == 200
        for line in lines + more:
            line.close()
        await app.http.stop()

    asyncio.run(main())


async def _peek(loop: asyncio.AbstractEventLoop, line: socket.socket) -> bytes:
    try:
        async with asyncio.timeout(0.02):
            return await loop.sock_recv(line, 200)
    except (TimeoutError, ConnectionError):
        return b""


SLOW = {
    "slow bodies": b"POST /alarms/x/acknowledge HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 50\r\n\r\n{",
    "slow readers": b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 40,
    "idle ones": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "live pages": b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
}


@pytest.mark.parametrize("request_", SLOW.values(), ids=SLOW)
def test_those_who_asked_and_do_not_go_shut_nobody_out_either(app: App, request_: bytes) -> None:
    async def main() -> None:
        assert app.http is not None
        await app.http.start()
        port = app.http.port
        loop = asyncio.get_running_loop()
        lines = []
        # more peers than there are places: no limit of one peer helps
        for k in range(60):
            line = socket.socket()
            line.setblocking(False)
            line.bind((f"127.0.1.{k + 1}", 0))
            await loop.sock_connect(line, ("127.0.0.1", port))
            await loop.sock_sendall(line, request_)
            lines.append(line)
        await asyncio.sleep(0.1)
        assert len(app.http.door._open) <= 40
        assert [await ask(port, "127.0.0.10") for _ in range(5)] == [200] * 5
        for line in lines:
            line.close()
        await app.http.stop()

    asyncio.run(main())


def test_a_connection_that_asks_again_stays_open(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "HEAD_S", 0.2)

    async def main() -> None:
        assert app.http is not None
        await app.http.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", app.http.port)
        for _ in range(3):
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            await reader.readuntil(b"}\n")
            await asyncio.sleep(0.3)
        writer.close()
        await app.http.stop()

    asyncio.run(main())


def test_a_body_that_does_not_come_is_not_waited_for(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "BODY_S", 0.2)

    async def main() -> bytes:
        assert app.http is not None
        await app.http.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", app.http.port)
        head = f"POST /alarms/x/acknowledge HTTP/1.1\r\nHost: 127.0.0.1:{app.http.port}\r\n"
        writer.write(f"{head}Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{{".encode())
        answer = await reader.readline()
        writer.close()
        await app.http.stop()
        return answer

    assert asyncio.run(main()).startswith(b"HTTP/1.1 408")


def test_without_handles_one_line_is_logged_and_some_are_let_go(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> Handles:
        loop = asyncio.get_running_loop()
        found = Handles()
        found.start(loop)
        assert len(found._kept) == KEPT_BACK
        for _ in range(4000):
            loop.call_exception_handler({"message": "accept", "exception": OSError(errno.EMFILE, "too many")})
        assert found._kept == []
        found.stop()
        return found

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    logging.getLogger("watchkeeper").propagate = True
    with caplog.at_level(logging.ERROR, logger=handles_module.__name__):
        found = asyncio.run(main())
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert found.exhausted == 4000
    assert [record.message for record in caplog.records] == ["no file handle left"]
