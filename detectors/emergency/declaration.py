"""What the detector `emergency` declares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated

from watchkeeper.config.detectors.emergency import Emergency, TcasRa
from watchkeeper.detectors.declaration import AlarmKind, Declaration, Facts, Gauge, PerVehicle, Scenario, fact
from watchkeeper.detectors.words import WHEN, known, listed
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.messages import COLUMN, Kind
from watchkeeper.streams.simulate import simulate

CAUSES: dict[str, str] = {
    "unlawful": "unlawful interference: squawk 7500, or declared so",
    "no_radio": "radio failure: squawk 7600, or declared so",
    "general": "general emergency: squawk 7700, or declared so",
    "minimum_fuel": "minimum fuel is declared",
    "downed": "the aircraft is declared to be down",
}
_WORDS = {
    "unlawful": "unlawful interference",
    "no_radio": "radio failure",
    "general": "an emergency",
    "minimum_fuel": "minimum fuel",
    "downed": "that it is down",
}
SECONDS = 90


class EmergencyFacts(Facts, frozen=True, kw_only=True):
    """What the transponder says, and where the aircraft is."""

    squawk: Annotated[float | None, fact("code", "its code, four digits read as a number; none: it is not known")] = (
        None
    )
    alt_ft: Annotated[float | None, fact("ft", "its altitude")] = None
    vs_fpm: Annotated[float | None, fact("ft/min", "its vertical rate")] = None
    lat: Annotated[float | None, fact("deg", "latitude")] = None
    lon: Annotated[float | None, fact("deg", "longitude")] = None


class AdvisoryFacts(Facts, frozen=True, kw_only=True):
    """How the aircraft moves while its advisory is on."""

    alt_ft: Annotated[float | None, fact("ft", "its altitude")] = None
    vs_fpm: Annotated[float | None, fact("ft/min", "its vertical rate")] = None
    lat: Annotated[float | None, fact("deg", "latitude")] = None
    lon: Annotated[float | None, fact("deg", "longitude")] = None


def _at(alt_ft: float | None) -> str:
    return "" if alt_ft is None else f" at {known(alt_ft, 0, 'ft')}"


def _say(subjects: Sequence[str], facts: EmergencyFacts, *, over: bool = False) -> str:
    what = listed([_WORDS[cause] for cause in facts.causes if cause in _WORDS]) or "no emergency any more"
    code = "" if facts.squawk is None else f" (squawk {facts.squawk:04.0f})"
    return f"{listed(subjects)}: {'declared' if over else 'declares'} {what}{code}{_at(facts.alt_ft)}, {WHEN}"


def _say_advisory(subjects: Sequence[str], facts: AdvisoryFacts, *, over: bool = False) -> str:
    rate = "" if facts.vs_fpm is None else f", vertical rate {known(facts.vs_fpm, 0, 'ft/min')}"
    has = "had" if over else "has"
    return f"{listed(subjects)}: its TCAS {has} a resolution advisory{_at(facts.alt_ft)}{rate}, {WHEN}"


def _declared() -> Iterator[Batch]:
    """Six aircraft: three declare something for a while, one dials past 7600, one has an advisory."""
    column = COLUMN[Kind.ADSB]
    squawk, state, advisory = (column[name] for name in ("squawk", "emergency", "tcas_ra"))
    for second, batch in enumerate(simulate("head-on", seed=1, seconds=SECONDS, vehicles=6).batches()):
        adsb = batch.kinds[Kind.ADSB]
        on = 20 <= second < 27
        adsb.data[squawk] = 1000.0
        for vid, code in enumerate((7500.0, 7600.0, 7700.0)):
            adsb.data[squawk, (adsb.vid == vid) & on] = code
        adsb.data[squawk, (adsb.vid == 3) & (second == 30)] = 7600.0
        adsb.data[state, adsb.vid == 4] = 3.0 * on
        adsb.data[advisory, adsb.vid == 5] = float(20 <= second < 24)
        yield batch


DECLARATION = Declaration(
    name="emergency",
    help="emergencies that crews declare by transponder, and resolution advisories of TCAS",
    settings=Emergency,
    subjects="vehicle",
    alone=True,
    per_vehicle=PerVehicle(axes={}),
    kinds=(
        AlarmKind(
            name="emergency",
            help="the crew declares an emergency: squawk 7500, 7600 or 7700, minimum fuel, or down",
            facts=EmergencyFacts,
            say=_say,
            was=partial(_say, over=True),
            causes=CAUSES,
            needs=((Kind.ADSB,),),
            safety=True,
        ),
        AlarmKind(
            name="tcas_ra",
            help="the collision avoidance system of an aircraft has a resolution advisory",
            facts=AdvisoryFacts,
            say=_say_advisory,
            was=partial(_say_advisory, over=True),
            needs=((Kind.ADSB,),),
            settings=TcasRa,
            safety=True,
        ),
    ),
    gauges=(
        Gauge(name="aircraft", help="Aircraft of the last tick that declare an emergency, before debouncing"),
        Gauge(name="advisories", help="Aircraft of the last tick with a resolution advisory, before debouncing"),
    ),
    scenario=Scenario(SECONDS, _declared),
)
