"""Clean hours through the one Pipeline: the share of epochs over the threshold, and false alarms with their interval.

Recordings run as they are, with other streams (1 Hz, no velocity, no IMU, …) and with worse sensors (shifts.py);
simulated flights of ten minutes, a multirotor and a fixed wing in turn, fill any number of hours. Everything counts
from a flight's first score on. Hours of copies are not new hours of the sky: each group stands for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from watchkeeper.config.schema import DEFAULT, Config
from watchkeeper.evaluation.attacks.flight import Flight, FlightData, flights_in
from watchkeeper.evaluation.protocol.feed import Variant
from watchkeeper.evaluation.protocol.run import Through, Trace, run
from watchkeeper.evaluation.protocol.shifts import SHIFTS, STREAMS
from watchkeeper.evaluation.protocol.splits import Recipe, simulated
from watchkeeper.evaluation.shared.bootstrap import Interval
from watchkeeper.evaluation.shared.poisson import poisson_95
from watchkeeper.streams.frames.write import COUNT, NUMBER, TEXT, Backend, rows_frame

AS_THEY_ARE, SIMULATED = "as they are", "simulated"
# Seeds of simulated hours; far from those of config/splits.json.
FIRST_SEED = 50_000
FLIGHT_S = 600
COLUMNS = {"group": TEXT, "flight": TEXT, "hours": NUMBER, "epochs": COUNT, "share": NUMBER, "alarms": COUNT,
           "per_hour": NUMBER, "low": NUMBER, "high": NUMBER}  # fmt: skip
# Flights that run together, so that hours of samples need not be in memory at once.
TOGETHER = 12


class Hours(msgspec.Struct, frozen=True):
    """One flight, or all of a group."""

    group: str
    flight: str
    hours: float
    """After the first score."""
    epochs: int
    share: float | None
    """Epochs at or over the detector's own threshold; None: nothing was judged."""
    alarms: int
    per_hour: float | None
    per_hour_95: Interval | None
    """Exact for a Poisson count."""


class Result(msgspec.Struct, frozen=True):
    """Every flight, and the sums of the groups."""

    flights: list[Hours]
    groups: list[Hours]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    def to_frame(self, backend: Backend | None = None) -> Any:
        """One row per flight and group; `low` and `high` are the interval of `per_hour`."""
        ends = [row.per_hour_95 or (None, None) for row in self.flights]
        rows = [
            {**msgspec.to_builtins(row), "low": low, "high": high}
            for row, (low, high) in zip(self.flights, ends, strict=True)
        ]
        return rows_frame(rows, COLUMNS, backend)


def hours(
    flights: FlightData | Sequence[Flight] = (), config: Config = DEFAULT, *, simulated_h: float = 0.0,
    worse: bool = True, through: Through | None = None,
) -> Result:  # fmt: skip
    """Run all of them; `worse` takes the copies with worse sensors as well.

    `flights` are a folder of logs, a frame of vehicles, or frames and logs by name.

    >>> hours("recordings/", simulated_h=20.0).to_frame()  # doctest: +SKIP
    >>> (sums,) = hours(simulated_h=0.17).groups
    >>> sums.group, round(sums.hours, 1), sums.alarms
    ('simulated', 0.2, 0)
    """
    flights = [flight.from_zero() for flight in flights_in(flights)]
    copies: Mapping[str, Callable[[Flight], Flight]] = {**STREAMS, **(SHIFTS if worse else {})}
    rows: list[Hours] = []
    groups: dict[str, Iterator[Flight]] = {AS_THEY_ARE: iter(flights)}
    groups |= {name: map(make, flights) for name, make in copies.items()}
    for group, own in {**groups, SIMULATED: _simulated(simulated_h)}.items():
        while part := [flight for _, flight in zip(range(TOGETHER), own, strict=False)]:
            traces = run(config, [Variant(flight) for flight in part], through=through)
            rows += [_row(group, flight, trace) for flight, trace in zip(part, traces, strict=True)]
    names = dict.fromkeys(row.group for row in rows)
    return Result(rows, [_sum(name, [row for row in rows if row.group == name]) for name in names])


def _simulated(hours_wanted: float) -> Iterator[Flight]:
    for k in range(round(hours_wanted * 3600.0 / FLIGHT_S)):
        name = f"{'quad' if k % 2 == 0 else 'wing'}-{k}"
        yield simulated(name, Recipe(FIRST_SEED + k, seconds=FLIGHT_S, imu_hz=50.0)).from_zero()


def _row(group: str, flight: Flight, trace: Trace) -> Hours:
    scored = np.flatnonzero(np.isfinite(trace.ratio))
    lasted_h = float(trace.t[-1] - trace.t[scored[0]]) / 3600.0 if len(scored) else 0.0
    over = int((trace.ratio[scored] >= 1.0).sum())
    raised = sum(at <= flight.end for _, at, _ in trace.alarms)
    return _figures(group, flight.id, lasted_h, len(scored), over, raised)


def _sum(group: str, rows: Sequence[Hours]) -> Hours:
    over = round(sum((row.share or 0.0) * row.epochs for row in rows))
    lasted_h, epochs, alarms = (sum(getattr(row, name) for row in rows) for name in ("hours", "epochs", "alarms"))
    return _figures(group, "all", lasted_h, epochs, over, alarms)


def _figures(group: str, flight: str, lasted_h: float, epochs: int, over: int, alarms: int) -> Hours:
    if not lasted_h:
        return Hours(group, flight, 0.0, epochs, None, alarms, None, None)
    low, high = poisson_95(alarms)
    return Hours(
        group, flight, lasted_h, epochs, over / epochs, alarms, alarms / lasted_h, (low / lasted_h, high / lasted_h)
    )
