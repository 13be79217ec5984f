"""What people see of a fleet that is spread over workers: taken in a worker about once a second, shown in the parent.

    view = Watching(pipeline).view()    worker: newest values, coverage and evidence of its vehicles, figures
    shown.put(views)                    parent: a fleet, a table of coverage and evidence that observers can read

Nothing here decides anything: alarms come from Merge. Rings have one sample for each view, not all that were sent.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.engine.guard import Guard
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.fleet.fleet import Fleet, Samples
from watchkeeper.streams.batch import F8, I4
from watchkeeper.streams.messages import Kind

# Columns of evidence that have one value for each row, and may be missing.
_ROWS = ("t", "epoch", "score", "threshold", "severity", "cause_bits")


class Watching:
    """A worker's own observer: keeps the newest evidence of each alarm kind until it is shown."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._latest: dict[str, Evidence] = {}
        pipeline.on_evidence = self._take

    def _take(self, _window: Window, evidence: list[Evidence]) -> None:
        self._latest.update({found.kind: found for found in evidence})

    def view(self) -> dict[str, Any]:
        """What there is to see now."""
        pipeline, fleet, guard = self._pipeline, self._pipeline.fleet, self._pipeline.guard
        slots = np.array(sorted(fleet.slot_of.values()), np.int32)
        place = np.full(fleet.capacity, -1, np.int32)
        place[slots] = np.arange(len(slots), dtype=np.int32)
        found: dict[str, Any] = {
            "names": [fleet.ids[slot] for slot in slots.tolist()],
            "evidence": [_plain(one, place) for one in self._latest.values() if not one.places],
            "gauges": pipeline.gauges(), "troubles": guard.troubles(), "warnings": guard.warnings(),
            "failures": [[*who, n] for who, n in guard.failures().items()], "unwatched": guard.alarms.vehicles,
            "drops": [[*what, n] for what, n in pipeline.drops.items()],
        }  # fmt: skip
        if pipeline.part.covers:
            found |= _columns(fleet, slots)
            table = guard.coverage
            found["coverage"] = [table.code[:, slots], table.since_t[:, slots], table.judged[:, slots]]
        self._latest = {}
        return found


def _columns(fleet: Fleet, slots: I4) -> dict[str, Any]:
    kinds = [kind for kind in Kind if fleet.count[kind, slots].any()]
    return {
        "kinds": [int(kind) for kind in kinds],
        "last_t": fleet.last_t[:, slots],
        "count": fleet.count[:, slots],
        "value": [fleet.value[kind][:, slots] for kind in kinds],
        "value_t": [fleet.value_t[kind][:, slots] for kind in kinds],
    }


def _plain(evidence: Evidence, place: I4) -> dict[str, Any]:
    return {
        "kind": evidence.kind, "a": place[evidence.a], "b": None if evidence.b is None else place[evidence.b],
        "causes": list(evidence.causes), "numbers": evidence.numbers,
        **{name: getattr(evidence, name) for name in _ROWS},
    }  # fmt: skip


class SeenGuard(Guard):
    """The guard of a pipeline whose detectors run elsewhere: says what theirs say."""

    said: list[dict[str, Any]]

    def troubles(self) -> list[str]:
        """See Guard."""
        return sorted({words for view in self.said for words in view["troubles"]})

    def warnings(self) -> list[str]:
        """See Guard."""
        return sorted({words for view in self.said for words in view["warnings"]})


class Shown:
    """The parent's fleet and coverage, as the views of all workers have them."""

    def __init__(self, fleet: Fleet, guard: Guard) -> None:
        self.fleet, self.guard = fleet, guard

    def put(self, views: list[dict[str, Any]], callsigns: dict[str, str]) -> list[Evidence]:
        """Show these views, one of each worker; their evidence, about the slots here."""
        here = [np.array([self.fleet.slot_for(name) for name in view["names"]], np.int32) for view in views]
        for view, slots in zip(views, here, strict=True):
            # a fleet that is full has no slot for one who came when another had not left yet
            if "coverage" in view and (slots >= 0).all():
                self._put(view, slots)
        known = {name for view in views for name in view["names"]}
        gone = np.array([slot for name, slot in self.fleet.slot_of.items() if name not in known], np.int32)
        if len(gone):
            self.guard.coverage.forget(gone)
            self.fleet.forget(gone, np.inf)
        self.fleet.callsigns.clear()
        self.fleet.callsigns.update({name: sign for name, sign in callsigns.items() if name in known})
        rows = [_evidence(one, slots) for view, slots in zip(views, here, strict=True) for one in view["evidence"]]
        return list(joined(rows).values())

    def _put(self, view: dict[str, Any], slots: I4) -> None:
        fleet, order = self.fleet, np.argsort(slots, kind="stable")
        for kind, value, value_t in zip(map(Kind, view["kinds"]), view["value"], view["value_t"], strict=True):
            fresh = order[view["last_t"][kind, order] > fleet.last_t[kind, slots[order]]]
            at, t = slots[fresh], view["last_t"][kind, fresh]
            via = np.full(len(fresh), -1, np.int32)
            fleet.ingest(Samples(kind, at, t, np.ascontiguousarray(value[:, fresh]), via))
            fleet.value[kind][:, slots], fleet.value_t[kind][:, slots] = value, value_t
        fleet.last_t[:, slots], fleet.count[:, slots] = view["last_t"], view["count"]
        table = self.guard.coverage
        table.code[:, slots], table.since_t[:, slots], table.judged[:, slots] = view["coverage"]


def _evidence(plain: dict[str, Any], slots: I4) -> Evidence:
    a: I4 = slots[plain["a"]]
    b: I4 | None = None if plain["b"] is None else slots[plain["b"]]
    rows = {name: plain[name] for name in _ROWS}
    return Evidence(plain["kind"], a=a, b=b, causes=tuple(plain["causes"]), numbers=plain["numbers"], **rows)


def joined(rows: list[Evidence]) -> dict[str, Evidence]:
    """The evidence of several workers as of one, by alarm kind."""
    found: dict[str, Evidence] = {}
    for one in rows:
        before = found.get(one.kind)
        found[one.kind] = one if before is None else _both(before, one)
    return found


def _both(first: Evidence, second: Evidence) -> Evidence:
    def of(name: str) -> Any:
        columns = [getattr(first, name), getattr(second, name)]
        return None if columns[0] is None or columns[1] is None else np.concatenate(columns)

    numbers: dict[str, F8] = {
        name: np.concatenate((column, second.numbers[name]))
        for name, column in first.numbers.items()
        if name in second.numbers
    }
    return replace(first, numbers=numbers, **{name: of(name) for name in (*_ROWS, "a", "b")})
