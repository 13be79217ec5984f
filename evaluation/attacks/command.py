"""`watchkeeper inject ATTACK LOG OUT`: a log with one attack of the catalogue in it, and the truth next to it.

The same code as the evaluation's (catalogue.py). Every vehicle with GPS and IMU is attacked, or the one named.
Everything else in the log passes unchanged and in order. Loaded by daemon/commands/inject.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from watchkeeper.evaluation.attacks.catalogue import AttackError, Injection, catalogue, inject
from watchkeeper.evaluation.attacks.flight import SENSORS, flights_of
from watchkeeper.streams.batch import Batch, Columns
from watchkeeper.streams.logs.progress import shown
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.logs.target import check, write_log
from watchkeeper.streams.messages import Kind


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("attack", metavar="ATTACK", help="a name from the catalogue; `list` shows them all")
    parser.add_argument("log", metavar="LOG", nargs="?", type=Path, help="the log to read (.wklog, .csv, .csv.gz)")
    parser.add_argument(
        "out",
        metavar="OUT",
        nargs="?",
        type=Path,
        help="the log to write (.wklog, .csv ...: see convert), and OUT.truth.json",
    )
    parser.add_argument("--id", metavar="ID", help="only this vehicle (default: every one with GPS and IMU)")
    parser.add_argument("--onset", type=float, metavar="S", help="seconds after the vehicle's first sample (random)")
    parser.add_argument("--duration", type=float, metavar="S", help="how long (default: the catalogue's)")
    parser.add_argument("--magnitude", type=float, metavar="X", help="in the family's unit (default: the catalogue's)")
    parser.add_argument("--seed", type=int, metavar="N", help="another seed is another onset and direction")


def main(args: argparse.Namespace) -> int:
    """Inject; the exit code."""
    if args.attack == "list":
        print(listing())
        return 0
    if args.log is None or args.out is None:
        print("watchkeeper: inject needs ATTACK LOG OUT (or: inject list)", file=sys.stderr)
        return 2
    check(args.out)
    if args.out.exists() and args.out.samefile(args.log):
        print(f"watchkeeper: {args.out}: cannot be read and written at once", file=sys.stderr)
        return 1
    try:
        source = open_log(args.log)
        made = _injections(args, list(shown(source.batches(), [source], "reading")))
    except AttackError as error:
        print(f"watchkeeper: {error}", file=sys.stderr)
        return 1
    written = write_log(
        args.out, lambda what: (attacked(batch, made) for batch in shown(source.batches(), [source], what))
    )
    truth = args.out.with_name(args.out.name + ".truth.json")
    truth.write_bytes(msgspec.json.format(msgspec.json.encode({"faults": [_fault(m) for m in made]}), indent=1) + b"\n")
    print(
        f"{args.out}: {args.attack} in {len(made)} of the vehicles, {written.samples:,} samples; truth in {truth.name}"
    )
    return 0


def listing() -> str:
    """Every attack with its magnitude and what it does."""
    known = catalogue()
    lines = []
    for attack in known.attacks:
        family = known.families[attack.family]
        size = f"{attack.magnitude:g} {family.unit}" if family.unit else ""
        lines.append(f"{attack.name:29} {size:>10}  {attack.duration_s:g} s  {family.description}")
    return "\n".join(lines)


def _injections(args: argparse.Namespace, batches: Sequence[Batch]) -> list[Injection]:
    attack = catalogue().find(args.attack)
    changes = {"duration_s": args.duration, "magnitude": args.magnitude, "seed": args.seed}
    attack = msgspec.structs.replace(attack, **{key: value for key, value in changes.items() if value is not None})
    flights = [flight for flight in flights_of(batches) if args.id in (None, flight.id)]
    if not flights:
        raise AttackError(
            f"{args.log}: {f'no vehicle {args.id!r}' if args.id else 'no vehicle'} with GPS and IMU samples"
        )
    return [inject(attack, flight, onset_s=args.onset) for flight in flights]


def attacked(batch: Batch, made: Sequence[Injection]) -> Batch:
    """The batch as the attacks leave it."""
    kinds = dict(batch.kinds)
    for injection in made:
        if injection.flight.id not in batch.ids:
            continue
        vid = batch.ids.index(injection.flight.id)
        for kind in SENSORS:
            if kind in kinds:
                kinds[kind] = _changed(kinds[kind], vid, kind, injection)
    kept = {kind: cols for kind, cols in kinds.items() if len(cols)}
    return Batch(batch.ids, kept, batch.vias, batch.callsigns, batch.called_t)


def _changed(cols: Columns, vid: int, kind: Kind, made: Injection) -> Columns:
    rows, window, lost = (
        (made.gps_rows, made.gps, made.gps_lost) if kind is Kind.GPS else (made.imu_rows, made.imu, made.imu_lost)
    )
    clean_t = made.flight.stream(kind).t[rows]
    # a sample of the window is known by its time; repeated ones were left out of the flight and are left alone
    at = np.minimum(np.searchsorted(clean_t, cols.t), len(clean_t) - 1)
    hit = np.flatnonzero((cols.vid == vid) & (clean_t[at] == cols.t))
    t, data = cols.t.copy(), cols.data.copy()
    t[hit], data[:, hit] = window.t[at[hit]], window.data[:, at[hit]]
    gone = np.zeros(len(t), bool)
    gone[hit] = lost[at[hit]]
    return Columns(cols.seq, cols.vid, cols.via, t, data).take(~gone)


def _fault(made: Injection) -> dict[str, Any]:
    attack, family = made.attack, catalogue().families[made.attack.family]
    return {
        "id": made.flight.id, "kind": attack.family, "attack": attack.name, "stream": family.stream,
        "t_start": made.t_start, "t_end": made.t_end, "magnitude": attack.magnitude, "unit": family.unit,
        "seed": attack.seed,
    }  # fmt: skip
