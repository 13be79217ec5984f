"""Code leakage: Python sources, file by file, for what the protocol forbids. The door of this folder; nothing is run.

Values are followed through assignments, loops, helper functions and methods of a file (follow.py), judged where they
are used (judge.py), and columns are looked up by name (columns.py). What cannot be followed is listed as such, with
file and line: a sink whose input comes from elsewhere, code that is made at run time, a notebook.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from watchkeeper.evaluation.leakage.code.columns import Finding, column_leaks
from watchkeeper.evaluation.leakage.code.follow import follow
from watchkeeper.evaluation.leakage.code.judge import NOT_FOLLOWED
from watchkeeper.streams.logs.base import LogError


@dataclass(frozen=True, slots=True)
class Leak:
    """One line that breaks a rule, or that could not be followed."""

    path: Path
    line: int
    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.what}"


@dataclass(frozen=True, slots=True)
class CodeCheck:
    """What breaks a rule, and what could not be followed."""

    leaks: list[Leak]
    not_followed: list[Leak]


def check_code(paths: Iterable[Path], profile: str = "strict") -> CodeCheck:
    """All Python files, and those of folders. Raises LogError for a file that is no Python."""
    given = list(paths)
    files = sorted(file for path in given for file in ([path] if path.is_file() else path.rglob("*.py")))
    found = [leak for file in files for leak in _file(file, profile)]
    books = sorted(book for path in given if path.is_dir() for book in path.rglob("*.ipynb"))
    found += [Leak(book, 1, NOT_FOLLOWED, "a notebook is not read: save it as a script") for book in books]
    return CodeCheck(
        [leak for leak in found if leak.rule != NOT_FOLLOWED], [leak for leak in found if leak.rule == NOT_FOLLOWED]
    )


def code_leaks(paths: Iterable[Path], profile: str = "strict") -> list[Leak]:
    """What breaks a rule."""
    return check_code(paths, profile).leaks


def _file(path: Path, profile: str) -> list[Leak]:
    if path.suffix == ".ipynb":
        return [Leak(path, 1, NOT_FOLLOWED, "a notebook is not read: save it as a script")]
    try:
        found = _findings(path.read_bytes(), str(path), profile, "detectors" in path.parts)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise LogError(path, f"not Python: {error}") from error
    seen: dict[tuple[int, str], Leak] = {}
    for line, rule, what in found:
        seen.setdefault((line, rule), Leak(path, line, rule, what))
    # a line that is known to leak need not be followed
    told = {line for line, rule in seen if rule != NOT_FOLLOWED}
    return [seen[key] for key in sorted(seen) if key[1] != NOT_FOLLOWED or key[0] not in told]


# Every evaluation of a process asks about all of our own code, which takes seconds and has seldom changed since.
@lru_cache(maxsize=2048)
def _findings(source: bytes, name: str, profile: str, every_lookup: bool) -> tuple[Finding, ...]:
    tree = ast.parse(source, name)
    return (*follow(tree), *column_leaks(tree, profile, every_lookup=every_lookup))
