"""Whatever a new configuration does, the supervisor is told that the reload has ended, and the old one stays."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec
import pytest

from watchkeeper.config.loader import load
from watchkeeper.config.schema import DEFAULT, Config
from watchkeeper.daemon.app import App


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> socket.socket:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    line.bind(str(tmp_path / "notify"))
    line.settimeout(1.0)
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    return line


def quiet(tmp_path: Path) -> Config:
    sinks = msgspec.structs.replace(DEFAULT.sinks, state_dir="", terminal=False)
    return msgspec.structs.replace(DEFAULT, sinks=sinks, http=msgspec.structs.replace(DEFAULT.http, enabled=False))


@pytest.mark.parametrize("text", ["[[sources]]\n", "[[sources]]\ntype = 'sbs'\n", "x = [", "\xff"])
def test_a_bad_file_is_refused_and_answered(tmp_path: Path, words: socket.socket, text: str) -> None:
    path = tmp_path / "w.toml"
    path.write_bytes(text.encode("latin-1"))
    app = App(quiet(tmp_path), reload=lambda: load(path, env={}))
    app.reload()
    assert words.recv(100).startswith(b"RELOADING=1")
    assert words.recv(100) == b"READY=1"
    assert app.reload.counts == {"refused": 1}


def test_an_error_that_nobody_foresaw_is_answered_too(tmp_path: Path, words: socket.socket) -> None:
    def broken() -> Config:
        raise KeyError("NODEFAULT")

    app = App(quiet(tmp_path), reload=broken)
    before = app.config
    app.reload()
    assert words.recv(100).startswith(b"RELOADING=1")
    assert words.recv(100) == b"READY=1"
    assert app.reload.counts == {"refused": 1}
    assert app.config is before
