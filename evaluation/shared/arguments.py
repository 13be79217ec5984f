"""Arguments that several evaluations have: what a word must look like, and what must be installed for it."""

from __future__ import annotations

import argparse
import importlib.util
import math
from collections.abc import Callable
from pathlib import Path

PLOT_ENDINGS = (".png", ".svg", ".pdf")
STDOUT = Path("-")


def missing_extra(option: str, module: str, extra: str) -> str | None:
    """What to say when an optional module is not installed; None when it is. Asked before the work, not after it."""
    if importlib.util.find_spec(module) is not None:
        return None
    return f'{option} needs {module}: pip install "watchkeeper[{extra}]"'


def plot_file(word: str) -> Path:
    """Type of an argument that names a picture."""
    return named_file(word, PLOT_ENDINGS)


def html_file(word: str) -> Path:
    """Type of an argument that names a report."""
    return named_file(word, (".html", ".htm"))


def number(unit: str, lo: float, hi: float = math.inf, *, open_at_lo: bool = False) -> Callable[[str], float]:
    """Type of an argument that is a finite number within lo … hi, or above lo with `open_at_lo`."""

    def parse(word: str) -> float:
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not (lo < value if open_at_lo else lo <= value) or not value <= hi or value == math.inf:
            least = f"more than {lo:g}" if open_at_lo else f"{lo:g} or more"
            most = "" if hi == math.inf else f", {hi:g} at most"
            raise argparse.ArgumentTypeError(f"{word!r}: expected {unit}, {least}{most}")
        return value

    return parse


def whole(lo: int, hi: int | None = None) -> Callable[[str], int]:
    """Type of an argument that is a whole number from lo, to hi if that is given."""

    def parse(word: str) -> int:
        if not word.isdecimal() or not lo <= int(word) <= (int(word) if hi is None else hi):
            most = "" if hi is None else f" to {hi}"
            raise argparse.ArgumentTypeError(f"{word!r}: expected a whole number from {lo}{most}")
        return int(word)

    return parse


def named_file(word: str, endings: tuple[str, ...]) -> Path:
    """A file whose name has one of these endings."""
    if not word.lower().endswith(endings):
        raise argparse.ArgumentTypeError(f"{word!r}: expected a name that ends in {', '.join(endings)}")
    return Path(word)
