"""What the detector `silence` declares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from watchkeeper.config.detectors.silence import Silence
from watchkeeper.detectors.declaration import AlarmKind, Declaration, Facts, Gauge, fact, known, listed, simulated
from watchkeeper.streams.messages import Kind


class SilenceFacts(Facts, frozen=True, kw_only=True):
    """The stream that has been silent for longest against its limit."""

    silence_s: Annotated[float | None, fact("s", "time since its last sample")] = None
    never_heard: Annotated[float | None, fact("streams", "where vehicles are declared: streams never heard at all")] = (
        None
    )


def _say(subjects: Sequence[str], facts: SilenceFacts) -> str:
    if not facts.causes:
        return f"{listed(subjects)} was silent and sends again."
    streams = listed([cause.upper() for cause in facts.causes])
    if facts.never_heard:
        return f"{listed(subjects)} is declared but its {streams} has never been heard."
    return f"{listed(subjects)} has sent no {streams} for {known(facts.silence_s, 0, 's')}."


DECLARATION = Declaration(
    name="silence",
    help="streams that used to speak and have stopped",
    settings=Silence,
    subjects="vehicle",
    kinds=(
        AlarmKind(
            name="silence",
            help="a stream of a vehicle has stopped",
            facts=SilenceFacts,
            say=_say,
            causes={kind.word: f"the stream `{kind.word}` is silent" for kind in Kind},
            grows=True,
        ),
    ),
    gauges=(Gauge(name="vehicles", help="Vehicles with a silent stream now"),),
    scenario=simulated("demo", 80),
)
