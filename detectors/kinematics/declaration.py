"""What the detector `kinematics` declares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from watchkeeper.config.detectors.kinematics import Kinematics
from watchkeeper.detectors.declaration import AlarmKind, Declaration, Facts, Gauge, Scenario, fact, known, listed
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.messages import COLUMN, Kind
from watchkeeper.streams.simulate import simulate

CAUSES: dict[str, str] = {
    "jump": "to get here it would have had to fly faster than `jump_speed_kt`",
    "climb": "its altitude changed faster than `climb_fpm`; it counts only together with one of the others",
    "speed": "its displacement disagrees with its reported ground speed",
    "duplicate_id": "it jumps away and comes back: two vehicles share one id",
}
_WORDS = {
    "jump": "it jumped from place to place",
    "climb": "its altitude changed faster than anything flies",
    "speed": "it moves at another speed than it reports",
    "duplicate_id": "two vehicles seem to share its id",
}


class TrackFacts(Facts, frozen=True, kw_only=True):
    """What the newest report implies about the track before it."""

    implied_speed_kt: Annotated[float | None, fact("kt", "speed needed to get here from the last trusted position")] = (
        None
    )
    implied_climb_fpm: Annotated[float | None, fact("ft/min", "vertical rate needed likewise")] = None
    speed_error_kt: Annotated[float | None, fact("kt", "displacement speed against reported speed")] = None


def _say(subjects: Sequence[str], facts: TrackFacts) -> str:
    words = [_WORDS[cause] for cause in facts.causes if cause in _WORDS]
    if "jump" in facts.causes and facts.implied_speed_kt is not None:
        words[facts.causes.index("jump")] += f" (that takes {known(facts.implied_speed_kt, 0, 'kt')})"
    return f"The track of {listed(subjects)} contradicts itself: {listed(words) or 'its reports do not fit together'}."


SECONDS = 80


def _contradictions() -> Iterator[Batch]:
    """Four aircraft: one teleports and comes back, one reports a wrong speed."""
    lat, gs_kt = COLUMN[Kind.ADSB]["lat"], COLUMN[Kind.ADSB]["gs_kt"]
    for second, batch in enumerate(simulate("head-on", seed=1, seconds=SECONDS, vehicles=4).batches()):
        adsb = batch.kinds[Kind.ADSB]
        adsb.data[lat, (adsb.vid == 3) & (30 <= second < 60)] += 2.0
        adsb.data[gs_kt, (adsb.vid == 2) & (second >= 30)] = 100.0
        yield batch


DECLARATION = Declaration(
    name="kinematics",
    help="tracks that contradict themselves: jumps, speed against displacement, duplicate ids",
    settings=Kinematics,
    subjects="vehicle",
    kinds=(
        AlarmKind(
            name="kinematics",
            help="a track contradicts itself: a spoofed or broken sender, or two with one id",
            facts=TrackFacts,
            say=_say,
            needs=((Kind.ADSB,),),
            causes=CAUSES,
        ),
    ),
    gauges=(
        Gauge(name="reports", help="Reports of the last tick that contradict their track"),
        Gauge(
            name="altitude_spikes",
            help="Reports of the last tick whose altitude contradicts the track; no alarms",
        ),
    ),
    scenario=Scenario(SECONDS, _contradictions),
)
