"""Biases that last: put into flights, run through the one Pipeline, and held against what an alarm should do.

A bias moves the position to one side by `size_m`, at once or within `ramp_s`, and back again after minutes. Wanted is
one `gps_imu` alarm: raised during the bias, there until it ends, and gone within CLEAR_S after that. Each flight is run
clean as well, as it is and with other sensors; every alarm there is a false one. Onsets and directions are drawn from
dice that depend on the flight's name and the repeat alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np

from watchkeeper.config.schema import DEFAULT, Config
from watchkeeper.evaluation.attacks.flight import Flight, FlightData, Stream, flights_in
from watchkeeper.evaluation.attacks.scene import DEGREE_M, GPS
from watchkeeper.evaluation.protocol.feed import Variant
from watchkeeper.evaluation.protocol.run import Through, run
from watchkeeper.evaluation.protocol.shifts import SHIFTS, STREAMS
from watchkeeper.streams.batch import F8
from watchkeeper.streams.frames.write import COUNT, FLAG, NUMBER, TEXT, Backend, rows_frame

KIND = "gps_imu"
# The bias lasts this long, or as long as the flight allows.
BIAS_S = 300.0
# It begins after this much flight, or after this part of a short one: nothing is judged while a vehicle warms up.
EARLIEST_S, EARLIEST_PART = 90.0, 0.4
# After its end this much flight is left, or this part of a short one.
TAIL_S, TAIL_PART = 70.0, 0.15
# An alarm that ends so long after the bias has ended with it.
CLEAR_S = 60.0


class Shape(msgspec.Struct, frozen=True):
    """How a bias comes and goes: at once (0), or within so many seconds."""

    name: str
    size_m: float
    ramp_in_s: float = 0.0
    ramp_out_s: float = 0.0


SHAPES = (
    Shape("step 15 m", 15.0),
    Shape("step 30 m", 30.0),
    Shape("ramp 15 m", 15.0, 15.0),
    Shape("ramp 30 m", 30.0, 30.0),
    Shape("ramp 30 m, and back", 30.0, 30.0, 30.0),
)


class Outcome(msgspec.Struct, frozen=True):
    """One bias in one flight. Times are since the first sample; an alarm that the flight's end cut off has no end."""

    flight: str
    shape: str
    repeat: int
    onset_s: float
    end_s: float
    alarms: list[tuple[float, float | None]]
    found: bool
    """An alarm was raised during the bias."""
    lasted: bool
    """It was the only one, and there when the bias ended."""
    ended: bool
    """It went within CLEAR_S after the bias, or the flight ended before that."""


class CleanFlight(msgspec.Struct, frozen=True):
    """A flight without a bias."""

    flight: str
    hours: float
    alarms: int
    alarm_s: float
    """How long there was an alarm."""


class Result(msgspec.Struct, frozen=True):
    """All outcomes."""

    outcomes: list[Outcome]
    clean: list[CleanFlight]

    def to_frame(self, backend: Backend | None = None) -> Any:
        """One row per bias in a flight."""
        schema = {
            "flight": TEXT, "shape": TEXT, "repeat": COUNT, "onset_s": NUMBER, "end_s": NUMBER,
            "found": FLAG, "lasted": FLAG, "ended": FLAG,
        }  # fmt: skip
        return rows_frame([msgspec.structs.asdict(outcome) for outcome in self.outcomes], schema, backend)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


@dataclass(frozen=True, slots=True)
class _Case:
    flight: Flight
    shape: Shape
    repeat: int
    t_on: float
    t_off: float


def lasting(
    flights: FlightData | Sequence[Flight],
    config: Config = DEFAULT,
    *,
    shapes: Sequence[Shape] = SHAPES,
    repeats: int = 2,
    through: Through | None = None,
) -> Result:
    """Run every flight clean and with every bias.

    `flights` are a folder of logs, a frame of vehicles, or frames and logs by name.

    >>> lasting("recordings/").to_frame()  # doctest: +SKIP
    >>> [shape.name for shape in SHAPES][:2]
    ['step 15 m', 'step 30 m']
    """
    flights = [flight.from_zero() for flight in flights_in(flights)]
    unharmed = [*flights, *(copy for flight in flights for copy in _harder(flight))]
    cases = [case for flight in flights for case in _cases(flight, shapes, repeats)]
    variants = [Variant(flight) for flight in (*unharmed, *map(_biased, cases))]
    alarms = [
        [(raised, cleared) for kind, raised, cleared in trace.alarms if kind == KIND]
        for trace in run(config, variants, through=through)
    ]
    clean = [
        CleanFlight(f.id, f.hours, len(found), sum(min(b, f.end) - a for a, b in found))
        for f, found in zip(unharmed, alarms, strict=False)
    ]
    return Result([_outcome(c, found) for c, found in zip(cases, alarms[len(unharmed) :], strict=True)], clean)


def _harder(flight: Flight) -> Iterator[Flight]:
    """Clean copies of a flight with other sensors: worse, slower, askew, and without a velocity."""
    for name, make in {**SHIFTS, **{name: STREAMS[name] for name in ("1 Hz GPS", "no velocity")}}.items():
        yield replace(make(flight), id=f"{flight.id}, {name}")


def _cases(flight: Flight, shapes: Sequence[Shape], repeats: int) -> Iterator[_Case]:
    seconds = flight.end
    earliest = min(EARLIEST_S, EARLIEST_PART * seconds)
    latest = seconds - min(TAIL_S, TAIL_PART * seconds)
    long_s = min(BIAS_S, latest - earliest)
    for repeat in range(repeats):
        t_on = earliest + _dice(flight, repeat).uniform() * (latest - long_s - earliest)
        for shape in shapes:
            yield _Case(flight, shape, repeat, t_on, t_on + long_s)


def _dice(flight: Flight, repeat: int) -> np.random.Generator:
    key = blake2b(f"{flight.id} {repeat}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(key)))


def _biased(case: _Case) -> Flight:
    t, shape = case.flight.gps.t, case.shape
    rising = np.clip((t - case.t_on) / shape.ramp_in_s, 0.0, 1.0) if shape.ramp_in_s else t >= case.t_on
    falling = np.clip((case.t_off - t) / shape.ramp_out_s, 0.0, 1.0) if shape.ramp_out_s else t < case.t_off
    angle = 2.0 * np.pi * _dice(case.flight, case.repeat).uniform(size=2)[1]
    size = shape.size_m * np.minimum(rising, falling)
    return replace(case.flight, gps=Stream(t, _moved(case.flight.gps.data, size * np.cos(angle), size * np.sin(angle))))


def _moved(data: F8, north_m: F8, east_m: F8) -> F8:
    data = data.copy()
    data[GPS["gps_x"]] += north_m
    data[GPS["gps_y"]] += east_m
    latitude = data[GPS["lat"]].copy()
    data[GPS["lat"]] += north_m / DEGREE_M
    data[GPS["lon"]] += east_m / (DEGREE_M * np.cos(np.radians(latitude)))
    return data


def _outcome(case: _Case, alarms: Iterable[tuple[float, float]]) -> Outcome:
    end = case.flight.end
    told = [(raised, cleared if cleared <= end else None) for raised, cleared in alarms]
    during = [alarm for alarm in told if case.t_on <= alarm[0] < case.t_off]
    lasted = len(told) == 1 == len(during) and (during[0][1] is None or during[0][1] >= case.t_off)
    cleared = during[-1][1] if during else None
    ended = lasted and (end - case.t_off < CLEAR_S if cleared is None else cleared - case.t_off <= CLEAR_S)
    return Outcome(
        case.flight.id, case.shape.name, case.repeat, case.t_on, case.t_off, told, bool(during), lasted, bool(ended)
    )
