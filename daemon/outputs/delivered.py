"""The alarms that a receiver knows as active, kept on disk so that a crash does not leave it behind.

    <name>.told   one line per change, "+id" after a raised or updated event, "-id" after a cleared one

A line is appended once the receiver has confirmed; the file is written again at the start and when it has grown. It is
not synced: a power cut costs a repetition, which receivers must bear anyway.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

# Lines beyond those that still matter before the file is written again.
SPARE_LINES = 20_000


class Delivered:
    """A set of alarm ids; in memory only when `path` is None."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lines = 0
        self.ids: set[str] = set()
        if path is not None:
            with contextlib.suppress(FileNotFoundError):
                for line in path.read_text(encoding="ascii", errors="replace").split():
                    self._apply(line[0] == "+", line[1:])
            self._rewrite()

    def __contains__(self, alarm_id: object) -> bool:
        return alarm_id in self.ids

    def note(self, alarm_id: str, *, active: bool) -> None:
        """The receiver now knows this alarm as active, or as over."""
        if (alarm_id in self.ids) == active:
            return
        self._apply(active, alarm_id)
        if self._path is None:
            return
        self._lines += 1
        if self._lines > len(self.ids) + SPARE_LINES:
            self._rewrite()
        else:
            with contextlib.suppress(OSError), self._path.open("a", encoding="ascii") as file:
                file.write(f"{'+' if active else '-'}{alarm_id}\n")

    def _apply(self, active: bool, alarm_id: str) -> None:
        if active:
            self.ids.add(alarm_id)
        else:
            self.ids.discard(alarm_id)

    def _rewrite(self) -> None:
        assert self._path is not None
        fresh = self._path.with_suffix(".new")
        with contextlib.suppress(OSError):
            fresh.write_text("".join(f"+{alarm_id}\n" for alarm_id in sorted(self.ids)), encoding="ascii")
            fresh.replace(self._path)
        self._lines = len(self.ids)
