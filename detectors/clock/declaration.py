"""What the alarm `clock` declares: no single detector gives evidence for it, the engine's own clock does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from watchkeeper.config.detectors.clock import Clock
from watchkeeper.detectors.declaration import AlarmKind, Facts, Gauge, fact, listed

CLOCK = "clock"
AHEAD, BEHIND, UNSTEADY, LATE = "ahead", "behind", "unsteady", "late"


class ClockFacts(Facts, frozen=True, kw_only=True):
    """A sender's clock against that of the fleet."""

    offset_s: Annotated[float | None, fact("s", "ahead of the fleet's time; behind it: negative")] = None
    vehicles: Annotated[int, fact("vehicles", "behind this gateway with the same offset; 0: a vehicle by itself")] = 0


def _size(seconds: float) -> str:
    """A time difference in a sentence.

    >>> _size(1.26), _size(90.0), _size(7200.0)
    ('1.3 s', '90 s', '2.0 h')
    """
    if seconds >= 3600.0:
        return f"{seconds / 3600.0:,.1f} h"
    return f"{seconds:.1f} s" if seconds < 10.0 else f"{seconds:.0f} s"


def _say(subjects: Sequence[str], facts: ClockFacts) -> str:
    who = listed(subjects) if not facts.vehicles else f"the gateway {listed(subjects)}"
    if UNSTEADY in facts.causes:
        return f"The clock of {who} jumps about, so its samples are refused."
    if LATE in facts.causes:
        return f"The samples of {who} come too late or too early to be judged, so they are refused."
    offset_s = facts.offset_s or 0.0
    if not facts.causes:
        return f"The clock of {who} was off and agrees with the others again."
    side = "ahead of" if offset_s > 0.0 else "behind"
    or_link = "" if offset_s > 0.0 else " (or its link is that slow)"
    also = f" for {facts.vehicles} vehicles" if facts.vehicles else ""
    return f"The clock of {who} is {_size(abs(offset_s))} {side} the others{or_link}; this is taken off{also}."


KIND = AlarmKind(
    name=CLOCK,
    help="a sender whose time is off; its samples are brought to the fleet's time, or refused where that cannot be",
    facts=ClockFacts,
    say=_say,
    causes={
        AHEAD: "its clock is ahead of the fleet's time",
        BEHIND: "its clock, or the way of its samples, is behind the fleet's time",
        UNSTEADY: "its offset changes all the time: its samples are refused",
        LATE: "it sends, but for seconds nothing of that came within its tick: its samples are refused",
    },
    settings=Clock,
)
GAUGES: dict[str, tuple[Gauge, ...]] = {
    CLOCK: (
        Gauge(name="senders", help="Vehicles and gateways that are heard now"),
        Gauge(name="off", help="Senders whose clock is off now"),
        Gauge(name="wait_s", help="How long ticks wait for samples that are late"),
    )
}
