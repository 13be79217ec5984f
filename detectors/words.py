"""Numbers, names and times as a sentence for a person has them. Used by the declarations and by sentence.py.

Times are event time in seconds: UTC, marked with a Z, where they are Unix times; seconds of the recording where they
start near 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache

# Where a sentence has it, the time is put there: "since 17:27:29Z" of an active alarm, "at 17:28:01Z", its worst
# moment, of one that is over. A sentence without it has the time at its end.
WHEN = "{when}"
# Event times below this are seconds of a simulation or a recording, not dates (it is September 2001).
UNIX_FROM_S = 1e9
MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0
# From so many seconds on a span is said in minutes, and from so many in hours.
IN_MINUTES_S, IN_HOURS_S = 2.0 * MINUTE_S, 2.0 * HOUR_S


def known(value: float | None, digits: int = 0, unit: str = "") -> str:
    """A number in a sentence, `unknown` when it is not known.

    >>> known(12.345, 1, "NM"), known(None, 0, "s"), known(3000.2, 0, "ft")
    ('12.3 NM', 'unknown', '3,000 ft')
    """
    return "unknown" if value is None else f"{value:,.{digits}f} {unit}".rstrip()


def size(value: float, unit: str) -> str:
    """A positive number with as many digits as its size is worth.

    >>> size(0.83, "m/s"), size(9.96, "m"), size(32.4, "m"), size(4321.0, "kt")
    ('0.8 m/s', '10 m', '32 m', '4,321 kt')
    """
    return f"{value:,.1f} {unit}" if abs(value) < 9.95 else f"{value:,.0f} {unit}"


def counted(n: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "alarm"), counted(3, "alarm")
    ('1 alarm', '3 alarms')
    """
    return f"{n:,} {thing}{'s' * (n != 1)}"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> listed(["gps"]), listed(["gps", "imu"]), listed(["a", "b", "c"])
    ('gps', 'gps and imu', 'a, b and c')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def clock(t: float, day_of: float | None = None) -> str:
    """An event time: of day, with the date when it is another day than `day_of`; or seconds of a recording.

    >>> clock(1_700_000_000.25), clock(1_700_000_000.25, 1_700_100_000.0), clock(12.44)
    ('22:13:20Z', '2023-11-14 22:13:20Z', 't=12.4 s')
    """
    if not UNIX_FROM_S <= t < 1e11:
        return f"t={t:,.1f} s"
    return _of_day(t, day_of is None or t // DAY_S == day_of // DAY_S)


# An alarm says its onset and its worst moment again with every update.
@lru_cache(maxsize=4096)
def _of_day(t: float, same_day: bool) -> str:
    return datetime.fromtimestamp(t, UTC).strftime("%H:%M:%SZ" if same_day else "%Y-%m-%d %H:%M:%SZ")


def span(seconds: float) -> str:
    """A length of time.

    >>> span(0.42), span(71.4), span(150.0), span(9000.0)
    ('0.4 s', '71 s', '2.5 min', '2.5 h')
    """
    if seconds < IN_MINUTES_S:
        return size(seconds, "s")
    if seconds < IN_HOURS_S:
        return size(seconds / MINUTE_S, "min")
    return size(seconds / HOUR_S, "h") if seconds < 2.0 * DAY_S else size(seconds / DAY_S, "days")


def position(lat: float | None, lon: float | None) -> str:
    """A place on the globe.

    >>> position(47.118, 8.5512), position(-33.9, -70.8), position(None, 8.0)
    ('47.12° N 8.55° E', '33.90° S 70.80° W', 'an unknown place')
    """
    if lat is None or lon is None:
        return "an unknown place"
    return f"{abs(lat):.2f}° {'S' if lat < 0.0 else 'N'} {abs(lon):.2f}° {'W' if lon < 0.0 else 'E'}"
