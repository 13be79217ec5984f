"""`bench page` measures both sides on the same traffic."""

from __future__ import annotations

import re

import pytest

from watchkeeper.daemon.cli import main


def test_being_watched_is_measured_beside_not_being_watched(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("bench", "page", "--vehicles", "50", "--seconds", "14")) == 0
    out = capsys.readouterr().out
    assert re.search(r"nobody watches +\d+\.\d\d ms", out)
    assert re.search(r"somebody does +\d+\.\d\d ms", out)
    kilobytes = re.search(r"one picture +\d+\.\d\d ms, (\d+) kB", out)
    # 39 bytes for each of 50 vehicles, and a header
    assert kilobytes is not None
    assert 2 <= int(kilobytes[1]) <= 5
