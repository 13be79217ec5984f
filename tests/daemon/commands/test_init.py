"""`watchkeeper init`: what it writes is always a good configuration, and it finds what is there."""

from __future__ import annotations

import asyncio
import socket
import time
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from pymavlink.dialects.v20 import ardupilotmega

from watchkeeper.config.detectors.volumes import VOLUMES
from watchkeeper.config.guests import SETTINGS
from watchkeeper.config.json_schema import FILE_NAME
from watchkeeper.config.loader import load
from watchkeeper.daemon.check_config.machine import lacks
from watchkeeper.daemon.cli import main
from watchkeeper.daemon.demo.broker import EmbeddedBroker, free_port
from watchkeeper.daemon.init.airports import airports
from watchkeeper.daemon.init.airspace import MOST, propose
from watchkeeper.daemon.init.probe import Found, Places, look
from watchkeeper.daemon.init.variants import OWN, VARIANTS, decide, plan
from watchkeeper.daemon.init.written import file_text

from where import ROOT

DOCUMENT = Path("/run/readsb/aircraft.json")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def nowhere() -> Places:
    """Ports on which nobody listens."""
    ports = [free_port() for _ in range(7)]
    sbs, beast, mqtt, mqtts, bluesky, first, second = ports
    return Places(
        documents=(), sbs=sbs, beast=beast, mqtt=mqtt, mqtts=mqtts, mavlink=(first, second), bluesky=bluesky
    )  # fmt: skip


# Nothing, everything, and every two things that can be found.
FINDS = [
    Found(
        document=DOCUMENT if document else None, sbs=30_003 * sbs, beast=30_005 * beast, mqtt=1883 * mqtt,
        mqtts=8883 * mqtts, mavlink=14_550 * mavlink, bluesky=11_000 * bluesky, taken=(14_550,) if taken else (),
    )
    for document, sbs, beast, mqtt, mqtts, mavlink, bluesky, taken in product((0, 1), repeat=8)
    if document + sbs + beast + mqtt + mqtts + mavlink + bluesky + taken in (0, 1, 2, 8)
]  # fmt: skip


@pytest.mark.parametrize("asked", [None, *VARIANTS])
def test_whatever_is_found_the_file_is_good(asked: str | None, here: Path) -> None:
    for found in FINDS:
        made = plan(found, asked)
        file = here / "x.toml"
        file.write_text(file_text(made, found))
        config = load(file, env={})
        assert [lack for lack in lacks(config, {}) if not lack.waits] == []
        assert config.broker.url.endswith((":1883", ":8883"))
        # of one receiver one format, and no source that was not asked for
        types = [source.type for source in config.sources]
        assert len(set(types) & {"sbs", "beast", "readsb"}) == (made.variant == "receiver")


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_command_writes_a_file_that_check_config_takes(
    variant: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", "--for", variant]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-2].startswith("next     watchkeeper ")
    assert said[-1].startswith("then     watchkeeper ")
    assert main(["check-config", "watchkeeper.toml"]) == 0
    assert (here / "watchkeeper.toml").read_text().startswith(f"#:schema {FILE_NAME}\n")
    assert (here / FILE_NAME).exists()


def test_every_key_of_the_file_has_its_own_reason_and_range_above_it(here: Path) -> None:
    for variant in VARIANTS:
        text = file_text(plan(Found(), variant), Found())
        joined = " ".join(line.removeprefix("# ") for line in text.splitlines())
        for key in OWN[variant]:
            assert SETTINGS[key].reason in joined
            if SETTINGS[key].kind in (int, float):
                assert SETTINGS[key].allowed in joined


def test_what_is_commented_out_is_the_default(here: Path) -> None:
    """Without the marks of comments before keys and tables it is still a good file, with the same settings."""
    for variant in VARIANTS:
        text = file_text(plan(Found(mqtt=1883), variant), Found(mqtt=1883)).partition("# [[")[0]
        keys = {setting.path[-1] for setting in SETTINGS.values()}
        lines = [
            line.removeprefix("# ") if line.removeprefix("# ").partition(" = ")[0] in keys else line
            for line in text.splitlines()
        ]
        (here / "written.toml").write_text(text)
        (here / "bare.toml").write_text("\n".join(line for line in lines if not line.startswith("# via")))
        assert tomllib.loads((here / "bare.toml").read_text())
        assert load(here / "bare.toml", env={}) == load(here / "written.toml", env={})


def test_nothing_is_replaced_without_force(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "my.toml").write_text("# mine\n")
    assert main(["init", "--for", "fleet", "--out", "my.toml"]) == 1
    assert "--force" in capsys.readouterr().err
    assert (here / "my.toml").read_text() == "# mine\n"
    assert main(["init", "--for", "fleet", "--out", "my.toml", "--force"]) == 0
    assert "mine" not in (here / "my.toml").read_text()
    # our own schema is written anew, somebody else's file of that name is not
    assert main(["init", "--for", "fleet", "--out", "other.toml"]) == 0
    (here / FILE_NAME).write_text("{}")
    assert main(["init", "--for", "fleet", "--out", "third.toml"]) == 1


def test_print_writes_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--print", "--for", "drone"]) == 0
    assert tomllib.loads(capsys.readouterr().out)["sources"][0]["type"] == "mavlink"
    assert list(here.iterdir()) == []


def test_a_log_decides_by_its_streams_and_is_replayed_next(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for scenario, vehicles, expected in (("drones", "1", "drone"), ("head-on", "6", "receiver")):
        main(["simulate", scenario, "--vehicles", vehicles, "--seconds", "5", "--out", "x.wklog"])
        capsys.readouterr()
        assert main(["init", "x.wklog", "--out", f"{expected}.toml"]) == 0
        said = capsys.readouterr().out
        assert "next     watchkeeper replay x.wklog" in said
        assert (
            decide(Found(log=Path("x.wklog"), kinds=("gps", "imu") if expected == "drone" else ("adsb",)))[0]
            == expected
        )
        assert not load(here / f"{expected}.toml", env={}).sources
    assert main(["init", "no.wklog", "--out", "y.toml"]) == 1


# -- what is there --------------------------------------------------------------------------------------------------


@asynccontextmanager
async def listening(port: int) -> AsyncIterator[None]:
    async with await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", port):
        yield


@contextmanager
def sending_mavlink(port: int) -> Iterator[None]:
    """A vehicle that sends to this port, before and after somebody listens."""
    mav = ardupilotmega.MAVLink(None, srcSystem=1, srcComponent=1)
    beat = mav.heartbeat_encode(2, 3, 0, 0, 4).pack(mav)
    loop = asyncio.get_running_loop()
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    async def send() -> None:
        while True:
            line.sendto(beat, ("127.0.0.1", port))
            await asyncio.sleep(0.05)

    task = loop.create_task(send())
    try:
        yield
    finally:
        task.cancel()
        line.close()


def test_a_receiver_is_found_by_its_ports_and_its_document(tmp_path: Path) -> None:
    document = tmp_path / "aircraft.json"
    document.write_text("{}")

    async def scene() -> Found:
        places = nowhere()
        places = Places(
            documents=(tmp_path / "no" / "aircraft.json", document), sbs=places.sbs, beast=places.beast,
            mqtt=places.mqtt, mqtts=places.mqtts, mavlink=places.mavlink, bluesky=places.bluesky,
        )  # fmt: skip
        async with listening(places.sbs), listening(places.beast):
            return await look(places=places)

    found = asyncio.run(scene())
    assert found.document == document
    assert found.sbs
    assert found.beast
    assert not found.mqtt
    assert decide(found)[0] == "receiver"


def test_a_broker_is_found_and_another_server_on_its_port_is_none() -> None:
    async def scene(answering: bool) -> Found:
        places = nowhere()
        if not answering:
            async with listening(places.mqtt):
                return await look(places=places)
        async with EmbeddedBroker(port=places.mqtt):
            return await look(places=places)

    assert asyncio.run(scene(True)).mqtt
    assert not asyncio.run(scene(False)).mqtt


def test_mavlink_is_heard_and_a_port_that_is_taken_is_said() -> None:
    async def scene() -> tuple[Found, Places]:
        places = nowhere()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other, sending_mavlink(places.mavlink[1]):
            other.bind(("127.0.0.1", places.mavlink[0]))
            return await look(places=places), places

    found, places = asyncio.run(scene())
    assert (found.mavlink, found.taken) == (places.mavlink[1], (places.mavlink[0],))
    assert decide(found)[0] == "drone"
    assert plan(found).sources[0].keys["url"] == f"udp://127.0.0.1:{found.mavlink}"


def test_nothing_there_takes_less_than_two_seconds_and_is_said() -> None:
    began = time.monotonic()
    found = asyncio.run(look(places=nowhere()))
    assert time.monotonic() - began < 2.0
    assert found == Found()
    assert decide(found) == ("fleet", "nothing was found that says otherwise")


def test_the_example_that_comes_with_the_package_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--example"]) == 0
    assert capsys.readouterr().out == (ROOT / "config" / "example.toml").read_text()


def test_zones_are_those_of_airports_around_the_receiver(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--for", "receiver", "--at", "36.6,-121.8", "--out", "here.toml"]) == 0
    assert "zones around 36.600, -121.800" in capsys.readouterr().out
    zones = {zone.name: zone for zone in load(here / "here.toml", env={}).detectors.conflict.zones}
    assert zones["KMRY airport"].volume == VOLUMES["airport"]
    assert zones["KMRY terminal"].volume == VOLUMES["terminal"]
    assert zones["KSJC terminal"].radius_nm > zones["KMRY terminal"].radius_nm
    names = list(zones)
    assert names.index("KMRY airport") < names.index("KMRY terminal"), "the first zone that holds an aircraft counts"
    assert not [name for name in names if name.startswith("LF")]
    with pytest.raises(SystemExit) as usage:
        main(["init", "--at", "136.6,2", "--print"])
    assert usage.value.code == 2


def test_the_place_of_a_receiver_is_what_its_receiver_json_says(tmp_path: Path) -> None:
    document, told = tmp_path / "aircraft.json", tmp_path / "receiver.json"
    document.write_text('{"now": 1.0, "aircraft": []}')
    places = replace(nowhere(), documents=(document,))
    for text, place in (
        ('{"version": "readsb", "refresh": 1000, "lat": 48.9, "lon": 2.3}', (48.9, 2.3)),
        ('{"version": "readsb"}', None),
        ('{"lat": 0, "lon": 0}', None),
        ('{"lat": 148.9, "lon": 2.3}', None),
        ("{", None),
    ):
        told.write_text(text)
        found = asyncio.run(look(None, places))
        assert found.place == place
        made = plan(found, "receiver")
        assert bool(made.zones) == (place is not None)
        assert any("zones" in words or "en-route minima everywhere" in words for words in made.assumed)


def test_no_place_on_earth_gets_too_many_zones_or_bad_ones() -> None:
    known = airports()
    assert len({airport.ident for airport in known}) == len(known) > 10_000
    for lat, lon in product((-89.9, -33.9, 0.1, 40.7, 51.5), (-179.9, -74.0, 0.0, 151.2)):
        zones = propose((lat, lon), known)
        assert len(zones) <= MOST
        assert all(not list(zone.clashes()) for zone in zones)
