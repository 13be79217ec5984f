"""The files for GitHub: forms as their schemas want them, and the workflow tests what pyproject.toml promises."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable

import pytest
import yaml

from where import ROOT

FILES = {
    ".github/workflows/ci.yml": "vendor.github-workflows",
    ".github/workflows/site.yml": "vendor.github-workflows",
    ".github/dependabot.yml": "vendor.dependabot",
    "CITATION.cff": "vendor.citation-file-format",
    **{f".github/ISSUE_TEMPLATE/{name}.yml": "vendor.github-issue-forms" for name in ("alarm", "bug", "source")},
}


def test_every_workflow_and_issue_form_is_checked() -> None:
    paths = [*(ROOT / ".github" / "workflows").iterdir(), *(ROOT / ".github" / "ISSUE_TEMPLATE").iterdir()]
    there = {str(path.relative_to(ROOT)) for path in paths if path.name != "config.yml"}
    assert there <= set(FILES)


@pytest.mark.parametrize("name", list(FILES))
def test_a_file_has_the_form_of_its_schema(name: str, form_of: Callable[..., tuple[int, str]]) -> None:
    code, words = form_of(FILES[name], ROOT / name)
    assert code == 0, words


def test_the_workflows_give_nothing_away(linter: Callable[[str], str], said: Callable[..., tuple[int, str]]) -> None:
    """By zizmor: no action that others can change, no token that outlives its step, no cache in what is published."""
    words = ("--offline", "--no-progress", "--color=never", "--config", ROOT / ".github" / "zizmor.yml")
    code, told = said(linter("zizmor"), *words, ROOT / ".github")
    assert code == 0, told


def test_every_python_that_is_promised_is_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    promised = [c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)]
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    assert workflow["jobs"]["check"]["strategy"]["matrix"]["python"] == promised
    (installed,) = [
        step["with"] for step in workflow["jobs"]["packages"]["steps"] if "setup-python" in step.get("uses", "")
    ]
    assert sorted(installed["python-version"].split()) == promised, "the wheel is tried with each of them"


def test_every_make_target_that_files_and_pages_name_exists() -> None:
    there = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / ".github/workflows").iterdir()]
    named = {
        (path.name, word)
        for path in pages
        if path.name != "CHANGELOG.md"
        for words in re.findall(r'(?:`|run: |^ {4,}|PATH" )make ([a-z][a-z -]*)', path.read_text(), re.MULTILINE)
        for word in words.split()[:2]
        if word in there or words.split()[0] == word
    }
    assert {(page, word) for page, word in named if word not in there} == set()


def test_every_issue_form_asks_for_something() -> None:
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text())
        if path.stem == "config":
            continue
        assert {"name", "description", "body"} <= set(form), path
        ids = [part["id"] for part in form["body"]]
        assert len(ids) == len(set(ids)), path
        assert any(part.get("validations", {}).get("required") for part in form["body"]), path
