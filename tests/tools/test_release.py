"""tools/release.py: what it refuses, and that it finds the version in every place that has it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tools.release import PLACES, changes, objections

from where import ROOT


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in (*PLACES, "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_every_place_of_the_version_is_changed_and_the_changelog_gets_its_date(copy: Path) -> None:
    log = copy / "CHANGELOG.md"
    log.write_text(log.read_text().replace("\n## [", "\n## [9.8.7] - unreleased\n\n### Added\n\n- x\n\n## [", 1))
    made = changes(copy, "9.8.7", "2030-01-01")
    assert set(made) == {*PLACES, "CHANGELOG.md"}
    assert "## [9.8.7] - 2030-01-01" in made["CHANGELOG.md"]
    assert all("9.8.7" in text for text in made.values())


def test_what_is_not_ready_is_refused_with_words(copy: Path) -> None:
    found = objections(copy, "1.x")
    assert any("MAJOR.MINOR.PATCH" in words for words in found)
    assert any("CHANGELOG.md" in words for words in found)
    project = copy / "pyproject.toml"
    project.write_text(project.read_text().replace("github.com/example/", "github.com/somebody/"))
    assert not [words for words in objections(copy, "0.2.0") if "example" in words]
