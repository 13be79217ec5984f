"""`watchkeeper.evaluate.protocol`: the GPS/IMU detector judged by the rules of docs/evaluation/protocol.md.

Reads or simulates the flights and has them studied (study.py). command.py is the same from a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path

import msgspec

from watchkeeper.config.loader import load
from watchkeeper.detectors.engine.warmup import warm_up
from watchkeeper.evaluation.attacks.catalogue import Attack, catalogue, find
from watchkeeper.evaluation.attacks.document import as_document, read_document
from watchkeeper.evaluation.attacks.flight import FlightData
from watchkeeper.evaluation.leakage.api import before_evaluation
from watchkeeper.evaluation.protocol.material import gather
from watchkeeper.evaluation.protocol.meter import meter
from watchkeeper.evaluation.protocol.river import river_study
from watchkeeper.evaluation.protocol.run import ProtocolError
from watchkeeper.evaluation.protocol.splits import as_document as splits_document
from watchkeeper.evaluation.protocol.splits import read_splits
from watchkeeper.evaluation.protocol.study import Result, study
from watchkeeper.evaluation.shared.arguments import missing_extra
from watchkeeper.evaluation.shared.features import banned
from watchkeeper.streams.messages import FIELDS, Kind

CONFIGS = ("high-sensitivity", "balanced", "high-specificity")


def protocol(
    flights: FlightData | None = None,
    *,
    splits: str | PathLike[str] | None = None,
    attacks: Sequence[str] | None = None,
    catalog: str | PathLike[str] | None = None,
    repeats: int = 3,
    features: str = "strict",
    profile: str = "balanced",
    search: bool = True,
    lasting: bool = True,
    river: bool = False,
    config: str | PathLike[str] | None = None,
    quiet: bool = True,
) -> Result:
    """Judge the GPS/IMU detector: clean flights calibrate, held-out flights carry the attacks of the catalogue.

    `flights` are a folder of logs, a frame of vehicles, or frames and logs by name. `splits` is a file that says which
    of them set the thresholds and which are judged; without it each is judged with thresholds from all others. Without
    flights they are simulated as `splits` says (default: the shipped ones), which takes minutes. `attacks` are names or
    families (default: all) of `catalog`, a file in the document's form (default: the shipped one), `repeats` onsets per
    attack and flight; `search` finds the smallest magnitude that is found; `lasting` runs every attack until the end of
    the flight as well; `river` adds what online models find. `config` is a TOML file.

    The leakage check runs first, and a leak ends it. A flight that is too short for an attack is left out, and named in
    the result's `notes`. Raises AttackError for an unknown attack, ProtocolError where the result would not mean
    anything, ImportError for `river` without its extra.
    """
    if river and (problem := missing_extra("river=True", "river", "river")):
        raise ImportError(problem)
    known = catalogue().attacks if catalog is None else read_document(Path(catalog))
    chosen = _chosen(attacks, known)
    say: Callable[[str], None] = (lambda _: None) if quiet else _say
    if splits is not None:
        # what is wrong with the file is said before anything takes long
        read_splits(Path(splits))
    say("the flights, and whether they are apart")
    material = gather(flights, None if splits is None else Path(splits), chosen)
    leaks = before_evaluation(list(material.flights.values()), material.splits, features)
    if len(leaks):
        lines = [f"  {check}: {leak}" for check, found in leaks.checks.items() for leak in found]
        raise ProtocolError("\n".join(["a leak would make every figure void; nothing was evaluated", *lines]))
    file = None if config is None else Path(config)
    profiles = {name: load(file, overrides={"profile": name}) for name in CONFIGS}
    warm_up(profiles[profile])
    strict = features == "strict"
    result = study(
        material, profiles, profile, chosen,
        repeats=repeats, strict=strict, search=search, lasting=lasting, through=meter(hidden=quiet), say=say,
    )  # fmt: skip
    if river:
        say("what online models add")
        more = river_study(material, profiles[profile], chosen, strict=strict, through=meter(hidden=quiet))
        result = msgspec.structs.replace(result, river=more)
    result.settings["flights"] = material.source
    result.settings["splits"] = splits_document(material)
    result.settings["catalog"] = as_document(chosen)
    result.settings["leakage"] = {check: len(found) for check, found in leaks.checks.items()}
    result.settings["refused_features"] = banned(_names(), features)
    return result


def _chosen(words: Sequence[str] | None, known: Sequence[Attack]) -> list[Attack]:
    """The attacks named, by name or family; all of them without a word."""
    if words is None:
        return list(known)
    chosen: list[Attack] = []
    for word in words:
        family = [attack for attack in known if attack.family == word]
        chosen += family or [find(known, word)]
    return list(dict.fromkeys(chosen))


def _say(what: str) -> None:
    """What is done next, for people who wait: never on standard output, which is the result."""
    print(f"evaluating: {what}", file=sys.stderr, flush=True)


def _names() -> list[str]:
    return [field.name for kind in (Kind.GPS, Kind.IMU) for field in FIELDS[kind]]
