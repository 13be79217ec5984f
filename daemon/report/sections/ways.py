"""Ways out of a conflict on its card: what would have kept the two aircraft apart when the alarm was raised."""

from __future__ import annotations

from typing import Any

from watchkeeper.daemon.report.gather.lives import Life
from watchkeeper.daemon.report.markup import Html, el, table
from watchkeeper.daemon.report.result import Result

# Names of the evidence, with what they are called and how a value is written.
BANDS = (
    ("trk_deg", "track", "{:03.0f}°"),
    ("gs_kt", "speed", "{:.0f} kt"),
    ("alt_ft", "level", "{:,.0f} ft"),
    ("vs_fpm", "climb", "{:+,.0f} ft/min"),
)
NOTE = (
    "Each with the other going on as it was, on straight lines, for as far as conflicts are looked for. "
    "No instruction: other traffic, ground, weather and clearances are not looked at."
)


def ways_out(result: Result, life: Life) -> Html | None:
    """A table to open; None for an alarm that says nothing of ways out."""
    ways = life.first.evidence.get("ways")
    if not ways:
        return None
    rows = [(result.called(way["id"]), *(_told(way[name], form) for name, _, form in BANDS)) for way in ways]
    return el(
        "details.ways",
        el("summary", "Ways out when it was raised"),
        table("What would have kept the two apart", ("aircraft", *(word for _, word, _ in BANDS)), rows),
        el("p.muted", NOTE),
    )


def _told(band: dict[str, Any], form: str) -> str:
    """The present value, and the ranges that keep the minima.

    >>> _told({"now": 90.0, "free": [[115.0, 65.0]]}, "{:03.0f}°")
    'now 090°; clear 115° to 065°'
    >>> _told({"now": 450.0, "free": []}, "{:.0f} kt"), _told({"now": None, "free": None}, "{:.0f} ft")
    ('now 450 kt; none is clear', 'not known')
    """
    now, free = band["now"], band["free"]
    if free is None:
        return "not known"
    ranges = ", ".join(
        form.format(low) if low == high else f"{form.format(low)} to {form.format(high)}" for low, high in free
    )
    return f"now {form.format(now)}; {f'clear {ranges}' if ranges else 'none is clear'}"
