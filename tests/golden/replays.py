"""What is replayed for the golden files, and what is written of it. Each replay has two files:

    NAME.jsonl         every alarm event
    NAME.scores.jsonl  every 10 s, before debouncing: the gauges that changed, and the highest scores of each kind;
                       at the end how many samples were taken and refused

    python tests/golden/replays.py             writes the files in this folder again
    python tests/golden/replays.py --into DIR  writes them elsewhere

Both print a digest of each file and of all. The digests of two checkouts can be compared on one machine only: another
processor may round the last bit of a sine differently. test_golden.py allows for that.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from watchkeeper.config.detectors import Detectors
from watchkeeper.config.detectors.conflict import Conflict
from watchkeeper.config.detectors.gps_imu import GpsImu
from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.detectors.alarms.events import encode_event
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.catalog import REGISTRY
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.foreign.states import StateEncoder, decode_state
from watchkeeper.streams.messages import COLUMN, Kind
from watchkeeper.streams.simulate import simulate
from watchkeeper.streams.simulate.network import NetworkFault, network_batches, network_source
from watchkeeper.streams.simulate.scenarios import T0

HERE = Path(__file__).parent
# small tables, so that a pipeline is made in a few milliseconds; and the model, which is off by default
CONFIG = Config(
    fleet=FleetLimits(max_vehicles=100),
    detectors=Detectors(conflict=Conflict(max_pairs=1000), gps_imu=GpsImu(model="hst")),
)
SCORES_EVERY_S = 10.0
TOP = 3


def network(form: str, device: str, size: float) -> Iterator[Batch]:
    """Four drones behind two gateways, and a fault after 45 of 80 s."""
    return network_batches(network_source(3, 4, 2, 80.0, NetworkFault(form, device, 45.0, size)), 80.0)


def contradictions() -> Iterator[Batch]:
    """Four aircraft: a lone one teleports and comes back, one reports a wrong speed, one shares its id with another.

    Reports out of range, twice the same and too late are in it as well.
    """
    column, late = COLUMN[Kind.ADSB], None
    for s, batch in enumerate(simulate("head-on", seed=1, seconds=120.0, vehicles=4).batches()):
        late = batch if s == 70 else late
        adsb = batch.kinds[Kind.ADSB]
        lat, vid = adsb.data[column["lat"]], adsb.vid
        lat[(vid == 3) & (30 <= s < 70)] += 2.0
        lat[(vid == 1) & (s > 50) & (s % 2 == 1)] += 3.0
        lat[(vid == 0) & (s == 100)] = 95.0
        adsb.data[column["gs_kt"], (vid == 2) & (s >= 40)] = 100.0
        yield batch
        if s == 80 and late is not None:
            yield from (batch, late)


def jumps() -> Iterator[Batch]:
    """A formation; another one after a gap so long that the first is forgotten; the first again, with its old clock."""
    for seed, start in ((1, 0.0), (2, 1200.0), (1, 300.0)):
        yield from simulate("formation", seed=seed, seconds=40.0, vehicles=2, t0=T0 + start).batches()


def unwatched() -> Iterator[Batch]:
    """Six drones of which one is sound: the others are blind spots, each of another kind.

    No IMU; accelerations in g; rates in deg/s; a GPS in the wrong local frame; an IMU that is on something else.
    """
    none, in_g, in_deg, mirrored, foreign = range(1, 6)
    gps = COLUMN[Kind.GPS]
    axes = [[gps[f"{name}{axis}"] for axis in "xyz"] for name in ("gps_", "gps_v")]
    for batch in simulate("drones", seed=5, seconds=80.0, vehicles=6, ahrs=False).batches():
        imu, fixes = batch.kinds[Kind.IMU], batch.kinds[Kind.GPS]
        imu.data[0:3, imu.vid == in_g] /= 9.80665
        imu.data[3:6, imu.vid == in_deg] *= 180.0 / math.pi
        at = imu.vid == foreign
        imu.data[0:2, at] = 3.0 * np.sin(np.outer((1.3, 0.9), imu.t[at]))
        for x, y, z in axes:
            at = fixes.vid == mirrored
            fixes.data[x, at], fixes.data[y, at] = fixes.data[y, at].copy(), fixes.data[x, at].copy()
            fixes.data[z, at] *= -1.0
        batch.kinds[Kind.IMU] = imu.take(imu.vid != none)
        yield batch


def clocks() -> Iterator[Batch]:
    """Meeting aircraft and others: one is 20 s ahead, one an hour behind until it is set right, one jumps about."""
    for batch in simulate("head-on", seed=2, seconds=90.0, vehicles=12).batches():
        adsb = batch.kinds[Kind.ADSB]
        since = adsb.t - T0
        wrong = {1: 20.0, 4: np.where(since < 45.0, -3600.0, 0.0), 7: 29.0 * since * (since > 20.0)}
        offset = sum((adsb.vid == vid) * by for vid, by in wrong.items())
        yield batch.having({Kind.ADSB: replace(adsb, t=adsb.t + offset)})


def declared() -> Iterator[Batch]:
    """Crews that declare an emergency, one that dials past such a code, and an advisory of TCAS."""
    yield from REGISTRY["emergency"].declaration.scenario.batches()


# A few kilobytes each; together they raise alarms of every kind.
GOLDEN: dict[str, Callable[[], Iterator[Batch]]] = {
    "demo": lambda: simulate("demo", seed=7, seconds=60.0).batches(),
    "vertical": lambda: simulate("vertical", seed=1, seconds=240.0).batches(),
    "overtaking": lambda: simulate("overtaking", seed=1, seconds=240.0).batches(),
    "formation": lambda: simulate("formation", seed=1, seconds=60.0).batches(),
    "controlled": lambda: simulate("controlled", seed=3, seconds=540.0).batches(),
    "jamming": lambda: simulate("jamming", seed=3, seconds=240.0, vehicles=40).batches(),
    "drones": lambda: simulate("drones", seed=3, seconds=100.0, vehicles=4, ahrs=False).batches(),
    "loss": lambda: network("loss", "gw-1", 0.5),
    "latency": lambda: network("latency", "gw-1", 0.5),
    "cut": lambda: network("cut", "gw-1", 1.0),
    "spoof": lambda: network("spoof", "quad-1/gps", 1.0),
    "contradictions": contradictions,
    "jumps": jumps,
    "unwatched": unwatched,
    "clocks": clocks,
    "declared": declared,
    "signals": REGISTRY["signal"].declaration.scenario.batches,
}


class Scores:
    """Looks on while a pipeline runs, and writes a line per kind of evidence now and then."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.lines: list[dict[str, Any]] = []
        self._pipeline = pipeline
        self._gauges: dict[str, float | None] = {}

    def __call__(self, window: Window, found: list[Evidence]) -> None:
        if window.t % SCORES_EVERY_S:
            return
        gauges = {name: value if math.isfinite(value) else None for name, value in self._pipeline.gauges().items()}
        fresh = {name: value for name, value in gauges.items() if self._gauges.get(name, math.nan) != value}
        self._gauges = gauges
        self.lines.append({"t": window.t, "vehicles": len(self._pipeline.fleet), "gauges": fresh})
        self.lines += [self._line(window.t, evidence) for evidence in found]

    def _line(self, t: float, ev: Evidence) -> dict[str, Any]:
        # equal scores, or all but equal ones, are in the order of names
        rows = sorted(range(len(ev)), key=lambda i: (-round(ev.score[i] / ev.threshold[i], 6), self._names(ev, i)))
        top = [[self._names(ev, i), float(ev.score[i]), float(ev.threshold[i])] for i in rows[:TOP]]
        return {"t": t, "kind": ev.kind, "rows": len(ev), "sum": math.fsum(ev.score), "top": top}

    def _names(self, ev: Evidence, row: int) -> list[str]:
        ids = ev.places or self._pipeline.fleet.ids
        return sorted(ids[column[row]] for column in (ev.a, ev.b) if column is not None)


def restarted(pipeline: Pipeline, config: Config = CONFIG) -> Pipeline:
    """Another pipeline that goes on from the first one's snapshot, by way of the bytes that the daemon saves."""
    state = decode_state(bytes(StateEncoder().encode(pipeline.snapshot())))
    fresh = Pipeline(config)
    fresh.restore(state)
    return fresh


def outputs(name: str) -> dict[str, bytes]:
    """File name to content, of one replay."""
    pipeline = Pipeline(CONFIG)
    scores = pipeline.on_evidence = Scores(pipeline)
    alarms = [event for batch in GOLDEN[name]() for event in pipeline.feed(batch)] + pipeline.finish()
    drops = {f"{stream} {reason}": n for (stream, reason), n in sorted(pipeline.drops.items())}
    total = {"ticks": pipeline.ticks, "samples": dict(sorted(pipeline.samples.items())), "drops": drops}
    return {
        f"{name}.jsonl": _lines([encode_event(event) for event in alarms]),
        f"{name}.scores.jsonl": _lines([msgspec.json.encode(line) for line in (*scores.lines, total)]),
    }


def restarting(name: str, every: int) -> bytes:
    """The alarm events of a replay in which another pipeline goes on from a snapshot after every so many batches."""
    pipeline, alarms = Pipeline(CONFIG), []
    for i, batch in enumerate(GOLDEN[name]()):
        if i % every == 0:
            journal = list(pipeline.active.values())
            pipeline = restarted(pipeline)
            if i % 2:
                # as the daemon does: a journal that knows nothing else changes nothing
                pipeline.restore_alarms(journal)
        alarms += pipeline.feed(batch)
    return _lines([encode_event(event) for event in alarms + restarted(pipeline).finish()])


def _lines(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def write(into: Path) -> None:
    """Write the files of all replays, and print their digests."""
    into.mkdir(parents=True, exist_ok=True)
    total = blake2b(digest_size=16)
    for name in sorted(GOLDEN):
        for file, content in outputs(name).items():
            (into / file).write_bytes(content)
            digest = blake2b(content, digest_size=16).hexdigest()
            print(digest, file)
            total.update(f"{digest} {file}\n".encode())
    print(total.hexdigest(), "all")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the golden files and print their digests.")
    parser.add_argument("--into", type=Path, default=HERE, metavar="DIR", help="where to; by default this folder")
    write(parser.parse_args().into)
