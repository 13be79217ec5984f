"""Bytes from outside are decoded in one place: the check finds each way around it, and the tree has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.foreign import direct_calls, violations

from where import ROOT


def test_the_tree_decodes_foreign_bytes_in_one_place() -> None:
    assert violations(ROOT) == []


@pytest.mark.parametrize(
    "text",
    [
        "import msgspec\nmsgspec.json.decode(b'1')",
        "import msgspec as m\nread = m.msgpack.Decoder(int).decode",
        "from msgspec import json\njson.decode(b'1')",
        "from msgspec.json import decode\ndecode(b'1')",
        "import json\njson.loads('1')",
        "import gzip\ngzip.decompress(b'')",
        "from gzip import GzipFile as G\nG('x')",
        "import pickle\npickle.loads(b'')",
    ],
)
def test_each_way_around_it_is_found(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.py"
    path.write_text(text)
    assert [line for line, _ in direct_calls(path)] == [2]
