"""docs/glossary.md is what the declarations say, and explains the words that alarms use."""

from __future__ import annotations

from watchkeeper.detectors.catalog import kinds
from watchkeeper.detectors.declaration import ENDINGS
from watchkeeper.detectors.glossary import glossary_markdown

from where import DOCS

PAGE = DOCS / "glossary.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == glossary_markdown(), "run `make docs`"


def test_every_kind_cause_and_end_is_on_it() -> None:
    text = PAGE.read_text()
    for kind in kinds().values():
        assert f"| `{kind.name}` |" in text
        assert all(f"| `{kind.name}: {cause}` |" in text for cause in kind.causes)
    assert all(f"| `{word}` |" in text for word in ENDINGS)
