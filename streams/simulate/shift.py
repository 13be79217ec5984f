"""One aircraft of a scenario begins otherwise: faster, elsewhere, on another heading, or bound for another waypoint.

A shift is applied after everything has been drawn from the seed, so two simulations with the same seed differ by the
shift and by what follows from it, and in nothing else. `controlled` takes one (controlled.py applies it).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple


class ShiftKind(NamedTuple):
    """What a size means, and how large it may be in either direction."""

    unit: str
    most: float
    text: str


# Beyond these an aircraft is no longer one of the scenario: it would stand still, turn back, or be in another country.
SHIFT_KINDS = {
    "speed": ShiftKind("kt", 200.0, "faster"),
    "heading": ShiftKind("deg", 180.0, "to the right"),
    "position_lat": ShiftKind("deg", 1.0, "to the north"),
    "position_lon": ShiftKind("deg", 1.0, "to the east"),
    "waypoint_lat": ShiftKind("deg", 1.0, "of its waypoint to the north"),
    "waypoint_lon": ShiftKind("deg", 1.0, "of its waypoint to the east"),
}


@dataclass(frozen=True, slots=True)
class Shift:
    """Which aircraft, what of it, and by how much in the unit of its kind."""

    aircraft: str
    kind: str
    size: float

    def check(self, aircraft: Collection[str]) -> None:
        """Raises ValueError, naming what is allowed."""
        if self.aircraft not in aircraft:
            raise ValueError(f"shift: no aircraft {self.aircraft!r}; there are: {', '.join(aircraft)}")
        if self.kind not in SHIFT_KINDS:
            raise ValueError(f"shift: unknown kind {self.kind!r}; there are: {', '.join(SHIFT_KINDS)}")
        unit, most, _ = SHIFT_KINDS[self.kind]
        if not abs(self.size) <= most:
            raise ValueError(f"shift: {self.kind} is {self.size:g}, expected {-most:g} to {most:g} {unit}")
