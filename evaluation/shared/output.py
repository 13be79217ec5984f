"""Where results of evaluations go: JSON to a file, or to standard output where the name is -."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Indented JSON; NaN is null."""
    text = msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"
    if str(path) == "-":
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
    else:
        path.write_bytes(text)
