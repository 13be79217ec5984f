"""The state of a Pipeline between two calls, as nested dicts of arrays and plain values; and back.

Used by the pipeline only. After a restore everything is as it was: what follows is the same to the byte.

Detectors, the watches over alarm kinds, coverage and the incidents are parts that stand for themselves (parts.py). One
that cannot be used starts without its past, as a detector does for a vehicle that it has never seen, and everything
else goes on from the snapshot.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Set
from typing import TYPE_CHECKING, Any

from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent, encode_event
from watchkeeper.detectors.alarms.watch import Watch
from watchkeeper.detectors.base import Detector, PlaceDetector
from watchkeeper.detectors.catalog import detector_kinds
from watchkeeper.detectors.clock.alarms import ClockAlarms
from watchkeeper.detectors.clock.declaration import CLOCK
from watchkeeper.detectors.coverage.alarms import WatchAlarms
from watchkeeper.detectors.coverage.declaration import WATCH
from watchkeeper.detectors.engine.parts import refusal, saved
from watchkeeper.detectors.incidents.declaration import INCIDENT

if TYPE_CHECKING:
    from watchkeeper.detectors.engine.pipeline import Pipeline

log = logging.getLogger(__name__)


def snapshot(p: Pipeline) -> dict[str, Any]:
    """All of it."""
    return {
        "clock": p.clock.snapshot(),
        "era": p._era,
        "clock_alarms": saved(p.clock_alarms),
        "ticks": {"done": p._done, "stream_done": p._stream_done, "run": p.ticks},
        "last_t": p._last_t,
        "away": p._away,
        "drops": [[kind, reason, n] for (kind, reason), n in p.drops.items()],
        "samples": dict(p.samples),
        "crowded_out": p.crowded_out,
        "fleet": p.fleet.snapshot(),
        "pending": {kind.word: pending.snapshot() for kind, pending in p._pending.items()},
        "vias": p.gateway_table.snapshot(),
        "fences": p.guard.fence_states(),
        "detectors": p.guard.detector_states(),
        "guard": saved(p.guard),
        "watches": {kind: saved(watch) for kind, watch in p.watches.items()},
        "book": p.book.snapshot(),
        "incidents": None if p.incidents is None else saved(p.incidents),
    }


def restore(p: Pipeline, state: dict[str, Any]) -> None:
    """Put a snapshot into a pipeline that has seen nothing yet. ValueError: it has another tick length."""
    if state["clock"]["tick_s"] != p.clock.tick_s:
        raise ValueError(f"snapshot has tick_s {state['clock']['tick_s']}, configured is {p.clock.tick_s}")
    p.clock.restore(state["clock"])
    p._era = state["era"]
    ticks = state["ticks"]
    p._done, p._stream_done, p.ticks = ticks["done"], ticks["stream_done"], ticks["run"]
    p._last_t, p._away = state["last_t"], state["away"]
    p.drops = Counter({(kind, reason): n for kind, reason, n in state["drops"]})
    p.samples = Counter(state["samples"])
    p.crowded_out = state["crowded_out"]
    p.fleet.restore(state["fleet"])
    for kind, pending in p._pending.items():
        pending.restore(state["pending"].get(kind.word, {}))
    p.gateway_table.restore(state["vias"])
    p._declare()
    p.book.restore(state["book"])
    p.cold = _restore_parts(p, state)
    for name, why in p.cold.items():
        log.warning("%s starts without its past: %s", name, why)
    if p.cold or set(state["watches"]) - set(p.watches):
        # an alarm that nobody follows any more would never end
        events = list(p.book.active.values())
        _agree(p, events, {(event.kind, event.subjects) for event in events})


def _restore_parts(p: Pipeline, state: dict[str, Any]) -> dict[str, str]:
    """Each part for itself; which start without their past, and why. What was switched off then has none to miss."""
    cold = p.guard.restore_detectors(state["fences"], state["detectors"])
    if why := refusal(p.guard, state["guard"]):
        cold["coverage"] = why
    if why := refusal(p.clock_alarms, state["clock_alarms"]):
        cold["clock alarms"] = why
    makers, kinds = _makers(p), detector_kinds()
    for kind, watch in p.watches.items():
        if kind in state["watches"] and (why := refusal(watch, state["watches"][kind])):
            cold[f"{kind} alarms"] = why
            p.watches[kind] = p.watch_over(kinds[kind], makers[kind])
    # the link detector whose statistics they read may be another one now
    incidents = p.incidents = p.no_incidents()
    if incidents is not None and state["incidents"] is not None and (why := refusal(incidents, state["incidents"])):
        cold["incidents"] = why
        p.incidents = p.no_incidents()
    return cold


# -- the journal --------------------------------------------------------------------------------------------


def agree_with_journal(p: Pipeline, events: Iterable[AlarmEvent]) -> None:
    """Make the active alarms those that are active after these events; what we know as they do stays as it is."""
    last = {event.id: event for event in events}
    known = p.book.active
    changed = {
        key
        for event in last.values()
        if (key := (event.kind, event.subjects)) not in known or encode_event(known[key]) != encode_event(event)
    }
    _agree(p, list(last.values()), changed)


def _agree(p: Pipeline, last: list[AlarmEvent], changed: Set[tuple[str, tuple[str, ...]]]) -> None:
    """Make the active alarms those of these last events; only the `changed` ones are taken over."""
    watched = p.watched
    active = {(e.kind, e.subjects): e for e in last if e.state != CLEARED and e.kind in watched}
    followers: dict[str, Watch | WatchAlarms | ClockAlarms]
    followers = {**p.watches, WATCH: p.guard.alarms, CLOCK: p.clock_alarms}
    for kind, subjects in [key for key in p.book.active if key not in active]:
        if kind in followers:
            followers[kind].disown(subjects)
        del p.book.active[kind, subjects]
    makers = _makers(p)
    for key in [key for key in active if key in changed and key[0] != INCIDENT]:
        event, (kind, subjects) = active[key], key
        if not followers[kind].adopt(event):
            p.book.active.pop(key, None)
            continue
        p.book.adopt(event)
        if isinstance(maker := makers.get(kind), PlaceDetector):
            maker.adopt(subjects[0], event.t_onset, event.t, event.evidence)
    if p.incidents is not None:
        p.incidents.reconcile(last, changed)


def _makers(p: Pipeline) -> dict[str, Detector]:
    """The detector of each alarm kind."""
    return {kind.name: detector for detector in p.detectors for kind in detector.declaration.kinds}
