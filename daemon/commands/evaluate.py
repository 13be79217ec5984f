"""`watchkeeper evaluate NAME …`: how good alarms, controllers, trajectories and detectors are, measured offline.

An evaluation NAME is evaluation/NAME/command.py with HELP, EXAMPLES, add_arguments(parser) and main(args, shown) ->
int; `shown` puts a progress bar around the reading of logs. They are loaded by name, because the daemon and the
evaluation do not depend on each other.
"""

from __future__ import annotations

import argparse
from importlib import import_module

from watchkeeper.daemon.commands.exits import exits
from watchkeeper.daemon.commands.progress import shown

HELP = "Measure how good alarms, controllers, trajectories and detectors are."
EXAMPLES = """examples:
  watchkeeper evaluate                                   list the evaluations
  watchkeeper evaluate alarms flight.wklog               missed, nuisance share and warning time of conflict alarms
  watchkeeper evaluate conflicts episode.json            31 metrics of a controller's recorded episode
  watchkeeper evaluate tracks real.csv generated.csv     how like the real trajectories the generated ones are
  watchkeeper evaluate paired eval/a eval/b              which of two models is nearer, and is that chance?
  watchkeeper evaluate protocol --flights recordings/    does gps_imu find sensors that lie, failures first
  watchkeeper evaluate diagnosis --episodes 100          is the right fault found at the right place, at what cost?
  watchkeeper evaluate textfile results/*.json --out watchkeeper.prom    the same figures for Prometheus
  watchkeeper evaluate alarms --help
"""
# Name to what it measures.
EVALUATIONS: dict[str, str] = {
    "alarms": "conflict alarms: missed, nuisance share, warning time, and the trade-off between them",
    "tracks": "generated trajectories compared with real ones: Hausdorff, DTW, EDR",
    "paired": "two models on the same trajectories: paired tests, intervals, corrections",
    "protocol": "the GPS/IMU detector on clean and attacked flights, held out by flight",
    "leakage": "a flight in two splits, a feature that gives the label away, code that learns from test data",
    "conflicts": "a controller's episodes: conflicts seen, missed and imagined, 31 metrics",
    "diagnosis": "fault type and location on simulated networks, compared with baselines",
    "textfile": "the headline figures of finished evaluations, for Prometheus and Grafana",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The evaluation's name; everything after it is for the evaluation."""
    parser.add_argument("name", nargs="?", choices=sorted(EVALUATIONS), help="which one; without it: the list")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="arguments of the evaluation (try --help there)")


def main(args: argparse.Namespace) -> int:
    """Run one evaluation, or list them."""
    if args.name is None:
        for name, line in EVALUATIONS.items():
            print(f"{name:10} {line}")
        return 0
    module = import_module(f"watchkeeper.evaluation.{args.name}.command")
    parser = argparse.ArgumentParser(
        prog=f"watchkeeper evaluate {args.name}",
        description=module.HELP,
        epilog=module.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    return exits(lambda parsed: int(module.main(parsed, shown)))(parser.parse_args(args.rest))
