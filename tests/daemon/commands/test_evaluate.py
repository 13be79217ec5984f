"""`watchkeeper evaluate`: names after what is judged, and the old ones as aliases."""

from __future__ import annotations

import pytest

from watchkeeper.daemon.cli import main
from watchkeeper.daemon.commands.evaluate import EVALUATIONS, OLD_NAMES


def help_of(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as exits:
        main(["evaluate", name, "--help"])
    assert exits.value.code == 0
    return capsys.readouterr().out.replace(f"evaluate {name} [", "evaluate NAME [")


@pytest.mark.parametrize("name", OLD_NAMES)
def test_the_old_name_of_an_evaluation_runs_the_same(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    new, old = (" ".join(help_of(each, capsys).split()) for each in (name, OLD_NAMES[name]))
    assert new == old


def test_the_list_has_every_evaluation_with_its_old_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(EVALUATIONS)
    assert sum("(also: " in line for line in lines) == len(OLD_NAMES)
