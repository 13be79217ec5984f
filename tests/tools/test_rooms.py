"""`make check` says when a file stands in the wrong place: one planted violation of each rule in a copy of the tree."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from where import copy_checkout

Check = Callable[[Path], list[str]]


@pytest.fixture(scope="module")
def clean_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree, which violations are planted in and taken out of again."""
    return copy_checkout(tmp_path_factory.mktemp("rooms"))


@pytest.fixture
def tree(clean_copy: Path) -> Iterator[Path]:
    before = {path: path.read_bytes() for path in clean_copy.rglob("*") if path.is_file()}
    yield clean_copy
    for path in [path for path in clean_copy.rglob("*") if path.is_file()]:
        if path not in before:
            path.unlink()
        elif path.read_bytes() != before[path]:
            path.write_bytes(before[path])


def run(tree: Path, *command: str) -> tuple[int, str]:
    # a wide terminal, so that no message is wrapped
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "COLUMNS": "300", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, check=False, cwd=tree, env=environment, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def before(clean_copy: Path) -> list[str]:
    """Violations of the tree itself, which the first test asks about."""
    return all_violations(clean_copy)


@pytest.fixture
def rooms(before: list[str]) -> Check:
    """The violations that were planted, as the check of rooms prints them."""
    return lambda tree: [line for line in all_violations(tree) if line not in before]


def all_violations(tree: Path) -> list[str]:
    code, output = run(tree, sys.executable, "-m", "tools.rooms")
    lines = [line for line in output.splitlines() if not line.startswith("rooms: ")]
    assert code == (1 if lines else 0), output
    return lines


def contracts(tree: Path) -> tuple[int, str]:
    return run(tree, str(Path(sys.executable).parent / "lint-imports"), "--no-cache")


def plant(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text((path.read_text() if path.exists() else "") + text)


def test_the_tree_as_it_is_keeps_all_rules(tree: Path, before: list[str]) -> None:
    assert before == []
    assert contracts(tree)[0] == 0


def test_a_module_with_one_importer_lives_in_the_importers_folder(rooms: Check, tree: Path) -> None:
    plant(tree / "streams/only_for_silence.py", '"""Used by one module."""\n')
    plant(tree / "detectors/silence/detector.py", "from watchkeeper.streams import only_for_silence\n")
    (line,) = rooms(tree)
    assert line.startswith(
        "streams/only_for_silence.py: room: only detectors/silence/detector.py imports it; move it to detectors/"
    )


def test_the_door_of_a_room_may_have_one_importer_elsewhere(rooms: Check, tree: Path) -> None:
    plant(tree / "streams/porch/__init__.py", '"""A room."""\n')
    plant(tree / "streams/porch/behind.py", '"""Behind the door."""\n')
    plant(tree / "streams/porch/door.py", '"""The door."""\nfrom watchkeeper.streams.porch import behind\n')
    plant(tree / "detectors/silence/detector.py", "import watchkeeper.streams.porch.door\n")
    assert rooms(tree) == []


def test_a_folder_with_the_importers_name_is_its_room_too(rooms: Check, tree: Path) -> None:
    plant(tree / "daemon/record/__init__.py", '"""Parts of a recording."""\n')
    plant(tree / "daemon/record/parts.py", '"""Used by the command alone."""\n')
    plant(tree / "daemon/commands/record.py", "import watchkeeper.daemon.record.parts\n")
    assert rooms(tree) == []


def test_a_folder_has_at_most_twenty_modules(rooms: Check, tree: Path) -> None:
    already = sum(path.name != "__init__.py" for path in (tree / "detectors/link").glob("*.py"))
    for number in range(20 - already):
        plant(tree / f"detectors/link/part{number}.py", '"""One more."""\n')
    assert rooms(tree) == []
    plant(tree / "detectors/link/one_too_many.py", '"""One more."""\n')
    (line,) = rooms(tree)
    assert line.startswith("detectors/link: size: 21 modules, at most 20")


def test_a_folder_says_what_belongs_there(rooms: Check, tree: Path) -> None:
    plant(tree / "streams/nameless/reader.py", '"""A module."""\n')
    (line,) = rooms(tree)
    assert line.startswith("streams/nameless/__init__.py: folder: missing, or without a docstring")


@pytest.mark.parametrize(
    ("file", "text", "gone"),
    [
        ("docs/mqtt.md", "See `detectors/no_such.py`.\n", "detectors/no_such.py"),
        ("docs/mqtt.md", "[here](no-such-page.md)\n", "no-such-page.md"),
        ("streams/added.py", '"""See config/no_such.toml."""\n', "config/no_such.toml"),
        ("streams/added.py", '"""See no_such_module.py."""\n', "no_such_module.py"),
    ],
)
def test_a_path_in_a_page_or_docstring_names_a_file(rooms: Check, tree: Path, file: str, text: str, gone: str) -> None:
    plant(tree / file, text)
    (line,) = rooms(tree)
    assert line.startswith(f"{file}: path: there is no {gone}")


def test_a_detector_that_imports_the_alarms_above_it_breaks_a_contract(tree: Path) -> None:
    plant(tree / "detectors/silence/detector.py", "import watchkeeper.detectors.alarms.watch\n")
    code, output = contracts(tree)
    assert code == 1
    assert "watchkeeper.detectors.silence is not allowed to import watchkeeper.detectors.alarms" in output


def test_a_new_detector_is_independent_of_the_others_without_being_listed(tree: Path) -> None:
    plant(tree / "detectors/newcomer/__init__.py", '"""A detector that nobody has listed."""\n')
    plant(tree / "detectors/newcomer/detector.py", "import watchkeeper.detectors.link.stats\n")
    code, output = contracts(tree)
    assert code == 1
    assert "watchkeeper.detectors.newcomer is not allowed to import watchkeeper.detectors.link" in output


def test_streams_that_import_a_detector_break_a_contract(tree: Path) -> None:
    plant(tree / "streams/geo.py", "import watchkeeper.detectors.base\n")
    code, output = contracts(tree)
    assert code == 1
    assert "watchkeeper.streams is not allowed to import watchkeeper.detectors" in output
