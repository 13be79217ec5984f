"""[topology]: what a user declares is loaded as written, and every contradiction in it is named."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from watchkeeper.config.detectors.streams import Stream
from watchkeeper.config.loader import ConfigError, load
from watchkeeper.config.reference import config_toml
from watchkeeper.config.schema import Config
from watchkeeper.config.topology import DeclaredVehicles, Sensor
from watchkeeper.daemon.cli import main
from watchkeeper.daemon.reload import merge

from where import ROOT

HEAD = "[[topology.vehicles]]\n"
NORTH = HEAD + 'names = ["uav-1", "uav-2", "survey-*"]\ngateway = "gw-north"\n'
SOUTH = HEAD + 'names = ["uav-3"]\ngateway = "gw-south"\nsensors = ["gps"]\n'
EXAMPLE = ROOT / "config" / "example.toml"


def made(text: str) -> Config:
    return load(None, env={}, overrides=tomllib.loads(text))


def test_what_is_declared_is_what_was_written() -> None:
    config = made("[topology]\nwait_s = 20\n" + NORTH + SOUTH)
    north, south = config.topology.vehicles
    assert north == DeclaredVehicles(names=("uav-1", "uav-2", "survey-*"), gateway="gw-north", sensors=("gps", "imu"))
    assert south.sensors == ("gps",)
    assert config.topology.wait_s == 20.0
    assert made(config_toml(config)) == config
    assert made("").topology.vehicles == ()


def test_the_example_in_the_example_file_is_a_good_one() -> None:
    lines = EXAMPLE.read_text().splitlines()
    first, last = lines.index("# [[topology.vehicles]]"), lines.index("[sinks]")
    text = "\n".join(line.removeprefix("# ") for line in lines[first:last])
    assert made(text).topology.vehicles[0].gateway == "gw-1"


@pytest.mark.parametrize(
    ("text", "key", "message", "allowed"),
    [
        ("[topology]\nwait_s = -1", "wait_s", "too small", "0 to 86_400 s"),
        (HEAD + 'names = ["a", " "]', "vehicles[0].names", "' ' does not have the right form", "ids or patterns"),
        (HEAD + "names = [7]", "vehicles[0].names", "got a whole number in it", "ids or patterns"),
        (HEAD + 'names = "a"', "vehicles[0].names", "expected an array, got text", "ids or patterns"),
        (HEAD + 'gateway = "g"', "vehicles[0].names", "empty", "ids or patterns"),
        (HEAD + 'names = ["g"]\ngateway = "g"', "vehicles[0].gateway", "one of its own vehicles", "text"),
        (HEAD + 'names = ["a"]\nsensors = ["link"]', "vehicles[0].sensors", "not a valid choice", '"gps", "imu"'),
        (HEAD + 'names = ["a"]\ngatway = "g"', "vehicles[0].gatway", "no such key", "names, gateway, sensors"),
        (NORTH + NORTH, "vehicles", "declared twice, in vehicles[0] and vehicles[1]", "one table for each"),
        (NORTH + SOUTH.replace("uav-3", "gw-north"), "vehicles", "a gateway, and a vehicle", "different names"),
        ("[fleet]\nmax_vehicles = 1\n" + NORTH, "vehicles", "too many", "fleet.max_vehicles, which is 1"),
        ("[limits]\nmax_gateways = 1\n" + NORTH + SOUTH, "vehicles", "too many", "limits.max_gateways, which is 1"),
    ],
)
def test_a_problem_names_key_message_and_what_is_allowed(text: str, key: str, message: str, allowed: str) -> None:
    with pytest.raises(ConfigError) as caught:
        made(text)
    problem = caught.value.problems[0]
    assert problem.key == f"topology.{key}"
    assert message in problem.message
    assert allowed in problem.allowed


def test_a_name_twice_in_one_table_is_harmless_and_patterns_may_overlap() -> None:
    text = HEAD + 'names = ["a", "a", "*"]\n' + HEAD + 'names = ["*"]\n'
    assert len(made(text).topology.vehicles) == 2


def test_check_config_says_so_and_exits_78(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "wk.toml"
    file.write_text(NORTH + SOUTH.replace("uav-3", "uav-1"))
    assert main(["check-config", str(file)]) == 78
    printed = "".join(capsys.readouterr())
    assert '"uav-1"' in printed
    assert "declared twice" in printed


def test_a_reload_takes_a_changed_declaration_at_once() -> None:
    none, north = made(""), made(NORTH)
    assert merge(none, north) == (north, ["topology.vehicles"], [])


def test_sensors_are_streams() -> None:
    assert set(Sensor.__args__) <= set(Stream.__args__)  # type: ignore[attr-defined]
