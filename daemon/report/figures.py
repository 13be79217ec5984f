"""The evidence of an alarm for a person: each number with its unit and meaning, those that count most first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from watchkeeper.daemon.outputs.terminal import clock
from watchkeeper.daemon.report.words import brief, exact
from watchkeeper.detectors.catalog import kinds
from watchkeeper.detectors.declaration import fields_of

SIGMA = "sigma"
# What is said elsewhere, or is a list of more than words.
LEFT_OUT = {"causes", "unwatched", "alarms", "diagnosis", "extent", "ways"}


@dataclass(frozen=True, slots=True)
class Shown:
    """One field of evidence: as it is written in the alarm file, and in short for a person.

    `weight` is its share of the threshold, where it has one; 0 otherwise.
    """

    name: str
    value: str
    unit: str
    meaning: str
    weight: float = 0.0
    words: str = ""
    short: str = ""

    @property
    def tells(self) -> bool:
        """Whether it belongs to what is wrong: a distance from normal only where it is beyond the threshold."""
        return self.weight >= 1.0 or self.unit != SIGMA


def figures(kind_name: str, evidence: dict[str, Any], threshold: float) -> list[Shown]:
    """All known fields, by what they contribute; those that have no share of the threshold in the declared order."""
    kind = kinds().get(kind_name)
    declared = {field.name: field for field in fields_of(kind.facts)} if kind is not None else {}
    found = []
    for name, value in evidence.items():
        if name in LEFT_OUT or value is None or isinstance(value, dict):
            continue
        field = declared.get(name)
        unit, meaning = (field.unit, field.meaning) if field is not None else ("", "")
        number = isinstance(value, int | float) and not isinstance(value, bool)
        weight = value / threshold if number and unit == SIGMA and threshold > 0.0 else 0.0
        if number and name.endswith("_t"):
            # an event time: as the time that it is, without a unit
            label = name.removesuffix("_t").replace("_", " ")
            found.append(Shown(label, clock(value), "", meaning, words=label, short=clock(value)))
            continue
        text = exact(value) if number else ", ".join(value) if isinstance(value, list | tuple) else str(value)
        label = name.removesuffix("_sigma") if unit == SIGMA else name
        words = field.words if field is not None else label.replace("_", " ")
        short = brief(value) if number else text
        label = label.replace("_", " ")
        found.append(Shown(label, text, unit, _meant(kind_name, name, meaning), weight, words, short))
    return sorted(found, key=lambda shown: -shown.weight)


def _meant(kind_name: str, name: str, meaning: str) -> str:
    """The meaning of a channel is that of its cause, which says more."""
    kind = kinds().get(kind_name)
    cause = name.removesuffix("_sigma")
    return kind.causes.get(cause, meaning) if kind is not None and name.endswith("_sigma") else meaning


def causes(kind_name: str, evidence: dict[str, Any]) -> list[tuple[str, str]]:
    """The causes that an alarm names, each with what it means."""
    kind = kinds().get(kind_name)
    meanings = kind.causes if kind is not None else {}
    return [(str(name).replace("_", " "), meanings.get(name, "")) for name in evidence.get("causes") or ()]
