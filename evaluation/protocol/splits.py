"""Which flight is for what: splits of simulated flights (config/splits.json), leave-one-flight-out for real ones.

A flight is in one split and all of it is. `validation` flights are clean and set thresholds; `train` flights are for
what is fitted, and our detector fits nothing; `test` flights are judged, clean and attacked; `shift` flights are clean
ones of another kind (sensors, vibration, rates) and only count false alarms. Simulated flights are made from their seed
when they are needed, not stored.

A file has one of two forms, and either may hold recipes of simulated flights under `flights`:

    {"train": [id, …], "val": [id, …], "test": [id, …]}                        as the protocol's document has it
    {"version": 1, "splits": {"train": […], "validation": […], "test": […]}}   as config/splits.json
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from watchkeeper.evaluation.attacks.flight import Flight, airframe_of, flights_of
from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.foreign.decode import from_json
from watchkeeper.streams.foreign.files import read_json
from watchkeeper.streams.logs.base import LogError
from watchkeeper.streams.messages import FIELDS
from watchkeeper.streams.simulate.faults import Faults
from watchkeeper.streams.simulate.missions import draw_missions
from watchkeeper.streams.simulate.motion import QUAD
from watchkeeper.streams.simulate.sensors import REAL, DroneSource, Errors

SPLITS = ("train", "validation", "test", "shift")
# Other words for a split.
ALSO = {"val": "validation"}
MIXED = "mixed"
"""The group of all flights."""


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A simulated flight; its airframe class is in its id. `errors` replaces sizes in simulate/sensors.Errors."""

    seed: int
    seconds: int = 600
    imu_hz: float = 50.0
    errors: dict[str, float | tuple[float, float]] = {}


class Splits(msgspec.Struct, frozen=True):
    """Which flights are in which split, and how simulated ones are made."""

    version: int
    splits: dict[str, list[str]]
    flights: dict[str, Recipe] = {}

    def overlaps(self) -> list[str]:
        """What breaks the rule that a flight is in one split: one line each."""
        problems = [
            f"flight {flight!r} is in {a!r} and in {b!r}"
            for a, b in combinations(self.splits, 2)
            for flight in sorted(set(self.splits[a]) & set(self.splits[b]))
        ]
        for name, flights in self.splits.items():
            if name not in SPLITS:
                problems.append(f"unknown split {name!r}: expected {', '.join(SPLITS)}")
            problems += [f"flight {f!r} is in {name!r} twice" for f in sorted(set(flights)) if flights.count(f) > 1]
        made: dict[str, list[str]] = {}
        for flight, recipe in self.flights.items():
            # the letters of the id choose the airframe, so the same seed and airframe fly the same mission
            made.setdefault(f"{airframe_of(flight)} seed {recipe.seed}", []).append(flight)
        of = {flight: name for name, flights in self.splits.items() for flight in flights}
        for what, same in made.items():
            if len({of.get(flight) for flight in same}) > 1:
                problems.append(f"flights {', '.join(same)} fly the same mission ({what}) in different splits")
        if self.flights:
            problems += [
                f"flight {flight!r} is in a split but has no recipe" for flight in of if flight not in self.flights
            ]
        return problems


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of either form."""

    version: int = 1
    splits: dict[str, list[str]] | None = None
    flights: dict[str, Recipe] = {}
    train: list[str] | None = None
    val: list[str] | None = None
    validation: list[str] | None = None
    test: list[str] | None = None
    shift: list[str] | None = None
    folds: list[dict[str, list[str]]] = []
    """Written where each flight was left out in turn (artifacts.py)."""

    def read(self) -> Splits:
        """What it says. Raises ValueError where it is of neither form, or of both."""
        named = {name: ids for name in (*SPLITS, *ALSO) if (ids := getattr(self, name)) is not None}
        if self.folds:
            raise ValueError("flights that were left out in turn have no splits: evaluate them without this file")
        if (self.splits is None) == (not named):
            raise ValueError('expected either "splits", or "train", "val" and "test" with lists of flights')
        given = named if self.splits is None else self.splits
        splits: dict[str, list[str]] = {}
        for name, ids in given.items():
            if (known := ALSO.get(name, name)) in splits:
                raise ValueError(f"the split {known!r} is there twice, once as {name!r}")
            splits[known] = ids
        # in the order in which an evaluation uses them; unknown names are kept, for the check that names them
        order = sorted(splits, key=lambda name: SPLITS.index(name) if name in SPLITS else len(SPLITS))
        return Splits(self.version, {name: splits[name] for name in order}, self.flights)


@dataclass(frozen=True, slots=True)
class Fold:
    """Flights that calibrate, and flights that are judged with what they gave."""

    calibrate: tuple[str, ...]
    test: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Material:
    """Flights by id (begun at t = 0), the folds of each group, and clean flights of another kind."""

    flights: dict[str, Flight]
    groups: dict[str, list[Fold]]
    shifted: tuple[str, ...] = ()
    source: str = ""
    """Where the flights come from and how they are split, in words."""
    splits: Splits | None = None
    """Where flights have one split each."""
    notes: tuple[str, ...] = ()
    """Flights that are left out, and why."""

    @property
    def tested(self) -> list[Flight]:
        """The flights that are judged in some group, in order."""
        ids = {flight for folds in self.groups.values() for fold in folds for flight in fold.test}
        return [flight for name, flight in self.flights.items() if name in ids]


def as_document(material: Material) -> dict[str, Any]:
    """The splits in the document's form, ready for JSON; with the recipes of simulated flights."""
    if material.splits is None:
        return {"folds": [{"val": [*fold.calibrate], "test": [*fold.test]} for fold in material.groups[MIXED]]}
    names = {known: name for name, known in ALSO.items()}
    found: dict[str, Any] = {names.get(name, name): ids for name, ids in material.splits.splits.items()}
    if material.splits.flights:
        found["flights"] = msgspec.to_builtins(material.splits.flights)
    return found


def read_splits(path: Path | None = None) -> Splits:
    """The splits of a file, or those that are shipped. Raises LogError."""
    if path is None:
        return from_json(resources.files("watchkeeper.config").joinpath("splits.json").read_bytes(), _File).read()
    try:
        return read_json(path, _File).read()
    except ValueError as error:
        raise LogError(path, str(error)) from error


def leave_one_out(flights: Sequence[str]) -> list[Fold]:
    """Each flight judged with what all others gave."""
    return [Fold(tuple(f for f in flights if f != held), (held,)) for held in flights]


def simulated(flight_id: str, recipe: Recipe) -> Flight:
    """Fly it: the same recipe and airframe give the same bytes."""
    quad = airframe_of(flight_id) == "quad"
    streams = [np.random.Generator(np.random.PCG64(s)) for s in np.random.SeedSequence(recipe.seed).spawn(2)]
    # two drones, a multirotor and a fixed wing; one of them is ours
    missions = draw_missions(streams[0], 2, recipe.seconds)
    own = int(np.flatnonzero((missions.shape == QUAD) == quad)[0])
    errors: dict[str, Any] = dict(recipe.errors)
    source = DroneSource(
        missions, Faults([]), streams[1],
        names=["a", "b"], rate_hz=recipe.imu_hz, errors=replace(REAL, **errors), ahrs=True,
    )  # fmt: skip
    (flight,) = flights_of(_own(source, own, recipe.seconds, flight_id))
    return flight


def _own(source: DroneSource, own: int, seconds: int, flight_id: str) -> Iterator[Batch]:
    for s in range(seconds):
        for chunk in source.second(s):
            rows = chunk.vid == own
            values = {f.name: chunk.data[c, rows] for c, f in enumerate(FIELDS[chunk.kind])}
            vid = np.zeros(int(rows.sum()), np.int32)
            yield Batch([flight_id], {chunk.kind: columns_of(chunk.kind, vid, chunk.t[rows], values)})


def check_recipes(splits: Splits) -> list[str]:
    """Errors that the simulator does not know."""
    known = set(Errors.__dataclass_fields__)
    return [
        f"flight {flight!r}: the simulator has no error {name!r}"
        for flight, recipe in splits.flights.items()
        for name in recipe.errors
        if name not in known
    ]
