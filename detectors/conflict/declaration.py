"""What the detector `conflict` declares: the kinds `conflict` (predicted) and `los` (separation lost now)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Struct

from watchkeeper.config.detectors.conflict import Conflict, Los
from watchkeeper.detectors.declaration import AlarmKind, Declaration, Facts, Gauge, fact, simulated
from watchkeeper.detectors.words import WHEN, known, listed
from watchkeeper.streams.messages import Kind

# With less time than this to the closest approach a pair comes no closer.
PARTING_S = 0.5


class Band(Struct, frozen=True):
    """What an aircraft does now, and the ranges that keep the minima, from and to; of tracks clockwise.

    None: not known. No range: none of the candidates keeps them.
    """

    now: float | None = None
    free: tuple[tuple[float, float], ...] | None = None


class Way(Struct, frozen=True):
    """The ways out of one aircraft, if the other goes on as it is."""

    id: str
    trk_deg: Band
    gs_kt: Band
    alt_ft: Band
    vs_fpm: Band


class PairFacts(Facts, frozen=True, kw_only=True):
    """Two aircraft, on straight lines from now on."""

    tcpa_s: Annotated[float | None, fact("s", "time to the closest point of approach")] = None
    dcpa_nm: Annotated[float | None, fact("NM", "horizontal distance there")] = None
    dcpa_m: Annotated[float | None, fact("m", "the same in metres")] = None
    vsep_ft: Annotated[float | None, fact("ft", "vertical distance there; unknown if one altitude is")] = None
    sep_nm: Annotated[float | None, fact("NM", "horizontal distance now")] = None
    t_los_s: Annotated[float | None, fact("s", "time until both minima are broken; unknown if they are not")] = None
    t_out_s: Annotated[float | None, fact("s", "time until they hold again")] = None
    los: Annotated[float, fact("0/1", "1: both minima are broken now")] = 0.0
    ways: Annotated[
        tuple[Way, ...],
        fact(
            "",
            "for each aircraft the tracks, speeds, levels and climbs that keep this pair apart for the horizon while "
            "the other goes on as it is; not an instruction",
        ),
    ] = ()


def _say(subjects: Sequence[str], facts: PairFacts) -> str:
    what = "separation lost" if facts.los else "on course to lose separation"
    if facts.tcpa_s is not None and facts.tcpa_s < PARTING_S:
        apart = known(facts.sep_nm, 1, "NM") + (
            "" if facts.vsep_ft is None else f" and {known(facts.vsep_ft, 0, 'ft')}"
        )
        return f"{listed(subjects)}: {what} {WHEN}; {apart} apart now, and parting"
    # the vertical distance is the one at the closest point, not the present one
    vertically = "" if facts.vsep_ft is None else f" and {known(facts.vsep_ft, 0, 'ft')}"
    closest = f"{known(facts.dcpa_nm, 1, 'NM')}{vertically} at the closest in {known(facts.tcpa_s, 0, 's')}"
    return f"{listed(subjects)}: {what} {WHEN}; {known(facts.sep_nm, 1, 'NM')} apart now, {closest}"


def _was(subjects: Sequence[str], facts: PairFacts) -> str:
    what = "separation was lost" if facts.los else "were on course to lose separation"
    return f"{listed(subjects)}: {what}, least distance {known(facts.sep_nm, 1, 'NM')} {WHEN}"


DECLARATION = Declaration(
    name="conflict",
    help="pairs of aircraft that will probably lose separation within the horizon, or have lost it",
    settings=Conflict,
    subjects="pair",
    kinds=(
        AlarmKind(
            name="conflict",
            help="two aircraft will probably come closer than both minima within the horizon",
            facts=PairFacts,
            say=_say,
            was=_was,
            needs=((Kind.ADSB,),),
            threshold=lambda settings: float(settings.probability * settings.high_ratio),
            threshold_most=lambda settings: float(max(settings.probability, settings.probability_far)),
            safety=True,
            least="sep_nm",
        ),
        AlarmKind(
            name="los",
            help="two aircraft are closer than both minima now",
            facts=PairFacts,
            say=_say,
            was=_was,
            needs=((Kind.ADSB,),),
            safety=True,
            least="sep_nm",
            settings=Los,
        ),
    ),
    gauges=(
        Gauge(
            name="tcpa_min_s",
            metric="conflict_min_tcpa_seconds",
            help="Smallest time to closest approach among pairs in conflict; NaN without one",
        ),
        Gauge(
            name="dcpa_min_m",
            metric="conflict_min_dcpa_meters",
            help="Smallest distance at closest approach among pairs in conflict; NaN without one",
        ),
        Gauge(
            name="probability_max",
            metric="conflict_max_probability",
            help="Largest probability of a loss of separation among all pairs; NaN without one",
        ),
        Gauge(name="pairs", help="Pairs in conflict now, before debouncing"),
        Gauge(name="pairs_los", help="Pairs whose separation is lost now, before debouncing"),
        Gauge(name="pairs_overflow", help="Pairs beyond max_pairs now, not followed"),
        Gauge(name="pairs_joined", help="Pairs of ids that are one aircraft now (TIS-B), left out"),
        Gauge(name="aircraft", help="Aircraft that are heard well enough to be judged"),
    ),
    scenario=simulated("random", 120),
    state_version=2,
    scratch=(
        "_scan",
        "_hindsight",
        "_motion",
        "_row_of",
        "_named",
        "_futures",
        "_ways",
        "_present",
        "_last",
        "_figures",
        "_ghosts",
        "_joined",
    ),
)
