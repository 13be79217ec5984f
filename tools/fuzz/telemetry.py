"""Valid telemetry at the edge: `python -m tools.fuzz.telemetry [--samples N] [--seed S] [--start ROUND]`.

Simulated traffic of every kind, in which numbers are replaced by others that pass the check (streams/check.py) and that
nobody expects: the limits of their range, zero, the smallest numbers there are, the same value for ever, nothing.
Clocks stand still, crawl, leap and go back; vehicles roam between gateways and share names. All of it goes through one
Pipeline with every detector and incidents on, the fences taken down, and NumPy's warnings turned into errors: what
raises here would have blinded somebody. A round is run again by its number: `--start 17 --rounds 1`.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from watchkeeper.config.schema import Config, FleetLimits, Frames
from watchkeeper.detectors.engine.fence import Fence
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.incidents.incidents import Incidents
from watchkeeper.streams.batch import F8, Batch, Columns
from watchkeeper.streams.foreign.states import StateEncoder, decode_state
from watchkeeper.streams.messages import FIELDS, T_MAX, Field, Kind
from watchkeeper.streams.simulate import simulate
from watchkeeper.streams.simulate.network import NetworkFault, network_batches, network_source

SCENES = ("drones", "demo", "mixed", "jamming", "controlled", "network")
SECONDS = 60.0
VEHICLES = 25
# When a vehicle's number flips: after the detectors have warmed up, while the simulator's attacks are on.
FLIP_S = 38.0
# A plausible accuracy, number of satellites, load …; and the fields that must not be made up next to others.
USUAL = 3.0
POSITIONS = frozenset({"gps_x", "gps_y", "gps_z", "lat", "lon", "alt_m", "roll", "pitch", "yaw", "echo_t"})
# How much of the numbers is replaced: none of them, a few, many.
SHARES = (0.0, 0.0005, 0.01, 0.3)
# What a step of time becomes, beside itself: none, hardly any, a hole, days.
STEPS_S = (0.0, 1e-9, 1e-3, 5.0, 70.0, 1000.0, 90_000.0)


@dataclass(slots=True)
class Found:
    """What came of it: samples that were judged, samples refused, and the failures by round."""

    samples: int = 0
    refused: int = 0
    rounds: int = 0
    events: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)


def fuzz(
    samples: int, seed: int = 1, start: int = 0, rounds: int | None = None, told: Callable[[Found], None] | None = None
) -> Found:
    """Rounds until so many samples were judged, or so many rounds were run."""
    found = Found()
    number = start
    with _no_fences(), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        while found.rounds < rounds if rounds is not None else found.samples < samples:
            _round(seed, number, found)
            number += 1
            found.rounds += 1
            if told is not None:
                told(found)
    return found


def _round(seed: int, number: int, found: Found) -> None:
    rng = np.random.Generator(np.random.PCG64([seed, number]))
    frames = Frames(local=rng.choice(["ned", "enu"]).item(), body=rng.choice(["frd", "flu"]).item())
    pipeline = Pipeline(Config(fleet=FleetLimits(max_vehicles=60, evict_idle_s=300.0), frames=frames))
    try:
        for batch in _batches(rng, number):
            found.events += len(pipeline.feed(batch))
            if rng.random() < 0.02:
                pipeline.gauges()
                decode_state(bytes(StateEncoder().encode(pipeline.snapshot())))
            if rng.random() < 0.02:
                found.events += len(pipeline.advance(min(pipeline.t_max + rng.uniform(0.0, 100.0), T_MAX)))
        found.events += len(pipeline.finish())
        for event in pipeline.active.values():
            msgspec.json.encode(event)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        found.failures.append((number, f"{error!r} at {where.filename.rpartition('watchkeeper/')[2]}:{where.lineno}"))
    found.samples += sum(pipeline.samples.values())
    found.refused += sum(pipeline.drops.values())


def _batches(rng: np.random.Generator, number: int) -> Iterator[Batch]:
    scene = SCENES[number % len(SCENES)]
    share, clock = float(rng.choice(SHARES)), _Clock(rng)
    flips = _flips(rng) if rng.random() < 0.5 else {}
    if flips:
        share = 0.0  # everything else as it should be: only so does an odd number come as far as a diagnosis
    own = int(rng.integers(1, 1_000_000))
    if scene == "network":
        fault = NetworkFault(rng.choice(["loss", "latency", "cut"]).item(), "gw-1", 20.0, 0.5)
        source: Iterator[Batch] = network_batches(network_source(own, 4, 2, SECONDS, fault), SECONDS)
    else:
        source = simulate(scene, seed=own, seconds=SECONDS, vehicles=int(rng.integers(7, VEHICLES))).batches()
    roams, usual = rng.random() < 0.3, rng.random() < 0.5
    first_t = np.inf
    for batch in source:
        vias = batch.vias or (["gw-1", "gw-2", "gw-3"] if roams else [])
        kinds = {
            kind: _spoilt(rng, FIELDS[kind], cols, share, clock, vias=len(vias) if roams else 0, usual=usual)
            for kind, cols in batch.kinds.items()
            if rng.random() > 0.01
        }
        if flips:
            first_t = min([first_t, *(float(cols.t.min()) for cols in kinds.values() if len(cols))])
            for kind, cols in kinds.items():
                _flip(kind, cols, flips, first_t + FLIP_S)
        if kinds:
            yield Batch(batch.ids, kinds, vias, batch.callsigns, batch.called_t)


def _spoilt(
    rng: np.random.Generator,
    fields: tuple[Field, ...],
    cols: Columns,
    share: float,
    clock: _Clock,
    *,
    vias: int,
    usual: bool,
) -> Columns:
    data = cols.data.copy()
    for row, f in zip(data, fields, strict=True):
        if usual and not f.required and np.isnan(row).all() and f.name not in POSITIONS:
            row[:] = np.clip(USUAL, f.lo, f.hi)  # what a simulator leaves out others send
        hit = rng.random(len(row)) < share
        if hit.any():
            row[hit] = _extreme(rng, f, int(hit.sum()))
        if rng.random() < 0.1 * share and len(row):
            row[:] = row[0]  # the same for ever
    via = rng.integers(-1, vias, len(cols)).astype(np.int32) if vias else cols.via
    return Columns(cols.seq, cols.vid, via, clock.warped(cols.t), data)


Flips = dict[int, tuple[Kind, int, float]]


def _flips(rng: np.random.Generator) -> Flips:
    """For each vehicle by number: the field of a stream that takes one extreme value in the middle of the round."""
    found: Flips = {}
    # half of them in what is seldom looked at: accuracies, counts, reports of ports
    seldom = rng.random() < 0.5
    pairs = [
        (kind, column, value)
        for kind, fields in FIELDS.items()
        for column, f in enumerate(fields)
        for value in (f.lo, f.hi, 0.0, 5e-324, 1e-300, 1e-9)
        if f.lo <= value <= f.hi and not 0.0 < value < f.least and not (seldom and (f.required or f.name in POSITIONS))
    ]
    for vid in range(VEHICLES):
        found[vid] = pairs[int(rng.integers(len(pairs)))]
    return found


def _flip(kind: Kind, cols: Columns, flips: Flips, after_t: float) -> None:
    for vid, (stream, column, value) in flips.items():
        if stream is kind:
            own = cols.vid == vid
            field = FIELDS[kind][column]
            if not field.required:
                cols.data[column, own] = min(max(USUAL, field.lo), field.hi)
            cols.data[column, own & (cols.t > after_t)] = value


def _extreme(rng: np.random.Generator, f: Field, n: int) -> F8:
    """Numbers at the edges of a field's range, and absent ones where that is allowed."""
    lo, hi = f.lo, f.hi
    edges = [lo, hi, np.nextafter(lo, hi), np.nextafter(hi, lo), 0.0, -0.0, 5e-324, -5e-324, 1e-300, 1e-9, -1e-9]
    edges += [0.5 * (lo + hi), lo + 1e-6 * (hi - lo), 1.0, -1.0]
    edges = [x for x in edges if lo <= x <= hi] + ([] if f.required else [np.nan])
    size = np.exp(rng.uniform(np.log(1e-12), np.log(max(abs(lo), abs(hi), 1e-9)), n))
    spread = np.clip(size * rng.choice([-1.0, 1.0], n), lo, hi)
    return np.where(rng.random(n) < 0.7, rng.choice(np.array(edges), n), spread)


class _Clock:
    """Time that goes as it likes: each sample's step may become another, and some senders' clocks are off."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._bad = float(rng.choice([0.0, 0.0, 0.0005, 0.02]))
        self._offset_s = 0.0

    def warped(self, t: F8) -> F8:
        """The times as they are told."""
        if self._bad == 0.0 or not len(t):
            return t
        if self._rng.random() < 0.05:
            self._offset_s += float(self._rng.choice(STEPS_S)) * float(self._rng.choice([1.0, 1.0, -1.0]))
        odd = self._rng.random(len(t)) < self._bad
        told = t + self._offset_s + np.where(odd, self._rng.choice(STEPS_S, len(t)), 0.0)
        return np.clip(told, 0.0, T_MAX)


class _no_fences:  # noqa: N801  used as a statement
    """Detectors and incidents fail in the open."""

    def __enter__(self) -> None:
        self._before = (Fence._fail, Fence._safely, Incidents._safely)

        def fail(_self: Any, error: Exception, *_: object) -> None:
            raise error

        def safely(_self: Any, _name: object, do: Callable[[], Any], **_: object) -> Any:
            return do()

        Fence._fail = fail  # type: ignore[method-assign,assignment]
        Fence._safely = Incidents._safely = safely  # type: ignore[method-assign,assignment]

    def __exit__(self, *_: object) -> None:
        Fence._fail, Fence._safely, Incidents._safely = self._before  # type: ignore[method-assign]


def main() -> int:
    """Run; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=2_000_000, help="samples that are judged (2,000,000)")
    parser.add_argument("--rounds", type=int, help="so many rounds instead")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other rounds (1)")
    parser.add_argument("--start", type=int, default=0, help="the first round (0)")
    args = parser.parse_args()
    began_s = time.monotonic()
    found = fuzz(args.samples, args.seed, args.start, args.rounds)
    for number, problem in found.failures:
        print(f"round {number}: {problem}")
    print(
        f"telemetry: {found.samples:,} samples judged, {found.refused:,} refused, {found.events:,} alarm events, "
        f"{found.rounds} rounds, {len(found.failures)} failures, seed {args.seed}, {time.monotonic() - began_s:.0f} s"
    )
    return 1 if found.failures else 0


if __name__ == "__main__":
    sys.exit(main())
