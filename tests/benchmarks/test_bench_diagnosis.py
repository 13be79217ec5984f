"""`bench diagnosis` measures what it says: alarms that are active, and the diagnosis's part of one run."""

from __future__ import annotations

import re

import pytest

from watchkeeper.benchmarks.diagnosis import main


def test_it_raises_the_alarms_it_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    # so few vehicles make the diagnosis dear: only the counting is checked here
    main(["--vehicles", "12", "--alarms", "4", "--seconds", "62"])
    printed = capsys.readouterr().out
    assert "12 vehicles, 4 active alarms, 4 incidents" in printed
    assert re.search(r"incidents, diagnosis +\d+\.\d\d s CPU +\d+\.\d% of the pipeline", printed)


def test_a_run_too_short_to_alarm_is_a_usage_error() -> None:
    with pytest.raises(SystemExit) as end:
        main(["--seconds", "30"])
    assert end.value.code == 2
