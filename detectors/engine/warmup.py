"""Calls every kernel before the first message: a scratch pipeline sees two aircraft meet and a drone hover.

`warm_up` is called once at start by the daemon and by replay. Kernels are kept on disk (streams/kernelcache.py); those
that are not there yet are compiled, which daemon/compiling.py does beforehand in processes of their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection

import msgspec
import numpy as np

from watchkeeper.config.guests import section_of
from watchkeeper.config.schema import Config
from watchkeeper.detectors.base import Detector, Heavy
from watchkeeper.detectors.catalog import REGISTRY
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.replay import events_of
from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.geo import GRAVITY_MS2
from watchkeeper.streams.messages import FIELDS, Kind

SECONDS = 5
RATE_HZ = 20
GAP_S = 100.0
KINDS = frozenset(Kind)


def warm_up(config: Config, kinds: Collection[Kind] = KINDS) -> None:
    """Run every code path that Numba compiles for samples of these kinds, on made-up ones; nothing of it is kept."""
    limits = msgspec.structs.replace(config.fleet, max_vehicles=8)
    # a detector that looks once per step must see one end
    for every_s in sorted(_steps_s(config)) or [0.0]:
        pipeline = Pipeline(msgspec.structs.replace(config, fleet=limits))
        first_s = max(1.0, float(int(every_s) - SECONDS // 2))
        # the last second is after a gap: clocks that jump have kernels of their own
        seconds = [*(first_s + np.arange(SECONDS)), first_s + GAP_S]
        deque(events_of(pipeline, (_second(t, kinds) for t in seconds)), maxlen=0)
    # some of which need more than seconds before they are called
    for detector in _heavy(pipeline, kinds):
        for call in detector.kernels():
            call()


def heavy_kernels(config: Config, kinds: Collection[Kind] = KINDS) -> dict[str, list[Callable[[], object]]]:
    """By detector, calls that compile the kernels which take longest, each by itself."""
    limits = msgspec.structs.replace(config.fleet, max_vehicles=8)
    pipeline = Pipeline(msgspec.structs.replace(config, fleet=limits))
    return {one.declaration.name: one.kernels() for one in _heavy(pipeline, kinds)}


def _heavy(pipeline: Pipeline, kinds: Collection[Kind]) -> list[Heavy]:
    """The detectors with kernels of their own list that judge samples of these kinds."""
    return [one for one in pipeline.detectors if isinstance(one, Heavy) and _judges(one, kinds)]


def _judges(detector: Detector, kinds: Collection[Kind]) -> bool:
    return any(set(streams) & set(kinds) for kind in detector.declaration.kinds for streams in kind.needs)


def _steps_s(config: Config) -> set[float]:
    """The steps of detectors that do not look at every tick."""
    declared = [detector.declaration for detector in REGISTRY.values()]
    return {d.looks_every_s(section_of(config, "detectors", d.name)) for d in declared} - {0.0}


def _second(t0: float, kinds: Collection[Kind]) -> Batch:
    t = t0 + np.arange(RATE_HZ) / RATE_HZ
    n = len(t)
    zero = np.zeros(n)
    hover = {f.name: zero for f in FIELDS[Kind.IMU]} | {"imu_az": zero - GRAVITY_MS2}
    still = {f.name: zero for f in FIELDS[Kind.GPS] if f.name.startswith("gps_")} | {"fix": zero + 3.0}
    meeting = {
        # 450 kt: a position that stays where it was would be no report
        "lat": np.array([0.0, 0.0]), "lon": np.array([t0, 100.0 - t0]) / 480.0, "alt_ft": np.full(2, 3e4),
        "gs_kt": np.full(2, 450.0), "trk_deg": np.array([90.0, 270.0]), "vs_fpm": np.zeros(2),
    }  # fmt: skip
    commanded = np.zeros(1, np.int32)
    one = t[:1]
    way = np.ones(1)
    columns = {
        Kind.ADSB: columns_of(Kind.ADSB, np.array([0, 1], np.int32), t[:2], meeting, seq=np.arange(2)),
        Kind.IMU: columns_of(Kind.IMU, np.full(n, 2, np.int32), t, hover, seq=2 + np.arange(n)),
        Kind.GPS: columns_of(Kind.GPS, np.full(n, 2, np.int32), t, still, seq=2 + n + np.arange(n)),
        Kind.ACTION: columns_of(
            Kind.ACTION, commanded, one, {"heading_delta_deg": one, "speed_delta_kt": one}, seq=np.array([2 + 2 * n])
        ),
        Kind.ROUTE: columns_of(Kind.ROUTE, commanded, one, {"lat": way, "lon": way}, seq=np.array([3 + 2 * n])),
    }
    return Batch(["warm-a", "warm-b", "warm-c"], {kind: columns[kind] for kind in columns if kind in kinds})
