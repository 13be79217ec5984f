"""A siren on the network: one line for each event, answered with OK."""

from __future__ import annotations

import asyncio
from collections import deque
from pathlib import Path
from typing import Annotated

from watchkeeper.config.section import Flag, Section, about, text
from watchkeeper.daemon.demo.broker import free_port
from watchkeeper.daemon.outputs.base import Context, Declaration, settled
from watchkeeper.detectors.alarms.events import AlarmEvent

QUEUE_EVENTS = 1000


class SirenSettings(Section, frozen=True):
    """A siren that is switched by lines of text over TCP."""

    enabled: Flag = False
    host: Annotated[str, text("where the siren listens")] = "127.0.0.1"
    port: Annotated[int, about("", "its TCP port", ge=1, le=65_535)] = 7000
    retry_s: Annotated[float, about("s", "pause after a failure", ge=0.01, le=60)] = 1.0


class SirenSink:
    """One siren. An event leaves the queue when the siren has answered."""

    name = "siren"

    def __init__(self, settings: SirenSettings, _context: Context) -> None:
        self.delivered = self.failures = self.refused = self.dropped = 0
        self._settings = settings
        self._queue: deque[AlarmEvent] = deque()
        self._arrived = asyncio.Event()
        self._trouble = ""

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def put(self, event: AlarmEvent) -> None:
        if len(self._queue) >= QUEUE_EVENTS:
            self.dropped += 1
            return
        self._queue.append(event)
        self._arrived.set()

    async def run(self) -> None:
        while True:
            try:
                reader, writer = await asyncio.open_connection(self._settings.host, self._settings.port)
                try:
                    await self._talk(reader, writer)
                finally:
                    writer.close()
            except OSError as error:
                self.failures += 1
                self._trouble = str(error)
                await asyncio.sleep(self._settings.retry_s)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._trouble = ""
        while True:
            while not self._queue:
                self._arrived.clear()
                await self._arrived.wait()
            event = self._queue[0]
            writer.write(f"{event.state} {event.severity} {event.kind} {'~'.join(event.subjects)}\n".encode())
            answer = await reader.readline()
            if not answer:
                raise ConnectionError("the siren hung up")
            self._queue.popleft()
            self.delivered += answer == b"OK\n"
            self.refused += answer != b"OK\n"

    async def flush(self) -> None:
        await settled(self)

    def health(self) -> list[str]:
        return [f"no siren: {self._trouble}"] if self._trouble else []


class SirenForTests:
    """For the conformance tests: a siren that can be away and come back."""

    def __init__(self, _folder: Path) -> None:
        self.settings = SirenSettings(enabled=True, port=free_port(), retry_s=0.05)
        self._server: asyncio.Server | None = None
        self._lines: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        where = self.settings
        self._server = await asyncio.start_server(self._answer, where.host, where.port)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for line in self._lines:
                line.close()
            await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._lines.add(writer)
        while await reader.readline():
            writer.write(b"OK\n")
        self._lines.discard(writer)
        writer.close()


SIREN = Declaration(
    name="siren",
    help="every event as a line to a siren on the network",
    settings=SirenSettings,
    make=SirenSink,
    counterpart=SirenForTests,
)
