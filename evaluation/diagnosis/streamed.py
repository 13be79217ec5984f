"""Streamed episodes: a fault in simulated telemetry that runs through the whole pipeline, judged like any episode.

Drones fly behind gateways; at some time one fault begins. Alarms, incident and diagnosis are the pipeline's own:
nothing here asks a tool. The diagnosis that stands 30 s after the fault is the answer. Episodes without a fault must
stay without an incident. In `mute` episodes no device reports on its ports or itself, and none answers pings: some
faults are then the same telemetry, and what counts besides is whether the truth is among the diagnosis's alternatives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import msgspec
import numpy as np

from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.replay import events_of
from watchkeeper.detectors.incidents.declaration import INCIDENT
from watchkeeper.detectors.incidents.faults import FAULT_TYPES, Form, Hypothesis, forms_at
from watchkeeper.detectors.incidents.tools import COST, Tool
from watchkeeper.detectors.incidents.topology import BROKER, Device, Topology
from watchkeeper.evaluation.diagnosis.metrics import (
    COST_REWARD,
    Call,
    EpisodeLog,
    EpisodeMetrics,
    answer_reward,
    episode_metrics,
)
from watchkeeper.streams.simulate.network import NetworkFault, NetworkSource, network_batches, network_source
from watchkeeper.streams.simulate.scenarios import T0

VEHICLES, GATEWAYS = (3, 10), (1, 3)
# When the fault begins: detectors have learned what is usual by then. And how long there is to find it.
T_FAULT_S = (45.0, 60.0)
ANSWER_S = 30.0
STEPS_MAX = 40


class StreamedTask(msgspec.Struct, frozen=True):
    """One streamed episode."""

    seed: int
    number: int
    faulty: bool
    mute: bool = False


class Streamed(msgspec.Struct, frozen=True):
    """How it went. Without a fault there are no metrics; without a right answer at the end no `found_s`."""

    agent: str
    form: str
    metrics: EpisodeMetrics | None
    incidents: int
    found_s: float | None
    """From the fault to the diagnosis that is right and stays so."""
    alarmed_s: float | None
    """From the fault to the first incident."""
    named: bool = False
    """Whether the truth is the diagnosis that stands or one of its alternatives."""


def stream(task: StreamedTask) -> Streamed:
    """Run one episode through a pipeline."""
    rng = np.random.default_rng((task.seed, task.number, int(task.faulty)))
    vehicles = int(rng.integers(VEHICLES[0], VEHICLES[1] + 1))
    gateways = int(rng.integers(GATEWAYS[0], min(GATEWAYS[1], vehicles) + 1))
    t_fault_s = float(rng.uniform(*T_FAULT_S))
    seconds = t_fault_s + ANSWER_S
    drawn = int(rng.integers(2**31))
    healthy = network_source(drawn, vehicles, gateways, seconds, None, mute=task.mute)
    topology = topology_of(healthy)
    form, fault = draw_fault(rng, topology, t_fault_s) if task.faulty else (None, None)
    source = network_source(drawn, vehicles, gateways, seconds, fault, mute=task.mute)
    began_s = perf_counter()
    events = run(source, seconds)
    wall_s = perf_counter() - began_s
    own = [event for event in events if event.kind == INCIDENT]
    incidents = len({event.id for event in own})
    if form is None or fault is None:
        return Streamed("streamed", "none", None, incidents, None, None)
    truth = (form.fault_type, Hypothesis(form, fault.device).location(topology))
    log = EpisodeLog(len(topology), len(topology) - 1, STEPS_MAX, truth, topology.ends(truth[1]))
    log.wall_time_seconds = wall_s
    # the network is learned from the streams: by the fault all of it has been heard
    log.discovered_nodes, log.discovered_edges = len(topology), len(topology) - 1
    standing, found_s = judge(own, truth, T0 + t_fault_s)
    if standing is not None:
        log.predicted = (standing["type"], standing["location"])
        asked = [e for e in standing["evidence"] if "tool" in e]
        log.calls = [Call.of(Tool[e["tool"].upper()], e["target"], BROKER) for e in asked]
        log.total_reward = answer_reward(log.predicted, truth) + COST_REWARD * sum(COST[c.tool] for c in log.calls)
    log.steps = len(log.calls) + (standing is not None)
    alarmed_s = min((e.t_raised for e in own), default=math.nan) - T0 - t_fault_s
    return Streamed(
        agent="streamed",
        form=form.word,
        metrics=episode_metrics(log),
        incidents=incidents,
        found_s=found_s,
        alarmed_s=None if math.isnan(alarmed_s) else alarmed_s,
        named=standing is not None and truth in _answers(standing),
    )


def _answers(diagnosis: dict[str, Any]) -> list[tuple[str, str]]:
    return [(answer["type"], answer["location"]) for answer in (diagnosis, *diagnosis["alternatives"])]


def run(source: NetworkSource, seconds: float) -> list[AlarmEvent]:
    """All events of a pipeline over this telemetry."""
    # the answer counts that stands when the time is up: nothing is asked after the last sample
    return list(events_of(Pipeline(DEFAULT), network_batches(source, seconds), finish=False))


def judge(
    events: Sequence[AlarmEvent], truth: tuple[str, str], t_fault: float
) -> tuple[dict[str, Any] | None, float | None]:
    """The diagnosis that stands at the end, and how long after the fault it became right for good.

    Of several incidents the first counts; one that is cleared keeps its last diagnosis.
    """
    first = next((event.id for event in events), None)
    standing: dict[str, Any] | None = None
    found_s: float | None = None
    for event in events:
        if event.id != first or event.diagnosis is None or event.state == CLEARED:
            continue
        standing = event.diagnosis
        right = (standing["type"], standing["location"]) == truth
        found_s = (event.t - t_fault if found_s is None else found_s) if right else None
    return standing, found_s


def topology_of(source: NetworkSource) -> Topology:
    """The network as it is."""
    topology = Topology()
    kinds = {BROKER: Device.GATEWAY}
    # parents first: gateways, then vehicles, then sensors
    for name in sorted(source.parent, key=lambda n: (source.parent[n] != BROKER, "/" in n)):
        parent = source.parent[name]
        kind = Device.SENSOR if "/" in name else kinds.get(parent, Device.VEHICLE)
        topology.add(name, kind, parent)
    return topology


def draw_fault(rng: np.random.Generator, topology: Topology, t_fault_s: float) -> tuple[Form, NetworkFault]:
    """Every type as likely as any other, then every form of it, then every place."""
    fault_type = FAULT_TYPES[int(rng.integers(len(FAULT_TYPES)))]
    forms = [form for form in Form if form.fault_type == fault_type]
    form = forms[int(rng.integers(len(forms)))]
    # without its broker the daemon hears nothing: such an episode has no telemetry to run
    places = [d for d, kind in topology.kind.items() if kind is not Device.BROKER and form in forms_at(kind, d)]
    device = places[int(rng.integers(len(places)))]
    size = 1.0
    if form in (Form.LATENCY, Form.CLOCK):
        size = float(rng.uniform(0.35, 0.8)) * (-1.0 if form is Form.CLOCK and rng.random() < 0.25 else 1.0)
    elif form is Form.LOSS:
        size = float(rng.uniform(0.4, 0.6))
    elif form is Form.RATE:
        size = float(rng.uniform(0.15, 0.5))
    return form, NetworkFault(form.word, device, t_fault_s, size)


class StreamedFigures(msgspec.Struct, frozen=True):
    """What the metrics do not say: times, incidents too many, and quiet where nothing is wrong."""

    episodes: int
    clean_episodes: int
    clean_incidents: int
    no_incident: int
    named_share: float | None
    more_than_one_incident: int
    alarmed_median_s: float | None
    found_median_s: float | None
    found_p95_s: float | None


def figures(played: Sequence[Streamed]) -> StreamedFigures:
    """The figures of a run."""
    faulty = [p for p in played if p.metrics is not None]
    clean = [p for p in played if p.metrics is None]
    found = [p.found_s for p in faulty if p.found_s is not None]
    alarmed = [p.alarmed_s for p in faulty if p.alarmed_s is not None]
    return StreamedFigures(
        episodes=len(faulty),
        clean_episodes=len(clean),
        clean_incidents=sum(p.incidents for p in clean),
        no_incident=sum(p.incidents == 0 for p in faulty),
        named_share=sum(p.named for p in faulty) / len(faulty) if faulty else None,
        more_than_one_incident=sum(p.incidents > 1 for p in faulty),
        alarmed_median_s=float(np.median(alarmed)) if alarmed else None,
        found_median_s=float(np.median(found)) if found else None,
        found_p95_s=float(np.quantile(found, 0.95)) if found else None,
    )
