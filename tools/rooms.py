"""Checks that every file stands where a newcomer looks for it. Run by `make check`: `python -m tools.rooms`.

Rules, as CONTRIBUTING.md has them:
- room: a module that exactly one module imports lives in that module's folder or below it, or in a folder with that
  module's name (daemon/replay/ for daemon/commands/replay.py), unless it is the door of its own room: it imports
  modules of its own folder, or names one of them in a string, as for a process that it starts.
- size: a folder has at most MOST_MODULES modules.
- folder: a folder with modules has an `__init__.py` whose docstring says what belongs there.
- path: see paths.py.

The tree that is checked is the one around this file. Prints one line per violation and exits with 1 if there is any.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp

from tools.paths import missing_paths

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "watchkeeper"
MOST_MODULES = 20


def root_folders(root: Path) -> list[Path]:
    """The folders that are subpackages: src/watchkeeper has a link to each."""
    return sorted(link.resolve() for link in (root / "src" / PACKAGE).iterdir() if link.is_dir() and link.is_symlink())


def crowded_folders(root: Path) -> Iterator[str]:
    """Folders with too many modules; the tests' folders too."""
    for top in (*root_folders(root), root / "tests"):
        for folder in (top, *(path for path in sorted(top.rglob("*")) if path.is_dir())):
            modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
            if len(modules) > MOST_MODULES:
                where = folder.relative_to(root)
                yield f"{where}: size: {len(modules)} modules, at most {MOST_MODULES}; give a part of them a folder"


def unnamed_folders(root: Path) -> Iterator[str]:
    """Folders with modules that no `__init__.py` describes."""
    for top in root_folders(root):
        for folder in sorted({path.parent for path in top.rglob("*.py")}):
            door = folder / "__init__.py"
            if not door.exists() or not ast.get_docstring(ast.parse(door.read_text())):
                yield f"{door.relative_to(root)}: folder: missing, or without a docstring; say what belongs there"


def misplaced_modules(root: Path) -> Iterator[str]:
    """Modules with one importer that live elsewhere and are no doors."""
    # the package of this tree, whatever is installed
    sys.path.insert(0, str(root / "src"))
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    for module in sorted(graph.modules):
        importers = graph.find_modules_that_directly_import(module)
        path = _file(root, module)
        if len(importers) != 1 or path.name == "__init__.py":
            continue
        (importer,) = importers
        user = _file(root, importer)
        home = importer if user.name == "__init__.py" else importer.rpartition(".")[0]
        used = graph.find_modules_directly_imported_by(module) | _named(path, graph.modules)
        is_door = any(other.startswith(module.rpartition(".")[0] + ".") for other in used - {module})
        at_home = module.startswith(f"{home}.") or path.parent.name == user.stem
        if not at_home and not is_door:
            yield (
                f"{path.relative_to(root)}: room: only {user.relative_to(root)} imports it; move it to "
                f"{user.parent.relative_to(root)}/, or let it be the door of its folder"
            )


def _named(path: Path, modules: set[str]) -> set[str]:
    """The modules that a file names in strings."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return modules & {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _file(root: Path, module: str) -> Path:
    """The file of a module, by its place at the root."""
    path = root.joinpath("src", *module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return path.resolve()


def violations(root: Path) -> list[str]:
    """All of them, one line each."""
    return [
        *misplaced_modules(root),
        *crowded_folders(root),
        *unnamed_folders(root),
        *missing_paths(root, [*root_folders(root), root / "tests", root / "tools"]),
    ]


def main() -> int:
    """Print what is wrong."""
    found = violations(ROOT)
    for line in found:
        print(line)
    print(f"rooms: {len(found)} violations" if found else "rooms: kept")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
