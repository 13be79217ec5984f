"""What mkdocs does to our pages on the way: links that leave docs/ lead to the repository, where such files are shown.

Cells of a table that hold sentences are marked, so that `docs/site.css` can give them room. Pictures are links to
themselves: a column of text is narrower than a screenshot, and a phone much more so.

Pages are written for a reader of the repository, where `../deploy/compose/bench/README.md` is a file. On the site there
is no such page. mkdocs.yml names this module as a hook.

A site of several versions is made by mike, which sets MIKE_DOCS_VERSION: its pages get the list of versions, and their
links lead to the release's tag. A site by itself has no such list, which a browser would ask for in vain.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CELL = re.compile(r"<td>(.*?)</td>", re.DOTALL)
TAG = re.compile(r"<[^>]*>")
# More characters than this are a sentence, not a name or a number.
SENTENCE = 80
PICTURE = re.compile(r'(?<!">)<img [^>]*src="([^"]+)"[^>]*>')
LINK = re.compile(r"(\]\()((?!\w+:|#)[^)\s]+)(\))")


def repository() -> str:
    """Where the files of these pages are shown: of main, or of the release whose pages these are."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ref = f"v{project['version']}" if versioned() else "main"
    return f"{project['urls']['Repository']}/blob/{ref}"


def versioned() -> bool:
    """Whether mike makes the site, next to other versions."""
    return "MIKE_DOCS_VERSION" in os.environ


def outside(page: str, target: str) -> str:
    """The path in the repository that a link of a page leads to, or nothing if it stays within docs/."""
    path, _, anchor = target.partition("#")
    if not path:
        return ""
    parts: list[str] = []
    for part in (*PurePosixPath("docs", page).parent.parts, *PurePosixPath(path).parts):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    if parts[:1] == ["docs"]:
        return ""
    return "/".join(parts) + (f"#{anchor}" if anchor else "")


def on_config(config: Any, **_: Any) -> Any:
    """Called by mkdocs once, before all pages."""
    if versioned():
        config.extra["version"] = {"provider": "mike", "default": "latest"}
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs for each page."""

    def full(found: re.Match[str]) -> str:
        path = outside(page.file.src_uri, found[2])
        return f"{found[1]}{repository()}/{path}{found[3]}" if path else found[0]

    return LINK.sub(full, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Called by mkdocs for each page, after Markdown has become HTML."""

    def marked(found: re.Match[str]) -> str:
        return f'<td class="sentence">{found[1]}</td>' if len(TAG.sub("", found[1])) > SENTENCE else found[0]

    return PICTURE.sub(r'<a href="\1">\g<0></a>', CELL.sub(marked, html))
