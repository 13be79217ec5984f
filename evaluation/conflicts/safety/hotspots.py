"""Where alerts were false and where they were missed: one place per window, and cells of a map that gather them.

Latitudes and longitudes in degrees, cells in NM. `mistakes` is called for each episode by api.py, `hot_spots` by the
result of many.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from watchkeeper.evaluation.conflicts.findings import Findings

FALSE, MISSED = "false", "missed"
CELL_NM = 10.0
Mistake = Mapping[str, Any]


def mistakes(found: Findings) -> list[dict[str, Any]]:
    """Kind, time and place of each window that has no partner, in order of time.

    A missed conflict is where its pair is midway at the step of the smallest DCPA, a false alert where the first
    aircraft is that was commanded deliberately in its window.
    """
    e, s, m = found.episode, found.series, found.matching
    answered, used = {g for g, _ in m.pairs}, {a for _, a in m.pairs}
    rows = []
    for start, end in (w for g, w in enumerate(m.truth) if g not in answered):
        k = start + int(np.argmin(s.dcpa_nm[start:end]))
        a, b = s.pair[k].tolist()
        east = (e.lon[k, b] - e.lon[k, a] + 180.0) % 360.0 - 180.0
        rows.append(_row(MISSED, e.t[k], (e.lat[k, a] + e.lat[k, b]) / 2.0, e.lon[k, a] + east / 2.0))
    for start, end in (w for a, w in enumerate(m.alerts) if a not in used):
        k, a = np.argwhere(s.acting_agent[start:end])[0].tolist()
        rows.append(_row(FALSE, e.t[start + k], e.lat[start + k, a], e.lon[start + k, a]))
    return sorted(rows, key=lambda row: row["t"])


def hot_spots(places: Iterable[Mistake], cell_nm: float = CELL_NM) -> list[dict[str, Any]]:
    """Cells of about `cell_nm` on a side with how many false and missed alerts they hold, the fullest first.

    >>> hot_spots([{"kind": "false", "lat": 50.01, "lon": 8.01}], cell_nm=60.0)
    [{'lat': 50.5, 'lon': 8.684, 'false': 1, 'missed': 0}]
    """
    if not 0.0 < cell_nm < math.inf:
        raise ValueError(f"cell_nm is {cell_nm!r}, expected a number above 0")
    cells: dict[tuple[float, float], dict[str, Any]] = {}
    high = cell_nm / 60.0
    for place in places:
        lat = (math.floor(place["lat"] / high) + 0.5) * high
        # as many cells around a row as fit
        wide = 360.0 / max(1, math.floor(360.0 * math.cos(math.radians(min(abs(lat), 90.0))) / high))
        lon = (math.floor(((place["lon"] + 180.0) % 360.0) / wide) + 0.5) * wide - 180.0
        cell = cells.setdefault((lat, lon), {"lat": round(lat, 3), "lon": round(lon, 3), FALSE: 0, MISSED: 0})
        cell[place["kind"]] += 1
    return sorted(cells.values(), key=lambda cell: (-cell[FALSE] - cell[MISSED], cell["lat"], cell["lon"]))


def _row(kind: str, t: float, lat: float, lon: float) -> dict[str, Any]:
    return {"kind": kind, "t": float(t), "lat": float(lat), "lon": float((lon + 180.0) % 360.0 - 180.0)}
