"""Numbers and times of a report for people."""

from __future__ import annotations

from datetime import UTC, datetime

from watchkeeper.daemon.outputs.terminal import UNIX_FROM_S


def lasted(seconds: float) -> str:
    """A length of time as somebody would say it.

    >>> lasted(6.34), lasted(59.8), lasted(668.0), lasted(86_000.0)
    ('6.3 s', '1 min', '11 min 8 s', '23 h 53 min')
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def day(t: float) -> str:
    """The day of a Unix time; empty for seconds of a simulation.

    >>> day(1_700_000_000.0), day(12.0)
    ('2023-11-14', '')
    """
    return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d") if t >= UNIX_FROM_S else ""


def alarm_count(n: int, tone: str) -> str:
    """How many alarms a log had; none means nothing where nothing was judged.

    >>> alarm_count(1_200, "warning"), alarm_count(0, "clean"), alarm_count(0, "unjudged")
    ('1,200', '0', 'not judged')
    """
    return "not judged" if tone == "unjudged" and not n else f"{n:,}"


def count(n: int, noun: str, plural: str = "") -> str:
    """How many of something.

    >>> count(1, "alarm"), count(2_400, "alarm"), count(0, "aircraft", "aircraft")
    ('1 alarm', '2,400 alarms', '0 aircraft')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def exact(value: float) -> str:
    """A number with the digits that the alarm file has, without zeros at the end.

    >>> exact(7.4), exact(0.0), exact(12.3456), exact(-3.0), exact(1.5e9)
    ('7.4', '0', '12.3456', '-3', '1500000000')
    """
    text = f"{value:.4f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def brief(value: float) -> str:
    """A number with the digits that a person needs.

    >>> brief(165.1994), brief(1850.4), brief(0.00378), brief(2.0), brief(0.0)
    ('165', '1,850', '0.00378', '2', '0')
    """
    if abs(value) >= 1000.0:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def size(n: int) -> str:
    """Bytes.

    >>> size(999), size(1_050_220), size(2_400)
    ('999 bytes', '1.1 MB', '2.4 kB')
    """
    if n < 1000:
        return f"{n} bytes"
    return f"{n / 1e3:.1f} kB" if n < 1e6 else f"{n / 1e6:.1f} MB"
