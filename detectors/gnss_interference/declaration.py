"""What the detector `gnss_interference` declares."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from watchkeeper.config.detectors.gnss_interference import GnssInterference
from watchkeeper.detectors.declaration import AlarmKind, Declaration, Facts, Gauge, fact, simulated
from watchkeeper.detectors.words import WHEN, known, position
from watchkeeper.streams.messages import Kind


class AreaFacts(Facts, frozen=True, kw_only=True):
    """An area of the map, and the aircraft in it."""

    share: Annotated[float | None, fact("ratio", "affected aircraft over all that could tell")] = None
    aircraft: Annotated[float | None, fact("aircraft", "in the area, with an accuracy to lose")] = None
    affected: Annotated[float | None, fact("aircraft", "that have lost it")] = None
    cells: Annotated[float | None, fact("cells", "H3 cells that the area consists of")] = None
    area_km2: Annotated[float | None, fact("km2", "size of the area")] = None
    grown_km2: Annotated[float | None, fact("km2", "added in the last minutes")] = None
    shrunk_km2: Annotated[float | None, fact("km2", "gone in the last minutes")] = None
    lat: Annotated[float | None, fact("deg", "latitude of the middle")] = None
    lon: Annotated[float | None, fact("deg", "longitude of the middle")] = None
    radius_km: Annotated[float | None, fact("km", "from the middle to the farthest edge")] = None
    extent: Annotated[tuple[str, ...], fact("", "the cells by their H3 names, up to 500")] = ()


def _say(_subjects: Sequence[str], facts: AreaFacts, *, over: bool = False) -> str:
    where = f"within {known(facts.radius_km, 0, 'km')} of {position(facts.lat, facts.lon)}"
    of_all = f"{known(facts.affected)} of {known(facts.aircraft)} aircraft"
    return f"GNSS interference {where}: {of_all} {'had' if over else 'have'} lost accuracy {WHEN}"


DECLARATION = Declaration(
    name="gnss_interference",
    help="areas in which many aircraft lose the accuracy that they had: jamming, or spoofing that they notice",
    settings=GnssInterference,
    subjects="place",
    kinds=(
        AlarmKind(
            name="gnss_interference",
            help="many aircraft in one area have lost their GNSS accuracy together",
            facts=AreaFacts,
            say=_say,
            was=partial(_say, over=True),
            needs=((Kind.ADSB,),),
            threshold=lambda settings: float(settings.share),
        ),
    ),
    gauges=(
        Gauge(name="areas", help="Areas of interference now, before debouncing"),
        Gauge(name="areas_overflow", help="Areas beyond those that are followed"),
        Gauge(name="aircraft", help="Aircraft heard lately with an accuracy to lose"),
        Gauge(name="aircraft_collapsed", help="Aircraft that have lost their accuracy"),
    ),
    scenario=simulated("jamming", 240, vehicles=150),
    scratch=("_quality._slot", "_quality._seen_t", "_quality._low", "_cells._marked"),
)
