"""What `kinematics` remembers of each aircraft and finds in each report, and the constants of its model.

Positions are Earth-centred on a sphere, in metres; times are event time in seconds. NaN means unknown.
"""

from __future__ import annotations

import math
from typing import NamedTuple

# Bits of a finding: which cause (detector.CAUSES, in this order).
JUMP, CLIMB, SPEED, DUPLICATE, TOO_FAST, OPERATOR = 1, 2, 4, 8, 16, 32
POSITION = JUMP | SPEED | DUPLICATE

# Displacement is compared with reported speed over at least this long, so that position noise does not matter,
# and at most that long, because an aircraft may turn in between.
BASE_MIN_S, BASE_MAX_S = 5.0, 30.0
# The balance of displacement and speed fades with this time constant (feeds that resample stamp a position up to 10 s
# late), and means nothing before so many comparisons.
SPEED_S, SPEED_MIN = 30.0, 3
# Speed and track of an aircraft in the air change within this time, if only by a knot; unchanged, they are held values.
HELD_S = 60.0
# After a longer silence the track starts again: nothing can be said about what happened in between.
BREAK_S = 120.0
# Altitude steps are 25 or 100 ft and barometric noise some tens: less than this is no spike, however fast.
ALT_NOISE_M = 150.0
# Returns to the old track that are remembered, those after which a jump away is another vehicle's, and those after
# which a return is: real feeds have single spikes and, rarely, two.
FLIPS_MAX, FLIPS_AWAY, FLIPS_BACK = 10, 2, 3


class Limits(NamedTuple):
    """The configuration as the kernel takes it; see config/detectors/kinematics.py for reasons."""

    jump_ms: float
    climb_ms: float
    error_ms: float
    noise_m: float


class ByKind(NamedTuple):
    """The limits of aircraft and of slower kinds, and how far away an operator is believed."""

    aircraft: Limits
    drone: Limits
    glider: Limits
    ship: Limits
    operator_m: float


class Track:
    """One aircraft (detectors/kernels/records.py)."""

    kind: int = 0
    """What it said that it is (detectors/kernels/kinds.py)."""
    heard_t: float = math.nan
    """When it was last heard at all."""
    # the last trusted position, and the highest reported speed since then
    t: float = math.nan
    x_m: float = math.nan
    y_m: float = math.nan
    z_m: float = math.nan
    fastest_ms: float = math.nan
    # where it last jumped to, and how many positions in a row agree about that place
    new_t: float = math.nan
    new_x_m: float = math.nan
    new_y_m: float = math.nan
    new_z_m: float = math.nan
    agree: int = 0
    flips: int = 0
    """How often it came back from a jump."""
    # displacement against reported speed: where the present comparison began
    base_t: float = math.nan
    base_x_m: float = math.nan
    base_y_m: float = math.nan
    base_z_m: float = math.nan
    base_ms: float = math.nan
    excess_m: float = math.nan
    """Metres flown beyond what the speed says (short of it: negative), over `span_s`; both fade."""
    span_s: float = math.nan
    error_ms: float = math.nan
    """The error in speed that follows."""
    compared: int = 0
    # the last trusted altitude, another one that was seen, and how many reports in a row agree about that
    alt_t: float = math.nan
    alt_m: float = math.nan
    new_alt_m: float = math.nan
    alt_agree: int = 0
    # values as they were last sent, and when position and velocity last changed
    seen_lat: float = math.nan
    seen_lon: float = math.nan
    seen_t: float = math.nan
    seen_alt_m: float = math.nan
    seen_gs_kt: float = math.nan
    seen_trk_deg: float = math.nan
    seen_velocity_t: float = math.nan


class Finding:
    """What one report says."""

    score: float = 0.0
    epoch: float
    bits: int = 0
    speed_ms: float = math.nan
    """Speed, climb and error in speed that it implies."""
    climb_ms: float = math.nan
    error_ms: float = math.nan
    operator_m: float = math.nan


class Fix(NamedTuple):
    """A new position, and the speed that is reported with it (NaN: none that can be compared)."""

    t: float
    x_m: float
    y_m: float
    z_m: float
    speed_ms: float
