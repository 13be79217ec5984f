"""One mutant to try."""

from __future__ import annotations

from dataclasses import dataclass

from tools.mutants.mutate import Mutant


@dataclass(frozen=True)
class Task:
    """One mutant of a module, and the room whose tests should notice."""

    room: str
    module: str
    mutant: Mutant
