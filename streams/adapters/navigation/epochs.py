"""What a satellite receiver says in several messages about one moment, put together. Used by nmea.py and ubx.py.

Accuracy, noise and jamming come in messages of their own, before or after the position. A sample takes along the newest
of each, once, if it is at most HOLD_S old.
"""

from __future__ import annotations

from collections.abc import Mapping

HOLD_S = 2.0


class Said:
    """What else the receiver said lately: field to time and value."""

    def __init__(self) -> None:
        self._fields: dict[str, tuple[float, float]] = {}

    def note(self, t: float, values: Mapping[str, float]) -> None:
        """It said this at t."""
        self._fields.update((field, (t, value)) for field, value in values.items())

    def take(self, t: float) -> dict[str, float]:
        """What goes with a sample of t."""
        fields, self._fields = self._fields, {}
        return {field: value for field, (said_t, value) in fields.items() if abs(t - said_t) <= HOLD_S}
