"""The benchmark of the conflict metrics runs and prints what its page promises."""

from __future__ import annotations

import re

from watchkeeper.daemon.cli import main


def test_it_measures_both_versions(capsys):
    assert main(["bench", "conflict-metrics", "--episodes", "30", "--jobs", "1", "--plain", "2"]) == 0
    printed = capsys.readouterr().out
    assert "30 episodes of 150 steps and 10 agents (30 different" in printed
    assert re.search(r"evaluate +[\d.]+ s, [\d.]+ ms/episode; CPU", printed)
    ratio = re.search(r"ratio +([\d.]+) times", printed)
    assert ratio is not None
    assert float(ratio[1]) > 1.0
