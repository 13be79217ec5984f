"""What the tests of the transport share: a client with an inbox, and a line to the broker that can be cut."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from waiting import PATIENCE_S

from watchkeeper.config.schema import Broker
from watchkeeper.daemon.demo.broker import SBIN
from watchkeeper.streams.mqtt.transport import make_transport
from watchkeeper.streams.mqtt.wiring import Will

LIBRARIES = ("mqtt5", "aiomqtt")

need_mosquitto = pytest.mark.skipif(
    not (shutil.which("mosquitto") or shutil.which("mosquitto", path=SBIN)), reason="mosquitto is not installed"
)
each_library = pytest.mark.parametrize("library", LIBRARIES)
each_broker = pytest.mark.parametrize("kind", [pytest.param("mosquitto", marks=need_mosquitto), "nats"])
Scene = Callable[[], Coroutine[Any, Any, None]]


def play(scene: Scene) -> None:
    """Run a test's coroutine; nothing in it may take longer than a slow machine needs."""
    asyncio.run(asyncio.wait_for(scene(), 3 * PATIENCE_S))


class Client:
    """A transport with an inbox."""

    def __init__(
        self,
        url: str,
        library: str,
        *filters: str,
        will: Will | None = None,
        manual_ack: bool = False,
        **settings: Any,
    ) -> None:
        self.inbox: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
        self.up = asyncio.Event()
        self.down = asyncio.Event()
        settings = {"client_id": "client", "reconnect_min_s": 0.05, "reconnect_max_s": 0.2} | settings
        self.transport = make_transport(
            Broker(url=url, transport=library, **settings),
            subscribe=filters,
            on_message=lambda topic, payload: self.inbox.put_nowait((topic, payload)),
            on_connect=self.up.set,
            on_disconnect=self.down.set,
            will=will,
            manual_ack=manual_ack,
        )

    async def next(self) -> tuple[str, bytes]:
        return await asyncio.wait_for(self.inbox.get(), PATIENCE_S)


@asynccontextmanager
async def running(client: Client, *, connected: bool = True) -> AsyncIterator[Client]:
    task = asyncio.create_task(client.transport.run())
    try:
        if connected:
            await asyncio.wait_for(client.up.wait(), PATIENCE_S)
        yield client
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class Cable:
    """A line to the broker that a test can cut or let hang."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._ends: list[asyncio.StreamWriter] = []
        self.url = ""

        self._hung = asyncio.Event()
        self._hung.set()

    def hang(self) -> None:
        """Carry nothing any more, and let nobody notice."""
        self._hung.clear()

    def cut(self) -> None:
        """Break every connection, without a goodbye to either side."""
        for end in self._ends:
            end.transport.abort()
        self._ends.clear()

    async def join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client."""
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        self._ends += [writer, back]
        await asyncio.gather(self._carry(reader, back), self._carry(there, writer))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                await self._hung.wait()
                writer.write(data)
        writer.close()


@asynccontextmanager
async def cable(port: int) -> AsyncIterator[Cable]:
    """A cable to the broker on `port`; its `url` is for the client."""
    line = Cable(port)
    async with await asyncio.start_server(line.join, "127.0.0.1", 0) as server:
        line.url = f"mqtt://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield line
        line.cut()
