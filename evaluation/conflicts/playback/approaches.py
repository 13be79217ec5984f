"""Every pair that will pass closely, at every step: who, how near and when. One kernel over all steps and pairs.

The metrics need the closest pair of a step only (series.py); a picture of the moment shows all of them. Which pairs
count, how near they come and what a conflict is are decided by the functions that the metrics use
(detectors/kernels/pairs.py). Called by scene.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.kernels.approach import State, state_of
from watchkeeper.detectors.kernels.pairs import Reach, closest, conflicting, level, threat_m
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.evaluation.conflicts.findings import Findings
from watchkeeper.evaluation.conflicts.series import Flown, flown_of
from watchkeeper.streams.geo import KT_MS, NM_M
from watchkeeper.streams.kernels import njit


class Approach:
    """Two aircraft (as columns of the episode) that come closer than a threat does."""

    step: int
    a: int
    b: int
    tcpa_s: float
    dcpa_m: float
    conflict: bool
    """Closer than the minimum, and neither has arrived."""


def approaches(found: Findings) -> NDArray[Any]:
    """Records of Approach in order of step; the nearest of a step first."""
    flown, settings = flown_of(found.episode), found.settings
    vertical_ft = math.inf if settings["vertical_ft"] is None else settings["vertical_ft"]
    reach = Reach(settings["horizon_s"], vertical_ft, math.inf, 1.0 if settings["tangent_plane"] == "midpoint" else 0.0)
    separation_nm = settings["los_threshold_nm"]
    state = blank(State, flown.lat.shape[1])
    # counted first, then filled in
    rows = blank(Approach, 0)
    n = _find(flown, reach, separation_nm * NM_M, threat_m(separation_nm), state, rows)
    rows = blank(Approach, n)
    _find(flown, reach, separation_nm * NM_M, threat_m(separation_nm), state, rows)
    return rows[np.lexsort((rows["dcpa_m"], rows["step"]))]


@njit(cache=True)
def _find(
    flown: Flown, reach: Reach, separation_m: float, near_m: float, state: NDArray[Any], rows: NDArray[Any]
) -> int:
    """How many there are; as many as `rows` has room for are written there."""
    lat, lon, arrived, controlled = flown.lat, flown.lon, flown.arrived, flown.controlled
    steps, agents = lat.shape
    n = 0
    for k in range(steps):
        for a in range(agents):
            if math.isnan(lat[k, a]):
                continue
            speed_ms = flown.speed_kt[k, a] * KT_MS
            state_of(lat[k, a], lon[k, a], flown.heading_deg[k, a], speed_ms, 0.0, state[a])
        for a in range(agents):
            for b in range(a + 1, agents):
                if math.isnan(lat[k, a]) or math.isnan(lat[k, b]) or not (controlled[k, a] or controlled[k, b]):
                    continue
                if not level(flown.alt_ft[k, a], flown.alt_ft[k, b], reach.vertical_ft):
                    continue
                t, d = closest(state[a], state[b], reach.horizon_s, reach.share_b)
                if d > near_m:
                    continue
                if n < rows.size:
                    row = rows[n]
                    row.step, row.a, row.b, row.tcpa_s, row.dcpa_m = k, a, b, t, d
                    row.conflict = conflicting(d, separation_m) and not (arrived[k, a] or arrived[k, b])
                n += 1
    return n
