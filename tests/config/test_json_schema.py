"""The JSON Schema for editors refuses what the loader refuses, and takes every configuration that the loader takes."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from tests.config.test_config_properties import configs
from watchkeeper.config.adapters import source_types
from watchkeeper.config.guests import SECTIONS, SETTINGS
from watchkeeper.config.json_schema import json_schema
from watchkeeper.config.reference import config_toml
from watchkeeper.config.schema import Config
from watchkeeper.config.section import Setting
from watchkeeper.daemon.cli import main

from where import ROOT

SCHEMA = json_schema()
VALIDATOR = Draft4Validator(SCHEMA)
PLAIN = [setting for setting in SETTINGS.values() if setting.table is None]


def takes(document: Any) -> bool:
    return VALIDATOR.is_valid(document)


def with_value(setting: Setting, value: Any) -> dict[str, Any]:
    document: dict[str, Any] = {}
    table = document
    for name in setting.path[:-1]:
        table = table.setdefault(name, {})
    table[setting.path[-1]] = value
    return document


def near(setting: Setting) -> st.SearchStrategy[Any]:
    """Values of every type, and those at the edges of this setting's range."""
    edges = [edge for edge in (setting.low, setting.high) if abs(edge) < 1e15]
    numbers = [step * sign + edge for edge in edges for step in (0, 1, 0.5, 1e-6) for sign in (1, -1)]
    words = [*setting.choices, setting.default, "", "mqtt://host:1", "a/b", "a b", "x\x00", "http://h", "\x1f"]
    anything = st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.just({})
    pool = st.sampled_from([*numbers, *map(int, numbers), *words]) | anything
    return pool | st.lists(pool.filter(lambda item: not isinstance(item, tuple)), max_size=4)


def plain(value: Any) -> Any:
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def test_the_schema_is_one() -> None:
    Draft4Validator.check_schema(SCHEMA)
    assert takes({})


def test_the_command_prints_it_and_check_jsonschema_takes_our_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check-config", "--schema"]) == 0
    schema = tmp_path / "schema.json"
    schema.write_text(capsys.readouterr().out)
    assert json.loads(schema.read_text()) == SCHEMA
    check = [sys.executable, "-m", "check_jsonschema", "--schemafile", str(schema)]
    files = sorted((ROOT / "config").glob("*.toml"))
    assert len(files) > 3
    done = subprocess.run([*check, *map(str, files)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("[time]\ntick_s = 0\n")
    assert subprocess.run([*check, str(wrong)], capture_output=True, check=False).returncode == 1


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_value_is_refused_by_the_schema_if_and_only_if_by_the_loader(data: st.DataObject) -> None:
    setting = data.draw(st.sampled_from(PLAIN))
    value = plain(data.draw(near(setting)))
    try:
        setting.accept(value)
        good = True
    except ValueError:
        good = False
    assert takes(with_value(setting, value)) == good, (setting.key, value)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["", *SECTIONS]), st.text(min_size=1, max_size=12))
def test_an_unknown_key_is_refused_in_every_section(section: str, name: str) -> None:
    path = tuple(section.split(".")) if section else ()
    known = {s.path[len(path)] for s in SETTINGS.values() if s.path[: len(path)] == path}
    setting = Setting((*path, name), str, "", "", "")
    assert takes(with_value(setting, "x")) is False or name in known


@settings(max_examples=60, deadline=None)
@given(configs())
def test_any_valid_configuration_is_taken(config: Config) -> None:
    document = tomllib.loads(config_toml(config, secrets=True))
    assert not list(VALIDATOR.iter_errors(document))


@pytest.mark.parametrize("name", source_types())
def test_a_source_has_the_keys_of_its_type_and_must_say_where_it_is(name: str) -> None:
    assert not takes({"sources": [{"type": name}]})
    assert not takes({"sources": [{"type": name, "url": "no address"}]})
    assert not takes({"sources": [{"url": "tcp://host:1"}]})
    assert not takes({"sources": [{"type": name, "url": "tcp://host:1", "nonsense": 1}]})


def test_keys_of_another_type_of_source_are_refused() -> None:
    sbs = {"type": "sbs", "url": "tcp://host:30003"}
    assert takes({"sources": [sbs]})
    assert not takes({"sources": [sbs | {"period_s": 1}]})
