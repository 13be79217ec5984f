"""Which multiple of a period a time is at: ticks, steps and bins that are counted from time 0.

Times are floats, in s since 1970 or since a start. A time that was computed as a multiple of a period divides to a
whole number only up to rounding, and that grows with the time: a fixed allowance that is plenty near time 0 is less
than the last bit of a Unix time, and a relative one of 1e-9 is 1.7 s there. So the allowance here is a few last bits of
the quotient. Used by whatever does something every so many seconds of event time; compiled, because every tick asks
several times.
"""

from __future__ import annotations

import math

from watchkeeper.streams.kernels import njit

# Rounding of a time that went through a few operations, as a share of the quotient: some eight of its last bits,
ROUNDING = 8.0 * 2.0**-52
# and near time 0, where differences of times have lost bits, in periods.
NEAR_ZERO = 1e-9


@njit(cache=True)
def periods_over(t: float, period_s: float) -> int:
    """How many periods have ended by t; at a multiple, up to rounding, that multiple.

    >>> periods_over(0.7, 0.1), periods_over(1_700_000_000.3, 0.1), periods_over(19.9, 10.0)
    (7, 17000000003, 1)
    """
    quotient = t / period_s
    near = round(quotient)
    return int(near if is_near(quotient, near) else math.floor(quotient))


@njit(cache=True)
def periods_until(t: float, period_s: float) -> int:
    """Which multiple of a period is the first at or after t, up to rounding.

    >>> periods_until(1.1, 0.1), periods_until(20.1, 10.0)
    (11, 3)
    """
    quotient = t / period_s
    near = round(quotient)
    return int(near if is_near(quotient, near) else math.ceil(quotient))


@njit(cache=True)
def is_near(quotient: float, whole: float) -> bool:
    """Whether a quotient is a whole number up to rounding."""
    return abs(quotient - whole) <= max(ROUNDING * abs(quotient), NEAR_ZERO)


@njit(cache=True)
def reaches(t: float, tick_s: float, period_s: float) -> bool:
    """Whether the tick that ends at t is the first to reach a multiple of a period.

    >>> [t for t in (9.0, 10.0, 11.0, 20.0) if reaches(t, 1.0, 10.0)]
    [10.0, 20.0]
    """
    return periods_over(t, period_s) > periods_over(t - tick_s, period_s)
