"""docs/README.md leads to every page."""

from __future__ import annotations

import re

from where import DOCS, ROOT

INDEX = DOCS / "README.md"


def test_every_page_is_linked_from_the_index() -> None:
    links = re.findall(r"\]\(([^)#\s]+\.md)", INDEX.read_text())
    linked = {(DOCS / link).resolve() for link in links}
    pages = {path.resolve() for path in DOCS.rglob("*.md")} - {INDEX.resolve()}
    assert sorted(str(page.relative_to(DOCS)) for page in pages - linked) == []


def test_the_readme_is_short_and_every_path_in_it_exists() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 100
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert [link for link in links if not (ROOT / link.partition("#")[0]).exists()] == []
