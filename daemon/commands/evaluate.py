"""`watchkeeper evaluate NAME …`: how good alarms, controllers, trajectories and detectors are, measured offline.

An evaluation NAME is evaluation/NAME/command.py with HELP, EXAMPLES, add_arguments(parser) and main(args) -> int.
They are loaded by name, because the daemon and the evaluation do not depend on each other.
"""

from __future__ import annotations

import argparse
from importlib import import_module

from watchkeeper.streams.logs.exits import exits

HELP = "Measure how good alarms, controllers, trajectories and detectors are."
EXAMPLES = """examples:
  watchkeeper evaluate                                   list the evaluations
  watchkeeper evaluate alarms flight.wklog               missed, nuisance share and warning time of conflict alarms
  watchkeeper evaluate risk flight.wklog                 how close aircraft come, and how often separation is lost
  watchkeeper evaluate controllers episode.json          31 metrics of a controller's recorded episode
  watchkeeper evaluate shift_matrix metrics.json         models trained on one scenario, judged on others
  watchkeeper evaluate shifts --simulate 20              one aircraft begins otherwise: what changes?
  watchkeeper evaluate tracks real.csv generated.csv     how like the real trajectories the generated ones are
  watchkeeper evaluate models eval/a eval/b              which of two models is nearer, and is that chance?
  watchkeeper evaluate gps_imu --flights recordings/     does gps_imu find sensors that lie, failures first
  watchkeeper evaluate lasting --flights recordings/     is a bias of minutes one alarm until it ends?
  watchkeeper evaluate hours --simulated 20              clean hours: how many alarms of gps_imu are raised for nothing?
  watchkeeper evaluate signals --logs recordings/        which faults in named signals are found, by which method
  watchkeeper evaluate names --flights recordings/       is each fault called by its right name?
  watchkeeper evaluate diagnosis --episodes 100          is the right fault found at the right place, at what cost?
  watchkeeper evaluate textfile results/*.json --out watchkeeper.prom    the same figures for Prometheus
  watchkeeper evaluate alarms --help
"""
# Name, after what is judged, to what it measures.
EVALUATIONS: dict[str, str] = {
    "alarms": "conflict alarms: missed, nuisance share, warning time, and the trade-off between them",
    "risk": "how close aircraft come: share of encounters by distance, losses per flight hour by place and time",
    "tracks": "generated trajectories compared with real ones: Hausdorff, DTW, EDR",
    "models": "two models on the same trajectories: paired tests, intervals, corrections",
    "gps_imu": "the GPS/IMU detector on clean and attacked flights, held out by flight",
    "lasting": "GPS biases of minutes: one gps_imu alarm, there until the bias ends?",
    "hours": "hours without an attack: epochs over the threshold, false alarms per hour with their interval",
    "names": "attacks and sensor faults: is each called by its right name, and how sure is that?",
    "leakage": "a flight in two splits, a feature that gives the label away, code that learns from test data",
    "controllers": "a controller's episodes: conflicts seen, missed and imagined, 31 metrics",
    "shift_matrix": "controllers trained on one scenario, judged on others: matrix, gap, heat map",
    "shifts": "one aircraft of an episode shifted, same seed: paired tests, DTW of the tracks",
    "diagnosis": "fault type and location on simulated networks, compared with baselines",
    "signals": "faults put into named signals: recall at 1 % false positives, next to an EWMA and river's models",
    "textfile": "the headline figures of finished evaluations, for Prometheus and Grafana",
}
# Names whose folder has another one. The folder's name is the older name of the command and stays as an alias.
OLD_NAMES: dict[str, str] = {"controllers": "conflicts", "gps_imu": "protocol", "models": "paired"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The evaluation's name; everything after it is for the evaluation."""
    parser.add_argument(
        "name", nargs="?", choices=sorted([*EVALUATIONS, *OLD_NAMES.values()]), help="which one; without it: the list"
    )
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="arguments of the evaluation (try --help there)")


def main(args: argparse.Namespace) -> int:
    """Run one evaluation, or list them."""
    if args.name is None:
        for name, line in EVALUATIONS.items():
            old = f" (also: {OLD_NAMES[name]})" if name in OLD_NAMES else ""
            print(f"{name:12} {line}{old}")
        return 0
    module = import_module(f"watchkeeper.evaluation.{OLD_NAMES.get(args.name, args.name)}.command")
    parser = argparse.ArgumentParser(
        prog=f"watchkeeper evaluate {args.name}",
        description=module.HELP,
        epilog=module.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    return exits(lambda parsed: int(module.main(parsed)))(parser.parse_args(args.rest))
