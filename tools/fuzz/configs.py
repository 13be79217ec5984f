"""Target: configuration files, damaged as text and as tables. A good one loads; any other gives a list of problems.

Every problem must say what is wrong, and where as far as there is a key. A configuration that loads must also be one
that a running daemon can take (merge), and whose listing is one that loads again.
"""

from __future__ import annotations

import random
import re
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from tools.fuzz.mutate import mutated
from tools.fuzz.run import Case
from tools.fuzz.trees import edited
from tools.rooms import ROOT
from watchkeeper.config.guests import default
from watchkeeper.config.loader import UNFORESEEN, ConfigError, load
from watchkeeper.config.reference import config_toml
from watchkeeper.daemon.reload import merge

# Keys that are put where they do not belong.
NAMES = ("typ", "urll", "type", "url")
WHOLE = """\
profile = "balanced"
[[sources]]
type = "sbs"
url = "tcp://192.168.1.20:30003"
via = "roof"
[[sources]]
type = "readsb"
url = "http://user:word@host/aircraft.json"
period_s = 2.0
[[sources]]
type = "can"
url = "can://socketcan/can0"
map = "can.toml"
[[webhooks]]
name = "ops"
url = "https://example.org/hook?token=abc"
states = ["raised"]
secret_env = "HOOK_KEY"
[broker]
url = "mqtt://broker:1883"
username = "name"
password = "word"
[time]
tick_s = 0.5
[fleet]
max_vehicles = 500
[topology]
wait_s = 30.0
[[topology.vehicles]]
names = ["uav-*"]
gateway = "mast"
[detectors.conflict]
horizon_s = 120.0
[[detectors.conflict.zones]]
name = "field"
separation_nm = 0.5
floor_ft = 0.0
ceiling_ft = 5000.0
[detectors.gps_imu.debounce]
n = 4
[http]
port = 9108
[log]
level = "info"
"""


def config_target() -> Case:
    """Cases of the loader."""
    path = Path(tempfile.mkdtemp()) / "w.toml"
    seeds = [WHOLE.encode(), config_toml(default(), secrets=True).encode(), *documented()]
    tables = [tomllib.loads(seed.decode()) for seed in seeds]

    def case(draw: random.Random) -> str:
        if draw.random() < 0.5:
            path.write_bytes(mutated(draw, seeds))
        else:
            path.write_text(_toml(edited(draw, draw.choice(tables), NAMES)), "utf-8")
        try:
            config = load(path, env={})
        except ConfigError as error:
            _is_clear(error)
            return "refused"
        merge(default(), config)
        assert "word@" not in config_toml(config)
        path.write_text(config_toml(config, secrets=True), "utf-8")
        assert load(path, env={}) == config
        return "read"

    return case


def documented() -> list[bytes]:
    """The configuration that is shipped as an example, and every one of the pages that stands alone."""
    texts = [(ROOT / "config/example.toml").read_text("utf-8")]
    for page in sorted((ROOT / "docs").rglob("*.md")):
        texts += re.findall(r"^```toml\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    return [text.encode() for text in texts if _is_whole(text)]


def _is_whole(text: str) -> bool:
    try:
        return bool(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        return False


def _is_clear(error: ConfigError) -> None:
    text = str(error)
    assert error.problems
    assert all(problem.source and problem.message for problem in error.problems), text
    assert UNFORESEEN not in text, text
    assert "secret@" not in text, text
    assert "word@" not in text, text


def _toml(value: Any, depth: int = 0) -> str:
    """A table as TOML, everything inline below the first level."""
    if depth == 0:
        return "".join(f"{_key(key)} = {_toml(item, 1)}\n" for key, item in value.items() if item is not None)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_toml(item, 1)}" for k, item in value.items() if item is not None) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item, 1) for item in value if item is not None) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(c if c.isprintable() and c not in '"\\' else f"\\u{ord(c):04x}" for c in value) + '"'
    return "1" + "0" * 400 if value == 10**400 else repr(value)


def _key(key: str) -> str:
    return '"' + key.replace('"', "") + '"'


TARGETS = {"config": config_target}
