"""What the detector `intent` declares."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from msgspec import field

from watchkeeper.config.detectors.intent import Intent
from watchkeeper.detectors.declaration import AlarmKind, Declaration, Facts, Gauge, fact, simulated
from watchkeeper.detectors.words import WHEN, known, listed, span
from watchkeeper.streams.messages import Kind


class IntentFacts(Facts, frozen=True, kw_only=True):
    """The newest command to a vehicle, and its nearest approach to another."""

    heading_delta_deg: Annotated[float | None, fact("deg", "turn that was commanded")] = None
    speed_delta_kt: Annotated[float | None, fact("kt", "change of speed that was commanded")] = None
    dcpa_nm: Annotated[float | None, fact("NM", "distance at its nearest approach to another aircraft")] = None
    tcpa_s: Annotated[float | None, fact("s", "time to that approach")] = None
    in_conflict_s: Annotated[float | None, fact("s", "how long it has been in conflict")] = None
    other: Annotated[str, fact("", "the other aircraft, if there is one")] = field(name="with", default="")


def _say(subjects: Sequence[str], facts: IntentFacts, *, over: bool = False) -> str:
    who, be = listed(subjects), "was" if over else "is"
    if "missed" in facts.causes:
        other = f" with {facts.other}" if facts.other else ""
        have = "had" if over else "has"
        return f"{who}: {be} in conflict{other} and {have} got no command for {span(facts.in_conflict_s or 0.0)} {WHEN}"
    if "ghost" not in facts.causes:
        return f"{who}: commands without a conflict, or a conflict without a command, {WHEN}" if over else ""
    turn = f"to turn by {facts.heading_delta_deg:.0f}°" if facts.heading_delta_deg else ""
    speed = f"to change speed by {known(facts.speed_delta_kt, 0, 'kt')}" if facts.speed_delta_kt else ""
    return f"{who}: {be} commanded {listed([part for part in (turn, speed) if part])} without a conflict {WHEN}"


def _verdict(word: str) -> Gauge:
    return Gauge(
        name=word,
        metric="intent_verdicts",
        help="A controller's alerts, conflicts and quiet steps so far, by verdict",
        label=("verdict", word),
    )


DECLARATION = Declaration(
    name="intent",
    help="controllers that act without a conflict, or leave one alone",
    settings=Intent,
    subjects="vehicle",
    kinds=(
        AlarmKind(
            name="intent",
            help="a controller acts without a conflict, or does not act on one",
            facts=IntentFacts,
            say=_say,
            was=partial(_say, over=True),
            needs=((Kind.ADSB,), (Kind.ACTION, Kind.ROUTE)),
            causes={
                "ghost": "a deliberate command to a vehicle that is in no conflict",
                "missed": "a conflict without a command for `response_s`",
            },
        ),
    ),
    gauges=(
        Gauge(name="vehicles", help="Vehicles under control at the last step"),
        Gauge(name="ghosts", help="Vehicles commanded for no conflict, before debouncing"),
        Gauge(name="missed", help="Vehicles in a conflict without a command, before debouncing"),
        Gauge(name="steps", help="Steps of control judged", counter=True),
        Gauge(
            name="num_conflict_steps",
            metric="intent_conflict_steps_total",
            help="Steps of control with a conflict",
            counter=True,
        ),
        *(_verdict(word) for word in ("tp", "fp", "fn", "tn")),
        Gauge(name="precision", help="Share of the alerts that belong to a conflict; 0 without alerts"),
        Gauge(name="recall", help="Share of the conflicts that were acted upon; 0 without conflicts"),
        Gauge(name="alert_duty_cycle", help="Share of the steps with an alert; NaN before the first step"),
        Gauge(name="avg_lead_time_s", help="Mean time from alert to conflict, negative if late; 0 without a match"),
        Gauge(name="cuts_forced", help="Times that the tally was cut although something was open", counter=True),
    ),
    scenario=simulated("controlled", 240),
    scratch=("_present",),
    looks_every_s=lambda settings: float(settings.step_s),
)
