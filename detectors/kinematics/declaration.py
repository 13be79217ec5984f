"""What the detector `kinematics` declares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated

from watchkeeper.config.detectors.kinematics import Kinematics
from watchkeeper.detectors.declaration import AlarmKind, Declaration, Facts, Gauge, PerVehicle, Scenario, fact
from watchkeeper.detectors.words import WHEN, listed, size
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.messages import COLUMN, Kind
from watchkeeper.streams.simulate import simulate

CAUSES: dict[str, str] = {
    "jump": "to get here it would have had to fly faster than `jump_speed_kt`",
    "climb": "its altitude changed faster than `climb_fpm`; it counts only together with one of the others",
    "speed": "its displacement disagrees with its reported ground speed",
    "duplicate_id": "it jumps away and comes back: two vehicles share one id",
    "too_fast": "it reports a speed that no drone, glider or ship reaches, whichever it says that it is",
    "operator": "its operator is farther away than `operator_m` (Remote ID)",
}
# Of each cause what the vehicle does, and did; {} is the size, where one is known.
_WORDS = {
    "jump": ("jumps from place to place{}", "jumped from place to place{}"),
    "climb": ("changes altitude faster than anything flies{}", "changed altitude faster than anything flies{}"),
    "speed": ("moves at another speed than it reports{}", "moved at another speed than it reported{}"),
    "duplicate_id": ("seems to be two vehicles with one id{}", "seemed to be two vehicles with one id{}"),
    "too_fast": ("reports a speed that none of its kind reaches{}", "reported a speed that none of its kind reaches{}"),
    "operator": ("has its operator too far away{}", "had its operator too far away{}"),
}


class TrackFacts(Facts, frozen=True, kw_only=True):
    """What the newest report implies about the track before it."""

    implied_speed_kt: Annotated[float | None, fact("kt", "speed needed to get here from the last trusted position")] = (
        None
    )
    implied_climb_fpm: Annotated[
        float | None, fact("ft/min", "vertical rate needed to get here from that position")
    ] = None
    speed_error_kt: Annotated[float | None, fact("kt", "displacement speed against reported speed")] = None
    operator_m: Annotated[float | None, fact("m", "distance of the position that its operator reports, if too far")] = (
        None
    )


def _sized(facts: TrackFacts) -> dict[str, str]:
    """How much, of each cause of which that is known."""
    found = {}
    if facts.implied_speed_kt is not None:
        found["jump"] = f" (that takes {size(facts.implied_speed_kt, 'kt')})"
    if facts.implied_climb_fpm is not None:
        found["climb"] = f" ({size(abs(facts.implied_climb_fpm), 'ft/min')})"
    if facts.speed_error_kt is not None:
        found["speed"] = f" ({size(abs(facts.speed_error_kt), 'kt')} off)"
    if facts.operator_m is not None:
        found["operator"] = f" ({size(facts.operator_m / 1000.0, 'km')})"
    return found


def _say(subjects: Sequence[str], facts: TrackFacts, *, over: bool = False) -> str:
    sized = _sized(facts)
    words = [_WORDS[cause][over].format(sized.get(cause, "")) for cause in facts.causes if cause in _WORDS]
    if not words and not over:
        return ""
    said = listed(words or ["reported what does not fit together"])
    return f"{listed(subjects)}: {said}{', worst' * over} {WHEN}"


SECONDS = 80
# Emitter categories (streams/messages.py).
GLIDER, DRONE, SHIP = 9.0, 14.0, 40.0


def _contradictions() -> Iterator[Batch]:
    """Eight tracks: one teleports, one reports a wrong speed, and a drone, a glider and a ship fly as airliners do."""
    column = COLUMN[Kind.ADSB]
    lat, gs_kt, category, operator_m = (column[name] for name in ("lat", "gs_kt", "category", "operator_m"))
    for second, batch in enumerate(simulate("head-on", seed=1, seconds=SECONDS, vehicles=8).batches()):
        adsb = batch.kinds[Kind.ADSB]
        if second >= 30:
            for vid, declared in ((4, DRONE), (5, GLIDER), (6, SHIP), (7, DRONE)):
                adsb.data[category, adsb.vid == vid] = declared
            adsb.data[operator_m, adsb.vid == 7] = 50_000.0
        adsb.data[lat, (adsb.vid == 3) & (30 <= second < 60)] += 2.0
        adsb.data[gs_kt, (adsb.vid == 2) & (second >= 30)] = 100.0
        yield batch


DECLARATION = Declaration(
    name="kinematics",
    help="tracks that contradict themselves: jumps, speed against displacement, duplicate ids",
    settings=Kinematics,
    subjects="vehicle",
    alone=True,
    per_vehicle=PerVehicle(axes={"tracks": 0}),
    kinds=(
        AlarmKind(
            name="kinematics",
            help="a track contradicts itself: a spoofed or broken sender, or two with one id",
            facts=TrackFacts,
            say=_say,
            was=partial(_say, over=True),
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
