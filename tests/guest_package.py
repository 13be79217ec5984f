"""A package with components for us, as pip would install it: a module and the entry points that name its objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from watchkeeper.config.adapters import source_types
from watchkeeper.config.installed import installed
from watchkeeper.streams.adapters import catalog

_CACHES = (installed, source_types, catalog.discover, catalog.formats)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, package: str, code: str, group: str, **points: str) -> None:
    """Put a package on the path of this test: `code` is its module, `points` name objects in it by entry point."""
    module = package.replace("-", "_")
    (folder / f"{module}.py").write_text(code)
    meta = folder / f"{module}-1.0.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"[{group}]", *(f"{name} = {module}:{attribute}" for name, attribute in points.items())]
    (meta / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(folder)
    look_again()


def look_again() -> None:
    """Forget which packages were there: after one came or went."""
    for known in _CACHES:
        known.cache_clear()
