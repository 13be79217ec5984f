"""deploy/: what cannot be run here is checked by the linter or the schema of its own world, and against the code."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from watchkeeper.config.loader import load

from where import ROOT

Tool = Callable[[str, str], str]
Said = Callable[..., tuple[int, str]]
BIN = Path(sys.executable).parent
# systemd's own scale: 0 is nothing exposed, 10 everything. Network and compiled code are what is left.
EXPOSURE_MAX = 1.2


def lint(program: str) -> str:
    """A linter of the development environment, which may be older than this test."""
    path = BIN / program
    if not path.exists():
        pytest.skip(f"{program} is not installed: pip install -e '.[dev]'")
    return str(path)


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


# -- container -------------------------------------------------------------------------------------------------


def test_the_dockerfile_is_clean(deploy: Path, said: Said) -> None:
    assert said(lint("hadolint"), deploy / "Dockerfile") == (0, "")


def test_the_image_is_built_from_every_package_and_nothing_else(deploy: Path) -> None:
    folders = {"src", *(path.name for path in (ROOT / "src" / "watchkeeper").iterdir() if path.is_symlink())}
    copied = set(re.findall(r"^COPY (\w+) \./", (deploy / "Dockerfile").read_text(), re.MULTILINE))
    assert copied == folders
    allowed = set(re.findall(r"^!(\w+)$", (deploy / "Dockerfile.dockerignore").read_text(), re.MULTILINE))
    assert allowed - {"LICENSE"} == folders


def test_the_image_runs_as_nobody_and_says_how_it_is(deploy: Path) -> None:
    text = (deploy / "Dockerfile").read_text()
    assert re.search(r"^USER 10001:10001$", text, re.MULTILINE)
    assert re.search(r"^HEALTHCHECK ", text, re.MULTILINE)
    assert re.search(r"^ARG PYTHON=\d+\.\d+\.\d+-slim-\w+$", text, re.MULTILINE), "the base has a full version"


@pytest.fixture(scope="module")
def compose(deploy: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((deploy / "compose.yaml").read_text())
    return found


def test_the_compose_file_has_the_form_of_its_specification(deploy: Path, said: Said) -> None:
    program = lint("check-jsonschema")
    code, words = said(program, "--builtin-schema", "vendor.compose-spec", deploy / "compose.yaml")
    assert code == 0, words


def test_every_service_is_hardened_pinned_and_watched(compose: dict[str, Any], deploy: Path) -> None:
    assert {"mosquitto", "watchkeeper", "prometheus", "grafana"} <= set(compose["services"])
    for name, service in compose["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert re.search(r":v?\d+\.\d+\.\d+$", service["image"]), name
        assert "healthcheck" in service or name == "watchkeeper", f"{name}: only our image brings its own"
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), f"{name} is open to the network"
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            if source.startswith("./"):
                assert (deploy / source).exists(), f"{name}: there is no {source}"
                assert volume.endswith(":ro"), f"{name} may write to {source}"
            elif not source.startswith(".."):
                assert source in compose["volumes"], f"{name}: {source}"


def test_what_the_services_call_each_other_is_right(compose: dict[str, Any], deploy: Path) -> None:
    prometheus = yaml.safe_load((deploy / "prometheus" / "prometheus.yml").read_text())
    targets = [t for job in prometheus["scrape_configs"] for c in job["static_configs"] for t in c["targets"]]
    targets += [t for a in prometheus["alerting"]["alertmanagers"] for c in a["static_configs"] for t in c["targets"]]
    source = yaml.safe_load((deploy / "grafana/provisioning/datasources/prometheus.yml").read_text())["datasources"][0]
    called = {target.partition(":")[0] for target in targets} | {source["url"].split("/")[2].partition(":")[0]}
    config = load(deploy / "config" / "watchkeeper.toml", env=compose["services"]["watchkeeper"]["environment"])
    called |= {
        config.broker.url.split("/")[2].partition(":")[0],
        config.alertmanager.url.split("/")[2].partition(":")[0],
    }
    assert called <= set(compose["services"])
    assert source["jsonData"]["timeInterval"] == prometheus["global"]["scrape_interval"]
    dashboards = yaml.safe_load((deploy / "grafana/provisioning/dashboards/watchkeeper.yml").read_text())
    folder = dashboards["providers"][0]["options"]["path"]
    assert any(v == f"./grafana/dashboards:{folder}:ro" for v in compose["services"]["grafana"]["volumes"])


# -- Kubernetes ------------------------------------------------------------------------------------------------


def manifests(deploy: Path) -> list[Path]:
    kustomization = yaml.safe_load((deploy / "kubernetes" / "kustomization.yaml").read_text())
    return [deploy / "kubernetes" / name for name in kustomization["resources"]]


@pytest.mark.parametrize("version", ["1.28.0", "1.33.0"])
def test_the_manifests_have_the_form_that_kubernetes_declares(version: str, deploy: Path, said: Said) -> None:
    code, words = said(lint("kubernetes-validate"), "--strict", "-k", version, *manifests(deploy))
    assert code == 0, words
    assert words.count("passed") == len(manifests(deploy))


def test_the_kustomization_names_every_manifest(deploy: Path) -> None:
    there = {path for path in (deploy / "kubernetes").glob("*.yaml") if path.name != "kustomization.yaml"}
    assert set(manifests(deploy)) == there


def test_the_pod_keeps_to_the_restricted_standard_and_can_write_where_it_must(deploy: Path) -> None:
    stateful = yaml.safe_load((deploy / "kubernetes" / "statefulset.yaml").read_text())["spec"]
    pod = stateful["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    own = container["securityContext"]
    assert (own["allowPrivilegeEscalation"], own["readOnlyRootFilesystem"]) == (False, True)
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert pod["enableServiceLinks"] is False
    mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    config = load(deploy / "kubernetes" / "watchkeeper.toml", env={})
    assert mounted[config.sinks.state_dir] == stateful["volumeClaimTemplates"][0]["metadata"]["name"]
    cache = next(e["value"] for e in container["env"] if e["name"] == "XDG_CACHE_HOME")
    assert cache.startswith(config.sinks.state_dir + "/")
    assert config.http.port == container["ports"][0]["containerPort"]
    assert str(pod["securityContext"]["runAsUser"]) in (deploy / "Dockerfile").read_text()


def test_dashboards_carry_nothing_of_this_machine(deploy: Path) -> None:
    for path in (deploy / "grafana" / "dashboards").glob("*.json"):
        assert json.loads(path.read_text()).get("id") is None
