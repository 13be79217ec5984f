"""The example package, installed as a stranger would install it: next to the project, which knows nothing of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from where import ROOT

Run = Callable[..., subprocess.CompletedProcess[str]]
PACKAGE = ROOT / "examples" / "watchkeeper-example"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example package installed into it, from a copy: a build leaves files next to its sources."""
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for path in sorted(PACKAGE.rglob("*")):
        if path.is_file() and "egg-info" not in str(path) and "__pycache__" not in path.parts:
            copy = source / path.relative_to(PACKAGE)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture
def run(site: Path, tmp_path: Path) -> Run:
    """Python in an empty folder, with the project and the example package."""

    def call(*words: object, cwd: Path = tmp_path, code: int = 0) -> subprocess.CompletedProcess[str]:
        env = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}
        done = subprocess.run(
            [sys.executable, *map(str, words)], cwd=cwd, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return done

    return call
