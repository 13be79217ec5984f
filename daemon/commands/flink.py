"""`watchkeeper flink`: the same pipeline as a job of an Apache Flink cluster."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from watchkeeper.config.loader import ENV_FILE, load
from watchkeeper.daemon.commands.arguments import mqtt_url, positive, speed
from watchkeeper.streams.logs.exits import USAGE, exits, fail

HELP = "Build the job for Apache Flink and submit it: the alarms are the same bytes as those of `watchkeeper replay`."
EXAMPLES = """\
examples:
  watchkeeper flink flight.wklog --alarms out                        a small cluster within this process, to try it
  watchkeeper flink recordings/ --alarms out --cluster jm:8081       a folder in which logs come and grow, for good
  watchkeeper flink recordings/ --to-mqtt mqtt://broker:1883 --cluster jm:8081
                                                                     alarms to a broker, as the daemon publishes them
  watchkeeper flink -c FILE --jar flink-sql-connector-kafka.jar --cluster jm:8081
                                                                     flink.kafka_servers: from topic to topic
  watchkeeper flink recordings/ --alarms out --cluster jm:8081 --parallelism 4 --from file:///…/savepoint-1

Needs `pip install watchkeeper[flink]` and Java 11, 17 or 21, here and on every worker. Files must have the same path on
all of them. docs/engines/flink.md tells more.
exit codes: 0 good, 1 failed, 2 usage, 78 bad configuration
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument(
        "logs", metavar="LOG", nargs="*", type=Path, help="logs (.wklog), one after the other, or a folder; none: Kafka"
    )
    parser.add_argument("-c", "--config", metavar="FILE", type=Path, help=f"TOML file (default: {ENV_FILE}, or none)")
    parser.add_argument("--alarms", metavar="DIR", help="files of alarm events, or an address of Flink")
    parser.add_argument(
        "--to-mqtt", type=mqtt_url, metavar="URL", help="a broker for alarm events; without it and --alarms: Kafka"
    )
    parser.add_argument("--cluster", metavar="HOST:PORT", default="", help="the JobManager (default: within here)")
    parser.add_argument("--parallelism", type=positive, metavar="N", help="workers, whatever the configuration says")
    parser.add_argument("--speed", type=speed, help="of logs: 1 is real time (default: as fast as it goes)")
    parser.add_argument("--from", dest="savepoint", metavar="SAVEPOINT", default="", help="a savepoint or a checkpoint")
    parser.add_argument("--jar", action="append", default=[], metavar="FILE", help="Flink's connector for Kafka")
    parser.add_argument("--wait", action="store_true", help="until the job has ended, as it does without --cluster")


@exits
def main(args: argparse.Namespace) -> int:
    """Submit; the exit code."""
    overrides = {"flink": {"parallelism": args.parallelism}} if args.parallelism else None
    config = load(args.config, overrides=overrides)
    flink = config.flink
    if flink.parallelism & (flink.parallelism - 1):
        return _usage(f"flink.parallelism is {flink.parallelism}, it must be a power of two")
    if not flink.kafka_servers and not (args.logs and (args.alarms or args.to_mqtt)):
        return _usage("give a LOG and --alarms DIR or --to-mqtt URL, or flink.kafka_servers in the configuration")
    if args.cluster and not args.cluster.rpartition(":")[2].isdecimal():
        return _usage(f"--cluster {args.cluster}: expected HOST:PORT")
    if missing := [path for path in args.logs if not path.exists()]:
        return fail(f"{missing[0]}: no such file or folder")
    try:
        # PyFlink is an extra, and takes seconds to load
        from watchkeeper.engines.flink.job import Order, submit  # noqa: PLC0415
        from watchkeeper.engines.flink.kafka import NoConnectorError  # noqa: PLC0415
    except ModuleNotFoundError as error:
        return fail(f"{error.name} is not installed: pip install watchkeeper[flink]")
    order = Order(
        logs=tuple(str(path.resolve()) for path in args.logs),
        alarms=args.alarms or "",
        cluster=args.cluster,
        speed=0.0 if args.speed is None or math.isinf(args.speed) else args.speed,
        savepoint=args.savepoint,
        jars=tuple(args.jar),
        mqtt=args.to_mqtt or "",
    )
    try:
        job = submit(config, order)
    except NoConnectorError as error:
        return fail(str(error))
    print(f"job {job.get_job_id()}", flush=True)
    if args.wait or not args.cluster:
        job.get_job_execution_result().result()
    return 0


def _usage(problem: str) -> int:
    print(f"watchkeeper: {problem}", file=sys.stderr)
    return USAGE
