"""The Home Assistant add-on: what its start script makes of options and broker is a good configuration."""

from __future__ import annotations

import importlib.util
import json
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from watchkeeper.config.loader import load

from where import ROOT

MQTT = {"host": "core-mosquitto", "port": 1883, "ssl": False, "username": "addons", "password": 'qu"ote'}


@pytest.fixture(scope="module")
def start(deploy: Path) -> ModuleType:
    path = deploy / "home-assistant" / "watchkeeper" / "start.py"
    spec = importlib.util.spec_from_file_location("start", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def supervisor() -> Iterator[str]:
    """Home Assistant's answer about its broker, for those who have the token."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            good = self.headers["Authorization"] == "Bearer secret"
            self.send_response(200 if good else 401)
            self.end_headers()
            self.wfile.write(json.dumps({"result": "ok", "data": MQTT}).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/services/mqtt"
    server.shutdown()
    server.server_close()


def test_the_daemon_is_started_with_the_broker_and_the_options(
    start: ModuleType, supervisor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []
    options = tmp_path / "options.json"
    options.write_text(json.dumps({"receiver": "tcp://192.168.1.2:30005", "token": "t" * 24}))
    monkeypatch.setattr(start, "OPTIONS", options)
    monkeypatch.setattr(start, "CONFIG", tmp_path / "watchkeeper.toml")
    monkeypatch.setattr(start, "SUPERVISOR", supervisor)
    monkeypatch.setenv("SUPERVISOR_TOKEN", "secret")
    monkeypatch.setattr("os.execvpe", lambda *words: started.append(words))
    start.main()
    ((program, words, env),) = started
    assert (program, words[:2]) == ("watchkeeper", ["watchkeeper", "run"])
    config = load(
        Path(words[-1]), env={k: v for k, v in env.items() if k in ("WATCHKEEPER_BROKER__PASSWORD", "HOME_TOKEN")}
    )
    assert config.broker.url == "mqtt://core-mosquitto:1883"
    assert (config.broker.username, config.broker.password) == (MQTT["username"], MQTT["password"])
    assert config.home_assistant.enabled
    assert [source.url for source in config.sources] == ["tcp://192.168.1.2:30005"]
    assert [token.token_env for token in config.http.tokens] == ["HOME_TOKEN"]


def test_without_options_it_watches_the_broker_alone(start: ModuleType, tmp_path: Path) -> None:
    text, env = start.settings({"receiver": "", "token": ""}, {**MQTT, "ssl": True})
    path = tmp_path / "watchkeeper.toml"
    path.write_text(text)
    config = load(path, env=env)
    assert config.broker.url == "mqtts://core-mosquitto:1883"
    assert not config.sources
    assert not config.http.tokens


def test_the_manifest_names_what_the_start_script_reads(deploy: Path) -> None:
    manifest = yaml.safe_load((deploy / "home-assistant" / "watchkeeper" / "config.yaml").read_text())
    assert {"name", "version", "slug", "description", "arch"} <= set(manifest), "required by Home Assistant"
    assert set(manifest["options"]) == set(manifest["schema"]) == {"receiver", "token"}
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert manifest["version"] == version
    assert sys.version_info >= (3, 11)
