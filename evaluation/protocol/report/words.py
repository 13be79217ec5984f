"""How the protocol's figures are written: shares, numbers, intervals, times. A figure of nothing is a dash."""

from __future__ import annotations

from watchkeeper.evaluation.shared.bootstrap import Interval

NONE = "–"


def percent(share: float | None, digits: int = 0) -> str:
    """A share in per cent.

    >>> percent(0.4567), percent(0.0046, 2), percent(None)
    ('46 %', '0.46 %', '–')
    """
    return NONE if share is None else f"{100.0 * share:.{digits}f} %"


def number(value: float | None, digits: int = 3) -> str:
    """A plain number."""
    return NONE if value is None else f"{value:.{digits}f}"


def percents(bounds: Interval | None) -> str:
    """An interval of shares."""
    return NONE if bounds is None else f"{100.0 * bounds[0]:.0f} to {100.0 * bounds[1]:.0f} %"


def numbers(bounds: Interval | None, digits: int = 3) -> str:
    """An interval of numbers."""
    return NONE if bounds is None else f"{bounds[0]:.{digits}f} to {bounds[1]:.{digits}f}"


def milliseconds(value: float | None) -> str:
    """A time."""
    return NONE if value is None else f"{value:,.0f} ms"


def count(value: float | None) -> str:
    """How many, halves included."""
    return NONE if value is None else f"{value:g}"
