"""The site of several versions: `make site-version` in a clone, twice, then the result in a browser (`make site`)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.docs.served import serve

from where import copy_checkout

pytestmark = pytest.mark.long
WHO = {f"GIT_{role}_{part}": "writer@example.org" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a web server would have after the releases 0.1.0 and 0.2.0 of which only the second has a changed page."""
    mike = shutil.which("mike", path=str(Path(sys.executable).parent)) or shutil.which("mike")
    if mike is None:
        pytest.skip("mike is not installed: pip install -e '.[dev]'")
    clone, out = copy_checkout(tmp_path_factory.mktemp("clone")), tmp_path_factory.mktemp("published")
    env = {**os.environ, **WHO, "PATH": f"{Path(mike).parent}{os.pathsep}{os.environ['PATH']}"}

    def do(*words: str) -> str:
        done = subprocess.run(words, cwd=clone, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    do("git", "init", "--quiet")
    do("git", "commit", "--quiet", "--allow-empty", "--message", "A release")
    commands = [
        line.replace("$(BIN)/mike", mike).replace("$(MINOR)", "{version}").replace("$(ARGS)", "").strip()
        for line in (clone / "Makefile").read_text().splitlines()
        if "$(BIN)/mike" in line
    ]
    assert len(commands) == 2
    for version in ("0.1", "0.2"):
        if version == "0.2":
            page = clone / "docs" / "quickstart.md"
            page.write_text(page.read_text().replace("# Quick start\n", "# Quicker start\n", 1))
        for command in commands:
            do(*command.format(version=version).split())
    archive = out / "site.tar"
    do("git", "archive", "--output", str(archive), "gh-pages")
    shutil.unpack_archive(archive, out, filter="tar")
    return out


def test_a_reader_chooses_a_version_and_is_told_of_an_old_one(published: Path, browser: Any) -> None:
    with serve(published) as address, browser.new_page(viewport={"width": 1280, "height": 900}) as page:
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("request", lambda r: said.append(r.url) if not r.url.startswith((address, "data:")) else None)
        page.goto(f"{address}/")
        page.wait_for_url(f"{address}/latest/")
        page.goto(f"{address}/0.1/quickstart.html")
        page.wait_for_selector(".md-version__list", state="attached")
        assert page.inner_text("h1").startswith("Quick start")
        assert page.is_visible("text=This page is about an older version")
        assert page.eval_on_selector_all(".md-version__link", "e => e.map((x) => x.textContent.trim())") == [
            "0.2",
            "0.1",
        ]
        page.hover(".md-version", force=True)
        page.click(".md-version__link >> text=0.2")
        page.wait_for_url(f"{address}/0.2/")
        page.goto(f"{address}/0.2/quickstart.html")
        page.wait_for_selector(".md-version__list", state="attached")
        assert page.inner_text("h1").startswith("Quicker start")
        assert not page.is_visible("text=This page is about an older version")
        assert said == []


def test_links_to_files_lead_to_the_release(published: Path) -> None:
    text = (published / "0.1" / "deploy.html").read_text()
    assert "/blob/v" in text
    assert "/blob/main/" not in text
