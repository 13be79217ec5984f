"""The wheel holds the package `watchkeeper` and nothing else, the sdist real files where the checkout has links."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from where import LINKED, NOT_LINKED, ROOT, copy_checkout, own_files

# The folders at the root that are subpackages: those with an __init__.py.
FOLDERS = {path.parent.name for path in ROOT.glob("*/__init__.py")}
FACE = {"__init__.py", "_alarms.py", "_api.py", "evaluate.py", "py.typed"}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_checkout(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(source)]
    subprocess.run(command, check=True)
    (built,) = folder.glob("*.whl")
    return zipfile.ZipFile(built)


@pytest.mark.skipif(not LINKED, reason=NOT_LINKED)
def test_src_holds_the_face_the_marker_and_one_relative_link_per_folder():
    package = ROOT / "src" / "watchkeeper"
    links = {path.name: path.readlink().as_posix() for path in package.iterdir() if path.is_symlink()}
    assert links == {name: f"../../{name}" for name in FOLDERS}
    # an editable install writes its egg-info next to the package, never into it
    assert {path.name for path in package.iterdir() if not path.is_symlink()} - {"__pycache__"} == FACE


def test_everything_in_the_wheel_is_below_watchkeeper(wheel):
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"watchkeeper"}


def test_every_module_of_the_tree_is_in_the_wheel(wheel):
    tree = {p.relative_to(ROOT).as_posix() for f in FOLDERS for p in (ROOT / f).rglob("*.py")}
    packed = {name.removeprefix("watchkeeper/") for name in wheel.namelist() if name.endswith(".py")}
    assert packed == tree | {name for name in FACE if name.endswith(".py")}
    assert "watchkeeper/py.typed" in wheel.namelist()


def test_every_other_file_of_the_folders_is_in_the_wheel_too(wheel):
    """Tables, profiles, pages: what a module reads at run time, whichever folder is added next."""
    owned = {name for name in own_files() if name.split("/")[0] in FOLDERS and not name.endswith((".py", ".pyc"))}
    packed = {name.removeprefix("watchkeeper/") for name in wheel.namelist()}
    assert "daemon/init/airports.csv.gz" in owned
    assert owned <= packed, sorted(owned - packed)


def test_the_sdist_holds_real_files(source, tmp_path):
    command = [sys.executable, "-m", "build", "--sdist", "--outdir", str(tmp_path), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    (path,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    assert not [member.name for member in members if member.issym() or member.islnk()]
    packed = {member.name.partition("/")[2] for member in members}
    tree = {p.relative_to(ROOT).as_posix() for f in FOLDERS for p in (ROOT / f).rglob("*.py")}
    assert {f"src/watchkeeper/{name}" for name in tree | FACE} <= packed
    # all of the repository, but what only git reads; `src/watchkeeper` has files where the checkout has links
    ours = {name for name in own_files() if not (ROOT / name).is_symlink()} - {".gitignore", ".git-blame-ignore-revs"}
    assert ours <= packed, sorted(ours - packed)


def test_profiles_and_the_example_are_shipped(wheel):
    tomls = {Path(name).name for name in wheel.namelist() if name.endswith(".toml")}
    assert {"balanced.toml", "high-sensitivity.toml", "high-specificity.toml", "example.toml"} <= tomls


def test_the_attack_catalogue_and_the_splits_are_shipped(wheel):
    assert {"watchkeeper/config/attacks.json", "watchkeeper/config/splits.json"} <= set(wheel.namelist())


@pytest.mark.parametrize("page", ["daemon/live/page", "daemon/report/page", "evaluation/conflicts/playback/page"])
def test_pages_are_shipped_whole(wheel, page):
    tree = {f"watchkeeper/{page}/{path.name}" for path in (ROOT / page).iterdir()}
    assert len(tree) > 3
    assert {name for name in wheel.namelist() if name.startswith(f"watchkeeper/{page}/")} == tree
