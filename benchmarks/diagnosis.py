"""What the diagnosis costs: its share of the pipeline's CPU while many alarms are active.

    watchkeeper bench diagnosis [--vehicles 1000] [--alarms 50] [--seconds 75]

Drones with IMU at 50 Hz and GPS at 5 Hz behind as many gateways as there are to be alarms. From 40 s on as many of them
die, each behind another gateway, one after the other: every alarm is an incident of its own, which is the most
work there can be. Incidents and link statistics are timed inside the very run whose CPU they are compared with, from
the first of these alarms to the end.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import wraps
from time import process_time
from typing import Any, TypeVar

import numpy as np

from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.warmup import warm_up
from watchkeeper.streams.batch import Batch, Columns
from watchkeeper.streams.messages import COLUMN, Kind
from watchkeeper.streams.simulate.network import network_batches, network_source
from watchkeeper.streams.simulate.scenarios import T0

T_SILENT_S = 40.0
SPREAD_S = 10.0
TARGET = 0.05
_CARRIER, _HEARD, _RTT = (COLUMN[Kind.LINK][name] for name in ("carrier", "heard", "rtt_s"))
R = TypeVar("R")


class Stopwatch:
    """CPU seconds spent inside the calls that it was put around."""

    def __init__(self) -> None:
        self.cpu_s = 0.0

    def around(self, call: Callable[..., R]) -> Callable[..., R]:
        """The same call, timed."""

        @wraps(call)
        def timed(*args: Any) -> R:
            began = process_time()
            try:
                return call(*args)
            finally:
                self.cpu_s += process_time() - began

        return timed


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="watchkeeper bench diagnosis", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--vehicles", type=int, default=1000)
    parser.add_argument("--alarms", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=75.0)
    args = parser.parse_args(argv)
    if not 1 <= args.alarms <= args.vehicles or args.seconds < T_SILENT_S + SPREAD_S + 10.0:
        parser.error(f"expected 1 <= --alarms <= --vehicles and --seconds from {T_SILENT_S + SPREAD_S + 10.0:.0f}")
    warm_up(DEFAULT)
    pipeline = Pipeline(DEFAULT)
    assert pipeline.incidents is not None
    whole, incidents, links = Stopwatch(), Stopwatch(), Stopwatch()
    feed = whole.around(pipeline.feed)
    pipeline.incidents.step = incidents.around(pipeline.incidents.step)  # type: ignore[method-assign]
    link = next(d for d in pipeline.detectors if d.declaration.name == "link")
    link.step = links.around(link.step)  # type: ignore[method-assign]
    source = network_source(1, args.vehicles, args.alarms, args.seconds, None)
    alarms = investigations = 0
    for batch in network_batches(source, args.seconds):
        if batch.t_max < T0 + T_SILENT_S:
            pipeline.feed(batch)
            whole.cpu_s = incidents.cpu_s = links.cpu_s = 0.0
            continue
        feed(silenced(batch, args.alarms))
        alarms = max(alarms, sum(kind != "incident" for kind, _ in pipeline.active))
        investigations = max(investigations, len(pipeline.incidents.cases))
    share = incidents.cpu_s / whole.cpu_s
    print(f"{args.vehicles:,} vehicles, {alarms} active alarms, {investigations} incidents")
    print(f"pipeline            {whole.cpu_s:8.2f} s CPU over {args.seconds - T_SILENT_S:.0f} s of telemetry")
    print(
        f"incidents, diagnosis{incidents.cpu_s:8.2f} s CPU   {share:.1%} of the pipeline (target: {TARGET:.0%} at most)"
    )
    print(f"link statistics     {links.cpu_s:8.2f} s CPU   {links.cpu_s / whole.cpu_s:.1%} of the pipeline")
    return 0 if share <= TARGET else 1


def silenced(batch: Batch, silent: int) -> Batch:
    """The batch without the samples of drones that have died: the first of the fleet, one after the other.

    Their gateways still report on the ports, which have a signal and no traffic.
    """
    number = np.array([_number(name) for name in batch.ids])
    starts = np.where(number < silent, T0 + T_SILENT_S + SPREAD_S * number / silent, np.inf)
    kinds: dict[Kind, Columns] = {}
    for kind, cols in batch.kinds.items():
        alive = cols.t < starts[cols.vid]
        if kind is Kind.LINK:
            port = ~alive & np.isfinite(cols.data[_CARRIER])
            cols.data[_HEARD, port], cols.data[_RTT, port] = 0.0, np.nan
            alive |= port
        kinds[kind] = cols.take(alive)
    return Batch(batch.ids, {k: c for k, c in kinds.items() if len(c)}, batch.vias, batch.callsigns, batch.called_t)


def _number(name: str) -> int:
    """The number of a drone, from 0; gateways and sensors have none that matters."""
    head, _, tail = name.partition("-")
    return int(tail) - 1 if head in ("quad", "wing") and tail.isdecimal() else 2**31
