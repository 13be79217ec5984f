"""A small machine's worth: one core, 512 MB, low priority; the daemon watches 200 aircraft and 5 drones on it.

    watchkeeper bench small [--aircraft 200] [--drones 5] [--seconds 60] [--memory 512] [--core 0]

The daemon is `watchkeeper run` with a state directory, bound to one core (`taskset`, `nice`) and, where we may make one
(as root), in a control group with that much memory for it, its compilers and the files that they read. Broker and
simulators run next to it, on another core where there is one. It starts twice: with an empty cache of compiled kernels,
and again. Samples come one per message, as vehicles send them: IMU at 50 Hz, all else once to five times a second.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from watchkeeper.benchmarks import live
from watchkeeper.benchmarks.conflict_run import status_bytes
from watchkeeper.daemon.demo.broker import EmbeddedBroker, free_port

NICENESS = 10
# After the last sample: for stragglers and the last tick.
SETTLE_S = 5.0
GROUPS = (
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
    (Path("/sys/fs/cgroup"), "memory.max", "memory.peak"),
)
SIMULATE = "import sys; from watchkeeper.daemon.cli import main; sys.exit(main())"


def main(argv: Sequence[str]) -> int:
    """Measure and print; 0 when every sample was judged."""
    parser = argparse.ArgumentParser(
        prog="watchkeeper bench small", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--aircraft", type=int, default=200)
    parser.add_argument("--drones", type=int, default=5, help="with GPS and IMU")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--memory", type=int, default=512, help="MB")
    parser.add_argument("--core", type=int, default=0, help="which one the daemon gets")
    args = parser.parse_args(argv)
    others = set(os.sched_getaffinity(0)) - {args.core}
    with group(args.memory) as limited, tempfile.TemporaryDirectory() as cache:
        kept = f"{args.memory} MB by control group" if limited else "no limit of memory (needs root and control groups)"
        print(f"core {args.core}, niceness {NICENESS}, {kept}")
        prefix = ["env", f"XDG_CACHE_HOME={cache}", "taskset", "-c", str(args.core), "nice", "-n", str(NICENESS)]
        if limited:
            prefix = ["sh", "-c", f'echo $$ > {limited}/cgroup.procs; exec "$@"', "sh", *prefix]
        if others:
            os.sched_setaffinity(0, others)
        for title in ("first start, nothing compiled yet", "second start"):
            ready_s, peak_mb, _ = asyncio.run(_watch(args, prefix, limited, fleet=False))
            print(f"{title:36} ready after {ready_s:5.1f} s, {peak_mb:6.0f} MB at most", flush=True)
        _, peak_mb, found = asyncio.run(_watch(args, prefix, limited, fleet=True))
    fleet = f"{args.aircraft} aircraft, {args.drones} drones"
    print(f"{fleet:36} {found.accepted:,} samples in {args.seconds} s, {found.dropped:,} dropped")
    print(f"{'':36} {found.cpu_percent:.0f} % of the core, {peak_mb:.0f} MB at most")
    print(f"{'':36} {found.events} alarm events, {1000 * found.latency_s:.0f} ms from arrival to the broker on average")
    return int(found.dropped > 0 or found.accepted == 0)


@dataclass(frozen=True, slots=True)
class Found:
    """What the daemon says about its fleet."""

    accepted: int
    dropped: int
    cpu_percent: float
    events: int
    latency_s: float


@contextmanager
def group(memory_mb: int) -> Iterator[Path | None]:
    """A control group with this much memory; None where we may not make one."""
    for root, limit, peak in GROUPS:
        path = root / f"watchkeeper-bench-{os.getpid()}"
        try:
            path.mkdir()
        except OSError:
            continue
        try:
            with suppress(OSError):
                (path / limit).write_text(str(memory_mb * 2**20))
                if (path / peak).exists():
                    yield path
                    return
        finally:
            with suppress(OSError):
                path.rmdir()
    yield None


async def _watch(
    args: argparse.Namespace, prefix: list[str], limited: Path | None, *, fleet: bool
) -> tuple[float, float, Found]:
    """One daemon: seconds until it was ready, MB at most, and what became of a fleet."""
    options = argparse.Namespace(transport="", src="", state=True, tick=1.0, lateness=2.0, prefix=prefix)
    if limited:
        _reset_peak(limited)
    port = free_port()
    async with EmbeddedBroker() as broker:
        began = time.monotonic()
        async with live.daemon(options, broker.url, port) as pid:
            ready_s, before_s = time.monotonic() - began, live.used_s(pid)
            if fleet:
                await _publish(args, broker.url)
            cpu_percent = 100 * (live.used_s(pid) - before_s) / (args.seconds + SETTLE_S)
            page = await live.get(port, "/metrics")
            peak_mb = max(_peak_mb(limited), status_bytes("VmHWM", pid) / 2**20)
    total = {name: _total(page, f"watchkeeper_{name}") for name in ("samples_total", "drops_total")}
    events = _total(page, "watchkeeper_alarm_latency_seconds_count")
    latency_s = _total(page, "watchkeeper_alarm_latency_seconds_sum") / max(1.0, events)
    found = Found(int(total["samples_total"]), int(total["drops_total"]), cpu_percent, int(events), latency_s)
    return ready_s, peak_mb, found


async def _publish(args: argparse.Namespace, url: str) -> None:
    """Both simulators until their end, and what comes after the last sample."""
    fleets = (("random", args.aircraft), ("drones", args.drones))
    loads = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", SIMULATE, "simulate", scenario, "--vehicles", str(vehicles),
            "--seconds", str(args.seconds), "--now", "--samples", "--to-mqtt", url,
        )
        for scenario, vehicles in fleets if vehicles
    ]  # fmt: skip
    for load in loads:
        if await load.wait():
            raise RuntimeError(f"the fleet was not published: exit code {load.returncode}")
    await asyncio.sleep(SETTLE_S)


def _total(page: str, name: str) -> float:
    samples = (sample for family in text_string_to_metric_families(page) for sample in family.samples)
    return sum(sample.value for sample in samples if sample.name == name)


def _reset_peak(limited: Path) -> None:
    """Count the most from here on; a group of the second version cannot, before Linux 6.12."""
    with suppress(OSError):
        (limited / GROUPS[0][2]).write_text("0")


def _peak_mb(limited: Path | None) -> float:
    """The most that the group has had, with its compilers and the files that they read."""
    if limited is None:
        return 0.0
    path = next(limited / peak for _, _, peak in GROUPS if (limited / peak).exists())
    return int(path.read_text()) / 2**20


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
