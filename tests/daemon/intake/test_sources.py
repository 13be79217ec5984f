"""Live sources: real connections, and dump1090 from Debian as the receiver at the other end."""

from __future__ import annotations

import asyncio
import json
import math
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil
import pytest
from aiohttp import web
from pymavlink import mavutil
from pymavlink.dialects.v20 import ardupilotmega as dialect
from waiting import PATIENCE_S, end_program, until

from watchkeeper.config.adapters import source_types
from watchkeeper.config.adapters.base import Document, Source
from watchkeeper.config.adapters.mavlink import Mavlink
from watchkeeper.config.adapters.readsb import Readsb
from watchkeeper.config.adapters.sbs import Sbs
from watchkeeper.config.schema import DEFAULT, Broker, Config
from watchkeeper.daemon.background import end
from watchkeeper.daemon.demo.broker import free_port
from watchkeeper.daemon.intake.sources import LiveSource
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.codec.decode import Decoder
from watchkeeper.streams.messages import COLUMN, Kind

from guest_package import install, look_again
from where import SAMPLES

# reconnects at once: nobody is there who could be stormed
CONFIG: Config = msgspec.structs.replace(DEFAULT, broker=Broker(reconnect_min_s=0.05, reconnect_max_s=0.1))
LINE = b"MSG,3,1,1,4CA7B3,1,2024/03/01,12:00:00.500,2024/03/01,12:00:00.500,,35000,,,%.2f,-0.5,,,0,0,0,0\n"
FRAMES = SAMPLES / "rs1090/full_flight_short.jsonl"


class Heard:
    """What a source puts into the intake, decoded as the daemon does."""

    def __init__(self) -> None:
        self._decoder = Decoder(CONFIG.topics, CONFIG.limits, lambda *_: pytest.fail("a sample of our own was refused"))
        self.places: list[tuple[str, float, float, float]] = []

    def put(self, found: Batch) -> None:
        self._decoder.add_batch(found)
        batch = self._decoder.take()
        assert batch is not None
        cols, column = batch.kinds[Kind.ADSB], COLUMN[Kind.ADSB]
        for i, vid in enumerate(cols.vid.tolist()):
            lat, lon, alt = (float(cols.data[column[name], i]) for name in ("lat", "lon", "alt_ft"))
            self.places.append((batch.ids[vid], lat, lon, alt))


@asynccontextmanager
async def listening(source: Source) -> AsyncIterator[tuple[LiveSource, Heard]]:
    heard = Heard()
    live = LiveSource(source, CONFIG, heard.put)
    task = asyncio.create_task(live.run())
    try:
        yield live, heard
    finally:
        await end(task)


def test_a_stream_that_breaks_is_connected_to_again_and_half_a_line_is_forgotten() -> None:
    async def scenario() -> None:
        visits = 0

        async def receiver(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal visits
            visits += 1
            writer.write(LINE % (50 + visits) + LINE[:30])
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(receiver, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with listening(Sbs(url=f"tcp://127.0.0.1:{port}", via="roof")) as (live, heard):
            await until(lambda: len(heard.places) >= 3)
            assert [place[1] for place in heard.places[:3]] == [51.0, 52.0, 53.0]
            assert live.refused.total() == 0
            assert live.samples >= 3
        server.close()

    asyncio.run(scenario())


def test_nobody_there_is_tried_again_until_somebody_is(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        # a port that is ours, and where nobody listens yet
        line = socket.socket()
        line.bind(("127.0.0.1", 0))
        caplog.set_level("WARNING", "watchkeeper")
        async with listening(Sbs(url=f"tcp://127.0.0.1:{line.getsockname()[1]}")) as (live, heard):
            await until(lambda: caplog.text.count("source lost") >= 2)
            assert not live.connected

            async def receiver(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                writer.write(LINE % 50)
                await writer.drain()

            server = await asyncio.start_server(receiver, sock=line)
            await until(lambda: bool(heard.places))
            assert live.connected
            server.close()

    asyncio.run(scenario())


def test_documents_are_fetched_again_and_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        looks = 0

        def look() -> bytes:
            nonlocal looks
            looks += 1
            craft = {"hex": "4ca7b3", "lat": 50.0 + looks, "lon": 1.0, "seen_pos": 0.0, "alt_baro": 30000}
            return json.dumps({"now": 1000.0 + looks, "aircraft": [craft]}).encode()

        async def answer(_request: web.Request) -> web.Response:
            if looks == 2:  # a receiver that stumbles once
                look()
                return web.Response(status=503)
            return web.Response(body=look())

        app = web.Application()
        app.router.add_get("/data/aircraft.json", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/data/aircraft.json"
        async with listening(Readsb(url=url, period_s=0.1)) as (_, heard):
            await until(lambda: len(heard.places) >= 4)
            assert [place[1] for place in heard.places[:4]] == [51.0, 52.0, 54.0, 55.0]
        await runner.cleanup()

        file = tmp_path / "aircraft.json"
        file.write_bytes(look())
        async with listening(Readsb(url=file.as_uri(), period_s=0.1)) as (_, heard):
            await until(lambda: len(heard.places) == 1)
            file.write_bytes(look())
            await until(lambda: len(heard.places) == 2)

    asyncio.run(scenario())


# -- dump1090 -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dump1090:
    """A running receiver without a radio: frames go in on one port, every format comes out on another."""

    raw_in: int
    avr: int
    sbs: int
    beast: int
    json_dir: Path
    process: psutil.Process

    def listens(self, port: int) -> bool:
        return any(c.laddr.port == port and c.status == psutil.CONN_LISTEN for c in self.process.net_connections())

    def serves(self, port: int) -> bool:
        """Somebody is connected there: what comes from now on is sent to him."""
        found = self.process.net_connections()
        return any(c.laddr.port == port and c.status == psutil.CONN_ESTABLISHED for c in found)


@pytest.fixture
def dump1090(tmp_path: Path) -> Iterator[Dump1090]:
    program = shutil.which("dump1090-mutability")
    if program is None:
        pytest.skip("no dump1090-mutability: apt install dump1090-mutability")
    raw_in, avr, sbs, beast = (free_port() for _ in range(4))
    process = subprocess.Popen(
        [program, "--net-only", "--quiet", "--net-bind-address", "127.0.0.1", "--net-ri-port", str(raw_in),
         "--net-ro-port", str(avr), "--net-sbs-port", str(sbs), "--net-bo-port", str(beast),
         "--net-bi-port", str(free_port()), "--write-json", str(tmp_path), "--write-json-every", "0.5"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield Dump1090(raw_in, avr, sbs, beast, tmp_path, psutil.Process(process.pid))
    finally:
        end_program(process)


@pytest.fixture
def flight() -> tuple[list[bytes], list[tuple[float, float]]]:
    """Frames of a real flight in the air, and the positions that rs1090 made of them."""
    if not FRAMES.exists():
        pytest.skip(f"no {FRAMES}: run `make data`")
    frames, places = [], []
    for line in FRAMES.read_text().splitlines():
        message = json.loads(line)
        if message["df"] == "17" and message.get("bds") in ("05", "09"):
            frames.append(b"*" + message["frame"].encode() + b";\n")
            if "latitude" in message:
                places.append((message["latitude"], message["longitude"]))
        if len(frames) == 150:
            break
    return frames, places


@pytest.mark.parametrize("kind", ["sbs", "beast", "avr", "readsb"])
def test_dump1090_as_the_receiver(
    flight: tuple[list[bytes], list[tuple[float, float]]], dump1090: Dump1090, kind: str
) -> None:
    frames, places = flight
    urls = {
        "sbs": f"tcp://127.0.0.1:{dump1090.sbs}",
        "beast": f"tcp://127.0.0.1:{dump1090.beast}",
        "avr": f"tcp://127.0.0.1:{dump1090.avr}",
        "readsb": (dump1090.json_dir / "aircraft.json").as_uri(),
    }

    async def scenario() -> None:
        section = source_types()[kind]
        often = {"period_s": 0.2} if issubclass(section, Document) else {}
        async with listening(section(url=urls[kind], **often)) as (live, heard):
            await until(lambda: dump1090.listens(dump1090.raw_in))
            await until(lambda: kind == "readsb" or dump1090.serves(getattr(dump1090, kind)))
            _, writer = await asyncio.open_connection("127.0.0.1", dump1090.raw_in)
            for frame in frames:
                writer.write(frame)
                await writer.drain()
                await asyncio.sleep(0.03)  # as on the air: dump1090 looks at the time between two halves
            await until(lambda: len(heard.places) >= (3 if kind == "readsb" else 20))
            assert live.connected
            writer.close()
            for name, lat, lon, alt_ft in heard.places:
                assert name == "393322"
                off_deg = min(math.hypot(lat - y, lon - x) for y, x in places)
                assert off_deg < 1e-4  # SBS has five digits
                assert 0 < alt_ft < 20_000

    asyncio.run(scenario())


# -- a vehicle ------------------------------------------------------------------------------------------------------


def test_a_vehicle_over_udp_and_over_a_cable() -> None:
    async def heard_over(url: str, send: Callable[[bytes], object]) -> None:
        kinds: list[Kind] = []
        live = LiveSource(Mavlink(url=url), CONFIG, lambda batch: kinds.extend(batch.kinds))
        task = asyncio.create_task(live.run())
        mav = dialect.MAVLink(None, srcSystem=1)
        try:
            async with asyncio.timeout(PATIENCE_S):
                while len(kinds) < 3:
                    send(dialect.MAVLink_raw_imu_message(1_000_000, 0, 0, -1000, 0, 0, 0, 0, 0, 0).pack(mav))
                    await asyncio.sleep(0.05)
        finally:
            await end(task)
        assert set(kinds) == {Kind.IMU}

    port = free_port()
    udp = mavutil.mavudp(f"127.0.0.1:{port}", input=False)
    asyncio.run(heard_over(f"udp://127.0.0.1:{port}", udp.write))
    udp.close()
    ours, theirs = os.openpty()
    asyncio.run(heard_over(f"serial://{os.ttyname(theirs)}?baud=115200", lambda data: os.write(ours, data)))
    os.close(ours)
    os.close(theirs)


# -- an adapter of another package that starts a program -------------------------------------------------------------

PROGRAM = '''
import sys
from typing import Annotated

from watchkeeper.config.adapters.base import Source
from watchkeeper.config.section import text
from watchkeeper.streams.adapters.base import AdapterDeclaration, Sample, Way

LINE = "MSG,3,1,1,4CA7B3,1,2024/03/01,12:00:00.500,2024/03/01,12:00:00.500,,35000,,,50.5,-0.5,,,0,0,0,0"


class Settings(Source, frozen=True, kw_only=True, tag="program"):
    """A program that prints lines."""

    url: Annotated[str, text("what it says last", pattern="^program://", form="program://WORD")]


def command(source):
    return [sys.executable, "-c", f"import sys; print({LINE!r}); sys.exit({source.url!r})"]


ADAPTER = AdapterDeclaration(
    name="program", help="a program", docs="https://example.org", settings=Settings, ways=(Way.PROCESS,),
    feed="watchkeeper.streams.adapters.receivers.sbs:Sbs", command=f"{__name__}:command",
    sample=Sample(data=LINE.encode() + b"\\n", settings={"url": "program://x"}),
)
'''


def test_a_program_is_read_and_started_again_and_its_last_words_are_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(tmp_path, monkeypatch, "wk-program", PROGRAM, "watchkeeper.adapters", program="ADAPTER")

    async def scenario() -> None:
        async with listening(source_types()["program"](url="program://goodbye")) as (live, heard):
            await until(lambda: len(heard.places) >= 2)
            assert heard.places[0][:3] == ("4ca7b3", 50.5, -0.5)
            assert live.samples >= 2

    try:
        asyncio.run(scenario())
    finally:
        look_again()
    lost = [record for record in caplog.records if record.message == "source lost"]
    assert "program://goodbye" in str(lost[0].__dict__)
