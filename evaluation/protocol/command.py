"""`watchkeeper evaluate protocol`: the GPS/IMU detector judged by the rules of docs/evaluation/protocol.md.

api.py does the work; this file reads the arguments and writes the figures: results/metrics.json, a table on the
terminal, and a report with plots. Loaded by daemon/commands/evaluate.py.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

from watchkeeper.config.loader import ENV_FILE
from watchkeeper.evaluation.attacks.catalogue import AttackError
from watchkeeper.evaluation.protocol.api import CONFIGS, protocol
from watchkeeper.evaluation.protocol.artifacts import CATALOG, METRICS, SPLITS, write, write_all
from watchkeeper.evaluation.protocol.report.text import markdown, terminal
from watchkeeper.evaluation.protocol.run import ProtocolError
from watchkeeper.evaluation.protocol.study import Result
from watchkeeper.evaluation.shared.arguments import missing_extra
from watchkeeper.evaluation.shared.features import PROFILES as FEATURES
from watchkeeper.streams.logs.exits import fail

HELP = """\
Judge the GPS/IMU detector: clean flights calibrate, held-out flights carry the attacks of the catalogue, failures come
first. Simulated flights by default (config/splits.json); leave-one-flight-out on the logs of a folder."""
EXAMPLES = """\
examples:
  watchkeeper evaluate protocol                                     simulated flights, minutes
  watchkeeper evaluate protocol --flights recordings/flights --report results/report
  watchkeeper evaluate protocol --flights recordings/ --splits configs/splits.json      train, val and test by flight
  watchkeeper evaluate protocol --out study                         study/configs, study/attacks and study/results
  watchkeeper evaluate protocol --attacks gps_bias,gps_drift --repeats 1 --no-search --no-lasting   a quick look
  watchkeeper evaluate protocol --profile high-sensitivity --out results/sensitive.json

docs/evaluation/protocol.md defines every figure, docs/evaluation/attacks.md lists the attacks.
exit codes: 0 good, 1 failed, 2 usage, 78 bad configuration
"""
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this evaluation."""
    parser.add_argument(
        "--flights", type=Path, metavar="DIR", help="logs with GPS and IMU, one flight each: .csv, .bin, .ulg, .tlog, …"
    )
    parser.add_argument(
        "--splits", type=Path, metavar="FILE", help="JSON: which flights set thresholds and which are judged"
    )
    parser.add_argument("--catalog", type=Path, metavar="FILE", help="JSON: the attacks, in the document's form (ours)")
    parser.add_argument("--attacks", metavar="NAMES", help="only these attacks or families, with commas")
    parser.add_argument("--repeats", type=_count, default=3, metavar="N", help="onsets per attack and flight (3)")
    parser.add_argument("--features", choices=sorted(FEATURES), default="strict", help="ahrs lets attitude columns in")
    parser.add_argument("--profile", choices=CONFIGS, default="balanced", help="whose alarms count (balanced)")
    parser.add_argument("--no-search", action="store_true", help="skip the minimum detectable magnitudes")
    parser.add_argument("--no-lasting", action="store_true", help="skip the attacks until the end of the flight")
    parser.add_argument("--river", action="store_true", help="also what river's online models add (extra `river`)")
    parser.add_argument("-c", "--config", metavar="FILE", type=Path, help=f"TOML file (default: {ENV_FILE}, or none)")
    parser.add_argument(
        "--out", type=Path, metavar="FILE.json|DIR", default=METRICS,
        help=f"all figures ({METRICS}); a folder gets {SPLITS}, {CATALOG} and {METRICS}",
    )  # fmt: skip
    parser.add_argument("--report", type=Path, metavar="DIR", help="report.html with plots (extra `plots`)")
    parser.add_argument("--into", type=Path, metavar="PAGE.md", help=f"put the tables between {BEGIN} and {END} there")
    parser.add_argument("--quiet", action="store_true", help="no word of progress on standard error")


def main(args: argparse.Namespace) -> int:
    """Evaluate; the exit code."""
    if args.report and importlib.util.find_spec("matplotlib") is None:
        # before the work, not after it
        return fail('--report needs matplotlib: pip install "watchkeeper[plots]"')
    if args.river and (problem := missing_extra("--river", "river", "river")):
        return fail(problem)
    if args.into and BEGIN not in args.into.read_text("utf-8", "replace"):
        return fail(f"{args.into}: no line {BEGIN}")
    try:
        result = protocol(
            args.flights, splits=args.splits, attacks=args.attacks.split(",") if args.attacks else None,
            catalog=args.catalog, repeats=args.repeats, features=args.features, profile=args.profile,
            search=not args.no_search, lasting=not args.no_lasting,
            river=args.river, config=args.config, quiet=args.quiet,
        )  # fmt: skip
    except (AttackError, ProtocolError) as error:
        return fail(str(error))
    alone = args.out.suffix.lower() == ".json" and not args.out.is_dir()
    written = [write(result, args.out)] if alone else write_all(result, args.out)
    print(terminal(result))
    print(f"\nall figures: {written[-1]}")
    if not alone:
        print(f"splits: {written[0]}\nattacks: {written[1]}")
    if args.report:
        _report(result, args.report)
    if args.into:
        _insert(result, args.into)
    return 0


def _report(result: Result, folder: Path) -> None:
    from watchkeeper.evaluation.protocol.report.page import write_report  # noqa: PLC0415

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
