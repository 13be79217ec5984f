"""Which flights an evaluation has, and which of them set thresholds: simulated, split by a file, or left out in turn.

Called by api.py. A flight in which an attack has no room is left out with a note. Thresholds come from clean validation
flights alone. Recordings without a file of splits are too few for a third split as a rule: each of them is judged with
thresholds from all others, and the result names those (`threshold_from`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from watchkeeper.evaluation.attacks.catalogue import Attack, AttackError, check_room
from watchkeeper.evaluation.attacks.flight import Flight, FlightData, airframe_of, flights_in
from watchkeeper.evaluation.protocol.run import ProtocolError
from watchkeeper.evaluation.protocol.splits import (
    MIXED,
    Fold,
    Material,
    Splits,
    check_recipes,
    leave_one_out,
    read_splits,
    simulated,
)

log = logging.getLogger(__name__)


def gather(flights: FlightData | None, splits: Path | None, attacks: Sequence[Attack]) -> Material:
    """The flights, ready to be studied. Raises ProtocolError, LogError."""
    if flights is None:
        return _simulated(splits)
    where = str(flights) if isinstance(flights, (str, PathLike)) else "frames"
    known, notes = _long_enough([flight.from_zero() for flight in flights_in(flights)], attacks)
    if splits is None:
        return replace(_in_turn(known, where, notes), notes=tuple(notes))
    found = read_splits(splits)
    _check(found, splits)
    # every flight of the folder has its place, also one that is too short to be used
    missing = [name for names in found.splits.values() for name in names if name not in known]
    gone = [name for name in missing if not any(note.startswith(f"flight {name} ") for note in notes)]
    if gone:
        raise ProtocolError(f"{splits}: flights that are not in {where}: {', '.join(gone)}")
    kept = {name: [f for f in names if f not in missing] for name, names in found.splits.items()}
    split = Splits(found.version, kept)
    return replace(_fixed(split, known), source=f"{where}, splits of {splits}", notes=tuple(notes))


def _simulated(path: Path | None) -> Material:
    found = read_splits(path)
    if path is not None and not found.flights:
        # the document's form has names alone: they may be those of the flights that are shipped
        shipped = read_splits().flights
        named = {name for names in found.splits.values() for name in names}
        if unknown := sorted(named - set(shipped)):
            what = f"no recipe for {', '.join(map(repr, unknown))}"
            raise ProtocolError(f'{path}: {what}: give the recordings (--flights) or recipes under "flights"')
        found = Splits(found.version, found.splits, {name: shipped[name] for name in shipped if name in named})
    _check(found, path)
    # nothing is fitted, so nobody looks at the training flights
    names = [name for split, own in found.splits.items() if split != "train" for name in own]
    flights = {name: simulated(name, found.flights[name]).from_zero() for name in names}
    return replace(_fixed(found, flights), source="simulated flights, fixed splits")


def _check(splits: Splits, path: Path | None) -> None:
    problems = splits.overlaps() + check_recipes(splits)
    problems += [f"no flight in the split {name!r}" for name in ("validation", "test") if not splits.splits.get(name)]
    if problems:
        raise ProtocolError(f"{path or 'splits'}: {'; '.join(problems)}")


def _fixed(splits: Splits, flights: dict[str, Flight]) -> Material:
    of = splits.splits
    groups = {MIXED: [Fold(tuple(of["validation"]), tuple(of["test"]))]}
    for name in ("validation", "test"):
        if not of[name]:
            raise ProtocolError(f"no flight of the split {name!r} is long enough for an attack")
    for airframe in sorted({airframe_of(name) for name in of["test"]}):
        own = [tuple(f for f in of[name] if airframe_of(f) == airframe) for name in ("validation", "test")]
        if own[0] and own[1]:
            groups[airframe] = [Fold(own[0], own[1])]
    return Material(flights, groups, tuple(of.get("shift", ())), splits=splits)


def _in_turn(flights: dict[str, Flight], where: str, notes: Sequence[str]) -> Material:
    if len(flights) < 2:
        also = f" ({'; '.join(notes)})" if notes else ""
        raise ProtocolError(f"{where}: leave-one-flight-out needs two flights, there is {len(flights)}{also}")
    classes = sorted({flight.airframe for flight in flights.values()})
    groups = {MIXED: leave_one_out(list(flights))}
    for airframe in classes if len(classes) > 1 else ():
        own = [name for name, flight in flights.items() if flight.airframe == airframe]
        if len(own) > 1:
            groups[airframe] = leave_one_out(own)
    return Material(flights, groups, source=f"{where}, leave-one-flight-out")


def _long_enough(flights: Sequence[Flight], attacks: Sequence[Attack]) -> tuple[dict[str, Flight], list[str]]:
    """The flights in which every attack has room, and what is to be said of the others."""
    known: dict[str, Flight] = {}
    notes: list[str] = []
    for flight in flights:
        try:
            for attack in attacks:
                check_room(attack, flight)
        except AttackError as error:
            notes.append(f"{error}: left out")
            log.warning("%s", notes[-1])
        else:
            known[flight.id] = flight
    return known, notes
