"""Finds paths in pages and docstrings that name no file of the repository. Used by rooms.py.

A word counts as a path if it ends like one of our files and begins with a folder of ours (`detectors/base.py`); in a
docstring a bare module (`base.py`) does too. In a Markdown page so does the target of a relative link. A path is looked
for from the root and from the folders around the file that names it. The changelog is left out: it tells of files that
are gone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

# Not after or before what makes a word a pattern or a longer path.
PATH = re.compile(
    r"(?<![\w./~<>*{$-])[\w.-]+(?:/[\w.-]+)*\.(?:css|html|js|json|md|png|py|svg|toml|yaml|yml)(?![\w/*<{-])"
)
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)")
SKIPPED = {"build", "data", "dist", "node_modules", "results"}
CHANGELOG = "CHANGELOG.md"
# What a class or a function may be in.
_BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)


def missing_paths(root: Path, code: Iterable[Path]) -> Iterator[str]:
    """One line for each path without a file: of every page, and of the docstrings below the folders in `code`."""
    tops = {path.name for path in root.iterdir() if path.is_dir() and path.name not in SKIPPED}
    for page in _pages(root):
        text = page.read_text()
        named = {word for word in PATH.findall(text) if word.partition("/")[0] in tops and "/" in word}
        links = {word for word in LINK.findall(text) if not (page.parent / word).exists()}
        yield from _missing(root, page, named, links)
    found = sorted(path for folder in code for path in folder.rglob("*.py"))
    modules = [path for path in found if not _skipped(path.relative_to(root))]
    names = {path.name for path in modules}

    def gone(path: Path, texts: Iterable[str]) -> list[str]:
        named = {word for text in texts for word in PATH.findall(text)}
        alone = {word for word in named if "/" not in word and word.endswith(".py") and word not in names}
        return list(_missing(root, path, {word for word in named if word.partition("/")[0] in tops}, alone))

    for path in modules:
        text = path.read_text()
        # few files name anything that is not there, and only those have to be parsed
        if gone(path, [text]):
            yield from gone(path, _docstrings(text))


def _missing(root: Path, where: Path, named: set[str], gone: set[str]) -> Iterator[str]:
    around = [folder for folder in where.parents if folder.is_relative_to(root)]
    # a folder in capitals is a place holder: evaluation/NAME/command.py
    real = {word for word in named if not any(part.isupper() for part in word.split("/")[:-1])}
    gone = gone | {word for word in real if not any((folder / word).exists() for folder in around)}
    for word in sorted(gone):
        yield f"{where.relative_to(root)}: path: there is no {word}; name the file where it is now"


def _pages(root: Path) -> list[Path]:
    pages = [path for path in root.rglob("*.md") if path.name != CHANGELOG]
    return sorted(path for path in pages if not _skipped(path.relative_to(root)))


def _skipped(path: Path) -> bool:
    return any(part in SKIPPED or part.startswith(".") for part in path.parts)


def _docstrings(text: str) -> Iterator[str]:
    rest: list[ast.AST] = [ast.parse(text)]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
        # no expression has a docstring, and most nodes are expressions
        rest += [child for child in ast.iter_child_nodes(node) if isinstance(child, _BLOCKS)]
