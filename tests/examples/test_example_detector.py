"""A detector from another package: its settings, alarms, metrics, reference, sentence and conformance, from outside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from where import ROOT

CLI = ("-m", "watchkeeper.daemon.cli")
# The traffic of `simulate random` is around 48.4 N, 9.4 E.
SETTINGS = "[detectors.geofence]\nlat = 48.4\nlon = 9.4\nradius_nm = 30\n"


@pytest.fixture
def toml(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "watchkeeper.toml"
        path.write_text(text)
        return path

    return write


def test_its_section_is_checked(run, toml):
    wrong = run(*CLI, "check-config", toml("[detectors.geofence]\nradius_nm = 0.01\nradios_nm = 3\n"), code=78)
    assert "detectors.geofence.radius_nm" in wrong.stdout
    assert "0.1 to 1000 NM" in wrong.stdout
    assert "radius_nm" in wrong.stdout.split("radios_nm")[1]
    shown = run(*CLI, "check-config", "--show", toml(SETTINGS)).stdout
    assert "radius_nm = 30" in shown.split("[detectors.geofence]")[1]


def test_its_alarms_are_raised_from_a_log(run, toml, tmp_path):
    run(*CLI, "simulate", "random", "--seconds", "40", "--vehicles", "40", "--seed", "3", "--out", "sky.wklog")
    run(*CLI, "replay", "sky.wklog", "-c", toml(SETTINGS), "--alarms", "alarms.jsonl")
    events = [json.loads(line) for line in (tmp_path / "alarms.jsonl").read_text().splitlines()]
    raised = [e for e in events if e["kind"] == "geofence" and e["state"] == "raised"]
    assert raised
    assert all(e["evidence"]["beyond_nm"] > 0 for e in raised)


def test_it_is_in_the_references(run):
    assert "## geofence" in run("-m", "watchkeeper.detectors.reference").stdout
    listed = json.loads(run(*CLI, "detectors", "geofence", "--json").stdout)["geofence"]
    assert {"distance_nm", "beyond_nm"} <= {field["name"] for field in listed["evidence"]}
    assert "detectors.geofence.radius_nm" in {setting["key"] for setting in listed["parameters"]}


LOOK = """
import asyncio, json
from prometheus_client.exposition import generate_latest
from watchkeeper.config.loader import load
from watchkeeper.daemon.cli import discover
discover()
from watchkeeper.daemon.app import App
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.daemon.outputs.home_assistant import announcements
sinks = {"state_dir": "", "terminal": False}
config = load(None, env={}, overrides={"sinks": sinks, "home_assistant": {"enabled": True}})
async def main():
    app = App(config)
    text = generate_latest(app.metrics.registry).decode()
    event = AlarmEvent(
        id="1", kind="geofence", state="raised", severity="caution", subjects=("abc",), t=1.0, t_onset=1.0,
        t_raised=1.0, t_cleared=None, score=2.0, threshold=1.0, evidence={"distance_nm": 60.0, "beyond_nm": 30.0})
    app.pipeline.book.adopt(event)
    page = json.loads(app.live.everything())
    ha = announcements(config.home_assistant, "watchkeeper", "watchkeeper", "1")
    app.close()
    print(json.dumps({"metrics": text, "say": page["say"]["1"], "ha": sorted(ha)}))
asyncio.run(main())
"""


def test_its_metrics_sentence_and_sensors_appear(run):
    found = json.loads(run("-c", LOOK).stdout.splitlines()[-1])
    assert "# HELP watchkeeper_geofence_beyond Aircraft on the wrong side of the fence now" in found["metrics"]
    assert 'watchkeeper_alarms_active{kind="geofence",severity="caution"}' in found["metrics"]
    assert 'watchkeeper_score_threshold{kind="geofence"} 1.0' in found["metrics"]
    assert found["say"] == "abc: 30.0 NM beyond the fence since t=1.0 s."
    assert any(topic.endswith("/geofence/config") for topic in found["ha"])


def test_the_conformance_tests_find_it(run):
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/conformance", "-k", "geofence")
    done = run(*words, cwd=ROOT)
    passed = int(done.stdout.split(" passed")[0].split()[-1])
    assert passed >= 15
    assert " failed" not in done.stdout


def test_one_that_cannot_be_loaded_is_named_at_the_start(run, site, tmp_path):
    broken = tmp_path / "broken-1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-guest\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_text("[watchkeeper.detectors]\nbroken = nowhere_at_all:Detector\n")
    # the folder that Python starts in is searched as well
    done = run(*CLI, "detectors", code=78)
    assert "broken-guest" in done.stderr
    assert "nowhere_at_all" in done.stderr
