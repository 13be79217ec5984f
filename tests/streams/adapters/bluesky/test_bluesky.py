"""BlueSky from PyPI: its traffic arrives as it flies, its commands as actions, and our conflicts are its conflicts."""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.config.adapters.bluesky import BlueSky as Settings
from watchkeeper.config.schema import DEFAULT, Broker, Config
from watchkeeper.daemon.background import end
from watchkeeper.daemon.cli import main
from watchkeeper.daemon.demo.broker import free_port
from watchkeeper.daemon.intake.sources import LiveSource
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.codec.decode import Decoder
from watchkeeper.streams.geo import FT_M, KT_MS
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.logs.source import LogError, open_log
from watchkeeper.streams.messages import COLUMN, Kind

pytest.importorskip("bluesky", reason="needs the extra `bluesky`")

from watchkeeper.streams.adapters.bluesky.adapter import BlueSky

CONFIG: Config = msgspec.structs.replace(DEFAULT, broker=Broker(reconnect_min_s=0.05, reconnect_max_s=0.1))
MOMENT = {
    "t": 1000.0, "simt": 5.0, "id": ["KL1", "BA2"], "lat": [52.0, 51.0], "lon": [4.0, 5.0], "alt_m": [9144.0, 3048.0],
    "gs_ms": [230.0, 150.0], "trk_deg": [90.0, 359.5], "vs_ms": [0.0, -7.62], "sel_alt_m": [9144.0, 304.8],
}  # fmt: skip


def line(**changed: Any) -> bytes:
    return json.dumps({**MOMENT, **changed}).encode() + b"\n"


def values(batch: Batch, name: str, kind: Kind = Kind.ADSB) -> list[float]:
    found: list[float] = batch.kinds[kind].data[COLUMN[kind][name]].tolist()
    return found


# -- lines ----------------------------------------------------------------------------------------------------------


def test_a_moment_is_one_sample_of_each_aircraft_in_our_units() -> None:
    feed = BlueSky(via="sim")
    feed.push(line() + line(t=1001.0, simt=6.0), math.nan)
    batch = feed.take()
    assert batch is not None
    cols = batch.kinds[Kind.ADSB]
    assert [batch.ids[v] for v in cols.vid] == ["KL1", "BA2", "KL1", "BA2"]
    assert cols.t.tolist() == [1000.0, 1000.0, 1001.0, 1001.0]
    assert batch.vias == ["sim"]
    for name, wanted in {
        "lat": [52.0, 51.0], "lon": [4.0, 5.0], "alt_ft": [30_000.0, 10_000.0], "gs_kt": [230 / KT_MS, 150 / KT_MS],
        "trk_deg": [90.0, 359.5], "vs_fpm": [0.0, -1500.0], "sel_alt_ft": [30_000.0, 1000.0],
    }.items():  # fmt: skip
        assert values(batch, name)[:2] == pytest.approx(wanted, rel=1e-12)


def test_live_time_counts_from_the_first_arrival_and_again_after_a_reset() -> None:
    feed = BlueSky(times="arrival")
    feed.push(line(simt=5.0), 2000.0)
    feed.push(line(simt=9.0), 2001.0)  # as fast as it likes
    feed.push(line(simt=0.0), 2010.0)
    feed.push(line(simt=1.0), 2010.5)
    batch = feed.take()
    assert batch is not None
    assert batch.kinds[Kind.ADSB].t[::2].tolist() == [2000.0, 2004.0, 2010.0, 2011.0]


def test_bad_lines_are_counted_and_stop_nothing() -> None:
    feed = BlueSky()
    feed.push(b"nonsense\n[]\n" + line(lat=[1.0]) + line(id=["", "x"]) + b'{"refused": "HDG X"}\n{}\n', math.nan)
    feed.push(line(id=[], lat=[], lon=[], alt_m=[], gs_ms=[], trk_deg=[], vs_ms=[], sel_alt_m=[]) + line(), math.nan)
    batch = feed.take()
    assert batch is not None
    assert len(batch) == 2
    assert feed.refused == {"malformed": 2, "bad_frame": 1, "bad_id": 1, "command": 1, "missing_field": 1}


@given(st.lists(st.tuples(st.integers(0, 1000), st.binary(max_size=3)), max_size=6), st.integers(1, 200))
@settings(max_examples=100, deadline=None)
def test_no_garbling_breaks_the_reading(edits: list[tuple[int, bytes]], piece: int) -> None:
    data = bytearray(line() * 3)
    for at, what in edits:
        data[at % len(data) : at % len(data) + len(what)] = what
    feed = BlueSky()
    for at in range(0, len(data), piece):
        feed.push(bytes(data[at : at + piece]), math.nan)
    feed.close()
    batch = feed.take()
    assert (0 if batch is None else len(batch)) + feed.refused.total() > 0


# -- the simulator --------------------------------------------------------------------------------------------------

SCENARIO = """\
# two that meet, and a controller
00:00:00.00>CRE KL204 B744 52.0 4.0 90 FL300 280
00:00:00.00>CRE BA1 A320 52.0 5.0 270 FL300 280
00:00:05.00>HDG KL204 120
00:00:06.00>SPD BA1 250
00:00:07.00>BA1 ALT FL320
00:00:08.00>HDG NOBODY 120
00:00:12.00>QUIT
"""


def test_a_scenario_is_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from bluesky.tools import aero  # noqa: PLC0415

    path = tmp_path / "meet.scn"
    path.write_text(SCENARIO)
    assert main(["convert", str(path), str(tmp_path / "meet.wklog")]) == 0
    assert "1 lines not used (1 command)" in capsys.readouterr().err
    batch = join(list(open_log(tmp_path / "meet.wklog").batches()))
    cols, action = batch.kinds[Kind.ADSB], batch.kinds[Kind.ACTION]
    assert len(cols) == 24
    assert (cols.t[2::2] - cols.t[:-2:2]).tolist() == [1.0] * 11
    assert [batch.ids[v] for v in cols.vid[:2]] == ["KL204", "BA1"]
    tas_kt = float(aero.vcas2tas(280 * KT_MS, 30_000 * FT_M)) / KT_MS
    assert values(batch, "gs_kt")[:2] == pytest.approx([tas_kt, tas_kt])
    assert values(batch, "alt_ft")[:2] == pytest.approx([30_000.0, 30_000.0])
    assert values(batch, "sel_alt_ft")[-1] == pytest.approx(32_000.0)
    assert 0.0 < values(batch, "vs_fpm")[-1] < 4000.0
    # east along a parallel at that speed, on BlueSky's Earth
    moved_deg = math.degrees(tas_kt * KT_MS / 6_371_000.0 / math.cos(math.radians(52.0)))
    assert values(batch, "lon")[2] - 4.0 == pytest.approx(moved_deg, rel=1e-4)
    assert (action.t - cols.t[0]).tolist() == [5.0, 6.0, 7.0]
    assert [batch.ids[v] for v in action.vid] == ["KL204", "BA1", "BA1"]
    slower_kt = float(aero.vcas2tas(250 * KT_MS, 30_000 * FT_M)) / KT_MS - tas_kt
    assert values(batch, "heading_delta_deg", Kind.ACTION) == pytest.approx([30.0, 0.0, 0.0])
    assert values(batch, "speed_delta_kt", Kind.ACTION) == pytest.approx([0.0, slower_kt, 0.0], abs=0.01)


def test_a_controller_who_turns_an_aircraft_for_nothing_is_noticed(tmp_path: Path) -> None:
    turns = [f"00:00:{10 * k:02d}.00>HDG KL204 {120 if k % 2 else 90}" for k in range(1, 6)]
    path, alarms = tmp_path / "ghost.scn", tmp_path / "alarms.jsonl"
    path.write_text("\n".join(["00:00:00.00>CRE KL204 B744 52 4 90 FL300 280", *turns, "00:01:10.00>QUIT"]) + "\n")
    assert main(["replay", str(path), "--alarms", str(alarms)]) == 0
    raised = [event for event in map(json.loads, alarms.read_text().splitlines()) if event["state"] == "raised"]
    assert [(event["kind"], event["subjects"], event["evidence"]["causes"]) for event in raised] == [
        ("intent", ["KL204"], ["ghost"])
    ]


@pytest.mark.parametrize("what", [b"\xff\xfe\x00 no scenario \xff", b"# only a comment >\n", b""])
def test_a_scenario_that_is_none_is_refused_by_name(tmp_path: Path, what: bytes) -> None:
    path = tmp_path / "wrong.scn"
    path.write_bytes(what)
    with pytest.raises(LogError, match=r"wrong\.scn: not a scenario"):
        open_log(path)


# -- live -----------------------------------------------------------------------------------------------------------


class Heard:
    """What a source puts into the intake, decoded as the daemon does."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self._decoder = Decoder(CONFIG.topics, CONFIG.limits, lambda *_: pytest.fail("a sample of our own was refused"))

    def put(self, found: Batch) -> None:
        self._decoder.add_batch(found)
        batch = self._decoder.take()
        assert batch is not None
        self.batches.append(batch)

    def count(self, kind: Kind) -> int:
        return sum(kind in batch.kinds for batch in self.batches)


async def listen(
    source: Settings, done: Callable[[Heard], bool], beside: Callable[[Heard], None] | None = None
) -> Heard:
    heard = Heard()
    task = asyncio.create_task(LiveSource(source, CONFIG, heard.put).run())
    try:
        async with asyncio.timeout(45):
            while not done(heard):
                if beside is not None:
                    await asyncio.to_thread(beside, heard)
                await asyncio.sleep(0.1)
    finally:
        await end(task)
    return heard


def test_a_running_simulation_is_joined_and_its_controllers_are_heard(tmp_path: Path) -> None:
    """BlueSky's own server without a screen, a client of BlueSky that gives commands, and us, who only listen."""
    ours, theirs = free_port(), free_port()
    settings_file = Path(find_spec("bluesky").origin).parent / "resources" / "default.cfg"  # type: ignore[union-attr]
    ports = f"\nrecv_port = {ours}\nsend_port = {theirs}\nenable_discovery = False\n"
    (tmp_path / "ports.cfg").write_text(settings_file.read_text() + ports)
    scenario = tmp_path / "two.scn"
    scenario.write_text(
        "00:00:00.00>CRE KL204 B744 52.0 4.0 90 FL300 280\n00:00:00.00>CRE BA1 A320 52.0 5.0 270 FL310 280\n"
    )
    options = ["--configfile", str(tmp_path / "ports.cfg"), "--workdir", str(tmp_path)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    server = subprocess.Popen(
        [sys.executable, "-m", "bluesky", "--headless", "--scenfile", str(scenario), *options],
        start_new_session=True, **quiet,
    )  # fmt: skip
    client: list[subprocess.Popen[bytes]] = []

    def controller(heard: Heard) -> None:
        if heard.count(Kind.ADSB) and not client:
            client.append(subprocess.Popen([sys.executable, "-c", CONTROLLER, str(ours), str(theirs)], **quiet))

    try:
        source = Settings(url=f"bluesky://127.0.0.1:{ours}", times="message")
        heard = asyncio.run(listen(source, lambda h: h.count(Kind.ACTION) >= 3 and h.count(Kind.ADSB) >= 3, controller))
    finally:
        for process in client:
            process.wait(20)
        # the server waits for a message before it obeys, and has a process of its own for the simulation
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(20)
    whole = join(heard.batches)
    cols, action = whole.kinds[Kind.ADSB], whole.kinds[Kind.ACTION]
    assert {whole.ids[v] for v in cols.vid.tolist()} == {"KL204", "BA1"}
    assert values(whole, "alt_ft")[:2] == pytest.approx([30_000.0, 31_000.0])
    assert (np.diff(cols.t[::2]) >= 1.0 - 1e-6).all()
    assert cols.t[0] % 86_400 < 3600.0  # BlueSky's clock begins at midnight
    told = [(whole.ids[v], *action.data[:, i].tolist()) for i, v in enumerate(action.vid.tolist())][:3]
    assert told[0] == ("KL204", pytest.approx(30.0, abs=1e-6), 0.0)
    assert told[1][0] == "BA1"
    assert -50.0 < told[1][2] < -30.0  # 30 kt less calibrated, at FL310
    assert told[2] == ("BA1", 0.0, 0.0)


# Through BlueSky's own client, which addresses the simulation that it found.
CONTROLLER = """
import sys, time
import bluesky as bs
bs.init(mode="client", workdir=".", configfile="ports.cfg")
from bluesky.network.client import Client
client = Client()
client.connect(recv_port=int(sys.argv[1]), send_port=int(sys.argv[2]))
while client.act_id is None:
    client.update()
    time.sleep(0.05)
for command in ("HDG KL204 120", "BA1 SPD 250", "ALT BA1,FL320"):
    client.send("STACK", command, client.act_id)
    for _ in range(20):
        client.update()
        time.sleep(0.02)
"""


def test_commands_alone_make_a_simulation_that_is_streamed_at_its_pace() -> None:
    source = Settings(url="bluesky:///", commands="CRE KL1 A320 52 4 90 FL300 280; HDG KL1 100", speed=5.0)
    heard = asyncio.run(listen(source, lambda h: h.count(Kind.ADSB) >= 8))
    whole = join(heard.batches)
    t = whole.kinds[Kind.ADSB].t
    assert np.diff(t) == pytest.approx(np.ones(len(t) - 1), abs=1e-6)
    assert values(whole, "lat")[0] == pytest.approx(52.0)
