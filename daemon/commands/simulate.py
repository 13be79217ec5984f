"""`watchkeeper simulate SCENARIO`: made-up traffic and drones to a log, with a file of the truth, or to a broker."""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
import time
from pathlib import Path

import msgspec

from watchkeeper.config.loader import load
from watchkeeper.daemon.commands.arguments import mqtt_url, positive, speed
from watchkeeper.streams.logs.exits import exits, fail
from watchkeeper.streams.logs.pacing import Pacer, SystemClock
from watchkeeper.streams.logs.target import check, write_log
from watchkeeper.streams.simulate import SCENARIOS, Simulation, simulate
from watchkeeper.streams.simulate.scenarios import T0

HELP = "Simulate a scenario. The same seed gives the same bytes.\n\nscenarios:\n" + "\n".join(
    f"  {name:11} {scenario}" for name, scenario in SCENARIOS.items()
)
EXAMPLES = """\
examples:
  watchkeeper simulate head-on --out head-on.wklog                and head-on.wklog.truth.json
  watchkeeper simulate mixed --vehicles 220 --seconds 600 --seed 7 --out mixed.wklog
  watchkeeper simulate drones --to-mqtt mqtt://127.0.0.1:1883     in real time; --speed max as fast as it goes
  watchkeeper simulate demo --now --to-mqtt mqtt://127.0.0.1:1883 with today's time, for dashboards
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("scenario", metavar="SCENARIO", choices=sorted(SCENARIOS), help=", ".join(SCENARIOS))
    parser.add_argument(
        "--out", type=Path, metavar="LOG", help="write a .wklog (or .csv, .parquet ...: see convert) and LOG.truth.json"
    )
    parser.add_argument("--to-mqtt", type=mqtt_url, metavar="URL", help="publish to a broker (or both)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="another seed is another day (default 0)")
    parser.add_argument("--vehicles", type=positive, metavar="N", help="default: the scenario's")
    parser.add_argument("--seconds", type=float, metavar="S", help="how long; default: the scenario's")
    parser.add_argument("--rate", type=float, metavar="HZ", help="reports per second: ADS-B, or with drones the IMU")
    parser.add_argument("--speed", type=speed, default=1.0, help="of --to-mqtt: 1 is real time (default), or 50, max")
    parser.add_argument("--now", action="store_true", help="begin at this moment, not at the fixed date of all logs")
    parser.add_argument("--samples", action="store_true", help="with --to-mqtt: one message per sample, not frames")
    parser.add_argument("-c", "--config", metavar="FILE", type=Path, help="TOML file, for the broker and the topics")


@exits
def main(args: argparse.Namespace) -> int:
    """Simulate; the exit code."""
    if args.out is None and args.to_mqtt is None:
        print("watchkeeper: simulate needs --out LOG or --to-mqtt URL", file=sys.stderr)
        return 2
    if args.out is not None:
        check(args.out)
    try:
        t0 = time.time() if args.now else T0
        simulation = simulate(
            args.scenario, seed=args.seed, vehicles=args.vehicles, seconds=args.seconds, rate_hz=args.rate, t0=t0
        )
    except ValueError as error:
        print(f"watchkeeper: {error}", file=sys.stderr)
        return 2
    if args.out is not None:
        _write(simulation, args.out)
    return _publish(simulation, args) if args.to_mqtt else 0


def _write(simulation: Simulation, out: Path) -> None:
    written = write_log(out, lambda _what: simulation.batches())
    truth = simulation.truth()
    truth_path = out.with_name(out.name + ".truth.json")
    truth_path.write_bytes(msgspec.json.format(msgspec.json.encode(truth), indent=1) + b"\n")
    print(
        f"{out}: {simulation.scenario}, seed {simulation.seed}, {simulation.vehicles:,} vehicles, "
        f"{simulation.seconds:g} s, {written.samples:,} samples, {out.stat().st_size:,} bytes; "
        f"truth in {truth_path.name}"
    )


def _publish(simulation: Simulation, args: argparse.Namespace) -> int:
    from watchkeeper.daemon.replay.publish import publish  # noqa: PLC0415

    config = load(args.config)
    pacer = Pacer(args.speed, SystemClock(), max_gap_s=math.inf)
    try:
        done = asyncio.run(publish(simulation.batches(), config, args.to_mqtt, pacer, by_sample=args.samples))
    except ConnectionError as error:
        return fail(f"{args.to_mqtt}: {error}")
    print(f"{done.samples:,} samples in {done.messages:,} messages to {args.to_mqtt}")
    return 0
