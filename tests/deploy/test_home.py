"""Version and address of the project are the same everywhere: pyproject.toml has them, the rest follows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from where import ROOT, own_files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OURS = re.compile(r"https://github\.com/[\w.-]+/watchkeeper\b")


def texts() -> dict[str, str]:
    """Every text file of the repository, but for the lists of what was."""
    paths = [
        Path(name)
        for name in own_files()
        if name.endswith((".md", ".yml", ".yaml", ".toml", ".cff", ".service", ".py"))
    ]
    return {str(p): (ROOT / p).read_text() for p in paths if (ROOT / p).is_file() and p.name != "CHANGELOG.md"}


def test_the_project_has_one_address() -> None:
    home = PROJECT["urls"]["Repository"]
    found = {(name, link) for name, text in texts().items() for link in OURS.findall(text)}
    assert {link for _, link in found} == {home}
    assert all(url.startswith(home) for url in PROJECT["urls"].values())


def test_an_address_where_nothing_is_is_explained() -> None:
    """Until an owner is chosen, and no release is made before: tests/tools/test_release.py."""
    if "/example/" in PROJECT["urls"]["Repository"]:
        assert "The project has no public address yet" in (ROOT / "docs" / "faq.md").read_text()
        for page in ("install.md", "grafana.md"):
            assert "faq.md#why-do-links-lead" in (ROOT / "docs" / page).read_text(), page


def test_the_image_has_the_version_of_the_package() -> None:
    tags = {
        (name, version)
        for name, text in texts().items()
        for version in re.findall(r"watchkeeper(?:[:-]|: |==)(\d+\.\d+\.\d+)", text)
        if not name.startswith("tests/")
    }
    assert {version for _, version in tags} == {PROJECT["version"]}, tags


def test_first_installs_say_where_from() -> None:
    """`pip install watchkeeper` alone works after the first release only: install.md and the README say both."""
    alone = re.compile(r"pipx? install [\"']?watchkeeper[\"']?(?![\[\w-])")
    found = {name for name, text in texts().items() if alone.search(text) and not name.startswith("tests/")}
    assert found <= {"docs/install.md", "README.md"}
