"""Watchkeeper beside its peers: one table of ratios, all measured in one run.

    watchkeeper bench peers [--rounds 3] [--only mqtt tracks …] [--out RESULT.json]
    watchkeeper bench peers --history results/peers.jsonl --plot results/peers.png
    watchkeeper bench peers --check docs/benchmarks/peers.json          (make bench-check)

Every line is the processor time of one side for the same work, and how many times as much the peer takes. The sides
take turns, so that a busy machine is unfair to all alike; figures are medians over the rounds. What each measure is:

    conflicts   one search among 1,000 aircraft; BlueSky's compiled and NumPy detectors
    mqtt        one message taken off a broker; paho, aiomqtt 2 and gmqtt, which only count it, and a plain socket
    replay      one sample of a log, read, decoded and judged by every detector; a loop that only decodes messages
    residual    one sample of GPS and IMU, judged; a Kalman filter in NumPy (plain/ekf.py)
    tracks      dynamic time warping of two tracks of 1,000 points; tslearn, and plain Python
    reading     one sample of a log, as .wklog; mcap with msgspec, of drones; pyulog, of a ULog flight (--ulog FILE)

A peer that is not installed is named and left out. `--check` compares the ratios with those of an earlier result, as
of a release, and exits with 1 if one has fallen below WORSE of what it was. A ratio hardly depends on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from statistics import median

import msgspec
import numpy as np

from watchkeeper.benchmarks import conflicts, replay, tracks
from watchkeeper.benchmarks.mqtt import transport
from watchkeeper.benchmarks.mqtt.drains import PEERS
from watchkeeper.benchmarks.plain import ekf
from watchkeeper.benchmarks.plain import tracks as plain
from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.warmup import warm_up
from watchkeeper.streams.adapters.exports.mcap import McapWriter
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.logs.wklog import LogReader, LogWriter

# Below this share of the earlier ratio something got slower. Ratios of one commit vary by a tenth or two.
WORSE = 0.75
AIRCRAFT, TRACK_POINTS = 1000, 1000
MQTT_RATE, MQTT_SECONDS = 20_000.0, 4.0
OURS_MQTT = "mqtt5"


class Line(msgspec.Struct, frozen=True):
    """One measure against one peer: what each takes, in `unit`; times is peer over ours."""

    measure: str
    peer: str
    unit: str
    ours: float
    theirs: float

    @property
    def times(self) -> float:
        """How many times as much the peer takes."""
        return self.theirs / self.ours

    @property
    def name(self) -> str:
        """Measure and peer."""
        return f"{self.measure}: {self.peer}"


class Result(msgspec.Struct, frozen=True):
    """One run."""

    commit: str
    date: str
    lines: list[Line]


def main(argv: Sequence[str]) -> int:
    """Measure, print, compare."""
    parser = argparse.ArgumentParser(
        prog="watchkeeper bench peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=MEASURES, default=[*MEASURES], metavar="MEASURE")
    parser.add_argument("--ulog", type=Path, help="a ULog file, for pyulog in `reading`")
    parser.add_argument("--out", type=Path, help="the result as JSON")
    parser.add_argument("--history", type=Path, help="add the result to this file, a line of JSON each")
    parser.add_argument("--plot", type=Path, help="the ratios of the history over its commits, .png or .svg")
    parser.add_argument("--check", type=Path, metavar="RESULT", help="say what is slower than in this result")
    args = parser.parse_args(argv)
    if args.ulog is not None and not args.ulog.is_file():
        parser.error(f"--ulog {args.ulog}: no such file")
    if args.plot and not args.history:
        parser.error("--plot shows a --history")
    print(f"{'':12}{'peer':26}{'ours':>10}{'theirs':>12}  {'':22}{'times as much':>14}")
    lines: list[Line] = []
    for name in args.only:
        for line in MEASURES[name](args):
            lines.append(line)
            figures = f"{line.ours:10.2f}{line.theirs:12.2f}  {line.unit:22}{line.times:14.1f}"
            print(f"{line.measure:12}{line.peer:26}{figures}", flush=True)
    result = Result(_commit(), time.strftime("%Y-%m-%d", time.gmtime()), lines)
    if args.out:
        args.out.write_bytes(msgspec.json.format(msgspec.json.encode(result)) + b"\n")
    if args.history:
        args.history.parent.mkdir(parents=True, exist_ok=True)
        with args.history.open("ab") as file:
            file.write(msgspec.json.encode(result) + b"\n")
    if args.plot:
        _plot(args.plot, [msgspec.json.decode(raw, type=Result) for raw in args.history.read_bytes().splitlines()])
    return _compare(result, args.check) if args.check else 0


# -- measures ---------------------------------------------------------------------------------------------------


def _conflicts(args: argparse.Namespace) -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "conflicts.json"
        words = ["--sizes", str(AIRCRAFT), "--rounds", str(20 * args.rounds), "--budget", "5", "--out", str(out)]
        with redirect_stdout(StringIO()):
            conflicts.main(words)
        rows = {row["detector"]: row for row in msgspec.json.decode(out.read_bytes())["rows"]}
    for name, title in (("compiled", "BlueSky, compiled"), ("numpy", "BlueSky, NumPy")):
        if rows[name]["note"]:
            print(f"{'conflicts':12}{title}: {rows[name]['note']}")
        else:
            yield Line("conflicts", title, "ms a search", rows["ours"]["cpu_ms"], rows[name]["cpu_ms"])


def _mqtt(args: argparse.Namespace) -> Iterator[Line]:
    load = argparse.Namespace(
        rate=MQTT_RATE, seconds=MQTT_SECONDS, vehicles=2000, encoding="msgpack", qos=1, rounds=args.rounds,
        rows=[*PEERS, OURS_MQTT],
    )  # fmt: skip
    us = {cost.name: median(cost.us_per_message) for cost in asyncio.run(transport.measure_all(load))}
    for name in PEERS:
        yield Line("mqtt", name, "us a message", us[OURS_MQTT], us[name])


def _replay(args: argparse.Namespace) -> Iterator[Line]:
    core = max(os.sched_getaffinity(0))
    cases = (
        ("a loop that decodes ADS-B", replay.Case("", "random", 1000, 1.0, 300.0, 0)),
        ("a loop that decodes IMU", replay.Case("", "drones", 200, 100.0, 30.0, 0)),
    )
    for title, case in cases:
        with tempfile.TemporaryDirectory() as folder:
            log = replay.write_log(case, Path(folder) / "log.wklog", case.seconds)
            replay.replay_once(log, Path(folder), core)
            ours, theirs = [], []
            for _ in range(args.rounds):
                run = replay.replay_once(log, Path(folder), core)
                ours.append(1e6 * run.cpu_s / run.samples)
                theirs.append(1e6 * float(replay.pinned(core, [replay.__file__, str(log)])))
        yield Line("replay", title, "us a sample", median(ours), median(theirs))


def _residual(args: argparse.Namespace) -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as folder:
        case = replay.Case("", "drones", 10, 100.0, 30.0, 0)
        log = replay.write_log(case, Path(folder) / "drones.wklog", case.seconds)
        batches = list(LogReader(log).batches())
    warm_up(DEFAULT)
    whole, samples = join(batches), sum(map(len, batches))

    def ours() -> None:
        pipeline = Pipeline(DEFAULT)
        for batch in batches:
            pipeline.feed(batch)
        pipeline.finish()

    ours()  # loads what it needs
    mine, theirs = _in_turns([ours, lambda: ekf.judge(whole)], args.rounds)
    yield Line("residual", "a Kalman filter in NumPy", "us a sample", 1e6 * mine / samples, 1e6 * theirs / samples)


def _tracks(args: argparse.Namespace) -> Iterator[Line]:
    a, b = tracks.walks(TRACK_POINTS, 1)
    ours = tracks.OURS["dtw"]
    sides: dict[str, Callable[[], object]] = {"": lambda: ours(a, b)}
    if importlib.util.find_spec("tslearn"):
        from tslearn.metrics import dtw  # noqa: PLC0415

        metres = [np.radians(track) * (6_371_000.0, 6_371_000.0 * np.cos(np.radians(48.85))) for track in (a, b)]
        sides["tslearn (on a plane)"] = lambda: dtw(*metres)
    else:
        print(f"{'tracks':12}tslearn: not installed")
    lines: list[plain.Line] = [[(lat, lon) for lat, lon in track.tolist()] for track in (a, b)]
    sides["plain Python"] = lambda: plain.dtw_km(*lines)
    for side in sides.values():
        side()  # compiles
    mine, *theirs = _in_turns(list(sides.values()), args.rounds)
    for name, took in zip([*sides][1:], theirs, strict=True):
        yield Line("tracks", name, "ms a comparison", 1e3 * mine, 1e3 * took)


def _reading(args: argparse.Namespace) -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as folder:
        if importlib.util.find_spec("mcap"):
            yield _reading_mcap(Path(folder), args.rounds)
        else:
            print(f"{'reading':12}mcap: not installed")
        if args.ulog is not None and importlib.util.find_spec("pyulog"):
            yield _reading_ulog(args.ulog, Path(folder), args.rounds)
        else:
            print(f"{'reading':12}{'pyulog: not installed' if args.ulog else 'pyulog: left out: no --ulog'}")


def _reading_mcap(folder: Path, rounds: int) -> Line:
    from mcap.reader import make_reader  # noqa: PLC0415

    log, other = folder / "drones.wklog", folder / "drones.mcap"
    replay.write_log(replay.Case("", "drones", 10, 100.0, 30.0, 0), log, 30.0)
    writer, samples = McapWriter(other), 0
    for batch in LogReader(log).batches():
        samples += len(batch)
        writer.write(batch)
    writer.close()

    def theirs() -> None:
        with other.open("rb") as file:
            for _, channel, message in make_reader(file).iter_messages():
                # positions are there a second time, for maps
                if not channel.topic.endswith("/location"):
                    msgspec.json.decode(message.data)

    mine, took = _in_turns([lambda: list(LogReader(log).batches()), theirs], rounds)
    return Line("reading", "mcap", "us a sample", 1e6 * mine / samples, 1e6 * took / samples)


def _reading_ulog(path: Path, folder: Path, rounds: int) -> Line:
    from pyulog import ULog  # noqa: PLC0415

    log, samples = folder / "flight.wklog", 0
    with LogWriter(log) as writer:
        for batch in open_log(path).batches():
            samples += len(batch)
            writer.write(batch)
    mine, theirs = _in_turns([lambda: list(LogReader(log).batches()), lambda: ULog(str(path))], rounds)
    return Line("reading", "pyulog", "us a sample", 1e6 * mine / samples, 1e6 * theirs / samples)


MEASURES: dict[str, Callable[[argparse.Namespace], Iterator[Line]]] = {
    "conflicts": _conflicts,
    "mqtt": _mqtt,
    "replay": _replay,
    "residual": _residual,
    "tracks": _tracks,
    "reading": _reading,
}


def _in_turns(sides: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Processor time of each side in seconds: the median over the rounds."""
    took: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for side, times in zip(sides, took, strict=True):
            began_s = time.process_time()
            side()
            times.append(time.process_time() - began_s)
    return [median(times) for times in took]


# -- what becomes of them ---------------------------------------------------------------------------------------


def _compare(result: Result, path: Path) -> int:
    earlier = msgspec.json.decode(path.read_bytes(), type=Result)
    before = {line.name: line for line in earlier.lines}
    worse = 0
    print(f"\nbeside {path} ({earlier.date}, {earlier.commit})")
    for line in result.lines:
        if (old := before.get(line.name)) is None:
            continue
        share = line.times / old.times
        worse += share < WORSE
        verdict = "SLOWER" if share < WORSE else "ok"
        print(f"{verdict:8}{line.name:44}{old.times:10.1f} times then,{line.times:10.1f} now ({share:.2f})")
    missing = before.keys() - {line.name for line in result.lines}
    for name in sorted(missing):
        print(f"{'':8}{name}: not measured now")
    return int(worse > 0)


def _plot(path: Path, history: list[Result]) -> None:
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    names = dict.fromkeys(line.name for result in history for line in result.lines)
    for name in names:
        points = [(i, line.times) for i, result in enumerate(history) for line in result.lines if line.name == name]
        axes.plot(*zip(*points, strict=True), marker="o", label=name)
    axes.set_yscale("log")
    axes.axhline(1.0, color="0.6", linewidth=1)
    axes.set_xticks(range(len(history)), [f"{result.commit}\n{result.date}" for result in history])
    axes.set_ylabel("the peer takes so many times as much processor time")
    axes.set_title("Watchkeeper beside its peers, by commit")
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _commit() -> str:
    """Of the sources that were measured."""
    words = ["git", "-C", str(Path(__file__).resolve().parent), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
