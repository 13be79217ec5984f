"""conflict and los: pairs of aircraft that will lose separation within the horizon, and pairs that have lost it.

At each tick every aircraft that is flying and was heard lately is carried along its geodesic from its own report
to the tick's time, position and altitude each by its own age; cpa_scan.py then finds the pairs. This file decides
who takes part and puts the result into evidence. Nothing is remembered from tick to tick.

Evidence of both kinds is sparse, its rows sorted by the two ids. Score: separation minimum over DCPA (at most
SCORE_MAX), so 1 is the boundary and larger is closer. `conflict` contains the pairs of `los` too.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.detectors.base import Evidence, Window, full, register
from watchkeeper.detectors.cpa import state_of
from watchkeeper.detectors.cpa_scan import DCPA_M, LOST, NOW_M, RESULT, T_IN_S, T_OUT_S, TCPA_S, VSEP_FT, Minima, Scan
from watchkeeper.streams.batch import F8, I4, I8, Bool
from watchkeeper.streams.fleet import Fleet
from watchkeeper.streams.geo import KT_MS, NM_M
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import COLUMN, Kind

SCORE_MAX = 1000.0
# One report may be a ghost (a wrong address, a decoding error); two of the same aircraft are a track.
MIN_REPORTS = 2

_WARNING = 2
_LAT, _LON, _ALT, _GS, _TRK, _VS, _GROUND = (
    COLUMN[Kind.ADSB][name] for name in ("lat", "lon", "alt_ft", "gs_kt", "trk_deg", "vs_fpm", "on_ground")
)


@register
class Conflict:
    """See the module's docstring."""

    name: ClassVar[str] = "conflict"
    kinds: ClassVar[tuple[str, ...]] = ("conflict", "los")
    pairs: ClassVar[bool] = True

    def __init__(self, config: Config, fleet: Fleet) -> None:
        self._fleet = fleet
        self._rank: I4 = np.zeros(fleet.capacity, np.int32)
        self._gauges = _figures(np.empty((0, RESULT)), 0, 0)
        self._scan = Scan(fleet.capacity, config.detectors.conflict.max_pairs)
        self.retune(config)

    def retune(self, config: Config) -> None:
        """Take new thresholds."""
        c = self._config = config.detectors.conflict
        self._los_enabled = config.detectors.los.enabled
        self._minima = Minima(c.horizon_s, c.separation_nm * NM_M, c.vertical_ft)
        if len(self._scan.pair_a) != c.max_pairs:
            self._scan = Scan(self._fleet.capacity, c.max_pairs)

    def step(self, window: Window) -> list[Evidence]:
        """Find the pairs at the window's end."""
        fleet, scan, c = self._fleet, self._scan, self._config
        adsb = Kind.ADSB
        n = _take_part(
            window.t, fleet.high, fleet.value[adsb], fleet.value_t[adsb], fleet.count[adsb],
            c.max_age_s, c.min_gs_kt, c.assume_same_level, 0.5 * c.horizon_s, scan.slot, scan.state,
        )  # fmt: skip
        found = scan.run(n, self._minima)
        a, b, rows = self._by_id(scan.pair_a[:found], scan.pair_b[:found])
        result: F8 = scan.result[rows]
        lost: Bool = result[:, LOST] == 1.0
        self._gauges = _figures(result, scan.overflow, n)
        evidence = []
        if c.enabled:
            evidence.append(self._evidence("conflict", window.t, a, b, result))
        if self._los_enabled:
            evidence.append(self._evidence("los", window.t, a[lost], b[lost], result[lost]))
        return evidence

    def _by_id(self, a: I4, b: I4) -> tuple[I4, I4, I8]:
        """The pairs with the smaller id first, sorted by ids, and the rows they came from."""
        involved = sorted(np.unique(np.concatenate((a, b))).tolist(), key=self._fleet.ids.__getitem__)
        rank = self._rank
        rank[involved] = np.arange(len(involved), dtype=np.int32)
        swap = rank[a] > rank[b]
        first, second = np.where(swap, b, a), np.where(swap, a, b)
        rows = np.lexsort((rank[second], rank[first]))
        return first[rows], second[rows], rows

    def _evidence(self, kind: str, t: float, a: I4, b: I4, result: F8) -> Evidence:
        c, last_t, n = self._config, self._fleet.last_t[Kind.ADSB], len(a)
        t_in, dcpa_m = result[:, T_IN_S], result[:, DCPA_M]
        if kind == "los":
            severity = np.full(n, _WARNING, np.uint8)
        else:
            severity = (t_in < c.caution_s).astype(np.uint8)
            severity[t_in < c.warning_s] = _WARNING
        return Evidence(
            kind=kind,
            a=a,
            b=b,
            t=full(n, t),
            epoch=np.maximum(last_t[a], last_t[b]),
            score=np.minimum(self._minima.separation_m / np.maximum(dcpa_m, 1e-9), SCORE_MAX),
            threshold=full(n, 1.0),
            severity=severity,
            numbers={
                "tcpa_s": result[:, TCPA_S],
                "dcpa_nm": dcpa_m / NM_M,
                "dcpa_m": dcpa_m,
                "vsep_ft": result[:, VSEP_FT],
                "sep_nm": result[:, NOW_M] / NM_M,
                "t_los_s": t_in,
                "t_out_s": result[:, T_OUT_S],
                "los": result[:, LOST],
            },
            sparse=True,
        )

    def forget(self, slots: I4) -> None:
        """Nothing is kept per slot."""

    def gauges(self) -> dict[str, float]:
        """Smallest TCPA and DCPA among the pairs now (NaN: no pair), and counts of pairs and aircraft."""
        return self._gauges

    def snapshot(self) -> dict[str, Any]:
        """Nothing is kept from tick to tick."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Nothing is kept from tick to tick."""


def _figures(result: F8, overflow: int, aircraft: int) -> dict[str, float]:
    some = len(result) > 0
    return {
        "tcpa_min_s": float(result[:, TCPA_S].min()) if some else math.nan,
        "dcpa_min_m": float(result[:, DCPA_M].min()) if some else math.nan,
        "pairs": float(len(result) + overflow),
        "pairs_los": float(result[:, LOST].sum()),
        "pairs_overflow": float(overflow),
        "aircraft": float(aircraft),
    }


@njit(cache=True)
def _take_part(
    t: float, high: int, value: F8, value_t: F8, count: I8, max_age_s: float, min_gs_kt: float, assume_same_level: bool,
    half_horizon_s: float, slot: I4, state: F8,
) -> int:  # fmt: skip
    """Fill slot and state with the aircraft that can be in conflict at time t; returns how many."""
    n = 0
    oldest = t - max_age_s
    for s in range(high):
        if count[s] < MIN_REPORTS or value_t[_LAT, s] < oldest or value_t[_GS, s] < oldest or value_t[_TRK, s] < oldest:
            continue
        level_known = value_t[_ALT, s] >= oldest
        if not (level_known or assume_same_level):
            continue
        gs_kt = value[_GS, s]
        parked = value[_GROUND, s] == 1.0 if value_t[_GROUND, s] >= oldest else gs_kt < min_gs_kt
        if parked:
            continue
        row = state[n]
        state_of(
            value[_LAT, s], value[_LON, s], value[_TRK, s], gs_kt * KT_MS, t - value_t[_LAT, s] + half_horizon_s, row
        )
        climb_fts = value[_VS, s] / 60.0 if value_t[_VS, s] >= oldest else 0.0
        row[6] = value[_ALT, s] + climb_fts * (t - value_t[_ALT, s]) if level_known else math.nan
        row[7] = climb_fts
        slot[n] = s
        n += 1
    return n
