"""`check-config` on this machine: packages, files, folders; and addresses with --connect, without a word to anybody."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from mqtt_clients import need_mosquitto

from watchkeeper.config.loader import load
from watchkeeper.daemon.check_config.connect import try_all
from watchkeeper.daemon.check_config.machine import lacks, unwritable
from watchkeeper.daemon.cli import main
from watchkeeper.daemon.demo.broker import EmbeddedBroker, free_port


def lacking(tmp_path: Path, text: str, env: dict[str, str] | None = None) -> list[tuple[str, bool]]:
    file = tmp_path / "x.toml"
    file.write_text(text)
    return [(lack.key, lack.waits) for lack in lacks(load(file, env={}), env or {})]


def test_a_file_that_is_missing_is_named_by_its_key(tmp_path: Path) -> None:
    hook = '[[webhooks]]\nname = "pager"\nurl = "https://pager.example/x"\n'
    assert lacking(tmp_path, f'{hook}secret_file = "{tmp_path}/no"\n') == [("webhooks[0].secret_file", False)]
    (tmp_path / "key").write_text("secret")
    assert lacking(tmp_path, f'{hook}secret_file = "{tmp_path}/key"\n') == []
    assert lacking(tmp_path, f'{hook}secret_env = "PAGER_KEY"\n') == [("webhooks[0].secret_env", False)]
    assert lacking(tmp_path, f'{hook}secret_env = "PAGER_KEY"\n', {"PAGER_KEY": "x"}) == []


def test_a_folder_that_cannot_be_made_is_named_and_none_is_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert lacking(tmp_path, f'[sinks]\nstate_dir = "{tmp_path}/file/state"\n') == [("sinks.state_dir", False)]
    assert lacking(tmp_path, f'[sinks]\nstate_dir = "{tmp_path}/new/state"\n') == []
    assert not (tmp_path / "new").exists()
    assert "/proc" in unwritable(Path("/proc/watchkeeper"))


def test_what_the_daemon_waits_for_is_only_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = f'[[sources]]\ntype = "readsb"\nurl = "file://{tmp_path}/aircraft.json"\n'
    assert lacking(tmp_path, text) == [("sources[0].url", True)]
    assert main(["check-config", str(tmp_path / "x.toml")]) == 0
    assert "waits for it" in capsys.readouterr().out


def test_a_package_that_is_missing_is_named_with_the_way_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.toml"
    file.write_text('[[sources]]\ntype = "bluesky"\nurl = "bluesky://127.0.0.1:11000"\n')
    from watchkeeper.streams.adapters import catalog  # noqa: PLC0415

    monkeypatch.setattr(catalog, "find_spec", lambda _name: None)
    assert main(["check-config", str(file)]) == 1
    assert 'pip install "watchkeeper[bluesky]"' in capsys.readouterr().out


@need_mosquitto
def test_every_address_is_tried_and_nothing_is_sent(tmp_path: Path) -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.path}")
        return web.Response(text="{}")

    async def scene() -> list[Any]:
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port := free_port()).start()
        taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        taken.bind(("127.0.0.1", 0))
        file = tmp_path / "x.toml"
        async with EmbeddedBroker(kind="mosquitto") as broker:
            file.write_text(
                f'[broker]\nurl = "{broker.url}"\n[alertmanager]\nurl = "http://127.0.0.1:{port}"\n'
                f'[[webhooks]]\nname = "pager"\nurl = "http://127.0.0.1:{free_port()}/x"\n'
                f'[[sources]]\ntype = "readsb"\nurl = "http://127.0.0.1:{port}/aircraft.json"\n'
                f'[[sources]]\ntype = "sbs"\nurl = "tcp://127.0.0.1:{free_port()}"\n'
                f'[[sources]]\ntype = "mavlink"\nurl = "udp://127.0.0.1:{free_port()}"\n'
                f'[[sources]]\ntype = "mavlink"\nurl = "udp://127.0.0.1:{taken.getsockname()[1]}"\n'
            )
            found = await try_all(load(file, env={}))
        taken.close()
        await runner.cleanup()
        return found

    rows = [(row.what, row.reachable) for row in asyncio.run(scene())]
    assert rows == [
        ("broker", True), ("source readsb", True), ("source sbs", False), ("source mavlink", True),
        ("source mavlink", False), ("alarms to pager", False), ("alarms to alertmanager", True),
    ]  # fmt: skip
    # the document was fetched; the receiver of alarms was connected to, and heard nothing
    assert asked == ["GET /aircraft.json"]


def test_the_table_says_why_and_the_exit_code_is_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.toml"
    file.write_text(f'[broker]\nurl = "mqtt://127.0.0.1:{free_port()}"\n')
    assert main(["check-config", str(file), "--connect"]) == 1
    [row] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("broker ")]
    assert "FAILED" in row
    assert "refused" in row
