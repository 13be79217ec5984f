"""docs/tutorial.md as it stands: its package is built, installed into a folder, and its detector raises the alarm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import blocks_of

from where import DOCS

PAGE = DOCS / "tutorial.md"


def beginning(words: str) -> str:
    """The block of the page that begins with these words."""
    (found,) = (block.text for block in blocks_of(PAGE) if block.text.startswith(words))
    return found + "\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the files of the page, and the package installed below it."""
    folder = tmp_path_factory.mktemp("tutorial")
    (python,) = (block.text for block in blocks_of(PAGE) if block.language == "python")
    (folder / "pyproject.toml").write_text(beginning("[build-system]"))
    (folder / "speeding.py").write_text(python + "\n")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*install, "--target", "installed", "."], cwd=folder, check=True, capture_output=True)
    return folder


def typed(folder: Path, line: str) -> str:
    """What a line of the page prints, with the package installed."""
    programs = f'watchkeeper() {{ "{sys.executable}" -m watchkeeper.daemon.cli "$@"; }}\n'
    env = {**os.environ, "PYTHONPATH": str(folder / "installed")}
    done = subprocess.run(
        ["bash", "-euc", programs + line], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_tutorials_detector_is_built_and_raises_its_alarm(made: Path) -> None:
    shell = [block.text for block in blocks_of(PAGE) if block.text.startswith(("pip", "printf"))]
    assert len(shell) == 2
    install, *rest = shell[0].splitlines()
    assert install == "pip install ."
    shown = typed(made, "\n".join(rest))
    assert "limit_kt" in shown
    assert int(typed(made, shell[1]).split()[-1]) >= 1
    events = [json.loads(line) for line in (made / "alarms.jsonl").read_text().splitlines()]
    (raised,) = [event for event in events if event["kind"] == "speeding" and event["state"] == "raised"]
    assert raised["subjects"] == ["fast"]
    assert raised["say"].startswith("fast: 310 kt at 8,000 ft")


def test_its_setting_changes_what_it_raises(made: Path) -> None:
    (made / "quiet.toml").write_text(beginning("[detectors.speeding]"))
    typed(made, "watchkeeper replay fast.csv -c quiet.toml --alarms quiet.jsonl")
    assert '"kind":"speeding"' not in (made / "quiet.jsonl").read_text()
