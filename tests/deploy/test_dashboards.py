"""The committed dashboards and rules: what the code generates, valid PromQL, and about metrics that exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client.exposition import generate_latest

from watchkeeper.config.loader import load
from watchkeeper.daemon.app import App
from watchkeeper.detectors.catalog import gauges, kinds
from watchkeeper.evaluation.textfile.command import PREFIX

from where import ROOT

# What Prometheus and prometheus-client give by themselves.
GIVEN = {"up", "process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"}
GIVEN |= {"process_start_time_seconds"}
Panels = list[tuple[str, str, str]]
Tool = Callable[[str, str], str]
Said = Callable[..., tuple[int, str]]
BOARDS = ("fleet", "conflicts", "integrity", "detectors", "health", "evaluation")


@pytest.fixture(scope="module")
def metrics_text(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {
        "sinks": {"state_dir": str(tmp_path_factory.mktemp("state"))},
        "fleet": {"max_vehicles": 10}, "detectors": {"conflict": {"max_pairs": 10}},
        "sources": [{"type": "sbs", "url": "tcp://127.0.0.1:1"}],
        "webhooks": [{"name": "x", "url": "http://127.0.0.1:1"}],
    }  # fmt: skip
    app = App(load(None, env={}, overrides=settings))
    yield generate_latest(app.metrics.registry).decode()
    app.close()


def names_in(expr: str) -> set[str]:
    return set(re.findall(r"\b(up|process_\w+|watchkeeper_\w+)\b", re.sub(r'"[^"]*"', "", expr)))


def test_the_committed_dashboards_are_what_the_code_makes(deploy: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, deploy / "dashboards" / "generate.py", tmp_path], check=True)
    made = {path.name: path.read_text() for path in tmp_path.glob("*.json")}
    committed = {path.name: path.read_text() for path in (deploy / "grafana" / "dashboards").glob("*.json")}
    assert sorted(made) == sorted(f"{name}.json" for name in BOARDS)
    assert made == committed, "run `make dashboards` and commit the result"


@pytest.mark.parametrize("name", BOARDS)
def test_grafanas_own_types_know_every_field(name: str, deploy: Path) -> None:
    """Read into the types that Grafana declares and written again: a field that they do not have would be gone."""
    board = json.loads((deploy / "grafana" / "dashboards" / f"{name}.json").read_text())
    assert json.loads(JSONEncoder().encode(Dashboard.from_json(board))) == board
    board["panels"][0]["colour"] = "red"
    assert json.loads(JSONEncoder().encode(Dashboard.from_json(board))) != board


@pytest.mark.parametrize("name", BOARDS)
def test_a_dashboard_is_whole(name: str, deploy: Path) -> None:
    board = json.loads((deploy / "grafana" / "dashboards" / f"{name}.json").read_text())
    assert board["uid"] == f"watchkeeper-{name}"
    assert board["schemaVersion"] >= 41
    assert [v["name"] for v in board["templating"]["list"]] == ["datasource", "instance", "page"]
    assert [mark["name"] for mark in board["annotations"]["list"]] == ["Alarms raised"]
    assert {link["url"] for link in board["links"] if link["type"] == "link"} == {"${page}"}
    panels = board["panels"]
    assert len({p["id"] for p in panels}) == len(panels)
    for panel in panels:
        if panel["type"] != "row":
            assert panel["description"]
            assert panel["datasource"]["uid"] == "${datasource}"
            assert panel["targets"], f"{panel['title']} asks nothing"
            assert len({t["refId"] for t in panel["targets"]}) == len(panel["targets"])
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
    for a, b in combinations((p["gridPos"] for p in panels), 2):
        apart_x = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        apart_y = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
        assert apart_x or apart_y, f"two panels overlap in {name}: {a}, {b}"


def test_every_query_is_valid_promql(panels: Panels, tool: Tool, said: Said, tmp_path: Path) -> None:
    # promtool of Debian parses expressions only as rules: each query becomes one
    rules = [{"record": f"panel:{i}", "expr": expr} for i, (_, _, expr) in enumerate(panels)]
    path = tmp_path / "panels.yml"
    path.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    code, words = said(tool("promtool", "prometheus"), "check", "rules", path)
    assert code == 0, words
    assert f"{len(panels)} rules found" in words
    assert len(panels) > 80


def rules_text(deploy: Path) -> str:
    """Both files of rules."""
    return "".join((deploy / "prometheus" / name).read_text() for name in ("rules.yml", "traffic.yml"))


def test_every_metric_asked_for_exists(panels: Panels, deploy: Path, metrics_text: str) -> None:
    exported = set(re.findall(r"^(\w+?)(?:\{| )", metrics_text, re.MULTILINE)) | GIVEN
    written = set(re.findall(r'"(\w+)"', (deploy.parent / "evaluation" / "textfile" / "command.py").read_text()))
    for board, title, expr in panels:
        for name in names_in(expr):
            if name.startswith(PREFIX):
                stem = name.removeprefix(PREFIX)
                known = stem in written or any(stem.removeprefix(p) in written for p in ("conflict_", "controller_"))
            else:
                known = name in exported
            assert known, f"{board}, {title}: there is no {name}"
    for name in names_in(rules_text(deploy)):
        assert name in exported, f"rules: there is no {name}"


def test_every_figure_of_the_detectors_has_its_line(metrics_text: str) -> None:
    exported = set(re.findall(r"^watchkeeper_(\w+?)(?:\{| )", metrics_text, re.MULTILINE))
    assert {name for name, _ in gauges().values()} <= exported


def test_no_kind_of_alarm_is_without_a_rule(deploy: Path) -> None:
    rules = rules_text(deploy)
    named = {name for names in re.findall(r'alarms_active\{kind=~?"([^"]+)"', rules) for name in names.split("|")}
    (left_out,) = re.findall(r'alarms_active\{kind!~"([^"]+)"', rules)
    # silence has a rule about the share of the fleet, an incident is made of alarms that have theirs
    assert set(left_out.split("|")) == named | {"silence", "incident"}
    assert named <= set(kinds())


def test_the_metrics_page_is_clean(metrics_text: str, tool: Tool, said: Said) -> None:
    assert said(tool("promtool", "prometheus"), "check", "metrics", input=metrics_text) == (0, "")


def test_the_rules_pass_their_unit_tests(deploy: Path, tool: Tool, said: Said) -> None:
    promtool, folder = tool("promtool", "prometheus"), deploy / "prometheus"
    for task in (
        "check rules rules.yml traffic.yml",
        "test rules rules_test.yml",
        "check config --syntax-only prometheus.yml",
    ):
        code, words = said(promtool, *task.split(), cwd=folder)
        assert code == 0, words


def test_every_rule_has_a_unit_test(deploy: Path) -> None:
    rules = re.findall(r"- alert: (\w+)", rules_text(deploy))
    tests = (deploy / "prometheus" / "rules_test.yml").read_text()
    fired = set(re.findall(r"alertname: (\w+)\n\s+exp_alerts:\n", tests))
    assert fired == set(rules)


def test_every_rule_links_to_what_to_do_and_to_the_page(deploy: Path) -> None:
    repository = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
    headings = {line[4:].lower() for line in (ROOT / "docs/runbook.md").read_text().splitlines() if line[:4] == "### "}
    alerts = [
        rule
        for name in ("rules.yml", "traffic.yml")
        for group in yaml.safe_load((deploy / "prometheus" / name).read_text())["groups"]
        for rule in group["rules"]
    ]
    links = {rule["alert"]: rule["annotations"]["runbook_url"].partition("#") for rule in alerts}
    assert {link[0] for link in links.values()} == {f"{repository}/blob/main/docs/runbook.md"}
    assert {name: link[2] for name, link in links.items()} == {name: name.lower() for name in links}
    assert {name.lower() for name in links} == headings
    assert all("$externalLabels.page" in rule["annotations"]["page"] for rule in alerts)
