"""One sky in four languages, live: an airliner by GDL 90, a drone by Remote ID, a glider by OGN, ships by AIS.

Each pair by its own minima: the airliner and the glider by those of aircraft, the drone 0.8 NM from both by those of
drones, two ships by their domain, and whatever flies above a ship by none.
"""

from __future__ import annotations

import asyncio
import math
import socket
from datetime import UTC, datetime
from typing import Any

import pyais
from pymavlink.dialects.v20 import ardupilotmega as dialect
from waiting import until

from watchkeeper.config.adapters.ais import Ais
from watchkeeper.config.adapters.gdl90 import Gdl90
from watchkeeper.config.adapters.mavlink import Mavlink
from watchkeeper.config.adapters.ogn import Ogn
from watchkeeper.config.detectors import Detectors
from watchkeeper.config.detectors.conflict import Conflict
from watchkeeper.config.schema import DEFAULT, Config, FleetLimits
from watchkeeper.daemon.background import end
from watchkeeper.daemon.demo.broker import free_port
from watchkeeper.daemon.intake.sources import LiveSource
from watchkeeper.daemon.outputs.cockpit.gdl90 import framed, report
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.adapters.receivers.gdl90 import TRAFFIC
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.check import checked
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.messages import COLUMN, Kind

CONFIG = Config(fleet=FleetLimits(max_vehicles=100), detectors=Detectors(conflict=Conflict(max_pairs=1000)))
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC).timestamp()
KT_DEG_S = 1.0 / 3600.0 / 60.0
STEPS = 40


def airliner(s: int) -> bytes:
    """Northwards at 250 kt and 3,000 ft, 4 NM south of the glider's way."""
    known = {"lat": 47.0 - 4 / 60 + 250 * KT_DEG_S * s, "lon": 8.0, "alt_ft": 3000.0, "gs_kt": 250.0, "trk_deg": 0.0,
             "vs_fpm": 0.0, "nic": 8.0, "nacp": 9.0, "on_ground": 0.0}  # fmt: skip
    values = [known.get(name, math.nan) for name in COLUMN[Kind.ADSB]]
    return framed(report(TRAFFIC, "4ca7b3", "EIN4TR", values, alert=False))


def glider(s: int) -> bytes:
    """Circles at the place that the airliner flies to."""
    minutes = 0.2 * math.sin(s / 5)
    return (f"FLRDDA5BA>OGFLR,qAS,LSZH:/1200{s:02d}h4700.{50 + round(100 * minutes):02d}N/00800.00E'090/040/A=003100 "
            "id06DDA5BA +050fpm\n").encode()  # fmt: skip


def drone(mav: Any, s: int) -> bytes:
    """Hovers 0.8 NM from the glider and the airliner's way, at their level."""
    mac, name = b"\x01".ljust(20, b"\0"), b"1581F5FJD229400".ljust(20, b"\0")
    basic = mav.open_drone_id_basic_id_encode(0, 0, mac, 1, 2, name)
    place = mav.open_drone_id_location_encode(
        0, 0, mac, 2, 0, 0, 0, 470_085_000, 80_200_000, 930.0, 930.0, 0, 100.0, 11, 4, 4, 3, float(s), 1
    )
    return bytes(basic.pack(mav) + place.pack(mav))


def ships(s: int) -> bytes:
    """Northwards below the airliner and the glider, and southwards towards it, to pass at 0.1 NM."""
    lines = []
    for mmsi, start, lon, way in (("269057000", 47.0, 8.0, 1), ("269057001", 47.0 + 0.6 / 60, 8.0025, -1)):
        course = 0.0 if way > 0 else 180.0
        lat = start + way * 10 * KT_DEG_S * s
        place = {"type": 1, "mmsi": mmsi, "lat": lat, "lon": lon, "speed": 10.0, "course": course}
        lines += pyais.encode_dict(place, talker_id="AI")
    return "".join(f"{line}\r\n" for line in lines).encode()


async def heard() -> tuple[list[Batch], dict[str, int]]:
    ports = [free_port() for _ in range(3)]
    clock = [NOON]
    batches: list[Batch] = []
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await reader.readline()).startswith(b"user N0CALL pass -1")
        writers.append(writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    settings = [
        Gdl90(url=f"udp://127.0.0.1:{ports[0]}", via="stratux"), Mavlink(url=f"udp://127.0.0.1:{ports[1]}", via="mast"),
        Ais(url=f"udp://127.0.0.1:{ports[2]}", via="pier"),
        Ogn(url=f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}", via="ogn"),
    ]  # fmt: skip
    sources = [LiveSource(each, DEFAULT, batches.append, lambda: clock[0]) for each in settings]
    tasks = [asyncio.create_task(source.run()) for source in sources]
    mav, line = dialect.MAVLink(None, srcSystem=1, srcComponent=1), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    await until(lambda: bool(writers))
    for s in range(STEPS):
        clock[0] = NOON + s
        for port, data in zip(ports, (airliner(s), drone(mav, s), ships(s)), strict=True):
            line.sendto(data, ("127.0.0.1", port))
        writers[0].write(glider(s))
        await until(lambda: all(source.samples > s for source in sources))  # noqa: B023
    await end(*tasks)
    line.close()
    server.close()
    return batches, {source.source.type: source.refused.total() for source in sources}


def test_conflicts_are_found_between_languages_by_the_minima_of_each_kind() -> None:
    batches, refused = asyncio.run(heard())
    assert not any(refused.values())
    everything = join(batches)
    assert set(everything.ids) == {"4ca7b3", "~dda5ba", "1581F5FJD229400", "269057000", "269057001"}
    pipeline = Pipeline(CONFIG)
    events = pipeline.feed(checked(everything)) + pipeline.finish()
    raised = {(event.kind, event.subjects) for event in events if event.state == "raised"}
    assert ("conflict", ("4ca7b3", "~dda5ba")) in raised or ("los", ("4ca7b3", "~dda5ba")) in raised
    pairs = {subjects for kind, subjects in raised if kind in ("conflict", "los")}
    assert pairs == {("4ca7b3", "~dda5ba"), ("269057000", "269057001")}
    alike = Config(fleet=CONFIG.fleet, detectors=Detectors(conflict=Conflict(max_pairs=1000, kind_presets=())))
    pipeline = Pipeline(alike)
    events = pipeline.feed(checked(everything)) + pipeline.finish()
    pairs = {event.subjects for event in events if event.kind in ("conflict", "los")}
    # by the minima of aircraft the drone is in conflict with both
    assert pairs == {("4ca7b3", "~dda5ba"), ("1581F5FJD229400", "4ca7b3"), ("1581F5FJD229400", "~dda5ba")}
