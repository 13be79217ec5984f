"""What a vehicle is, by its emitter category (streams/messages.py): aircraft until it says otherwise.

The order is that of config/detectors/kinds.py, whose words people write.
"""

from __future__ import annotations

from watchkeeper.config.detectors.kinds import WHATS
from watchkeeper.streams.kernels import njit

AIRCRAFT, ROTORCRAFT, GLIDER, BALLOON, DRONE, SHIP = range(len(WHATS))
KINDS = len(WHATS)


@njit(cache=True, inline="always")
def kind_of(category: float) -> int:
    """The kind of an emitter category; NaN, and what has no kind of its own, is an aircraft."""
    if category == 7.0:
        return ROTORCRAFT
    if category in (9.0, 12.0):
        return GLIDER
    if category in (10.0, 11.0):
        return BALLOON
    if category == 14.0:
        return DRONE
    return SHIP if category == 40.0 else AIRCRAFT
