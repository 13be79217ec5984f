"""Sample times as other formats write them: seconds in float64 to nanoseconds, or to dates with microseconds.

A float64 of today's Unix time has steps of 0.24 microseconds: nanoseconds tell all of them apart, and read back as
`ns / 1e9` they give the same float64 from the year 1970's fifth second on. Times of a simulation below that have finer
steps; files that must have every bit carry `t` as a number as well.
"""

from __future__ import annotations

import numpy as np

from watchkeeper.streams.batch import F8, I8, Bool, Columns
from watchkeeper.streams.messages import T_MAX, T_MIN

SECOND_NS = 1_000_000_000


def datable(cols: Columns) -> Bool:
    """The samples whose time is one: nothing else can be written as a date."""
    there: Bool = (cols.t >= T_MIN) & (cols.t <= T_MAX)
    return there


def nanoseconds(t: F8) -> I8:
    """The nearest whole nanosecond since 1970."""
    return _units(t, SECOND_NS)


def dates(t: F8) -> list[str]:
    """The nearest microsecond as ISO 8601 in UTC.

    >>> dates(np.array([0.0, 1700000000.123456]))
    ['1970-01-01T00:00:00.000000Z', '2023-11-14T22:13:20.123456Z']
    """
    micros = _units(t, 1_000_000).astype("datetime64[us]")
    return [f"{date}Z" for date in np.datetime_as_string(micros, unit="us").tolist()]


def _units(t: F8, per_second: int) -> I8:
    # the fraction is split off first: a product of the whole would lose its last digits
    whole = np.floor(t)
    return whole.astype(np.int64) * per_second + np.rint((t - whole) * per_second).astype(np.int64)
