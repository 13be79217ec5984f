"""Runs clean and attacked flights through the one Pipeline, each as a vehicle of its own, all at the same time.

A flight that carries an attack (a variant) shares the clean flight's samples up to the onset and ends with the attack,
so thousands of them fit into memory and the pipeline gets wide batches. What comes back is one Trace per variant: the
detector's score over its threshold at each GPS epoch, the epochs at which a stream was silent, and the alarms.

Variants must not influence each other. That is not assumed: `prove_independent` runs some of them alone. Time stamps
may run ahead by a clock attack; a tick therefore waits longer here than live (`WAIT_S`), which changes when a tick
runs, not what it sees, and no sender's clock is corrected by the others'.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import CLEARED, RAISED
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.engine.eventtime import tick_of
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.replay import events_of
from watchkeeper.detectors.fleet.reasons import CODE_OF, words
from watchkeeper.evaluation.protocol.feed import Variant, batches
from watchkeeper.streams.batch import F8, I4, I8, Batch, Bool

KINDS = ("gps_imu", "silence")
# What became of flights at their end that were judged before it.
ONCE_JUDGED = ("no_fix", "not_applicable")
log = logging.getLogger(__name__)
# How long a tick waits: the longest clock offset in the catalogue (2 s), a slice of input (1 s), and a margin.
WAIT_S = 4.0
# Flights are not a fleet: what one does to its time stamps says nothing about the others' clocks.
ANY_CLOCK_S = 150.0
# Passes the batches on, and may show how far it has come; told how many samples there will be at most.
Through = Callable[[Iterator[Batch], int], Iterator[Batch]]


class ProtocolError(Exception):
    """An evaluation that would not mean anything."""


@dataclass(slots=True)
class Trace:
    """What the pipeline said about one variant, by epoch of the clean flight (whether or not the fix arrived)."""

    t: F8
    ratio: F8
    """Score over threshold; NaN where the detector said nothing."""
    silent: Bool
    """Whether `silence` was over its threshold at the tick that ended this epoch."""
    alarms: list[tuple[str, float, float]] = field(default_factory=list)
    """Kind, raised, cleared (infinite: never)."""
    sigma: F8 | None = None
    """[epoch, channel], where it was asked for."""


def run(
    config: Config,
    variants: Sequence[Variant],
    *,
    strict: bool = True,
    through: Through | None = None,
    channels: Sequence[str] = (),
) -> list[Trace]:
    """The traces of all variants, in order, with the sigmas of these channels."""
    listener = _Listener(len(variants), channels)
    pipeline = Pipeline(_only(config, len(variants)), on_evidence=listener.hear)
    listener.slot_of = pipeline.fleet.slot_of
    slices = batches(variants, strict=strict)
    events = list(events_of(pipeline, through(slices, sum(v.samples for v in variants)) if through else slices))
    refused = {key: n for key, n in pipeline.drops.items() if n}
    if any(reason in ("late", "time_jump", "fleet_full", "queue_full") for _, reason in refused):
        raise ProtocolError(f"the pipeline dropped samples that it should have seen: {refused}")
    _warn_of_unjudged(pipeline, variants)
    traces = listener.traces(variants, pipeline.clock.tick_s)
    for event in events:
        if event.state == RAISED:
            traces[int(event.subjects[0])].alarms.append((event.kind, event.t_raised, np.inf))
        elif event.state == CLEARED and event.t_cleared is not None:
            alarms = traces[int(event.subjects[0])].alarms
            at = max(i for i, alarm in enumerate(alarms) if alarm[0] == event.kind)
            alarms[at] = (event.kind, alarms[at][1], event.t_cleared)
    return traces


def _warn_of_unjudged(pipeline: Pipeline, variants: Sequence[Variant]) -> None:
    """Say which clean flights the detector never judged: without alarms, and without a meaning."""
    table = pipeline.guard.coverage
    said: set[str] = set()
    for i, variant in enumerate(variants):
        slot = pipeline.fleet.slot_of.get(str(i))
        if variant.injection is not None or slot is None or variant.flight.id in said:
            continue
        found = table.of(slot, final=True)["gps_imu"]
        if not found["watched"] and found["reason"] not in ONCE_JUDGED:
            said.add(variant.flight.id)
            log.warning("flight %s is not judged by gps_imu: %s", variant.flight.id, words(CODE_OF[found["reason"]]))


def _only(config: Config, vehicles: int) -> Config:
    """The configuration with the detectors that are judged and no others, and room for every variant."""
    sections = {
        name: msgspec.structs.replace(section, enabled=name in KINDS)
        for name, section in config.detectors.sections().items()
    }
    return msgspec.structs.replace(
        config,
        detectors=config.detectors.replaced(sections),
        time=msgspec.structs.replace(config.time, lateness_s=WAIT_S, clock_tolerance_s=ANY_CLOCK_S),
        # an eighth more than there are: a fleet that is nearly full lets go of vehicles (detectors/fleet/crowd.py)
        fleet=msgspec.structs.replace(config.fleet, max_vehicles=vehicles + vehicles // 8 + 8, evict_idle_s=86_400.0),
        limits=msgspec.structs.replace(config.limits, pending_samples=100_000_000),
        alarms=msgspec.structs.replace(config.alarms, max_active=max(4 * vehicles, 8)),
    )


class _Listener:
    """Notes the evidence of every tick."""

    def __init__(self, variants: int, channels: Sequence[str]) -> None:
        self._variants = variants
        self._channels = [f"{name}_sigma" for name in channels]
        self.slot_of: dict[str, int] = {}
        self._rows: list[tuple[I4, F8, F8]] = []
        self._sigma: list[F8] = []
        self._silent: list[tuple[I4, float]] = []

    def hear(self, window: Window, evidence: Sequence[Evidence]) -> None:
        """One tick."""
        for found in evidence:
            if found.kind == "gps_imu":
                self._rows.append((found.a.copy(), found.epoch.copy(), found.score / found.threshold))
                if self._channels:
                    self._sigma.append(np.stack([found.numbers[name] for name in self._channels], axis=1))
            elif found.kind == "silence":
                self._silent.append((found.a[found.score >= found.threshold].copy(), window.t))

    def traces(self, variants: Sequence[Variant], tick_s: float) -> list[Trace]:
        """The evidence by variant and epoch."""
        none = np.empty(0)
        slot = np.concatenate([np.empty(0, np.int32), *(row[0] for row in self._rows)])
        t = np.concatenate([none, *(row[1] for row in self._rows)])
        ratio = np.concatenate([none, *(row[2] for row in self._rows)])
        order = np.lexsort((t, slot))
        slot, t, ratio = slot[order], t[order], ratio[order]
        sigma = np.concatenate(self._sigma)[order] if self._sigma else None
        silent_slot = np.concatenate([np.empty(0, np.int32), *(s for s, _ in self._silent)])
        silent_t = np.concatenate([none, *(np.full(len(s), at) for s, at in self._silent)])
        traces: list[Trace] = []
        for i, variant in enumerate(variants):
            own = self.slot_of.get(str(i), -1)
            low, high = np.searchsorted(slot, (own, own + 1)).tolist()
            ticks = np.round(silent_t[silent_slot == own] / tick_s).astype(np.int64)
            own_sigma = None if sigma is None else sigma[low:high]
            traces.append(_trace(variant, t[low:high], ratio[low:high], own_sigma, ticks, tick_s))
        return traces


def _trace(variant: Variant, t: F8, ratio: F8, sigma: F8 | None, silent_ticks: I8, tick_s: float) -> Trace:
    clean, made = variant.flight.gps.t, variant.injection
    stop = len(clean) if made is None else made.gps_rows.stop
    stamps = clean[:stop].copy()
    if made is not None:
        stamps[made.gps_rows] = made.gps.t
    trace = Trace(clean[:stop], np.full(stop, np.nan), np.zeros(stop, bool))
    order = np.argsort(stamps, kind="stable")
    at = np.minimum(np.searchsorted(stamps[order], t), stop - 1)
    found = stamps[order][at] == t
    trace.ratio[order[at[found]]] = ratio[found]
    if sigma is not None:
        trace.sigma = np.full((stop, sigma.shape[1]), np.nan)
        trace.sigma[order[at[found]]] = sigma[found]
    trace.silent[:] = np.isin(tick_of(trace.t, tick_s), silent_ticks)
    return trace


def prove_independent(config: Config, variants: Sequence[Variant], traces: Sequence[Trace], *, strict: bool) -> int:
    """Run every flight and one attack of each alone and compare, bit by bit; how many were compared.

    Raises ProtocolError where company made a difference: a detector that learns from one vehicle about another would
    have seen the attacks, and the flights that are held out.
    """
    alone: dict[tuple[int, bool], int] = {}
    for i, variant in enumerate(variants):
        alone.setdefault((id(variant.flight), variant.injection is None), i)
    for i in alone.values():
        trace = run(config, [variants[i]], strict=strict)[0]
        if trace.ratio.tobytes() != traces[i].ratio.tobytes():
            raise ProtocolError(
                f"flight {variants[i].flight.id}: its scores are not those that it has alone. The detector lets one "
                "vehicle's samples change another's score: switch that off (detectors.gps_imu.model)"
            )
    return len(alone)
