"""What tests see of a journal's file: its events without the numbers and checksums of the lines."""

from __future__ import annotations

import re
from pathlib import Path

_SEAL = re.compile(rb',"seq":\d+(,"prev":\d+)?,"crc":"[0-9a-f]{8}"\}$')


def journal_lines(path: Path) -> list[bytes]:
    """The events of journal.jsonl, each in the bytes that are published."""
    return [_SEAL.sub(b"}", line) for line in path.read_bytes().splitlines()]
