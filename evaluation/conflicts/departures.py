"""Where the evaluation does otherwise than the document that defines its metrics: one setting each.

`HallucinationDetector` has a field of each name, `--as-documented` sets them all to the document's way, and
docs/evaluation/conflicts.md has the same rows as a table. Used by detector.py and command.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Departure:
    """A setting with our value and the document's."""

    setting: str
    ours: Any
    documented: Any
    help: str
    """What the document's value does, for the command."""


DEPARTURES = (
    Departure("tangent_plane", "midpoint", "first", "closest approach in the plane at the first aircraft of a pair"),
    Departure("vertical_ft", 1000.0, None, "altitudes do not separate"),
    Departure("step_from_timestamps", True, False, "steps are --action-period-s long, whatever the timestamps say"),
    Departure("time_without_timestamps", "steps", "zero", "an episode without timestamps takes no time"),
    Departure("los_duration", "steps", "span", "a loss of separation lasts from its first step to its last"),
    Departure("extra_path_without_waypoints", "nan", "zero", "the mean extra path of no aircraft is 0"),
    Departure("team_potential", "least", "sum", "the reward's team potential sums everybody's least separation in NM"),
)  # fmt: skip
AS_DOCUMENTED: dict[str, Any] = {row.setting: row.documented for row in DEPARTURES}
# The settings that are a choice between two words.
CHOICES = {
    row.setting: (row.ours, row.documented) for row in DEPARTURES if isinstance(row.ours, str)
}  # fmt: skip
