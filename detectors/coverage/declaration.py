"""What coverage declares: the alarm `watch`, which no single detector gives evidence for.

Its subject is a vehicle; or a part of Watchkeeper, as two names: `detector` and the detector's, `watchkeeper` and the
part's. No vehicle's alarm has two.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from watchkeeper.config.detectors.watch import Watch
from watchkeeper.detectors.declaration import AlarmKind, Facts, fact
from watchkeeper.detectors.fleet.reasons import CODE_OF, NAMES, Code, words
from watchkeeper.detectors.words import WHEN, listed

WATCH = "watch"
# The first subject of an alarm about a detector, and about any other part of the daemon.
DETECTOR, DAEMON = "detector", "watchkeeper"
# Parts of detectors' names that are abbreviations.
ABBREVIATED = frozenset({"gps", "imu", "gnss", "adsb"})
# As much of what was seen as a sentence has room for, in characters.
SEEN = 120
# What is wrong with a part, as a cause.
PART_FAILED, PART_TROUBLE = "failed", "trouble"


class WatchFacts(Facts, frozen=True, kw_only=True):
    """Who does not judge it, since when, and why."""

    detectors: Annotated[tuple[str, ...], fact("", "detectors that do not judge the vehicle")] = ()
    since_t: Annotated[float | None, fact("s", "since when, in event time; for a part of the daemon in its clock")] = (
        None
    )
    detail: Annotated[str, fact("", "what was seen, in words")] = ""


def spoken(detector: str) -> str:
    """The name of a detector in a sentence.

    >>> spoken("gps_imu"), spoken("gnss_interference")
    ('GPS IMU', 'GNSS interference')
    """
    return " ".join(word.upper() if word in ABBREVIATED else word for word in detector.split("_"))


def _say(subjects: Sequence[str], facts: WatchFacts, *, over: bool = False) -> str:
    seen = facts.detail if len(facts.detail) <= SEEN else f"{facts.detail[:SEEN]}…"
    be = "was" if over else "is"
    when = "" if over else WHEN
    if len(subjects) == 2 and subjects[0] == DETECTOR:
        return f"Detector {spoken(subjects[1])}: {'did' if over else 'does'} not watch reliably {when}: {seen}"
    if len(subjects) == 2 and subjects[0] == DAEMON:
        return f"Watchkeeper: its {subjects[1]} {be} in trouble {when}: {seen}"
    detail = f" ({seen})" if seen else ""
    why = listed([words(CODE_OF[cause]) for cause in facts.causes if cause in CODE_OF])
    who = listed([spoken(name) for name in facts.detectors])
    return (
        f"{listed(subjects)}: {be} not watched by {who or 'every detector'} {when}: {why or 'being looked at'}{detail}"
    )


KIND = AlarmKind(
    name=WATCH,
    help="something that should be judged is not: a vehicle, by a detector; or a part of Watchkeeper is in trouble",
    facts=WatchFacts,
    say=_say,
    was=partial(_say, over=True),
    causes={name: words(code) for code, name in enumerate(NAMES) if code not in {Code.WATCHED, Code.NOT_APPLICABLE}}
    | {PART_TROUBLE: "a part of the daemon says that something is wrong, see `/readyz`"},
    settings=Watch,
)
