"""The console that commands print tables to: as wide as the terminal, and in a pipe wide enough for whole lines."""

from __future__ import annotations

import sys

from rich.console import Console

# Wide enough for every column on one line when there is no terminal to ask.
PIPE_COLUMNS = 160


def plain_console() -> Console:
    """Standard output, without colours of its own for numbers and words."""
    return Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else PIPE_COLUMNS)
