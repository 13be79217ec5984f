"""What an evaluation leaves behind, under the paths that the protocol's document gives: splits, attacks and figures.

    DIR/configs/splits.json     which flights set thresholds and which were judged; `--splits` reads it
    DIR/attacks/catalog.json    every attack with its parameters, duration and seed; `--catalog` reads it
    DIR/results/metrics.json    all figures

Called by command.py. The same evaluation writes the same bytes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.evaluation.protocol.study import Result

SPLITS, CATALOG, METRICS = Path("configs/splits.json"), Path("attacks/catalog.json"), Path("results/metrics.json")


def write_all(result: Result, folder: Path) -> list[Path]:
    """Write the three files; their paths."""
    content = {SPLITS: result.settings["splits"], CATALOG: result.settings["catalog"], METRICS: result}
    return [write(what, folder / path) for path, what in content.items()]


def write(content: Any, path: Path) -> Path:
    """One of them, under any path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")
    return path
