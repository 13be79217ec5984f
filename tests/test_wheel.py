"""The wheel holds the package `watchkeeper` and nothing else, so nothing generic lands in anyone's site-packages."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    # a copy, because setuptools writes its build folder beside the sources
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, tracked.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(source)]
    subprocess.run(command, check=True)
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built)


def test_everything_in_the_wheel_is_below_watchkeeper(wheel):
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"watchkeeper"}


def test_every_module_of_the_tree_is_in_the_wheel(wheel):
    folders = ("benchmarks", "config", "daemon", "detectors", "evaluation", "streams")
    tree = {p.relative_to(ROOT).as_posix() for f in folders for p in (ROOT / f).rglob("*.py")}
    packed = {name.removeprefix("watchkeeper/") for name in wheel.namelist() if name.endswith(".py")}
    assert packed == tree


def test_profiles_and_the_example_are_shipped(wheel):
    tomls = {Path(name).name for name in wheel.namelist() if name.endswith(".toml")}
    assert {"balanced.toml", "high-sensitivity.toml", "high-specificity.toml", "example.toml"} <= tomls


def test_the_attack_catalogue_and_the_splits_are_shipped(wheel):
    assert {"watchkeeper/config/attacks.json", "watchkeeper/config/splits.json"} <= set(wheel.namelist())


def test_the_live_page_is_shipped_whole(wheel):
    tree = {f"watchkeeper/daemon/page/{path.name}" for path in (ROOT / "daemon" / "page").iterdir()}
    assert "watchkeeper/daemon/page/index.html" in tree
    assert {name for name in wheel.namelist() if name.startswith("watchkeeper/daemon/page/")} == tree
