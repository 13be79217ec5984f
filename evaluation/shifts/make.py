"""Simulated episodes with one aircraft shifted, and their baselines of the same seeds: something to try at once.

The scenario is `controlled` of the simulator: four encounters under a controller with a fixed plan. It does not react
to a shift, so the metrics change because the conflicts do, and the tracks of the aircraft that are not shifted stay the
same to the last bit. An episode is a trajectory in the structure of docs/evaluation/conflicts.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from watchkeeper.evaluation.conflicts.episode import Episode
from watchkeeper.evaluation.conflicts.load import episodes_in
from watchkeeper.evaluation.shared.counted import counted
from watchkeeper.evaluation.shifts.flown import BASELINE
from watchkeeper.streams.simulate import SHIFT_KINDS, Shift, simulate
from watchkeeper.streams.simulate.controlled import Controller

SCENARIO = "controlled"
STEP_S = 10.0
AIRCRAFT = Controller.COMMANDED
# Small and large ones of every kind, of an aircraft that is steered clear of a conflict and of one that is not.
SHIFTS = (
    Shift("answered-1", "speed", -30.0),
    Shift("answered-1", "speed", 10.0),
    Shift("answered-1", "speed", 30.0),
    Shift("answered-1", "heading", 5.0),
    Shift("answered-1", "heading", 20.0),
    Shift("answered-1", "position_lat", 0.1),
    Shift("answered-1", "waypoint_lat", 0.2),
    Shift("missed-1", "position_lon", 0.1),
)


def episodes(
    seeds: Sequence[int], shifts: Sequence[Shift] = SHIFTS, *, jobs: int = 0, quiet: bool = True
) -> list[dict[str, Any]]:
    """For each seed the baseline, and one trajectory per shift. Raises ValueError for a shift that cannot be."""
    planned = [(seed, shift) for seed in seeds for shift in (None, *shifts)]
    return counted(_one, planned, "simulating", jobs=jobs, hidden=quiet)


def _one(planned: tuple[int, Shift | None]) -> dict[str, Any]:
    return trajectory(*planned)


def trajectory(seed: int, shift: Shift | None = None) -> dict[str, Any]:
    """One episode; its agents are called by their part in the scenario."""
    # without the aircraft that nobody commands: they meet nobody
    made = simulate(SCENARIO, seed=seed, vehicles=AIRCRAFT, shift=shift)
    ((_, _, episode),) = episodes_in(made, STEP_S)
    column = {name: episode.ids.index(own) for name, own in made.commanded.items()}
    return _documented(episode, column) | {
        "scenario_metadata": {
            "scenario": SCENARIO,
            "seed": seed,
            "test_id": f"{_called(shift)}_seed{seed}",
            "target_agent": shift.aircraft if shift else "",
            "shift_type": shift.kind if shift else BASELINE,
            "shift_value": shift.size if shift else 0.0,
            "num_agents": len(column),
            "num_steps": len(episode.t),
        }
    }


def check(shift: Shift) -> None:
    """Raises ValueError for a shift that the scenario cannot have."""
    simulate(SCENARIO, shift=shift)


def _called(shift: Shift | None) -> str:
    """What an episode is called, but for its seed."""
    if shift is None:
        return BASELINE
    return f"{shift.kind}_{shift.aircraft}_{shift.size:+g}{SHIFT_KINDS[shift.kind].unit}"


def write(folder: Path, made: Sequence[dict[str, Any]]) -> list[Path]:
    """Each episode as a JSON file, named by its test."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for one in made:
        path = folder / f"{one['scenario_metadata']['test_id']}.json"
        path.write_bytes(msgspec.json.encode(one))
        paths.append(path)
    return paths


def _documented(e: Episode, column: dict[str, int]) -> dict[str, Any]:
    """The columns of an episode in the documented structure; NaN is what is left out."""
    return {
        "timestamps": (e.t - e.t[0]).tolist(),
        "positions": _per_step(column, e.lat, e.lon),
        "actions": _per_step(column, e.turn_deg, e.faster_kt),
        "agents": {
            name: {
                key: [value if np.isfinite(value) else None for value in values[:, k].tolist()]
                for key, values in (("headings", e.heading_deg), ("speeds", e.speed_kt), ("altitudes", e.alt_ft))
            }
            for name, k in column.items()
        },
        "waypoint_status": {
            name: dict(enumerate(there))
            for name, there in zip(column, e.arrived[:, list(column.values())].T.tolist(), strict=True)
        },
        "waypoints": {
            name: {"lat": float(e.way_lat[-1, k]), "lon": float(e.way_lon[-1, k])} for name, k in column.items()
        },
    }


def _per_step(column: dict[str, int], first: Any, second: Any) -> list[dict[str, tuple[float, float]]]:
    return [
        {name: (float(a[k]), float(b[k])) for name, k in column.items() if np.isfinite(a[k])}
        for a, b in zip(first, second, strict=True)
    ]
