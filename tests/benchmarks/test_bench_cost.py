"""`bench cost` prints the stages, fleets, hot keys and tiles, from a small measurement."""

from __future__ import annotations

import pytest

from watchkeeper.daemon.cli import main


def test_a_small_run_prints_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "cost", "--vehicles", "8", "--seconds", "8"]) == 0
    out = capsys.readouterr().out
    for words in (
        "one drone",
        "one aircraft",
        "1,000,000: work for",
        "1000 workers: 1.26",
        "120 NM: even 2.10 copies",
        "they would get and give",
    ):
        assert words in out
