"""`evaluate diagnosis`: how good the diagnoser is beside baselines, and what the command prints and writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from watchkeeper.daemon.cli import main
from watchkeeper.evaluation.diagnosis.episodes import draw_set
from watchkeeper.evaluation.diagnosis.play import AGENTS, OURS, Played, Task, play
from watchkeeper.evaluation.diagnosis.report import LOOK_ALIKES, look_alikes
from watchkeeper.evaluation.diagnosis.summary import CompetitionEvaluator


def games(agent: str, episodes: int, seed: int) -> list[Played]:
    drawn = draw_set(seed, episodes, (4, 200), 0.5).episodes
    return [play(Task(agent, episode, i)) for i, episode in enumerate(drawn)]


@pytest.fixture(scope="module")
def ours() -> list[Played]:
    return games(OURS, 150, 31)


def test_ours_is_right_quickly_and_never_repeats_itself(ours: list[Played]) -> None:
    s = CompetitionEvaluator(p.metrics for p in ours).compute_summary()
    assert s["diagnosis_success_rate"] >= 0.93
    assert s["fault_type_macro_f1"] >= 0.93
    assert s["location_accuracy"] >= 0.95
    assert s["avg_steps_per_device"] <= 0.1
    assert s["redundancy_rate"] == s["tool_error_rate"] == 0.0
    assert 0.0 < s["topology_coverage"] < 1.0


def test_baselines_are_beaten_on_the_same_networks(ours: list[Played]) -> None:
    own = CompetitionEvaluator(p.metrics for p in ours[:25]).compute_summary()
    for name in sorted(AGENTS.keys() - {OURS}):
        other = games(name, 25, 31)
        truths = [(p.metrics.ground_truth_location, p.metrics.network_size) for p in other]
        assert truths == [(p.metrics.ground_truth_location, p.metrics.network_size) for p in ours[:25]]
        summary = CompetitionEvaluator(p.metrics for p in other).compute_summary()
        assert summary["diagnosis_success_rate"] < own["diagnosis_success_rate"] - 0.1
        if name == "scan everything":
            assert summary["topology_coverage"] > 0.85
            assert summary["avg_steps"] > 10 * own["avg_steps"]


def test_look_alikes_are_counted_by_direction(ours: list[Played]) -> None:
    found = look_alikes(ours)
    assert [x.name for x in found] == [name for name, _, _ in LOOK_ALIKES]
    assert all(x.episodes > 0 for x in found)
    dead = [p for p in ours if p.form == "dead"]
    assert found[0].episodes == len(dead)
    assert found[0].confused == sum(p.metrics.predicted_type == "link_failure" for p in dead)


@pytest.mark.long
def test_a_thousand_episodes_meet_the_target() -> None:
    s = CompetitionEvaluator(p.metrics for p in games(OURS, 1000, 2026)).compute_summary()
    assert s["diagnosis_success_rate"] >= 0.95
    assert s["fault_type_macro_f1"] >= 0.95
    assert s["location_accuracy"] >= 0.97
    assert s["avg_steps_per_device"] <= 0.3
    assert s["redundancy_rate"] == 0.0


def test_the_command_writes_table_json_picture_and_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, page, picture = tmp_path / "m.json", tmp_path / "d.html", tmp_path / "c.png"
    words = ["evaluate", "diagnosis", "--episodes", "4", "--seed", "9", "--devices", "4", "20", "--jobs", "1"]
    assert main([*words, "--out", str(out), "--report", str(page), "--plot", str(picture)]) == 0
    printed = capsys.readouterr().out
    assert "diagnosis success" in printed
    assert "taken for a cut link" in printed
    content = json.loads(out.read_bytes())
    assert list(content["agents"]) == list(AGENTS)
    assert len(content["episodes"]) == 4 * len(AGENTS)
    assert all(4 <= e["metrics"]["network_size"] <= 20 for e in content["episodes"])
    assert page.read_text().startswith("<!doctype html>")
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--devices", "3", "20"], "--devices 3 20: expected 4"),
        (["--agents", "nobody"], "'nobody' is none of watchkeeper"),
        (["--no-port-reports"], "--no-port-reports: only with --streamed"),
        (["--set", "x.json"], "--episodes with --set: the file says"),
        (["--streamed", "--leaderboard", "x.jsonl"], "--leaderboard with --streamed"),
        (["--agent", "mine"], "--agent 'mine': expected NAME=MODULE:MAKER"),
        (["--agent", "mine=nowhere:Agent"], "--agent 'nowhere:Agent': expected module:name"),
        (["--agent", "random=json:loads"], "--agent 'random': the name of one of ours"),
    ],
)
def test_wrong_arguments_are_usage_errors(words: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "diagnosis", "--episodes", "1", *words]) == 2
    assert problem in capsys.readouterr().err
