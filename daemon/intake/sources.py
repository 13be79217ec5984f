"""Live sources beside the broker: each is connected to, read, and connected to again when it goes away.

What an adapter (streams/adapters) makes of the bytes goes into the same intake as the broker's messages, as frames on
our own topics: bounds, counters, dead letters and replay are then the same for both.

A stream (tcp://, udp:// where we listen, serial://, can://, or bluesky://, a simulation in a process of its own) is
read as it comes. A document (http://, file://) is fetched every `period_s`.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import aiohttp

from watchkeeper.config.adapters.base import Source
from watchkeeper.config.schema import Config
from watchkeeper.daemon.logs import kv
from watchkeeper.streams.adapters.base import DOCUMENT_MAX_BYTES, READ_BYTES, Feed
from watchkeeper.streams.adapters.bluesky.adapter import command_of
from watchkeeper.streams.adapters.catalog import make_feed
from watchkeeper.streams.adapters.vehicles.can import line_of
from watchkeeper.streams.codec.encode import encode_batch
from watchkeeper.streams.logs.source import LogError
from watchkeeper.streams.messages import Drop
from watchkeeper.streams.mqtt.transport import Backoff

log = logging.getLogger(__name__)

# A receiver that says nothing for this long is connected to anew: its machine may be gone without a farewell.
QUIET_S = 60.0
CONNECT_S = 10.0
UDP_QUEUE = 10_000
# What telemetry radios are delivered with, and how long a read waits so that stopping is not held up.
BAUD, SERIAL_WAIT_S = 57_600, 0.2
# A busy bus is taken in by the handful.
FRAMES_AT_ONCE = 500
Put = Callable[[str, bytes], None]


class LiveSource:
    """One source. `run` is a task; the rest is for the metrics."""

    def __init__(self, source: Source, config: Config, put: Put, now: Callable[[], float] = time.time) -> None:
        self.source = source
        self.connected = False
        self.samples = 0
        self.refused: Counter[str] = Counter()
        self._topics = config.topics
        self._put = put
        self._now = now
        self._backoff = Backoff(config.broker.reconnect_min_s, config.broker.reconnect_max_s)
        # what is not installed is said at the start
        make_feed(source)
        if source.url.startswith("serial:") and find_spec("serial") is None:
            raise ModuleNotFoundError('a serial source needs pyserial: pip install "watchkeeper[mavlink]"')
        if source.type == "can" and find_spec("can") is None:
            raise ModuleNotFoundError('a CAN bus needs python-can: pip install "watchkeeper[can]"')

    async def run(self) -> None:
        """Task: read until cancelled, whatever the other side does."""
        ways = {
            "tcp": self._tcp,
            "udp": self._udp,
            "serial": self._serial,
            "can": self._can,
            "bluesky": self._bluesky,
        }
        read = ways.get(urlsplit(self.source.url).scheme, self._documents)
        while True:
            feed: Feed | None = None
            problem = "it closed the connection"
            try:
                # a new connection is a new stream: half a message of the old one must not meet half of another
                feed = make_feed(self.source)
                async with aclosing(read()) as pieces:
                    async for data in pieces:
                        if not self.connected:
                            self.connected = True
                            self._backoff.reset()
                            log.info("source connected", extra=kv(url=self.source.url))
                        self._take_in(feed, data)
            except (OSError, TimeoutError, aiohttp.ClientError, ValueError, LogError) as error:
                problem = str(error) or type(error).__name__
            if feed is not None:
                self.refused += feed.refused
            self.connected = False
            pause_s = self._backoff.pause_s()
            log.warning("source lost", extra=kv(url=self.source.url, problem=problem, again_in_s=round(pause_s, 1)))
            await asyncio.sleep(pause_s)

    def _take_in(self, feed: Feed, data: bytes) -> None:
        feed.push(data, self._now())
        batch = feed.take()
        if batch is not None:
            self.samples += len(batch)
            for topic, payload in encode_batch(batch, self._topics):
                self._put(topic, payload)
        if feed.refused:
            self.refused += feed.refused
            feed.refused.clear()

    async def _tcp(self) -> AsyncGenerator[bytes]:
        where = urlsplit(self.source.url)
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection(where.hostname, where.port)
        try:
            while True:
                async with asyncio.timeout(QUIET_S):
                    data = await reader.read(READ_BYTES)
                if not data:
                    return
                yield data
        finally:
            writer.close()

    async def _udp(self) -> AsyncGenerator[bytes]:
        where = urlsplit(self.source.url)
        queue: asyncio.Queue[bytes] = asyncio.Queue(UDP_QUEUE)
        line, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: _Datagrams(queue, self.refused), local_addr=(where.hostname or "", where.port or 0)
        )
        try:
            while True:  # nobody's silence here means that a connection is lost
                yield await queue.get()
        finally:
            line.close()

    async def _serial(self) -> AsyncGenerator[bytes]:
        from serial import Serial  # noqa: PLC0415  comes with the extra of whoever speaks over a cable

        where = urlsplit(self.source.url)
        baud = int(parse_qs(where.query).get("baud", [str(BAUD)])[0])
        line = await asyncio.to_thread(Serial, unquote(where.path), baud, timeout=SERIAL_WAIT_S)
        try:
            while True:
                if data := await asyncio.to_thread(line.read, max(1, min(line.in_waiting, READ_BYTES))):
                    yield data
        finally:
            line.close()

    async def _can(self) -> AsyncGenerator[bytes]:
        from can import Bus, CanError  # noqa: PLC0415  comes with the extra of whoever listens to a bus

        where = urlsplit(self.source.url)
        rates = parse_qs(where.query).get("bitrate")
        options: dict[str, Any] = {"bitrate": int(rates[0])} if rates else {}
        try:
            bus = await asyncio.to_thread(Bus, unquote(where.path).lstrip("/"), interface=where.netloc, **options)
            try:
                while True:
                    if (message := await asyncio.to_thread(bus.recv, SERIAL_WAIT_S)) is not None:
                        lines = [line_of(message)]
                        while len(lines) < FRAMES_AT_ONCE and (message := bus.recv(0)) is not None:
                            lines.append(line_of(message))
                        yield b"".join(lines)
            finally:
                bus.shutdown()
        except CanError as error:
            raise OSError(str(error)) from error

    async def _bluesky(self) -> AsyncGenerator[bytes]:
        running = await asyncio.create_subprocess_exec(
            *command_of(self.source), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert running.stdout is not None
        assert running.stderr is not None
        said = asyncio.create_task(running.stderr.read())
        try:
            while data := await running.stdout.read(READ_BYTES):
                yield data
            lines = (await said).decode("utf-8", "replace").strip().splitlines()
            raise OSError(lines[-1] if lines else "the simulation has ended")
        finally:
            said.cancel()
            with suppress(ProcessLookupError):
                running.terminate()
            await running.wait()

    async def _documents(self) -> AsyncGenerator[bytes]:
        url = self.source.url
        if url.startswith("file:"):
            path = Path(unquote(urlsplit(url).path))
            while True:
                yield await asyncio.to_thread(_read, path)
                await asyncio.sleep(self.source.period_s)
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=CONNECT_S)) as http:
            while True:
                async with http.get(url) as answer:
                    answer.raise_for_status()
                    yield await _body(answer)
                await asyncio.sleep(self.source.period_s)


class _Datagrams(asyncio.DatagramProtocol):
    """Datagrams into a queue; when it is full the newest is lost and counted."""

    def __init__(self, queue: asyncio.Queue[bytes], refused: Counter[str]) -> None:
        self._queue = queue
        self._refused = refused

    def datagram_received(self, data: bytes, addr: tuple[str | int, ...]) -> None:  # noqa: ARG002
        """Whoever it is from: a ground station forwards many vehicles on one port."""
        try:
            self._queue.put_nowait(data)
        except asyncio.QueueFull:
            self._refused[Drop.QUEUE_FULL] += 1


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    """What the server sends, up to a limit that no receiver reaches."""
    body = bytearray()
    async for piece in answer.content.iter_chunked(READ_BYTES):
        body += piece
        if len(body) > DOCUMENT_MAX_BYTES:
            raise ValueError(f"a document of more than {DOCUMENT_MAX_BYTES:,} bytes")
    return bytes(body)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(DOCUMENT_MAX_BYTES)
