"""The states of several operators as that of one: vehicles one after the other, in the order of the states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import reduce
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.coverage.table import Tally
from watchkeeper.engines.regroup.layout import at, layout_of, put
from watchkeeper.streams.batch import F8, I4

State = dict[str, Any]


def joined(states: Sequence[State]) -> State:
    """One state. The slots of the vehicles of each are those from `high` of all before it on."""
    for state in states:
        for name in state["detectors"]:
            # of a detector that could not save its state somewhere there is none at all: it starts without its past
            if any(other["detectors"][name]["state"] is None for other in states):
                state["detectors"][name]["state"] = None
    layouts = [layout_of(state) for state in states]
    first = [0, *accumulate(state["fleet"]["high"] for state in states)]
    _same_fields(states)
    _same_gateways(states, [layout.gateways for layout in layouts])
    found = max(states, key=lambda state: state["guard"]["state"]["t"])
    layout = layout_of(found)
    for name, kept in layout.detectors.items():
        _one_detector([state["detectors"][name]["state"] for state in states], kept.turns, kept.newest)
        for key in kept.buckets:
            path = f"detectors.{name}.state.{key}"
            put(found, path, sorted((row for state in states for row in at(state, path)), key=lambda row: row[0]))
    tables = {path: _behind([at(s, path) for s in states], axis) for path, axis in layout.tables.items()}
    arrays: dict[str, Any] = {}
    for path in dict.fromkeys(path for one in layouts for path in one.rows):
        have = [(state, start) for state, one, start in zip(states, layouts, first, strict=False) if path in one.rows]
        arrays[path] = np.concatenate([at(s, path) + np.int32(start) for s, start in have])
        for name, axis in next(one.rows[path] for one in layouts if path in one.rows).items():
            arrays[name] = _behind([at(s, name) for s, _ in have], axis)
    lists = {
        path: [[row[0] + start, *row[1:]] for s, start in zip(states, first, strict=False) for row in at(s, path)]
        for path in layout.lists
    }
    common = _common(states)
    for word in found["pending"]:
        if any(state["pending"][word] for state in states):
            found["pending"][word] = {}
    for path, value in (tables | arrays | lists | common).items():
        put(found, path, value)
    for word, waiting in found["pending"].items():
        found["pending"][word] = _in_time(waiting)
    return found


def _behind(arrays: Sequence[NDArray[Any]], axis: int) -> NDArray[Any]:
    """One behind the other. NumPy's own way packs records closer than they are."""
    if arrays[0].dtype.names is None:
        return np.concatenate(arrays, axis=axis)
    found = np.empty((sum(map(len, arrays)), *arrays[0].shape[1:]), arrays[0].dtype)
    for array, end in zip(arrays, accumulate(map(len, arrays)), strict=True):
        found[end - len(array) : end] = array
    return found


def _common(states: Sequence[State]) -> State:
    """What is not by slot."""
    fleets, guards, books = (
        [state["fleet"] for state in states],
        [state["guard"]["state"] for state in states],
        [state["book"] for state in states],
    )
    high = sum(fleet["high"] for fleet in fleets)
    drops: Counter[tuple[str, str]] = Counter()
    for state in states:
        drops.update({(kind, reason): n for kind, reason, n in state["drops"]})
    active = {(e["kind"], tuple(e["subjects"])): e for book in books for e in book["active"]}
    found: State = {
        "drops": [[kind, reason, n] for (kind, reason), n in drops.items()],
        "samples": dict(sum((Counter(state["samples"]) for state in states), Counter())),
        "crowded_out": sum(state["crowded_out"] for state in states),
        "last_t": max(state["last_t"] for state in states),
        "ticks.run": max(state["ticks"]["run"] for state in states),
        "fleet.high": high,
        "fleet.ids": [name for fleet in fleets for name in fleet["ids"]],
        "fleet.slots": np.arange(high, dtype=np.int32),
        "fleet.callsigns": {
            "now": {name: sign for fleet in fleets for name, sign in fleet["callsigns"]["now"].items()},
            "waiting": [row for fleet in fleets for row in fleet["callsigns"]["waiting"]],
        },
        "book": {
            "active": list(active.values()),
            "refused": sum(book["refused"] for book in books),
            **{name: [row for book in books for row in book[name]] for name in ("below", "changes")},
        },
        "guard.state.looked_t": max(guard["looked_t"] for guard in guards),
        "guard.state.coverage.gone": [
            asdict(reduce(Tally.plus, (Tally(**row) for row in rows)))
            for rows in zip(*(guard["coverage"]["gone"] for guard in guards), strict=True)
        ],
        "guard.state.alarms.parts": sorted({tuple(row) for guard in guards for row in guard["alarms"]["parts"]}),
    }
    for name in states[0]["fences"]:
        fences = [state["fences"][name] for state in states]
        # the one that failed last says what is wrong
        worst = max(fences, key=lambda fence: (fence["paused_until"], fence["last_failed"]))
        for key in ("error", "remark", "paused_until", "pause_s", "failed", "excluding", "last_failed"):
            found[f"fences.{name}.{key}"] = worst[key]
        found[f"fences.{name}.failures"] = dict(sum((Counter(fence["failures"]) for fence in fences), Counter()))
    for name in states[0]["watches"]:
        watches = [state["watches"][name]["state"] for state in states]
        causes = (watch["worst"]["causes"] for watch in watches)
        found[f"watches.{name}.state.spoke"] = any(watch["spoke"] for watch in watches)
        found[f"watches.{name}.state.scores"] = np.concatenate([watch["scores"] for watch in watches])
        found[f"watches.{name}.state.worst.causes"] = next((names for names in causes if names is not None), None)
    return found


def _one_detector(own: Sequence[State], turns: Mapping[str, str], newest: str) -> None:
    """Take what is not per vehicle from the operator that is ahead, and let all have their turns where it has."""
    if not newest:
        return
    ahead = max(own, key=lambda state: state[newest])
    for state in own:
        for path, counter in turns.items():
            by = (ahead[counter] - state[counter]) % state[path].shape[-2]
            state[path] = np.roll(state[path], by, axis=-2)
    for state in own:
        if state is not ahead:
            state |= {key: value for key, value in ahead.items() if not isinstance(value, np.ndarray)}


def _same_fields(states: Sequence[State]) -> None:
    """Let rings and worst moments have the same fields everywhere."""
    for word, kind in states[0]["fleet"]["kinds"].items():
        if "ring" in kind:
            rings = [state["fleet"]["kinds"][word]["ring"] for state in states]
            fields = np.unique(np.concatenate([ring["fields"] for ring in rings]))
            for ring in rings:
                sent = dict(zip(ring["fields"].tolist(), ring["data"], strict=True))
                # as Ring.restore has it: a field that was not sent is absent where there is a sample, else zero
                absent = np.where(np.arange(ring["t"].shape[1]) >= ring["count"][:, None], 0.0, np.nan)
                data = [sent.get(f, absent) for f in fields.tolist()]
                ring["fields"], ring["data"] = fields, np.array(data).reshape(len(fields), *ring["t"].shape)
    for name in states[0]["watches"]:
        worsts = [state["watches"][name]["state"]["worst"] for state in states]
        names = list(dict.fromkeys(one for worst in worsts for one in worst["names"]))
        for worst in worsts:
            numbers: F8 = np.full((len(worst["cells"]), len(names)), np.nan)
            for column, one in enumerate(worst["names"]):
                numbers[:, names.index(one)] = worst["numbers"][:, column]
            worst["numbers"], worst["names"] = numbers, names


def _same_gateways(states: Sequence[State], paths: Sequence[Sequence[str]]) -> None:
    """Let gateways have the same numbers everywhere."""
    tables = [state["vias"] for state in states]
    names = list(dict.fromkeys(name for table in tables for name in table["names"] if name))
    number = {name: i for i, name in enumerate(names)}
    known: State = {"heard_t": np.full(len(names), -np.inf), "expected_t": np.full(len(names), -np.inf)}
    samples = np.zeros(len(names), np.int64)
    for table in tables:
        n = len(table["heard_t"])
        places = np.array([number.get(name, -1) for name in table["names"]], np.int32)[:n]
        have = places >= 0
        for key, column in known.items():
            column[places[have]] = np.maximum(column[places[have]], table[key][have])
        samples[places[have]] = np.maximum(samples[places[have]], table["samples"][have])
    for state, own, table in zip(states, paths, tables, strict=True):
        numbers: I4 = np.array([*(number.get(name, -1) for name in table["names"]), -1], np.int32)
        for path in own:
            put(state, path, numbers[at(state, path)])
    vias = {"names": names, **known, "samples": samples, "refused": sum(table["refused"] for table in tables)}
    for state in states:
        state["vias"] = {**vias, "door": {"waiting": [], "taken": []}}


def _in_time(waiting: State) -> State:
    """Samples that wait, in time order."""
    if not waiting:
        return waiting
    order = np.argsort(waiting["t"], kind="stable")
    return {key: column[..., order] for key, column in waiting.items()}
