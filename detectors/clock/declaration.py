"""What the alarm `clock` declares: no single detector gives evidence for it, the engine's own clock does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from watchkeeper.config.detectors.clock import Clock
from watchkeeper.detectors.declaration import AlarmKind, Facts, Gauge, fact
from watchkeeper.detectors.words import WHEN, counted, listed, span

CLOCK = "clock"
AHEAD, BEHIND, UNSTEADY, LATE = "ahead", "behind", "unsteady", "late"


class ClockFacts(Facts, frozen=True, kw_only=True):
    """A sender's clock against that of the fleet."""

    offset_s: Annotated[float | None, fact("s", "ahead of the fleet's time; behind it: negative")] = None
    vehicles: Annotated[int, fact("vehicles", "behind this gateway with the same offset; 0: a vehicle by itself")] = 0


def _say(subjects: Sequence[str], facts: ClockFacts, *, over: bool = False) -> str:
    who = f"gateway {listed(subjects)}" if facts.vehicles else listed(subjects)
    be = "were" if over else "are"
    offset_s = facts.offset_s or 0.0
    side = "ahead of" if offset_s > 0.0 else "behind"
    off = f" ({span(abs(offset_s))} {side} the others)" if offset_s else ""
    if UNSTEADY in facts.causes:
        return f"{who}: clock {'jumped' if over else 'jumps'} about{off} {WHEN}; samples {be} refused"
    if LATE in facts.causes:
        came = "came" if over else "come"
        return f"{who}: samples {came} too late or too early to be judged{off} {WHEN}; {be} refused"
    or_link = "" if offset_s > 0.0 else " (or its link is as slow)"
    also = f" for {counted(facts.vehicles, 'vehicle')}" if facts.vehicles else ""
    return f"{who}: clock {span(abs(offset_s))} {side} the others{or_link} {WHEN}; its times {be} corrected{also}"


KIND = AlarmKind(
    name=CLOCK,
    help="a sender whose time is off; its samples are brought to the fleet's time, or refused where that cannot be",
    facts=ClockFacts,
    say=_say,
    was=partial(_say, over=True),
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
