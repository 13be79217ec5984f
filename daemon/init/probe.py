"""What there is on this machine: a receiver, a broker, a vehicle's MAVLink, BlueSky, or a log that was named.

Only this machine is asked (127.0.0.1), all places at the same time, for PATIENCE_S at most. Nothing is sent but an MQTT
CONNECT, which every broker answers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from watchkeeper.daemon.demo.broker import is_broker
from watchkeeper.streams.foreign.decode import ForeignError
from watchkeeper.streams.foreign.files import read_json
from watchkeeper.streams.logs.base import LogError
from watchkeeper.streams.logs.source import open_log

T = TypeVar("T")

HOST = "127.0.0.1"
PATIENCE_S = 1.0
# How long a log is read to see what is in it.
LOG_S = 1.0
# The first byte of a MAVLink packet, by version.
MAVLINK = (b"\xfd", b"\xfe")


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where receivers, brokers, vehicles and simulators are by their own defaults."""

    documents: tuple[Path, ...] = tuple(
        Path("/run") / name / "aircraft.json"
        for name in ("readsb", "dump1090-fa", "dump1090-mutability", "dump1090", "tar1090", "adsbexchange-feed")
    )
    sbs: int = 30_003
    beast: int = 30_005
    mqtt: int = 1883
    mqtts: int = 8883
    mavlink: tuple[int, ...] = (14_550, 14_540)
    bluesky: int = 11_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found. Ports are 0 where nothing is; `taken` are MAVLink ports on which another program listens."""

    document: Path | None = None
    place: tuple[float, float] | None = None
    """Latitude and longitude of the receiver, as its receiver.json says."""
    sbs: int = 0
    beast: int = 0
    mqtt: int = 0
    mqtts: int = 0
    mavlink: int = 0
    taken: tuple[int, ...] = ()
    bluesky: int = 0
    log: Path | None = None
    kinds: tuple[str, ...] = ()
    """Streams in the log."""

    def words(self) -> list[str]:
        """What was found, a line each."""
        rows = {
            f"the log {self.log} with {', '.join(self.kinds) or 'no samples'}": self.log,
            f"a receiver's {self.document}": self.document,
            f"the receiver's place, {place_words(self.place)}": self.place,
            f"a receiver's BaseStation text on port {self.sbs}": self.sbs,
            f"a receiver's Beast binary on port {self.beast}": self.beast,
            f"MAVLink on UDP port {self.mavlink}": self.mavlink,
            f"BlueSky on port {self.bluesky}": self.bluesky,
            f"an MQTT broker on port {self.mqtt}": self.mqtt,
            f"something on port {self.mqtts}, where brokers speak TLS": self.mqtts,
        }
        taken = [f"another program that listens on UDP port {port}, a ground station perhaps" for port in self.taken]
        return [words for words, there in rows.items() if there] + taken


async def look(log: Path | None = None, places: Places | None = None) -> Found:
    """Look everywhere. Raises LogError for a log that cannot be read."""
    places = places or Places()
    kinds = await asyncio.to_thread(kinds_of, log) if log is not None else ()
    sbs, beast, mqtt, mqtts, bluesky, *vehicles = await asyncio.gather(
        *(_patient(_open(port), 0) for port in (places.sbs, places.beast)),
        _patient(_broker(places.mqtt), 0),
        *(_patient(_open(port), 0) for port in (places.mqtts, places.bluesky)),
        *(_patient(_datagram(port), 0) for port in places.mavlink),
    )
    document = next((path for path in places.documents if _is_file(path)), None)
    return Found(
        document=document,
        place=place_of(document.with_name("receiver.json")) if document is not None else None,
        sbs=sbs,
        beast=beast,
        mqtt=mqtt,
        mqtts=mqtts,
        mavlink=next((port for port in vehicles if port > 0), 0),
        taken=tuple(-port for port in vehicles if port < 0),
        bluesky=bluesky,
        log=log,
        kinds=kinds,
    )


class _Receiver(msgspec.Struct):
    """What readsb and dump1090 write about themselves."""

    lat: float | None = None
    lon: float | None = None


def place_of(path: Path) -> tuple[float, float] | None:
    """Where a receiver is, by its receiver.json; None where it does not say, or says what cannot be."""
    try:
        told = read_json(path, _Receiver)
    except (OSError, LogError, ForeignError):
        return None
    if told.lat is None or told.lon is None or not is_place(told.lat, told.lon):
        return None
    return told.lat, told.lon


def is_place(lat: float, lon: float) -> bool:
    """Whether this is on Earth; 0, 0 is what programs say that do not know."""
    return -90.0 <= lat <= 90.0 and -180.0 <= lon <= 180.0 and (lat, lon) != (0.0, 0.0)


def place_words(place: tuple[float, float] | None) -> str:
    """A place for a person."""
    return "unknown" if place is None else f"{place[0]:.3f}, {place[1]:.3f}"


def kinds_of(log: Path) -> tuple[str, ...]:
    """The streams at the beginning of a log. Raises LogError."""
    found: dict[str, None] = {}
    ends_s = time.monotonic() + LOG_S
    for batch in open_log(log).batches():
        found |= dict.fromkeys(kind.word for kind in batch.kinds)
        if time.monotonic() > ends_s:
            break
    return tuple(found)


def _is_file(path: Path) -> bool:
    with suppress(OSError):  # a folder that we may not look into
        return path.is_file()
    return False


async def _patient(asking: Awaitable[T], otherwise: T) -> T:
    with suppress(TimeoutError, OSError):
        return await asyncio.wait_for(asking, PATIENCE_S)
    return otherwise


async def _open(port: int) -> int:
    """The port if somebody accepts connections there."""
    _, writer = await asyncio.open_connection(HOST, port)
    writer.close()
    return port


async def _broker(port: int) -> int:
    return port if await is_broker(port) else 0


async def _datagram(port: int) -> int:
    """The port if MAVLink comes to it; less than 0 if somebody else listens there."""
    first: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    class Ear(asyncio.DatagramProtocol):
        def datagram_received(self, data: bytes, addr: tuple[str | int, ...]) -> None:  # noqa: ARG002
            if data.startswith(MAVLINK) and not first.done():
                first.set_result(data)

    try:
        line, _ = await asyncio.get_running_loop().create_datagram_endpoint(Ear, local_addr=(HOST, port))
    except OSError:
        return -port
    try:
        await first
    finally:
        line.close()
    return port
