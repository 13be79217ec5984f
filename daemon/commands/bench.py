"""`watchkeeper bench [NAME]`: the benchmarks. Each module in benchmarks/ has main(argv) -> int."""

from __future__ import annotations

import argparse
from importlib import import_module

HELP = "Measure speed and memory on this machine, each compared with a baseline in the same run."
EXAMPLES = """examples:
  watchkeeper bench                       list the benchmarks
  watchkeeper bench replay                samples per second and memory of a replay
  watchkeeper bench live --rate 20000
"""
# Name to what it measures.
BENCHMARKS: dict[str, str] = {
    "peers": "a table of ratios beside BlueSky, paho, aiomqtt, pyulog, tslearn and a plain Kalman filter, in one run",
    "replay": "samples per second and peak memory of a replay, against a plain Python loop",
    "start": "the first replay with empty caches, and the second one",
    "memory": "where the memory of a daemon goes, by part, with nothing to do and with a fleet to watch",
    "sparse": "what a log with long gaps costs, against one with as many samples and none",
    "small": "200 aircraft and 5 drones on one core with 512 MB, and how long its first start takes",
    "logs": "bytes per sample of a recorded log and how fast it is read, against general compressors",
    "modes": "how fast raw Mode S of receivers becomes samples, against pyModeS where it is installed",
    "live": "messages per second, loss and latency through a real broker",
    "residual": "how many times faster than real time 1,000 drones at 100 Hz are judged, from log to alarms",
    "signals": "how many times faster than real time 1,000 vehicles with 50 signals are judged, from log to alarms",
    "workers": "a replay on several cores by --workers, against one pipeline: wall time, and CPU time of each process",
    "cost": "what a fleet costs on 1 to 1,000 workers: processor time, bytes, checkpoints, hot keys, halo copies",
    "conflicts": "time and memory of the conflict search, against BlueSky's detectors on the same traffic",
    "tracks": "time and memory of Hausdorff, DTW and EDR on long trajectories, against plain Python",
    "conflict-metrics": "episodes per second of evaluate conflicts, against a plain Python version",
    "history": "how long questions to the history of a day take, and its disk and memory",
    "page": "processor time that an open live page costs the daemon",
    "diagnosis": "the diagnosis's share of the pipeline's CPU, with many alarms at once",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The benchmark's name; everything after it is for the benchmark."""
    parser.add_argument("name", nargs="?", choices=sorted(BENCHMARKS), help="which one; without it: the list")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="arguments of the benchmark (try --help there)")


def main(args: argparse.Namespace) -> int:
    """Run one benchmark, or list them."""
    if args.name is None:
        for name, line in BENCHMARKS.items():
            print(f"{name:16} {line}")
        return 0
    return int(import_module(f"watchkeeper.benchmarks.{args.name.replace('-', '_')}").main(args.rest))
