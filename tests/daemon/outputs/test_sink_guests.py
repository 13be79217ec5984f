"""A sink of another package: found by its entry point, configured in the same file, and named when it cannot start."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from watchkeeper.config.guests import GuestError, remove_section
from watchkeeper.config.loader import ConfigError, load
from watchkeeper.daemon.app import App
from watchkeeper.daemon.outputs.base import SinkError
from watchkeeper.daemon.outputs.catalog import declarations, discover
from watchkeeper.daemon.outputs.guests import GUESTS

import guest_package
from sink_receivers import page_code
from where import ROOT


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Installs the page's example, or other code, as a package, whose entry point names this object in it."""

    def put(name: str, code: str | None = None) -> Path:
        example = page_code() if code is None else code
        guest_package.install(tmp_path, monkeypatch, "watchkeeper-siren", example, "watchkeeper.sinks", siren=name)
        return tmp_path

    monkeypatch.setattr("watchkeeper.config.guests._loaded", set())
    yield put
    remove_section("sinks", "siren")
    GUESTS.pop("siren", None)
    sys.modules.pop("watchkeeper_siren", None)
    monkeypatch.undo()
    guest_package.look_again()


class Siren:
    """Answers OK and keeps the lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        line, _ = self._listener.accept()
        with line, line.makefile("rw", newline="\n") as file:
            for text in file:
                self.lines.append(text.strip())
                file.write("OK\n")
                file.flush()


def test_its_section_is_checked_and_a_real_alarm_arrives_there(
    install: Callable[..., Path], broker: Any, listener: Any, configure: Any, start: Any, wait_for: Any
) -> None:
    install("SIREN")
    discover()
    assert [kind.name for kind in declarations()][-1] == "siren"
    with pytest.raises(ConfigError, match=r"sinks\.siren\.prot"):
        load(None, env={}, overrides={"sinks": {"siren": {"prot": 1}}})
    siren = Siren()
    app = start(configure(broker.url, sinks={"terminal": False, "siren": {"enabled": True, "port": siren.port}}))
    listener.fixes("quiet", 100, 105)
    listener.fixes("busy", 100, 115)
    wait_for(lambda: siren.lines)
    assert siren.lines == ["raised caution silence quiet"]
    wait_for(lambda: 'watchkeeper_sink_delivered_total{sink="siren"} 1.0' in app.get("/metrics")[1])
    assert 'watchkeeper_sink_healthy{sink="siren"} 1.0' in app.get("/metrics")[1]


def test_it_is_off_unless_its_section_turns_it_on(install: Callable[..., Path], configure: Any) -> None:
    install("SIREN")
    discover()

    async def main() -> list[str]:
        app = App(configure("mqtt://127.0.0.1:1883"))
        app.close()
        return [sink.name for sink in app.router.sinks]

    assert "siren" not in asyncio.run(main())


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("NOTHING", None, "has no attribute 'NOTHING'"),
        ("SIREN", "import watchkeeper_lamp", "No module named 'watchkeeper_lamp'"),
        ("SirenSettings", None, "not a Declaration"),
    ],
)
def test_one_that_cannot_be_loaded_is_an_error_that_names_it(
    install: Callable[..., Path], name: str, code: str | None, reason: str
) -> None:
    install(name, code)
    with pytest.raises(GuestError, match=f"watchkeeper-siren.*'siren'.*{reason}"):
        discover()


def test_one_that_cannot_be_made_is_an_error_that_names_it(
    install: Callable[..., Path], configure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("SIREN")
    discover()

    def no_key(*_: object) -> None:
        raise OSError("no key")

    monkeypatch.setitem(GUESTS, "siren", replace(GUESTS["siren"], make=no_key))
    with pytest.raises(SinkError, match="sink 'siren': OSError: no key"):
        App(configure("mqtt://127.0.0.1:1883", sinks={"terminal": False, "siren": {"enabled": True}}))


def test_the_command_line_knows_its_section_and_says_which_guest_is_broken(install: Callable[..., Path]) -> None:
    folder = install("SIREN")
    file = folder / "watchkeeper.toml"
    file.write_text("[sinks.siren]\nenabled = true\nport = 0\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "src")])}

    def check() -> tuple[int, str]:
        words = [sys.executable, "-m", "watchkeeper.daemon.cli", "check-config", str(file)]
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    code, out = check()
    assert (code, "sinks.siren.port" in out) == (78, True), out
    file.write_text("[sinks.siren]\nenabled = true\n")
    assert check()[0] == 0
    (folder / "watchkeeper_siren.py").write_text("import watchkeeper_lamp\n")
    code, out = check()
    assert code == 78
    assert "watchkeeper-siren 1.0: its entry point 'siren'" in out
    assert "Traceback" not in out
