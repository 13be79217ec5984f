"""deploy/kubernetes: the manifests as Kubernetes declares them, as kustomize joins them, and against the settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from watchkeeper.config.loader import load

Tool = Callable[[str, str], str]
Said = Callable[..., tuple[int, str]]
Linter = Callable[[str], str]
VERSIONS = ("1.28.0", "1.33.0")


def manifests(deploy: Path) -> list[Path]:
    kustomization = yaml.safe_load((deploy / "kubernetes" / "kustomization.yaml").read_text())
    return [deploy / "kubernetes" / name for name in kustomization["resources"]]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_manifests_have_the_form_that_kubernetes_declares(
    version: str, deploy: Path, said: Said, linter: Linter
) -> None:
    code, words = said(linter("kubernetes-validate"), "--strict", "-k", version, *manifests(deploy))
    assert code == 0, words
    assert words.count("passed") == len(manifests(deploy))


@pytest.mark.parametrize("version", VERSIONS)
def test_kustomize_makes_of_them_what_kubernetes_takes(
    version: str, deploy: Path, said: Said, tool: Tool, linter: Linter, tmp_path: Path
) -> None:
    """What `kubectl apply -k` sends: everything in one namespace, the settings under a name that changes with them."""
    code, words = said(tool("kubectl", "kubernetes-client"), "kustomize", deploy / "kubernetes")
    assert code == 0, words
    made = {each["kind"]: each for each in yaml.safe_load_all(words)}
    assert set(made) == {
        "ConfigMap", "Ingress", "Namespace", "NetworkPolicy", "Service", "ServiceAccount", "StatefulSet",
    }  # fmt: skip
    assert {each["metadata"].get("namespace") for each in made.values()} == {"watchkeeper", None}
    pod = made["StatefulSet"]["spec"]["template"]["spec"]
    (config,) = (volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume)
    assert config == made["ConfigMap"]["metadata"]["name"] != "watchkeeper-config"
    assert pod["containers"][0]["image"].startswith("registry.example/watchkeeper:")
    settings = tmp_path / "watchkeeper.toml"
    settings.write_text(made["ConfigMap"]["data"]["watchkeeper.toml"])
    assert load(settings, env={"TOWER_TOKEN": "x" * 24}).http.tokens
    rendered = tmp_path / "all.yaml"
    rendered.write_text(words)
    code, words = said(linter("kubernetes-validate"), "--strict", "-k", version, rendered)
    assert (code, words.count("passed")) == (0, len(made)), words


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
    config = load(deploy / "kubernetes" / "watchkeeper.toml", env={"TOWER_TOKEN": "x" * 24})
    assert mounted[config.sinks.state_dir] == stateful["volumeClaimTemplates"][0]["metadata"]["name"]
    secrets = {e["name"] for e in container["env"]}
    assert {token.token_env for token in config.http.tokens} <= secrets
    assert config.http.port == container["ports"][0]["containerPort"]
    assert str(pod["securityContext"]["runAsUser"]) in (deploy / "Dockerfile").read_text()


def test_the_network_policy_lets_out_what_the_settings_can_name(deploy: Path) -> None:
    """Webhooks and messages by HTTPS anywhere; brokers, sources and Alertmanager by any port of a private network."""
    policy = yaml.safe_load((deploy / "kubernetes" / "networkpolicy.yaml").read_text())["spec"]
    private = {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"}
    open_networks = [rule for rule in policy["egress"] if "ports" not in rule]
    assert private <= {each["ipBlock"]["cidr"] for rule in open_networks for each in rule["to"]}
    anywhere = [r for r in policy["egress"] for each in r.get("to", ()) if each["ipBlock"]["cidr"] == "0.0.0.0/0"]
    assert [port["port"] for rule in anywhere for port in rule["ports"]] == [443]
    callers = {
        each["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
        for rule in policy["ingress"]
        for each in rule["from"]
    }
    assert callers == {"monitoring", "ingress-nginx"}
    ingress = yaml.safe_load((deploy / "kubernetes" / "ingress.yaml").read_text())["spec"]
    config = load(deploy / "kubernetes" / "watchkeeper.toml", env={"TOWER_TOKEN": "x" * 24})
    assert [rule["host"] for rule in ingress["rules"]] == ingress["tls"][0]["hosts"] == [config.http.public_name]
    assert config.http.tokens
