"""deploy/flink: Kubernetes' schemas for what they know, the fields of Flink's operator for the rest, the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.deploy.test_deploy_files import Linter, Said
from watchkeeper.config.loader import load
from watchkeeper.daemon.cli import COMMANDS

from where import ROOT

TEXT, WHOLE, TEXTS = {"type": "string"}, {"type": "integer"}, {"type": "array", "items": {"type": "string"}}
RESOURCE = {"properties": {"memory": TEXT, "cpu": {"type": "number"}}, "required": ["memory", "cpu"]}
MANAGER = {"properties": {"resource": RESOURCE, "replicas": WHOLE, "podTemplate": {"type": "object"}}}
# The part of FlinkDeployment v1beta1 that an application needs, after the operator's reference of it.
DEPLOYMENT = {
    "properties": {
        "apiVersion": {"const": "flink.apache.org/v1beta1"},
        "kind": {"const": "FlinkDeployment"},
        "metadata": {"type": "object"},
        "spec": {
            "properties": {
                "image": TEXT, "imagePullPolicy": TEXT, "serviceAccount": TEXT,
                "flinkVersion": {"type": "string", "pattern": r"^v\d_\d+$"},
                "flinkConfiguration": {"type": "object", "additionalProperties": TEXT},
                "logConfiguration": {"type": "object", "additionalProperties": TEXT},
                "jobManager": MANAGER | {"additionalProperties": False},
                "taskManager": MANAGER | {"additionalProperties": False},
                "podTemplate": {"type": "object"},
                "job": {
                    "properties": {
                        "jarURI": TEXT, "entryClass": TEXT, "args": TEXTS, "parallelism": WHOLE,
                        "state": {"enum": ["running", "suspended"]},
                        "upgradeMode": {"enum": ["last-state", "savepoint", "stateless"]},
                        "initialSavepointPath": TEXT, "allowNonRestoredState": {"type": "boolean"},
                        "savepointTriggerNonce": WHOLE, "savepointRedeployNonce": WHOLE,
                    },
                    "additionalProperties": False,
                },
            },
            "required": ["image", "flinkVersion", "serviceAccount", "jobManager", "taskManager", "job"],
            "additionalProperties": False,
        },
    },
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def deployment() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "flink" / "flinkdeployment.yaml").read_text())
    return found


def test_the_deployment_has_the_form_that_the_operator_declares(deployment: dict[str, Any]) -> None:
    jsonschema.validate(deployment, DEPLOYMENT)


@pytest.mark.parametrize("version", ["1.28.0", "1.33.0"])
def test_pods_and_volumes_have_the_form_that_kubernetes_declares(
    version: str, deployment: dict[str, Any], tmp_path: Path, said: Said, linter: Linter
) -> None:
    pod = deployment["spec"]["podTemplate"]
    # the operator adds the image
    pod["spec"]["containers"][0].setdefault("image", deployment["spec"]["image"])
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pod))
    claims = ROOT / "deploy" / "flink" / "claims.yaml"
    code, words = said(linter("kubernetes-validate"), "--strict", "-k", version, tmp_path / "pod.yaml", claims)
    assert code == 0, words


def test_the_image_passes_its_linter_and_has_every_package(said: Said, linter: Linter) -> None:
    path = ROOT / "deploy" / "flink" / "Dockerfile"
    assert said(linter("hadolint"), path) == (0, "")
    copied = set(re.findall(r"^COPY (\w+) \./", path.read_text(), re.MULTILINE))
    assert copied == set(re.findall(r"^COPY (\w+) \./", (ROOT / "deploy" / "Dockerfile").read_text(), re.MULTILINE))


def test_it_fits_the_code(deployment: dict[str, Any], tmp_path: Path) -> None:
    _, config = yaml.safe_load_all((ROOT / "deploy" / "flink" / "claims.yaml").read_text())
    (tmp_path / "watchkeeper.toml").write_text(config["data"]["watchkeeper.toml"])
    flink = load(tmp_path / "watchkeeper.toml", env={}).flink
    spec = deployment["spec"]
    assert spec["job"]["args"][4] in COMMANDS
    # a slot has room for its worker
    settings = spec["flinkConfiguration"]
    managed_mb = int(settings["taskmanager.memory.managed.size"].removesuffix("g")) << 10
    slots = int(settings["taskmanager.numberOfTaskSlots"])
    assert slots * flink.worker_memory_mb <= 0.8 * managed_mb
    version = re.search(r'"apache-flink>=([\d.]+),', (ROOT / "pyproject.toml").read_text())
    assert version is not None
    assert spec["flinkVersion"] == "v" + version[1].replace(".", "_")
    assert f"flink-python-{version[1]}" in spec["job"]["jarURI"]
    assert f"ARG FLINK={version[1]}" in (ROOT / "deploy" / "flink" / "Dockerfile").read_text()
