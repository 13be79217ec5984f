"""docs/README.md leads to every page."""

from __future__ import annotations

import re

from where import DOCS

INDEX = DOCS / "README.md"


def test_every_page_is_linked_from_the_index() -> None:
    links = re.findall(r"\]\(([^)#\s]+\.md)", INDEX.read_text())
    linked = {(DOCS / link).resolve() for link in links}
    pages = {path.resolve() for path in DOCS.rglob("*.md")} - {INDEX.resolve()}
    assert sorted(str(page.relative_to(DOCS)) for page in pages - linked) == []
