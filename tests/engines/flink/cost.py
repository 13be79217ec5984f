"""What the cluster costs: CPU of its workers per sample in steady state, compared with that of one Pipeline.

    make flink-cost ARGS="--samples 20000000 --parallelism 1,2 --mode process"

Steady state is from a fifth to nine tenths of the log, by the samples that Front has admitted (Flink's own metrics).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import psutil

from tests.engines.flink.cluster import Cluster
from watchkeeper.config.flink import Flink
from watchkeeper.config.schema import Config
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.engines.flink.job import Order, submit
from watchkeeper.streams.batch import Batch, Columns
from watchkeeper.streams.logs.wklog import LogReader, LogWriter
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.simulate import simulate

BEGIN, STOP = 0.2, 0.9
COPIES = 40


def many(samples: int) -> Iterator[Batch]:
    """Fifty simulated drones under forty names each, until there are so many samples."""
    done = 0
    for batch in simulate("drones", seed=3, vehicles=50, seconds=3600.0).batches():
        own, k = np.arange(COPIES, dtype=np.int32), len(batch.ids)
        kinds: dict[Kind, Columns] = {}
        for kind, cols in batch.kinds.items():
            vid = np.repeat(cols.vid, COPIES) + np.tile(own * np.int32(k), len(cols))
            seq = np.repeat(cols.seq * COPIES, COPIES) + np.tile(own, len(cols))
            t, via, data = (np.repeat(a, COPIES, axis=-1) for a in (cols.t, cols.via, cols.data))
            kinds[kind] = Columns(seq, vid, via, t, data)
            done += len(vid)
        yield Batch([f"{name}-{i}" for i in range(COPIES) for name in batch.ids], kinds, batch.vias)
        if done >= samples:
            return


def alone(log: Path) -> tuple[int, float]:
    """Samples and CPU seconds of one Pipeline, reading included, in steady state."""
    pipeline, reader = Pipeline(Config()), LogReader(log)
    frames = len(reader)
    began_s = samples = 0.0
    for i, batch in enumerate(reader.batches()):
        if i == int(BEGIN * frames):
            began_s = time.process_time()
        if i == int(STOP * frames):
            return int(samples), time.process_time() - began_s
        pipeline.feed(batch)
        samples += len(batch) * (began_s > 0)
    raise AssertionError


def on_cluster(log: Path, total: int, parallelism: int, mode: str, frames: int, folder: Path) -> dict[str, float]:
    """CPU seconds per million samples, by process."""
    settings = {"metrics.fetcher.update-interval": "500"}
    with Cluster(folder / f"cluster-{mode}-{parallelism}", managers=2, slots=parallelism + 1, **settings) as cluster:
        flink = Flink(
            parallelism=parallelism, checkpoint_s=30.0, checkpoint_dir=cluster.checkpoints, python_runs=mode,
            frames=frames,
        )  # fmt: skip
        config = msgspec.structs.replace(Config(), flink=flink)
        began = time.monotonic()
        job = str(submit(config, Order((str(log),), str(folder / "alarms"), cluster.address)).get_job_id())
        first = cluster.wait(lambda: _seen(cluster, job, BEGIN * total), 600.0)
        last = cluster.wait(lambda: _seen(cluster, job, STOP * total), 1200.0)
        cluster.wait(lambda: cluster.state(job) != "RUNNING", 600.0)
        assert cluster.state(job) == "FINISHED", cluster.get(f"/jobs/{job}/exceptions")
        wall_s = time.monotonic() - began
    samples = (last[0] - first[0]) / 1e6
    cpu = {name: (last[1][name] - first[1][name]) / samples for name in last[1] if name in first[1]}
    return cpu | {"wall": wall_s}


def _seen(cluster: Cluster, job: str, wanted: float) -> tuple[float, dict[str, float]] | None:
    """How many samples Front has admitted, and the CPU seconds of every process, once there are enough."""
    vertex = next(v["id"] for v in cluster.get(f"/jobs/{job}")["vertices"] if "front" in v["name"])
    names = [m["id"] for m in cluster.get(f"/jobs/{job}/vertices/{vertex}/metrics")]
    names = [name for name in names if name.endswith("watchkeeper.samples")]
    if not names:
        return None
    found = cluster.get(f"/jobs/{job}/vertices/{vertex}/metrics?get={names[0]}")
    samples = float(found[0]["value"])
    if samples < wanted:
        return None
    cpu = {f"python {p.pid}": sum(p.cpu_times()[:2]) for p in cluster.pythons()}
    for worker in cluster.workers:
        for process in [psutil.Process(worker.pid), *psutil.Process(worker.pid).children()]:
            if process.name() == "java":
                cpu[f"java {process.pid}"] = sum(process.cpu_times()[:2])
    return samples, cpu


def main() -> None:
    """Print one line for each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=20_000_000)
    parser.add_argument("--parallelism", default="1,2")
    parser.add_argument("--mode", default="process")
    parser.add_argument("--frames", type=int, default=8)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--alone", action="store_true")
    args = parser.parse_args()
    if args.alone:
        print(json.dumps(alone(args.log)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        log = args.log or folder / "drones.wklog"
        if args.log is None:
            with LogWriter(log) as writer:
                for batch in many(args.samples):
                    writer.write(batch)
        total = sum(len(batch) for batch in LogReader(log).batches())
        # in a process of its own, as the workers are
        command = [sys.executable, "-m", "tests.engines.flink.cost", "--alone", "--log", str(log)]
        samples, cpu_s = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        single = cpu_s / samples * 1e6
        print(f"{total:,} samples; CPU seconds per million samples", flush=True)
        print(f"one Pipeline: {single:.3f}", flush=True)
        for parallelism in map(int, args.parallelism.split(",")):
            found = on_cluster(log, total, parallelism, args.mode, args.frames, folder)
            wall_s = found.pop("wall")
            pythons = sorted((v for name, v in found.items() if name.startswith("python")), reverse=True)
            java = sum(v for name, v in found.items() if name.startswith("java"))
            print(
                f"{args.mode}, {args.frames} frames, {parallelism} workers of vehicles: Python {sum(pythons):.3f} "
                f"({' + '.join(f'{v:.3f}' for v in pythons)}), {sum(pythons) / single:.2f}x; "
                f"with the JVMs' {java:.3f} {(sum(pythons) + java) / single:.2f}x; {wall_s:.0f} s in all",
                flush=True,
            )


if __name__ == "__main__":
    main()
