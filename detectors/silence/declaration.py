"""What the detector `silence` declares."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from watchkeeper.config.detectors.silence import Silence
from watchkeeper.detectors.declaration import AlarmKind, Declaration, Facts, Gauge, PerVehicle, fact, simulated
from watchkeeper.detectors.words import WHEN, listed, span
from watchkeeper.streams.messages import Kind


class SilenceFacts(Facts, frozen=True, kw_only=True):
    """The stream that has been silent for longest against its limit."""

    silence_s: Annotated[float | None, fact("s", "time since its last sample")] = None
    never_heard: Annotated[float | None, fact("streams", "where vehicles are declared: streams never heard at all")] = (
        None
    )


def _say(subjects: Sequence[str], facts: SilenceFacts, *, over: bool = False) -> str:
    who, streams = listed(subjects), listed([cause.upper() for cause in facts.causes])
    if over:
        how_long = f" for {span(facts.silence_s)}" if facts.silence_s else ""
        return f"{who}: sent no {streams or 'data'}{how_long}"
    if not facts.causes:
        return ""
    if facts.never_heard:
        return f"{who}: declared, but its {streams} has never been heard, alarm {WHEN}"
    return f"{who}: has sent no {streams} for {span(facts.silence_s or 0.0)}, alarm {WHEN}"


DECLARATION = Declaration(
    name="silence",
    help="streams that used to speak and have stopped",
    settings=Silence,
    subjects="vehicle",
    alone=True,
    per_vehicle=PerVehicle(axes={"interval_s": 1, "previous_t": 1}),
    kinds=(
        AlarmKind(
            name="silence",
            help="a stream of a vehicle has stopped",
            facts=SilenceFacts,
            say=_say,
            was=partial(_say, over=True),
            causes={kind.word: f"the stream `{kind.word}` is silent" for kind in Kind},
            grows=True,
        ),
    ),
    gauges=(Gauge(name="vehicles", help="Vehicles with a silent stream now"),),
    scenario=simulated("demo", 80),
)
