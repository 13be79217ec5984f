"""`bench memory`: the parts of a start add up, and a daemon with a fleet takes more than one that waits."""

from __future__ import annotations

import re

import pytest

from watchkeeper.benchmarks import memory


def test_the_table_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert memory.main(["--drones", "1", "--seconds", "8"]) == 0
    said = capsys.readouterr().out
    first = [float(found) for found in re.findall(r"([+-][\d.]+) MB +[+-]", said)]
    assert len(first) == len(memory.PARTS)
    (together,) = re.findall(r"together +([\d.]+) MB", said)
    assert sum(first) == pytest.approx(float(together), abs=1.0)
    idle, watching = (float(found) for found in re.findall(r"a daemon .*?([\d.]+) MB +[\d.]+ MB", said))
    assert 50.0 < idle < watching
