"""The attack catalogue in the form of the protocol's document, written and read: name to parameters, time and seed.

    {"gps_bias_5m": {"parameters": {"family": "gps_bias", "magnitude": 5.0, "unit": "m"},
                     "injection_time": "random", "duration": 30.0, "seed": 1}}

Durations are in seconds. `injection_time` is `random`, or `fixed` with `onset_s` among the parameters: seconds after
the flight's first sample. Used by evaluation/protocol/.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from watchkeeper.evaluation.attacks.catalogue import EFFECTS, Attack, catalogue
from watchkeeper.streams.foreign.files import read_json
from watchkeeper.streams.logs.base import LogError


class _Parameters(msgspec.Struct, frozen=True):
    """What the attack does. `unit` and whatever else a file says is for people."""

    family: str
    magnitude: float = 0.0
    onset_s: Annotated[float, msgspec.Meta(ge=0.0)] | None = None


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One attack."""

    parameters: _Parameters
    seed: int
    injection_time: Literal["random", "fixed"] = "random"
    duration: Annotated[float, msgspec.Meta(ge=1.0, le=86_400.0)] = 30.0


def as_document(attacks: Sequence[Attack]) -> dict[str, Any]:
    """The attacks, ready for JSON."""
    families = catalogue().families
    return {
        attack.name: {
            "parameters": {
                "family": attack.family,
                "magnitude": attack.magnitude,
                "unit": families[attack.family].unit,
                **({} if attack.onset_s is None else {"onset_s": attack.onset_s}),
            },
            "injection_time": "random" if attack.onset_s is None else "fixed",
            "duration": attack.duration_s,
            "seed": attack.seed,
        }
        for attack in attacks
    }


def read_document(path: Path) -> list[Attack]:
    """The attacks of a file. Raises LogError, which names the entry."""
    found = read_json(path, dict[str, _Entry])
    if not found:
        raise LogError(path, "no attacks")
    return [_attack(path, name, entry) for name, entry in found.items()]


def _attack(path: Path, name: str, entry: _Entry) -> Attack:
    family, onset_s = entry.parameters.family, entry.parameters.onset_s
    if family not in EFFECTS:
        near = get_close_matches(family, EFFECTS, 1, 0.0)[0]
        raise LogError(path, f"{name}: no family {family!r}; did you mean {near!r}?")
    if (entry.injection_time == "fixed") != (onset_s is not None):
        raise LogError(path, f'{name}: injection_time "fixed" and parameters.onset_s go together')
    return Attack(name, family, entry.parameters.magnitude, entry.seed, entry.duration, onset_s)
