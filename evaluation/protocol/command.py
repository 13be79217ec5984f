"""`watchkeeper evaluate protocol`: the GPS/IMU detector judged by the rules of docs/evaluation/protocol.md.

Reads or simulates the flights, has them studied (study.py) and writes the figures: results/metrics.json, a
table on the terminal, and a report with plots. Loaded by daemon/commands/evaluate.py.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import msgspec

from watchkeeper.config.loader import ENV_FILE, load
from watchkeeper.detectors.engine.warmup import warm_up
from watchkeeper.evaluation.attacks.catalogue import Attack, AttackError, catalogue
from watchkeeper.evaluation.attacks.flight import airframe_of, read_flights
from watchkeeper.evaluation.protocol.features import PROFILES as FEATURES
from watchkeeper.evaluation.protocol.features import banned
from watchkeeper.evaluation.protocol.river import river_study
from watchkeeper.evaluation.protocol.run import ProtocolError, Through
from watchkeeper.evaluation.protocol.splits import MIXED, Fold, Material, leave_one_out, read_splits, simulated
from watchkeeper.evaluation.protocol.study import Result, study
from watchkeeper.evaluation.protocol.text import markdown, terminal
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.exits import fail
from watchkeeper.streams.logs.progress import shown
from watchkeeper.streams.logs.source import SourceInfo
from watchkeeper.streams.messages import FIELDS, Kind

HELP = """\
Judge the GPS/IMU detector: clean flights calibrate, held-out flights carry the attacks of the catalogue, failures come
first. Simulated flights by default (config/splits.json); leave-one-flight-out on the logs of a folder."""
EXAMPLES = """\
examples:
  watchkeeper evaluate protocol                                     simulated flights, minutes
  watchkeeper evaluate protocol --flights recordings/flights --report results/report
  watchkeeper evaluate protocol --attacks gps_bias,gps_drift --repeats 1 --no-search     a quick look
  watchkeeper evaluate protocol --profile high-sensitivity --out results/sensitive.json

docs/evaluation/protocol.md defines every figure, docs/evaluation/attacks.md lists the attacks.
exit codes: 0 good, 1 failed, 2 usage, 78 bad configuration
"""
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
CONFIGS = ("high-sensitivity", "balanced", "high-specificity")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this evaluation."""
    parser.add_argument("--flights", type=Path, metavar="DIR", help="logs with GPS and IMU, one flight each (.csv, …)")
    parser.add_argument("--splits", type=Path, metavar="FILE", help="simulated flights and their splits")
    parser.add_argument("--attacks", metavar="NAMES", help="only these attacks or families, with commas")
    parser.add_argument("--repeats", type=_count, default=3, metavar="N", help="onsets per attack and flight (3)")
    parser.add_argument("--features", choices=sorted(FEATURES), default="strict", help="ahrs lets attitude columns in")
    parser.add_argument("--profile", choices=CONFIGS, default="balanced", help="whose alarms count (balanced)")
    parser.add_argument("--no-search", action="store_true", help="skip the minimum detectable magnitudes")
    parser.add_argument("--river", action="store_true", help="also what river's online models add, alone and together")
    parser.add_argument("-c", "--config", metavar="FILE", type=Path, help=f"TOML file (default: {ENV_FILE}, or none)")
    parser.add_argument("--out", type=Path, metavar="FILE", default=Path("results/metrics.json"), help="all figures")
    parser.add_argument("--report", type=Path, metavar="DIR", help="report.html with plots (extra `plots`)")
    parser.add_argument("--into", type=Path, metavar="PAGE.md", help=f"put the tables between {BEGIN} and {END} there")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def main(args: argparse.Namespace) -> int:
    """Evaluate; the exit code."""
    if args.report and importlib.util.find_spec("matplotlib") is None:
        # before the work, not after it
        return fail('--report needs matplotlib: pip install "watchkeeper[plots]"')
    if args.into and BEGIN not in args.into.read_text():
        return fail(f"{args.into}: no line {BEGIN}")
    try:
        attacks = _chosen(args.attacks)
        material = _real(args.flights) if args.flights else _simulated(args.splits)
        profiles = {name: load(args.config, overrides={"profile": name}) for name in CONFIGS}
        warm_up(profiles[args.profile])
        result = study(
            material, profiles, args.profile, attacks,
            repeats=args.repeats, strict=args.features == "strict", search=not args.no_search,
            through=_meter(hidden=args.quiet),
        )  # fmt: skip
        if args.river:
            river = river_study(
                material, profiles[args.profile], attacks,
                strict=args.features == "strict", through=_meter(hidden=args.quiet),
            )  # fmt: skip
            result = msgspec.structs.replace(result, river=river)
    except (AttackError, ProtocolError, msgspec.ValidationError) as error:
        return fail(str(error))
    source = f"{args.flights}, leave-one-flight-out" if args.flights else "simulated flights, fixed splits"
    result.settings["flights"] = source
    result.settings["refused_features"] = banned(_names(), args.features)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    print(terminal(result))
    print(f"\nall figures: {args.out}")
    if args.report:
        _report(result, args.report)
    if args.into:
        _insert(result, args.into)
    return 0


def _chosen(words: str | None) -> list[Attack]:
    """The attacks named, by name or family; all of them without a word."""
    known = catalogue()
    if words is None:
        return known.attacks
    chosen: list[Attack] = []
    for word in words.split(","):
        family = [attack for attack in known.attacks if attack.family == word]
        chosen += family or [known.find(word)]
    return list(dict.fromkeys(chosen))


def _real(folder: Path) -> Material:
    flights = {flight.id: flight.from_zero() for flight in read_flights(folder)}
    if len(flights) < 2:
        raise ProtocolError(f"{folder}: leave-one-flight-out needs two flights, there is {len(flights)}")
    classes = sorted({flight.airframe for flight in flights.values()})
    groups = {MIXED: leave_one_out(list(flights))}
    for airframe in classes if len(classes) > 1 else ():
        own = [name for name, flight in flights.items() if flight.airframe == airframe]
        if len(own) > 1:
            groups[airframe] = leave_one_out(own)
    return Material(flights, groups)


def _simulated(path: Path | None) -> Material:
    found = read_splits(path)
    if problems := found.overlaps():
        raise ProtocolError("; ".join(problems))
    of = found.splits
    flights = {name: simulated(name, found.flights[name]).from_zero() for names in of.values() for name in names}
    calibrate = (*of.get("train", ()), *of["validation"])
    groups = {MIXED: [Fold(calibrate, tuple(of["test"]))]}
    for airframe in sorted({airframe_of(name) for name in of["test"]}):
        own = tuple(tuple(f for f in names if airframe_of(f) == airframe) for names in (calibrate, of["test"]))
        if own[0] and own[1]:
            groups[airframe] = [Fold(*own)]
    return Material(flights, groups, tuple(of.get("shift", ())))


def _names() -> list[str]:
    return [field.name for kind in (Kind.GPS, Kind.IMU) for field in FIELDS[kind]]


class _Progress:
    """Stands in for a log, of which the progress bar asks how much has been read."""

    def __init__(self, total: int) -> None:
        self.position, self._total = 0, total

    def info(self) -> SourceInfo:
        """Its size is counted in samples."""
        return SourceInfo(Path("flights"), "flights", self._total, ())


def _meter(*, hidden: bool) -> Through:
    def through(batches: Iterator[Batch], total: int) -> Iterator[Batch]:
        meter = _Progress(total)

        def counted() -> Iterator[Batch]:
            for batch in batches:
                meter.position += len(batch)
                yield batch

        return shown(counted(), [meter], "evaluating", hidden=hidden)

    return through


def _report(result: Result, folder: Path) -> None:
    from watchkeeper.evaluation.protocol.report import write_report  # noqa: PLC0415

    print(f"report: {write_report(result, folder)}")


def _insert(result: Result, page: Path) -> None:
    """Replace what stands between the two marks."""
    text = page.read_text()
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n\n{markdown(result, brief=True)}\n{END}{after}")


def _count(word: str) -> int:
    if not word.isdecimal() or not 1 <= int(word) <= 100:
        raise argparse.ArgumentTypeError(f"{word!r}: expected a whole number from 1 to 100")
    return int(word)
