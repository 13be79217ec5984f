"""A scene as plain values for the page's scripts (page/): columns per aircraft, flags per step, windows and metrics.

Places are NM on the chart to two digits, which is 20 m; metrics keep every digit. NaN becomes null in JSON. The
scripts' types are in tools/js/episode.d.ts. Called by pages.py.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from watchkeeper.evaluation.conflicts.playback.chart import NM_PER_DEG
from watchkeeper.evaluation.conflicts.playback.scene import Scene, Window
from watchkeeper.evaluation.conflicts.safety.hotspots import mistakes
from watchkeeper.evaluation.conflicts.summary import number
from watchkeeper.streams.batch import F8
from watchkeeper.streams.geo import NM_M

SHOWN_SETTINGS = ("los_threshold_nm", "horizon_s", "threat_nm", "truth_margin_s", "alert_margin_s", "iou_threshold")


def content(scene: Scene, name: str) -> dict[str, Any]:
    """Everything that the page shows."""
    found, e, s, m = scene.found, scene.found.episode, scene.found.series, scene.found.matching
    return {
        "name": name,
        "ids": e.ids,
        "t_s": _column(scene.t_s, 3),
        "step_s": e.step_s,
        "end_s": round(scene.end_s, 3),
        "settings": {key: found.settings[key] for key in SHOWN_SETTINGS},
        "chart": {
            "middle": scene.chart.middle,
            "shrink": scene.chart.shrink,
            "nm_per_unit": float(np.degrees(1.0)) * NM_PER_DEG * scene.chart.shrink,
        },
        "aircraft": [_aircraft(scene, a) for a in range(len(e.ids))],
        "conflict": _flags(s.conflict),
        "alert": _flags(m.alert),
        "lost": _flags(s.lost),
        "deliberate": _flags(s.acting),
        "separation_nm": _column(s.separation_nm, 3),
        "dcpa_nm": _column(s.dcpa_nm, 3),
        "passes": _passes(scene),
        "commands": _commands(scene),
        "conflicts": [_window(w, "conflict", i) for i, w in enumerate(scene.conflicts)],
        "alerts": [_window(w, "alert", i) for i, w in enumerate(scene.alerts)],
        "mistakes": _mistakes(scene),
        "metrics": found.metrics,
        "metric_words": {key: number(value) for key, value in found.metrics.items()},
    }


def _aircraft(scene: Scene, a: int) -> dict[str, Any]:
    e, s = scene.found.episode, scene.found.series
    way = np.stack((scene.way_east[:, a], scene.way_north[:, a]))
    before = np.concatenate((np.full((2, 1), np.nan), way[:, :-1]), axis=1)
    # a waypoint holds until another one, or none, follows
    new = np.flatnonzero(~((way == before) | (np.isnan(way) & np.isnan(before))).all(axis=0))
    return {
        "east": _column(scene.east[:, a], 2),
        "north": _column(scene.north[:, a], 2),
        "heading_deg": _column(e.heading_deg[:, a], 0),
        "speed_kt": _column(e.speed_kt[:, a], 0),
        "alt_ft": _column(e.alt_ft[:, a], 0) if np.isfinite(e.alt_ft[:, a]).any() else None,
        "arrived": _flags(e.arrived[:, a]),
        "violated": _flags(s.violations[:, a] > 0),
        "waypoints": [[int(k), *_column(way[:, k], 2)] for k in new],
    }


def _passes(scene: Scene) -> list[list[Any]]:
    """Step, the two, DCPA in NM, TCPA in s, where both will be then, and whether it is a conflict."""
    rows: list[list[Any]] = []
    for row, ends in zip(scene.passes, scene.pass_ends, strict=True):
        near = round(float(row["dcpa_m"]) / NM_M, 2), round(float(row["tcpa_s"]))
        rows.append([int(row["step"]), int(row["a"]), int(row["b"]), *near, *_column(ends, 2), int(row["conflict"])])
    return rows


def _commands(scene: Scene) -> list[list[Any]]:
    """Each deliberate command: step, aircraft, turn in degrees, speed change in kt."""
    e, acting = scene.found.episode, scene.found.series.acting_agent
    turn_deg, faster_kt = np.nan_to_num(e.turn_deg), np.nan_to_num(e.faster_kt)
    return [
        [k, a, round(float(turn_deg[k, a]), 1), round(float(faster_kt[k, a]), 1)]
        for k, a in np.argwhere(acting).tolist()
    ]


def _mistakes(scene: Scene) -> list[dict[str, Any]]:
    """Where each window without a partner is on the map."""
    found = mistakes(scene.found)
    east, north = scene.chart.place(np.array([row["lat"] for row in found]), np.array([row["lon"] for row in found]))
    first_t = float(scene.found.episode.t[0]) if found else 0.0
    return [
        {"kind": row["kind"], "t_s": round(row["t"] - first_t, 3), "east": round(x, 2), "north": round(y, 2)}
        for row, x, y in zip(found, east.tolist(), north.tolist(), strict=True)
    ]


def _window(window: Window, kind: str, index: int) -> dict[str, Any]:
    return {"kind": kind, "index": index} | asdict(window)


def _column(values: F8, digits: int) -> list[float | int | None]:
    """Rounded; what is no number is None, and whole numbers carry no point."""
    rounded = np.round(values, digits)
    return [
        None if not np.isfinite(v) else int(v) if v == int(v) else v for v in rounded.tolist()
    ]  # fmt: skip


def _flags(values: Any) -> str:
    """One character per step: 1 is set."""
    return "".join("1" if value else "0" for value in values.tolist())
