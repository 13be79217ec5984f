"""Where the vehicles are in the state of an operator of vehicles (detectors/engine/state.py), by dotted path.

    table     an array with a place for each slot: path to the axis of the slots
    rows      arrays with a place for each of the slots that `rows` names: path of the rows, and those arrays
    slots     an array of slots, or a list of rows that begin with one

A new table of the engine that is not named here would be that of the operator that is ahead: tests/engines/regroup
compares a regrouped run with a single Pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from watchkeeper.detectors.catalog import REGISTRY
from watchkeeper.detectors.declaration import PerVehicle

NOTHING_KEPT = PerVehicle(axes={})


@dataclass(frozen=True, slots=True)
class Layout:
    """Of one state; paths begin at its root."""

    tables: Mapping[str, int]
    rows: Mapping[str, Mapping[str, int]]
    lists: tuple[str, ...]
    gateways: tuple[str, ...]
    detectors: Mapping[str, PerVehicle]


def layout_of(state: dict[str, Any]) -> Layout:
    """The layout of a state that has these detectors, alarm kinds and streams."""
    tables = {"fleet.expected_t": 0, "guard.state.clock_off": 0, "guard.state.refused": 0, "guard.state.alarms.said": 1}
    tables |= {f"guard.state.coverage.{name}": 1 for name in ("code", "since_t", "judged", "trying_s")}
    if state["fleet"]["since_t"] is not None:
        tables["fleet.since_t"] = 0
    rows: dict[str, dict[str, int]] = {}
    lists, gateways = [f"fences.{name}.excluded" for name in state["fences"]], []
    for word in state["fleet"]["kinds"]:
        kind = f"fleet.kinds.{word}"
        rows[f"{kind}.rows"] = {f"{kind}.last_t": 0, f"{kind}.count": 0, f"{kind}.value": 1, f"{kind}.value_t": 1}
        if "ring" in state["fleet"]["kinds"][word]:
            rows[f"{kind}.rows"] |= {f"{kind}.ring.t": 0, f"{kind}.ring.count": 0, f"{kind}.ring.data": 1}
    for word, waiting in state["pending"].items():
        if waiting:
            pending = f"pending.{word}"
            rows[f"{pending}.slot"] = {f"{pending}.via": 0, f"{pending}.t": 0, f"{pending}.data": 1}
            gateways.append(f"{pending}.via")
    for name in state["watches"]:
        watch = f"watches.{name}.state"
        tables |= {f"{watch}.debouncer.{part}": 0 for part in ("cells", "ring")}
        tables |= {f"{watch}.said.{part}": 0 for part in ("t", "severity")}
        rows[f"{watch}.worst.cells"] = {
            f"{watch}.worst.{part}": 0 for part in ("rank", "t", "score", "bits", "numbers")
        }
        lists.append(f"{watch}.worst.details")
    kept = _kept(state)
    for name, per_vehicle in kept.items():
        own = f"detectors.{name}.state"
        axes = {f"{own}.{path}": axis for path, axis in per_vehicle.axes.items()}
        if "rows" in state["detectors"][name]["state"]:
            rows[f"{own}.rows"] = axes
        else:
            tables |= axes
        gateways += [f"{own}.{path}" for path in per_vehicle.gateways]
    return Layout(tables, rows, tuple(lists), tuple(gateways), kept)


def _kept(state: dict[str, Any]) -> dict[str, PerVehicle]:
    """The detectors whose states can be taken apart; the state of any other is taken out, so that it starts cold."""
    found = {}
    for name, saved in state["detectors"].items():
        declared = REGISTRY[name].declaration.per_vehicle if name in REGISTRY else None
        if saved["state"] is None or (declared is None and saved["state"]):
            saved["state"] = None
        else:
            found[name] = declared or NOTHING_KEPT
    return found


def at(state: dict[str, Any], path: str) -> Any:
    """What stands there."""
    found: Any = state
    for key in path.split("."):
        found = found[key]
    return found


def put(state: dict[str, Any], path: str, value: Any) -> None:
    """Let this stand there."""
    *way, last = path.split(".")
    inside: Any = state
    for key in way:
        inside = inside[key]
    inside[last] = value
