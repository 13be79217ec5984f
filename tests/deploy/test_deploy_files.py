"""deploy/: what cannot be run here is checked by the linter or the schema of its own world, and against the code."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.lock import EXTRAS
from watchkeeper.config.loader import load
from watchkeeper.streams.adapters.catalog import discover

from where import ROOT, SUBPACKAGES

Tool = Callable[[str, str], str]
Said = Callable[..., tuple[int, str]]
Linter = Callable[[str], str]
BIN = Path(sys.executable).parent
# systemd's own scale: 0 is nothing exposed, 10 everything. Network and compiled code are what is left.
EXPOSURE_MAX = 1.2


# -- systemd ---------------------------------------------------------------------------------------------------


@pytest.fixture
def unit(deploy: Path, tmp_path: Path) -> Path:
    """The unit with a program that exists here: systemd-analyze looks for it."""
    text = (deploy / "systemd" / "watchkeeper.service").read_text()
    path = tmp_path / "watchkeeper.service"
    path.write_text(text.replace("/opt/watchkeeper/bin/watchkeeper", str(BIN / "watchkeeper")))
    return path


def test_the_unit_is_valid(unit: Path, tool: Tool, said: Said) -> None:
    assert said(tool("systemd-analyze", "systemd"), "verify", "--man=no", unit) == (0, "")


def test_the_unit_exposes_little(unit: Path, tool: Tool, said: Said) -> None:
    analyze = tool("systemd-analyze", "systemd")
    code, words = said(analyze, "security", "--offline=true", "--no-pager", f"--threshold={EXPOSURE_MAX * 10:g}", unit)
    found = re.search(r"exposure level for \S+: ([\d.]+)", words)
    assert found, words
    assert float(found[1]) <= EXPOSURE_MAX, words
    assert code == 0


def test_the_unit_knows_the_daemon(deploy: Path) -> None:
    text = (deploy / "systemd" / "watchkeeper.service").read_text()
    env = dict(re.findall(r"(WATCHKEEPER_\w+)=(\S+)", re.sub(r"(?m)^#.*", "", text)))
    env = {name: value.replace("%S", "/var/lib") for name, value in env.items()}
    assert load(None, env=env).sinks.state_dir == "/var/lib/watchkeeper"
    assert "Type=notify" in text
    assert "RestartPreventExitStatus=78" in text


def test_only_the_daemon_itself_can_refuse_a_configuration(deploy: Path, tmp_path: Path, said: Said) -> None:
    """RestartPreventExitStatus is about ExecStart: what another command refuses would be tried for ever."""
    for path in deploy.rglob("*.service"):
        started = re.findall(r"^(Exec(?:StartPre|Condition|StartPost))=", path.read_text(), re.MULTILINE)
        assert not started, path
    bad = tmp_path / "bad.toml"
    bad.write_text("[broker]\nurl = 'nowhere'\n[time]\ntick_s = -1\n")
    code, words = said(BIN / "watchkeeper", "run", "-c", bad)
    assert code == 78, words
    assert "broker.url" in words
    assert "time.tick_s" in words


# -- container -------------------------------------------------------------------------------------------------


def test_the_dockerfile_is_clean(deploy: Path, said: Said, linter: Linter) -> None:
    assert said(linter("hadolint"), deploy / "Dockerfile") == (0, "")


def test_the_image_is_built_from_every_package_and_nothing_else(deploy: Path) -> None:
    folders = {"src", *SUBPACKAGES}
    copied = set(re.findall(r"^COPY (\w+) \./", (deploy / "Dockerfile").read_text(), re.MULTILINE))
    assert copied == folders
    allowed = set(re.findall(r"^!(\w+)$", (deploy / "Dockerfile.dockerignore").read_text(), re.MULTILINE))
    assert allowed - {"LICENSE"} == folders


def test_the_image_runs_as_nobody_and_says_how_it_is(deploy: Path) -> None:
    text = (deploy / "Dockerfile").read_text()
    assert re.search(r"^USER 10001:10001$", text, re.MULTILINE)
    assert re.search(r"^HEALTHCHECK ", text, re.MULTILINE)
    assert re.search(r"^ARG PYTHON=\d+\.\d+\.\d+-slim-\w+$", text, re.MULTILINE), "the base has a full version"


# -- compose ---------------------------------------------------------------------------------------------------

SITUATIONS = ("receiver", "drone", "bench")


def services(deploy: Path, situation: str) -> dict[str, Any]:
    """The services of a folder, each with what it extends."""
    folder = deploy / "compose"
    found: dict[str, Any] = yaml.safe_load((folder / situation / "compose.yaml").read_text())
    base = yaml.safe_load((folder / "services.yaml").read_text())["services"]
    whole = {}
    for name, service in found["services"].items():
        assert service["extends"] == {"file": "../services.yaml", "service": name}
        joined = {**base[name], **service}
        for key in ("ports", "volumes"):
            joined[key] = [(folder, each) for each in base[name].get(key, [])]
            joined[key] += [(folder / situation, each) for each in service.get(key, [])]
        whole[name] = joined
    return {"services": whole, "volumes": found["volumes"]}


def test_the_compose_files_have_the_form_of_their_specification(
    deploy: Path, form_of: Callable[..., tuple[int, str]]
) -> None:
    paths = [deploy / "compose" / situation / "compose.yaml" for situation in SITUATIONS]
    code, words = form_of("vendor.compose-spec", *paths, deploy / "compose" / "services.yaml")
    assert code == 0, words


@pytest.fixture(scope="module")
def compose(said: Said) -> tuple[str, ...]:
    """The words of Compose 2, which needs no engine to read its files; version 1 does not know their `name`."""
    for words in (("docker", "compose"), ("docker-compose",)):
        if shutil.which(words[0]) and re.search(r"v?2\.\d+\.\d+", said(*words, "version")[1]):
            return words
    pytest.skip("Docker Compose 2 is not installed: on Debian 13, apt install docker-compose")


@pytest.mark.parametrize("situation", SITUATIONS)
def test_compose_itself_reads_a_folder(situation: str, deploy: Path, said: Said, compose: tuple[str, ...]) -> None:
    """What it makes of the folder is what these tests make of it: services, ports, and what the image is built from."""
    code, words = said(*compose, "config", "--format", "json", cwd=deploy / "compose" / situation)
    assert code == 0, words
    read = json.loads(words)["services"]
    ours = services(deploy, situation)["services"]
    assert set(read) == set(ours)
    for name, service in ours.items():
        published = {
            f"{port['host_ip']}:{port['published']}:{port['target']}/{port['protocol']}"
            for port in read[name].get("ports", [])
        }
        assert published == {port if "/" in port else f"{port}/tcp" for _, port in service["ports"]}, name
        assert read[name]["read_only"] is True, name
    assert read["watchkeeper"]["build"]["context"] == str(ROOT)
    assert set(read["watchkeeper"]["build"]["args"]["EXTRAS"].split()) <= set(EXTRAS)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_service_is_hardened_pinned_and_watched(situation: str, deploy: Path) -> None:
    compose = services(deploy, situation)
    assert {"mosquitto", "watchkeeper", "prometheus", "alertmanager", "grafana"} <= set(compose["services"])
    for name, service in compose["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert re.search(r":v?\d+\.\d+\.\d+$", service["image"]), name
        assert "healthcheck" in service or name == "watchkeeper", f"{name}: only our image brings its own"
        for _, port in service["ports"]:
            assert port.startswith("127.0.0.1:"), f"{name} is open to the network"
        for folder, volume in service["volumes"]:
            source = volume.partition(":")[0]
            if source.startswith(".") and not source.endswith("/results"):
                assert (folder / source).exists(), f"{name}: there is no {source}"
                assert volume.endswith(":ro"), f"{name} may write to {source}"
            elif not source.startswith("."):
                assert source in compose["volumes"], f"{name}: {source}"


@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_the_services_call_each_other_is_right(situation: str, deploy: Path) -> None:
    compose = services(deploy, situation)
    prometheus = yaml.safe_load((deploy / "prometheus" / "prometheus.yml").read_text())
    targets = [t for job in prometheus["scrape_configs"] for c in job["static_configs"] for t in c["targets"]]
    targets += [t for a in prometheus["alerting"]["alertmanagers"] for c in a["static_configs"] for t in c["targets"]]
    source = yaml.safe_load((deploy / "grafana/provisioning/datasources/prometheus.yml").read_text())["datasources"][0]
    called = {target.partition(":")[0] for target in targets} | {source["url"].split("/")[2].partition(":")[0]}
    config = load(deploy / "compose" / situation / "watchkeeper.toml", env={})
    called |= {
        config.broker.url.split("/")[2].partition(":")[0],
        config.alertmanager.url.split("/")[2].partition(":")[0],
    }
    assert called <= set(compose["services"])
    assert source["jsonData"]["timeInterval"] == prometheus["global"]["scrape_interval"]
    dashboards = yaml.safe_load((deploy / "grafana/provisioning/dashboards/watchkeeper.yml").read_text())
    folder = dashboards["providers"][0]["options"]["path"]
    assert any(v == f"../grafana/dashboards:{folder}:ro" for _, v in compose["services"]["grafana"]["volumes"])


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_alarm_pages_once_and_its_link_opens_here(situation: str, deploy: Path) -> None:
    """The Alertmanager sink sends alarms: with it, Prometheus has the rules about the watch only."""
    config = load(deploy / "compose" / situation / "watchkeeper.toml", env={})
    mounted = [v for _, v in services(deploy, situation)["services"]["prometheus"]["volumes"]]
    assert config.alertmanager.url
    assert not [volume for volume in mounted if "traffic" in volume]
    prometheus = yaml.safe_load((deploy / "prometheus" / "prometheus.yml").read_text())
    assert prometheus["rule_files"] == ["/etc/prometheus/rules.yml"]
    ports = [port for _, port in services(deploy, situation)["services"]["watchkeeper"]["ports"]]
    assert prometheus["global"]["external_labels"]["page"] == config.http.public_url == "http://127.0.0.1:9108"
    assert "127.0.0.1:9108:9108" in ports


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_image_of_a_folder_can_start_its_sources(situation: str, deploy: Path) -> None:
    arguments = yaml.safe_load((deploy / "compose" / situation / "compose.yaml").read_text())["services"]
    built = {part for extra in arguments["watchkeeper"]["build"]["args"]["EXTRAS"].split() for part in parts(extra)}
    for source in load(deploy / "compose" / situation / "watchkeeper.toml", env={}).sources:
        extra = re.match(r"watchkeeper\[(\w+)\]", discover()[source.type].extra)
        assert extra is None or extra[1] in built, source.type


def parts(extra: str) -> set[str]:
    """An extra, and the extras that it is made of."""
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"][extra]
    inner = {name for each in asked if each.startswith("watchkeeper[") for name in each[12:-1].split(",")}
    return {extra} | {name for part in inner for name in parts(part)}


def test_every_extra_is_in_all_or_is_left_out_on_purpose() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras) - parts("all") == {"bluesky", "dev", "flink"}


def test_the_image_can_start_every_source_that_needs_no_simulator(deploy: Path) -> None:
    """Those of its default extras, or of some that EXTRAS may name."""
    text = (deploy / "Dockerfile").read_text()
    default = re.search(r'^ARG EXTRAS="([^"]*)"', text, re.MULTILINE)
    assert default
    installed = {part for extra in default[1].split() for part in parts(extra)}
    possible = {part for extra in EXTRAS for part in parts(extra)}
    assert set(default[1].split()) <= set(EXTRAS) == {path.stem for path in (deploy / "locks").glob("*.lock")}
    needed = {m[1] for a in discover().values() if (m := re.match(r"watchkeeper\[(\w+)\]", a.extra or ""))}
    assert needed - possible <= {"bluesky"}
    assert {"asterix", "mavlink", "px4"} <= installed


def test_dashboards_carry_nothing_of_this_machine(deploy: Path) -> None:
    for path in (deploy / "grafana" / "dashboards").glob("*.json"):
        assert json.loads(path.read_text()).get("id") is None
