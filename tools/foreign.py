"""Checks that bytes from outside are decoded and unpacked in one place, streams/foreign/. Run by `make check`.

A direct call of msgspec's decoders, msgpack, json, tomllib, gzip, zlib's and zstd's
decompression or pickle is found by its name, imported
in whatever way. Files that read only what the same process wrote, or that guard themselves for a stated reason, are in
ALLOWED. Prints one line per violation and exits with 1 if there is any.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.rooms import ROOT, root_folders

BANNED = {
    **{f"msgspec.{codec}.{name}": "streams/foreign/decode.py" for codec in ("json", "msgpack", "toml", "yaml")
       for name in ("decode", "Decoder")},
    "json.loads": "streams/foreign/decode.py",
    "json.load": "streams/foreign/decode.py",
    "gzip.open": "streams/foreign/files.py",
    "gzip.decompress": "streams/foreign/files.py",
    "gzip.GzipFile": "streams/foreign/files.py",
    "zlib.decompress": "streams/foreign/files.py",
    "zlib.decompressobj": "streams/foreign/files.py",
    "msgpack.Unpacker": "streams/foreign/pieces.py",
    "zstandard.ZstdDecompressor": "streams/foreign/files.py",
    "pickle.load": "nothing: a pickle runs code",
    "pickle.loads": "nothing: a pickle runs code",
}  # fmt: skip
ALLOWED = {
    "streams/foreign/": "it is the place",
    "benchmarks/": "reads the output of the processes that it starts",
    "daemon/state/": "files of our own, each with a checksum",
    "daemon/history/": "a file of our own; blocks are unpacked within BLOCK_MAX, and damage is an error of its own",
}


def direct_calls(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of each use of a banned function in a file."""
    tree = ast.parse(path.read_text())
    full: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            full |= {(alias.asname or alias.name): alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            full |= {(alias.asname or alias.name): f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            name = ast.unparse(node)
            head, dot, rest = name.partition(".")
            if (known := full.get(head, head) + dot + rest) in BANNED and head in full:
                yield node.lineno, known


def violations(root: Path) -> list[str]:
    """All of them, one line each."""
    found = []
    for path in sorted(path for top in root_folders(root) for path in top.rglob("*.py")):
        where = path.relative_to(root).as_posix()
        if not where.startswith(tuple(ALLOWED)):
            found += [f"{where}:{line}: foreign: {name}; use {BANNED[name]}" for line, name in direct_calls(path)]
    return found


def main() -> int:
    """Print what is wrong."""
    found = violations(ROOT)
    for line in found:
        print(line)
    print(f"foreign: {len(found)} violations" if found else "foreign: kept")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
