"""Which multiple of a period a time is at: ticks, steps and bins that are counted from time 0.

Times are floats, in s since 1970 or since a start. A time that was computed as a multiple of a period divides to a
whole number only up to rounding, and that grows with the time: a fixed allowance that is plenty near time 0 is less
than the last bit of a Unix time, and a relative one of 1e-9 is 1.7 s there. So the allowance here is a few last bits of
the quotient. Used by whatever does something every so many seconds of event time.
"""

from __future__ import annotations

import math

# Rounding of a time that went through a few operations, in last bits of the quotient,
LAST_BITS = 8.0
# and near time 0, where differences of times have lost bits, in periods.
NEAR_ZERO = 1e-9


def periods_over(t: float, period_s: float) -> int:
    """How many periods have ended by t; at a multiple, up to rounding, that multiple.

    >>> periods_over(0.7, 0.1), periods_over(1_700_000_000.3, 0.1), periods_over(19.9, 10.0)
    (7, 17000000003, 1)
    """
    near = _multiple(t, period_s)
    return math.floor(t / period_s) if near is None else near


def periods_until(t: float, period_s: float) -> int:
    """Which multiple of a period is the first at or after t, up to rounding.

    >>> periods_until(1.1, 0.1), periods_until(20.1, 10.0)
    (11, 3)
    """
    near = _multiple(t, period_s)
    return math.ceil(t / period_s) if near is None else near


def _multiple(t: float, period_s: float) -> int | None:
    quotient = t / period_s
    near = round(quotient)
    return near if abs(quotient - near) <= max(LAST_BITS * math.ulp(quotient), NEAR_ZERO) else None
