"""After `pip install -e .` an editor resolves every import of ours, and a type checker sees types in a user's file."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from where import ROOT, copy_checkout

USER = """\
import polars as pl

import watchkeeper as wk

flights: pl.DataFrame = pl.read_csv("flights.csv")
reveal_type(wk.watch(flights).to_frame())
reveal_type(wk.watch("x.wklog").to_frame("polars"))
reveal_type(wk.watch("x.wklog")[0])
reveal_type(wk.scores(flights))
reveal_type(wk.config(profile="balanced"))
reveal_type(wk.simulate("head-on"))
reveal_type(wk.evaluate.alarms(flights))
reveal_type(wk.open_log("x.wklog"))
reveal_type(wk.__version__)
reveal_type(wk.Pipeline(wk.config()).finish())
"""
REVEALED = [
    "DataFrame", "DataFrame", "AlarmEvent", "DataFrame", "Config", "Simulation", "Evaluation", "Source", "str",
    "list[AlarmEvent]",
]  # fmt: skip
# what a user's mistake looks like
WRONG = "import watchkeeper as wk\n\nwk.watch('x.wklog').to_fram()\nwk.config(3)\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment in which a copy of what git tracks is installed as CONTRIBUTING says: editable."""
    source, folder = copy_checkout(tmp_path_factory.mktemp("source")), tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    # the libraries that we need are those of this environment
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--editable", str(source)], check=True, env={**os.environ, "PYTHONPATH": ""})
    return folder


@pytest.fixture
def user(tmp_path: Path) -> Path:
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "wrong.py").write_text(WRONG)
    shutil.copy(ROOT / "daemon" / "intake" / "pump.py", tmp_path / "pump.py")
    return tmp_path


def mypy(installed: Path, file: Path) -> str:
    words = [
        "--strict",
        "--cache-dir",
        str(installed / "mypy"),
        "--python-executable",
        str(installed / "bin" / "python"),
        file.name,
    ]
    environment = {name: value for name, value in os.environ.items() if name not in ("MYPYPATH", "PYTHONPATH")}
    run = subprocess.run(
        [sys.executable, "-m", "mypy", *words],
        cwd=file.parent, capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    return run.stdout + run.stderr


def test_mypy_sees_the_types_of_the_api_in_a_users_file(installed: Path, user: Path) -> None:
    said = mypy(installed, user / "user.py")
    found = re.findall(r'note: Revealed type is "(.*)"', said)
    assert [re.sub(r"[A-Za-z_.]+\.", "", name) for name in found] == REVEALED
    assert "Success" in said


def test_mypy_notices_a_users_mistake(installed: Path, user: Path) -> None:
    said = mypy(installed, user / "wrong.py")
    assert 'has no attribute "to_fram"' in said
    assert 'Argument 1 to "config" has incompatible type "int"' in said


def test_an_editor_resolves_every_import_of_ours_and_shows_types(installed: Path, user: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run(
        [
            sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", str(installed / "bin" / "python"),
            "user.py", "pump.py",
        ],
        cwd=user, capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    found = json.loads(run.stdout)["generalDiagnostics"]
    unresolved = [item for item in found if item.get("rule") in ("reportMissingImports", "reportAttributeAccessIssue")]
    assert not unresolved
    types = [item["message"] for item in found if item["severity"] == "information"]
    assert [re.findall(r'is "(.*)"$', text)[0] for text in types] == REVEALED
