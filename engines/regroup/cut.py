"""The state of an operator of some of its vehicles: theirs is picked, and what all operators know alike stays."""

from __future__ import annotations

from typing import Any

import numpy as np

from watchkeeper.engines.regroup.layout import at, layout_of, put
from watchkeeper.streams.batch import I4
from watchkeeper.streams.split import BUCKETS, bucket_of

NO_TALLY: dict[str, Any] = {"judged": 0, "not_judged": {}, "partly": {}, "examples": {}}


def cut(whole: dict[str, Any], part: int, parts: int, *, counts: bool) -> dict[str, Any]:
    """The state of the vehicles of one part. `counts`: what was counted so far goes with it."""
    state = _copied(whole)
    layout, fleet = layout_of(state), state["fleet"]
    for kind in fleet["kinds"].values():
        if ring := kind.get("ring"):
            ring["data"] = np.array(ring["data"]).reshape(len(ring["fields"]), *ring["t"].shape)
    mine = {name for name in fleet["ids"] if bucket_of(name) % parts == part}
    members = [(slot, name) for name, slot in zip(fleet["ids"], fleet["slots"].tolist(), strict=True) if name in mine]
    members.sort()
    slots = np.array([slot for slot, _ in members], np.int32)
    place: I4 = np.full(fleet["high"], -1, np.int32)
    place[slots] = np.arange(len(slots), dtype=np.int32)
    for path, axis in layout.tables.items():
        put(state, path, np.take(at(state, path), slots, axis=axis))
    for path, arrays in layout.rows.items():
        found = place[at(state, path)]
        chosen = np.flatnonzero(found >= 0)
        put(state, path, found[chosen])
        for name, axis in arrays.items():
            put(state, name, np.take(at(state, name), chosen, axis=axis))
    for path in layout.lists:
        put(state, path, [[int(place[row[0]]), *row[1:]] for row in at(state, path) if place[row[0]] >= 0])
    wanted = {bucket for bucket in range(BUCKETS) if bucket % parts == part}
    for name, kept in layout.detectors.items():
        for key in kept.buckets:
            path = f"detectors.{name}.state.{key}"
            put(state, path, [row for row in at(state, path) if row[0] in wanted])
    fleet |= {
        "high": len(slots), "ids": [name for _, name in members], "slots": np.arange(len(slots), dtype=np.int32),
        "free": np.empty(0, np.int32), "door": {"waiting": [], "taken": []},
    }  # fmt: skip
    signs = fleet["callsigns"]
    fleet["callsigns"] = {
        "now": {name: sign for name, sign in signs["now"].items() if name in mine},
        "waiting": [row for row in signs["waiting"] if row[0] in mine],
    }
    book = state["book"]
    # an alarm about a detector has two subjects; where the trouble goes on, it is raised again
    book["active"] = [e for e in book["active"] if (len(e["subjects"]) > 1 and counts) or e["subjects"][0] in mine]
    for name in ("below", "changes"):
        book[name] = [row for row in book[name] if row[1][0] in mine]
    if not counts:
        _clear(state)
    return state


def _clear(state: dict[str, Any]) -> None:
    """What was counted so far goes elsewhere."""
    state["drops"], state["samples"], state["crowded_out"] = [], {}, 0
    state["book"]["refused"] = 0
    state["guard"]["state"]["alarms"]["parts"] = []
    coverage = state["guard"]["state"]["coverage"]
    coverage["gone"] = [dict(NO_TALLY) for _ in coverage["gone"]]
    for fence in state["fences"].values():
        fence["failures"] = {}


def _copied(state: dict[str, Any]) -> dict[str, Any]:
    """The same dicts again, so that they can be changed; what they hold is shared."""
    return {key: _copied(value) if isinstance(value, dict) else value for key, value in state.items()}
