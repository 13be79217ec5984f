"""`check-config --connect`: whether the broker, the sources and the receivers of alarms can be reached from here.

Each is tried once, all at the same time, for TIMEOUT_S at most. At the broker we log in under another name, so that a
daemon that runs is not disturbed, and ask for the telemetry; nothing is published. Addresses that alarms go to are
connected to and left again: no request is sent.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

import aiohttp

from watchkeeper.config.adapters.base import Source
from watchkeeper.config.masking import masked
from watchkeeper.config.schema import Config
from watchkeeper.daemon.background import end
from watchkeeper.daemon.check_config.machine import unreadable
from watchkeeper.daemon.outputs.catalog import asked, declarations
from watchkeeper.daemon.replay.publish import guest
from watchkeeper.streams.adapters.base import Line, Way, resolve
from watchkeeper.streams.adapters.catalog import discover
from watchkeeper.streams.mqtt.transport import make_transport

TIMEOUT_S = 5.0
POLL_S = 0.02

Try = Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Tried:
    """One address: what it is for, and what was found there or why nothing was."""

    what: str
    where: str
    reachable: bool
    words: str


async def try_all(config: Config) -> list[Tried]:
    """Every address of a configuration, in the order of the file."""
    targets: list[tuple[str, str, Try]] = [("broker", config.broker.url, partial(_broker, config))]
    targets += [(f"source {source.type}", source.url, _of_source(source)) for source in config.sources]
    targets += [(f"alarms to {name}", url, partial(_connect, url)) for name, url in _receivers(config)]
    return list(await asyncio.gather(*(_try(*target) for target in targets)))


def _receivers(config: Config) -> Iterator[tuple[str, str]]:
    """Sinks with an address of their own: those that publish through the broker have none."""
    for kind in declarations():
        for settings in asked(kind, config):
            url = getattr(settings, "url", "")
            if isinstance(url, str) and urlsplit(url).scheme in ("http", "https"):
                yield getattr(settings, "name", kind.name), url


async def _try(what: str, where: str, attempt: Try) -> Tried:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            words, reachable = await attempt(), True
    except TimeoutError:
        words, reachable = f"no answer within {TIMEOUT_S:g} s", False
    # whatever a library of a bus or of another package raises is an answer as well
    except Exception as error:
        words, reachable = _why(error), False
    return Tried(what, masked(where), reachable, masked(words))


def _why(error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return "no such host"
    if isinstance(error, ConnectionRefusedError):
        return "refused: nothing listens there"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"it answers {error.status} {error.message}"
    return str(error) or type(error).__name__


async def _broker(config: Config) -> str:
    up = asyncio.Event()
    transport = make_transport(
        guest(config.broker, None),
        subscribe=[f"{config.topics.telemetry}/#"],
        on_message=lambda _topic, _payload: None,
        on_connect=up.set,
    )
    running = asyncio.create_task(transport.run())
    try:
        while not up.is_set():
            if transport.last_error:
                raise ConnectionError(transport.last_error)
            await asyncio.sleep(POLL_S)
    finally:
        await end(running)
    if transport.deaf:
        raise ConnectionError("; ".join(transport.health()))
    return f"it lets us listen to {config.topics.telemetry}/#"


def _of_source(source: Source) -> Try:
    adapter = discover()[source.type]
    way, where = adapter.way_of(source.url), urlsplit(source.url)
    if way is Way.PROCESS:
        return partial(_connect, source.url) if where.netloc else partial(_said, "a program that `run` starts")
    if way is Way.BUS:
        return partial(_bus, resolve(adapter.line), source)
    if where.scheme in ("file", "serial"):
        return partial(_file, Path(unquote(where.path)))
    if way is Way.DOCUMENT:
        return partial(_document, source.url)
    if where.scheme == "unix":
        return partial(_socket, Path(unquote(where.path)))
    return partial(_listen if where.scheme == "udp" else _connect, source.url)


async def _said(words: str) -> str:
    return words


async def _connect(url: str) -> str:
    where = urlsplit(url)
    tls = ssl.create_default_context() if where.scheme == "https" else None
    port = where.port or (443 if tls else 80)
    _, writer = await asyncio.open_connection(where.hostname, port, ssl=tls)
    writer.close()
    return "it accepts connections; nothing was sent"


async def _socket(path: Path) -> str:
    _, writer = await asyncio.open_unix_connection(path)
    writer.close()
    return "it accepts connections; nothing was sent"


async def _listen(url: str) -> str:
    where = urlsplit(url)
    line, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        asyncio.DatagramProtocol, local_addr=(where.hostname or "", where.port or 0)
    )
    line.close()
    return "the port is free for us to listen on"


async def _document(url: str) -> str:
    async with aiohttp.ClientSession(raise_for_status=True) as http, http.get(url) as answer:
        return f"it answers {answer.status}"


async def _file(path: Path) -> str:
    if problem := unreadable(path):
        raise OSError(problem)
    return "it can be read"


async def _bus(open_line: Callable[[Source], Line], source: Source) -> str:
    line = await asyncio.to_thread(open_line, source)
    await asyncio.to_thread(line.close)
    return "the bus can be opened"
