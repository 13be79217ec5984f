"""Live sources next to the broker: each is connected to, read, and connected to again when it goes away.

The batches that an adapter (streams/adapters) makes of the bytes go into the same intake as the broker's messages:
bounds, counters, checks and dead letters are the same for both.

How the bytes come, the adapter declares: as a stream (tcp://, unix://, udp:// where we listen, serial://) that is read
as it comes, as a document (http://, file://) that is fetched every `period_s`, from a bus that the adapter opens, or
from a process that it starts.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import aiohttp
from prometheus_client.core import Metric

from watchkeeper.config.adapters.base import Document, Source
from watchkeeper.config.masking import masked
from watchkeeper.config.schema import Config
from watchkeeper.daemon.families import gauges_by, totals_by
from watchkeeper.daemon.intake.source_health import SourceHealth
from watchkeeper.daemon.logs import kv
from watchkeeper.streams.adapters.base import DOCUMENT_MAX_BYTES, READ_BYTES, Feed, Line, Way, resolve
from watchkeeper.streams.adapters.catalog import discover, make_feed
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.foreign.files import open_file
from watchkeeper.streams.foreign.library import reason
from watchkeeper.streams.logs.source import LogError
from watchkeeper.streams.messages import Drop
from watchkeeper.streams.mqtt.transport import Backoff

log = logging.getLogger(__name__)

# A receiver that says nothing for this long is connected to again: its machine may be gone.
QUIET_S = 60.0
CONNECT_S = 10.0
UDP_QUEUE = 10_000
# What telemetry radios are delivered with, and how long a read waits so that stopping is not held up.
BAUD, LINE_WAIT_S = 57_600, 0.2
Put = Callable[[Batch], None]


class LiveSource:
    """One source. `run` is a task; the rest is for the metrics."""

    def __init__(self, source: Source, config: Config, put: Put, now: Callable[[], float] = time.time) -> None:
        self.source = source
        self.connected = False
        self.samples = 0
        self.refused: Counter[str] = Counter()
        self.health = SourceHealth(source.url)
        self._put = put
        self._now = now
        self._backoff = Backoff(config.broker.reconnect_min_s, config.broker.reconnect_max_s)
        # what is not installed is said at the start
        make_feed(source)
        self._read = self._way()
        self._datagrams = source.url.startswith("udp:") and discover()[source.type].datagrams
        if source.url.startswith("serial:") and find_spec("serial") is None:
            raise ModuleNotFoundError('a serial source needs pyserial: pip install "watchkeeper[mavlink]"')

    async def run(self) -> None:
        """Task: read until cancelled, whatever the other side does."""
        while True:
            feed: Feed | None = None
            problem = "it closed the connection"
            try:
                # a new connection is a new stream: half a message of the old one must not meet half of another
                feed = make_feed(self.source)
                async with aclosing(self._read()) as pieces:
                    async for data in pieces:
                        if not self.connected:
                            self.connected = True
                            self.health.connected()
                            self._backoff.reset()
                            log.info("source connected", extra=kv(url=self.source.url))
                        self._take_in(feed, data)
            except (OSError, TimeoutError, aiohttp.ClientError, ValueError, LogError) as error:
                nothing = isinstance(error, TimeoutError)
                problem = str(error) or ("nothing comes" if nothing else type(error).__name__)
            # what a feed, or a library in it, did not foresee: this source begins again, the others go on
            except Exception as error:
                problem = reason(error)
                self.refused[Drop.SYNTAX] += 1
                log.exception("source broke down", extra=kv(url=self.source.url))
            if feed is not None:
                self.refused += feed.refused
            self.connected = False
            self.health.lost(problem)
            pause_s = self._backoff.pause_s()
            log.warning("source lost", extra=kv(url=self.source.url, problem=problem, again_in_s=round(pause_s, 1)))
            await asyncio.sleep(pause_s)

    def _way(self) -> Callable[[], AsyncGenerator[bytes]]:
        way = discover()[self.source.type].way_of(self.source.url)
        if way is Way.STREAM:
            ways = {"tcp": self._tcp, "unix": self._tcp, "udp": self._udp, "serial": self._serial}
            return ways[urlsplit(self.source.url).scheme]
        return {Way.DOCUMENT: self._documents, Way.BUS: self._bus, Way.PROCESS: self._process}[way]

    def _take_in(self, feed: Feed, data: bytes) -> None:
        feed.push(data, self._now())
        if self._datagrams:
            feed.close()
        batch = feed.take()
        if batch is not None:
            self.samples += len(batch)
            self.health.took(len(batch))
            self._put(batch)
        if feed.refused:
            self.health.refused(feed.refused.total(), feed.refused.most_common(1)[0][0], data)
            self.refused += feed.refused
            feed.refused.clear()

    async def _tcp(self) -> AsyncGenerator[bytes]:
        where = urlsplit(self.source.url)
        async with asyncio.timeout(CONNECT_S):
            if where.scheme == "unix":
                reader, writer = await asyncio.open_unix_connection(unquote(where.path))
            else:
                reader, writer = await asyncio.open_connection(where.hostname, where.port)
        try:
            if hello := discover()[self.source.type].hello:
                writer.write(resolve(hello)(self.source))
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
        async with aclosing(_pieces(lambda: _Cable(self.source.url))) as pieces:
            async for data in pieces:
                yield data

    async def _bus(self) -> AsyncGenerator[bytes]:
        open_line: Callable[[Source], Line] = resolve(discover()[self.source.type].line)
        async with aclosing(_pieces(lambda: open_line(self.source))) as pieces:
            async for data in pieces:
                yield data

    async def _process(self) -> AsyncGenerator[bytes]:
        command_of: Callable[[Source], list[str]] = resolve(discover()[self.source.type].command)
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
            raise OSError(lines[-1] if lines else "the process has ended")
        finally:
            said.cancel()
            with suppress(ProcessLookupError):
                running.terminate()
            await running.wait()

    async def _documents(self) -> AsyncGenerator[bytes]:
        assert isinstance(self.source, Document)
        url, period_s = self.source.url, self.source.period_s
        if url.startswith("file:"):
            path = Path(unquote(urlsplit(url).path))
            while True:
                yield await asyncio.to_thread(_read, path)
                await asyncio.sleep(period_s)
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=CONNECT_S)) as http:
            while True:
                async with http.get(url) as answer:
                    answer.raise_for_status()
                    yield await _body(answer)
                await asyncio.sleep(period_s)


class _Cable:
    """A serial line; see Line."""

    def __init__(self, url: str) -> None:
        from serial import Serial  # noqa: PLC0415  comes with the extra `mavlink`

        where = urlsplit(url)
        baud = int(parse_qs(where.query).get("baud", [str(BAUD)])[0])
        self._serial = Serial(unquote(where.path), baud, timeout=LINE_WAIT_S)

    def read(self, wait_s: float) -> bytes:  # noqa: ARG002  it was opened with its patience
        data: bytes = self._serial.read(max(1, min(self._serial.in_waiting, READ_BYTES)))
        return data

    def close(self) -> None:
        self._serial.close()


async def _pieces(open_line: Callable[[], Line]) -> AsyncGenerator[bytes]:
    """What a line that blocks brings, read in a thread."""
    line = await asyncio.to_thread(open_line)
    try:
        while True:
            if data := await asyncio.to_thread(line.read, LINE_WAIT_S):
                yield data
    finally:
        line.close()


def source_metrics(sources: Sequence[LiveSource]) -> Iterator[Metric]:
    """For Prometheus."""
    connected = gauges_by(["source"], "source_connected", "1 while a source delivers")
    samples = totals_by(["source"], "source_samples", "Samples that a source delivered")
    refused = totals_by(["source", "reason"], "source_refused", "Messages of a source that were not used")
    for live in sources:
        url = masked(live.source.url)
        connected.add_metric([url], live.connected)
        samples.add_metric([url], live.samples)
        for why, count in sorted(live.refused.items()):
            refused.add_metric([url, why], count)
    yield from (connected, samples, refused)


class _Datagrams(asyncio.DatagramProtocol):
    """Datagrams into a queue; when it is full the newest is lost and counted."""

    def __init__(self, queue: asyncio.Queue[bytes], refused: Counter[str]) -> None:
        self._queue = queue
        self._refused = refused

    def datagram_received(self, data: bytes, addr: tuple[str | int, ...]) -> None:  # noqa: ARG002
        """Any sender: a ground station forwards many vehicles on one port."""
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
    with open_file(path) as file:
        return file.read(DOCUMENT_MAX_BYTES)
