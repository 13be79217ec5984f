"""docs/glossary.md: the words that a person meets in alarms, from the declarations where they are declared.

    python -m watchkeeper.detectors.glossary > docs/glossary.md

`TERMS` has what no declaration has: words of the field, and those that all alarms share.
"""

from __future__ import annotations

import sys

from watchkeeper.detectors.catalog import discover, kinds
from watchkeeper.detectors.declaration import ENDINGS, fields_of

INTRO = """# Glossary

The words in alarms, on the live page and in reports. Generated from the declarations in `detectors/` by `make docs`;
edit those, not this page. [Alarms](alarms.md) has every kind with all of its evidence.

## Words

| word | means |
|---|---|
"""
TERMS: dict[str, str] = {
    "advisory, caution, warning": (
        "how severe an alarm is, from worth knowing to act now; it rises with the evidence and falls after a "
        "minute without any as bad, to the worst of that minute, but not once it has changed twice"
    ),
    "alarm": (
        "something that is wrong with a vehicle, a pair of aircraft or a place, from raised to cleared under one id"
    ),
    "callsign": (
        "the name under which a flight speaks on the radio; alarms use it in place of the id where it is known"
    ),
    "cause": "one of the declared reasons for an alarm; an alarm may have several at once",
    "closest point of approach": (
        "where two aircraft that fly straight on come closest to each other; `tcpa_s` until then, `dcpa_nm` there"
    ),
    "conflict": "two aircraft that will probably come closer than allowed, if both fly on as they do",
    "diagnosis": "the most probable fault behind the alarms of an incident, with its place and how probable it is",
    "drift": "an error that grows slowly to one side",
    "ESKF": "error-state Kalman filter: estimates where a vehicle is from its IMU and corrects itself by the GPS",
    "evidence": "the numbers behind an alarm, each with its unit in its name",
    "event time": "the time in the samples themselves, not the clock of the computer that reads them",
    "fix": "one position that a GPS receiver reports",
    "gateway": "the device through which a vehicle's messages come (`via`)",
    "GNSS": "global navigation satellite system: GPS, Galileo, GLONASS, BeiDou",
    "IMU": "inertial measurement unit: accelerometers and gyros, which need no signal from outside",
    "incident": "alarms that have one cause, with one diagnosis",
    "innovation": "a measurement minus what the filter expected; also called residual",
    "jamming": "noise that drowns satellite signals: the receiver loses accuracy or the fix",
    "los": "loss of separation: two aircraft are closer than both minima, horizontally and vertically",
    "NACp, NIC": "how accurate and how trustworthy an aircraft says that its own position is",
    "onset": "when the evidence of an alarm began, some epochs before it was raised",
    "score, threshold": "the measure of how wrong something is, and the value from which it counts towards an alarm",
    "sigma": (
        "how far a value is from normal, in units of its usual spread; about 1 in 100 healthy values is "
        "beyond 2.6 sigma"
    ),
    "spoofing": "false satellite signals: the receiver reports a wrong position that looks good",
    "watermark": "the moment up to which all samples are expected to have arrived",
    "worst": "the moment of an alarm's highest score, or of the least separation of two aircraft",
}
UNITS: dict[str, str] = {
    "NM": "nautical mile, 1,852 m",
    "kt": "knot, 1 NM per hour, 0.514 m/s",
    "ft": "foot, 0.3048 m",
    "ft/min": "feet per minute, 0.00508 m/s",
    "ratio": "a share or a quotient, without a unit",
    "0/1": "no or yes",
    "sigma": "distance from normal, see above",
}


def glossary_markdown() -> str:
    """The whole page."""
    every = sorted(kinds().values(), key=lambda kind: kind.name)
    parts = [INTRO + _rows(dict(sorted(TERMS.items(), key=lambda term: term[0].lower())), code=False)]
    parts.append(
        "## Kinds of alarms\n\n| kind | means |\n|---|---|\n" + _rows({kind.name: kind.help for kind in every})
    )
    causes = {f"{kind.name}: {cause}": meaning for kind in every for cause, meaning in kind.causes.items()}
    parts.append("## Causes\n\n| kind and cause | means |\n|---|---|\n" + _rows(causes))
    used = {field.unit for kind in every for field in fields_of(kind.facts)}
    parts.append("## Units\n\n| unit | means |\n|---|---|\n" + _rows({u: m for u, m in UNITS.items() if u in used}))
    parts.append(
        "## How an alarm ended\n\n| `ended` | means |\n|---|---|\n"
        + _rows({str(word): meaning for word, meaning in ENDINGS.items()})
    )
    return "\n".join(parts)


def _rows(meanings: dict[str, str], *, code: bool = True) -> str:
    mark = "`" if code else ""
    return "".join(f"| {mark}{word}{mark} | {meaning} |\n" for word, meaning in meanings.items())


if __name__ == "__main__":
    discover()
    sys.stdout.write(glossary_markdown())
