"""conflict and los: pairs of aircraft that will probably lose separation within the horizon, and that have lost it.

At each tick every aircraft whose track can be believed (tracks.py) and that is flying is carried along its geodesic
from its own report to the tick's time, position and altitude each by its own age. search.py finds the pairs that
come close on a straight line, probability.py judges how probably they lose separation. This file decides who takes
part and puts the result into evidence.

Evidence of both kinds is sparse, its rows sorted by the two ids. Score of `conflict`: the probability, from WORTH up;
of `los`, which is exact and not a prediction: separation minimum over distance. `conflict` contains the pairs of
`los` too, at probability 1.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from watchkeeper.config.schema import Config
from watchkeeper.detectors.base import Evidence, Window, full
from watchkeeper.detectors.conflict.declaration import DECLARATION
from watchkeeper.detectors.conflict.probability import AGE_S, FREE, MOTION, TURN_RADS, judge
from watchkeeper.detectors.conflict.search import (
    DCPA_M,
    LOST,
    NOW_M,
    RESULT,
    T_IN_S,
    T_OUT_S,
    TCPA_S,
    VSEP_FT,
    Minima,
    Scan,
)
from watchkeeper.detectors.conflict.tracks import STRAIGHT_DPS, Track, Tracks
from watchkeeper.detectors.conflict.zones import Zones, minima_at
from watchkeeper.detectors.declaration import Declaration
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.kernels.approach import ALT_FT, CLIMB_FTS, LEVEL_S, SEPARATION_M, VERTICAL_FT, state_of
from watchkeeper.streams.batch import F8, I4, I8, U1
from watchkeeper.streams.geo import KT_MS, NM_M
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import COLUMN, Kind

SCORE_MAX = 1000.0
# One report may be a ghost (a wrong address, a decoding error); two that agree are a track.
MIN_REPORTS = 2
# Pairs that a straight line keeps apart by up to this much are judged as well, and less probable ones are not named.
MARGIN_M, MARGIN_FT, WORTH = 1852.0, 200.0, 0.05
# An aircraft levels off at a whole level when its climb has fallen to this share of what it was, this close to it.
CAPTURE_SHARE, CAPTURE_FT, LEVELS_FT = 0.7, 200.0, 1000.0
# Slower climbs are noise.
STEADY_FPM = 200.0

# The numbers of a pair's evidence.
NUMBERS = ("tcpa_s", "dcpa_nm", "dcpa_m", "vsep_ft", "sep_nm", "t_los_s", "t_out_s", "los")
SEP_NM = NUMBERS.index("sep_nm")

_CAUTION, _WARNING = 1, 2
_GROUND, _SELECTED = (COLUMN[Kind.ADSB][name] for name in ("on_ground", "sel_alt_ft"))


class Conflict:
    """See the module's docstring."""

    declaration: ClassVar[Declaration] = DECLARATION

    def __init__(self, config: Config, fleet: Fleet) -> None:
        self._fleet = fleet
        self._tracks = Tracks(fleet.capacity)
        self._motion: F8 = np.zeros((fleet.capacity, MOTION))
        self._row_of: I4 = np.zeros(fleet.capacity, np.int32)
        self._last = (np.empty((0, RESULT)), np.empty(0), 0, 0)
        self._make_room(config.detectors.conflict.max_pairs)
        self.retune(config)

    def _make_room(self, max_pairs: int) -> None:
        self._scan = Scan(self._fleet.capacity, max_pairs)
        self._probability, self._when_s = np.empty(max_pairs), np.empty(max_pairs)
        self._named: I8 = np.empty(max_pairs, np.int64)

    def retune(self, config: Config) -> None:
        """Take new thresholds."""
        c = self._config = config.detectors.conflict
        self._los_enabled = config.detectors.los.enabled
        self._zones = Zones(c.zones)
        vertical_ft = c.vertical_ft - c.altitude_step_ft
        self._minima = Minima(c.horizon_s, c.separation_nm * NM_M, vertical_ft, MARGIN_M, MARGIN_FT)
        if len(self._scan.pair_a) != c.max_pairs:
            self._make_room(c.max_pairs)

    def step(self, window: Window) -> list[Evidence]:
        """Take in the reports and find the pairs at the window's end."""
        fleet, scan, c, m = self._fleet, self._scan, self._config, self._minima
        adsb = Kind.ADSB
        if (samples := window.samples.get(adsb)) is not None:
            self._tracks.update(samples)
        n = _take_part(
            window.t, fleet.high, self._tracks.rows, fleet.value[adsb], fleet.value_t[adsb],
            c.max_age_s, c.min_gs_kt, c.assume_same_level, 0.5 * c.horizon_s, self._zones.table, c.altitude_step_ft,
            scan.slot, scan.state, self._motion, self._row_of,
        )  # fmt: skip
        found = scan.run(n, m)
        a, b, result = scan.pair_a[:found], scan.pair_b[:found], scan.result[:found]
        probability, when_s = self._probability[:found], self._when_s[:found]
        judge(
            a, b, self._row_of, scan.state, self._motion, m.horizon_s, m.separation_m, m.vertical_ft,
            c.turn_hold_s, c.level_off, c.act_s, probability, when_s,
        )  # fmt: skip
        named = self._named[: _worth_naming(result, probability, self._named)]
        self._last = (result, probability, scan.overflow, n)
        a, b, order = fleet.order_pairs(a[named], b[named])
        rows = named[order]
        severity, epoch = np.empty(len(rows), np.uint8), np.empty(len(rows))
        numbers = np.empty((len(NUMBERS), len(rows)))
        _tell(rows, a, b, result, when_s, fleet.last_t[adsb], c.warning_s, c.caution_s, severity, epoch, numbers)
        evidence = []
        if c.enabled:
            score = probability[rows]
            evidence.append(_evidence("conflict", window.t, a, b, epoch, score, c.probability, severity, numbers))
        if self._los_enabled:
            lost = np.flatnonzero(numbers[-1])
            closeness = np.minimum(m.separation_m / np.maximum(numbers[SEP_NM, lost] * NM_M, 1e-9), SCORE_MAX)
            warning = np.full(len(lost), _WARNING, np.uint8)
            evidence.append(
                _evidence("los", window.t, a[lost], b[lost], epoch[lost], closeness, 1.0, warning, numbers[:, lost])
            )
        return evidence

    def forget(self, slots: I4) -> None:
        """Clear the tracks of these slots."""
        self._tracks.forget(slots)

    def gauges(self) -> dict[str, float]:
        """Smallest TCPA and DCPA, largest probability (NaN: no pair), and counts of pairs and aircraft."""
        return _figures(*self._last)

    def snapshot(self) -> dict[str, Any]:
        """The tracks."""
        return self._tracks.snapshot(self._fleet.high)

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._tracks.restore(state)


def _figures(result: F8, probability: F8, overflow: int, aircraft: int) -> dict[str, float]:
    """Figures of the last step; its arrays hold until the next one."""
    close = ~np.isnan(result[:, T_IN_S])
    some = bool(close.any())
    return {
        "tcpa_min_s": float(result[close, TCPA_S].min()) if some else math.nan,
        "dcpa_min_m": float(result[close, DCPA_M].min()) if some else math.nan,
        "probability_max": float(probability.max()) if len(probability) else math.nan,
        "pairs": float(close.sum() + overflow),
        "pairs_los": float(result[:, LOST].sum()),
        "pairs_overflow": float(overflow),
        "aircraft": float(aircraft),
    }


def _evidence(
    kind: str, t: float, a: I4, b: I4, epoch: F8, score: F8, threshold: float, severity: U1, numbers: F8
) -> Evidence:
    return Evidence(
        kind=kind,
        a=a,
        b=b,
        t=full(len(a), t),
        epoch=epoch,
        score=score,
        threshold=full(len(a), threshold),
        severity=severity,
        numbers=dict(zip(NUMBERS, numbers, strict=True)),
        sparse=True,
    )


@njit(cache=True)
def _worth_naming(result: F8, probability: F8, named: I8) -> int:
    """The rows worth naming, into `named`; returns how many. What is lost is certain."""
    count = 0
    for k in range(probability.size):
        if result[k, LOST] == 1.0:
            probability[k] = 1.0
        if probability[k] >= WORTH:
            named[count] = k
            count += 1
    return count


@njit(cache=True)
def _tell(
    rows: I8, a: I4, b: I4, result: F8, when_s: F8, last_t: F8, warning_s: float, caution_s: float,
    severity: U1, epoch: F8, numbers: F8,
) -> None:  # fmt: skip
    """Severity, epoch and NUMBERS of the pairs in these rows of the result.

    Severity goes by the time to loss of separation: the straight line's, or where that sees none, the prediction's.
    """
    for i in range(rows.size):
        k = rows[i]
        r = result[k]
        t_loss = when_s[k] if math.isnan(r[T_IN_S]) else r[T_IN_S]
        severity[i] = _WARNING if t_loss < warning_s else _CAUTION if t_loss < caution_s else 0
        epoch[i] = max(last_t[a[i]], last_t[b[i]])
        numbers[0, i], numbers[1, i], numbers[2, i] = r[TCPA_S], r[DCPA_M] / NM_M, r[DCPA_M]
        numbers[3, i], numbers[4, i] = r[VSEP_FT], r[NOW_M] / NM_M
        numbers[5, i], numbers[6, i], numbers[7, i] = r[T_IN_S], r[T_OUT_S], r[LOST]


@njit(cache=True)
def _take_part(
    t: float, high: int, track: NDArray[Any], value: F8, value_t: F8, max_age_s: float, min_gs_kt: float,
    assume_same_level: bool, half_horizon_s: float, zones: F8, altitude_step_ft: float,
    slot: I4, state: F8, motion: F8, row_of: I4,
) -> int:  # fmt: skip
    """Fill slot, state and motion with the aircraft that can be in conflict at time t; returns how many."""
    n = 0
    oldest = t - max_age_s
    for s in range(high):
        row = track[s]
        if not (row.trusted >= MIN_REPORTS and row.t >= oldest and row.velocity_t >= oldest):
            continue
        level_known = row.alt_t >= oldest
        if not (level_known or assume_same_level):
            continue
        gs_ms = row.gs_ms
        parked = value[_GROUND, s] == 1.0 if value_t[_GROUND, s] >= oldest else gs_ms < min_gs_kt * KT_MS
        if parked:
            continue
        age_s = t - row.t
        out = state[n]
        state_of(row.lat_deg, row.lon_deg, row.trk_deg, gs_ms, age_s + half_horizon_s, out)
        climb_fpm = row.climb_fpm if row.climb_t >= oldest else 0.0
        out[ALT_FT], out[CLIMB_FTS], out[LEVEL_S] = math.nan, climb_fpm / 60.0, math.inf
        motion[n, FREE] = 0.0
        if level_known:
            selected_ft = value[_SELECTED, s] if value_t[_SELECTED, s] >= oldest else math.nan
            _level_off(row, t, selected_ft, out, motion[n])
        separation_m, vertical_ft = minima_at(row.lat_deg, row.lon_deg, out[ALT_FT], zones)
        out[SEPARATION_M], out[VERTICAL_FT] = separation_m, vertical_ft - altitude_step_ft
        turn_dps = row.turn_dps
        motion[n, TURN_RADS] = math.radians(turn_dps) if abs(turn_dps) >= STRAIGHT_DPS else 0.0
        motion[n, AGE_S] = age_s
        slot[n] = s
        row_of[s] = n
        n += 1
    return n


@njit(cache=True)
def _level_off(row: Track, t: float, selected_ft: float, out: F8, motion: F8) -> None:
    """Altitude now, and where a climb or descent will end: at the selected altitude, or at the one being captured."""
    since_s = t - row.alt_t
    climb_fts, alt_ft = out[CLIMB_FTS], row.alt_ft
    end_ft = math.nan
    if abs(climb_fts) * 60.0 >= STEADY_FPM:
        motion[FREE] = 1.0
        if (selected_ft - alt_ft) * climb_fts > 0.0:
            end_ft = selected_ft
            motion[FREE] = 0.0
        elif 0.0 < 60.0 * climb_fts / row.slow_climb_fpm < CAPTURE_SHARE:
            levels = alt_ft / LEVELS_FT
            level_ft = LEVELS_FT * (math.ceil(levels) if climb_fts > 0.0 else math.floor(levels))
            if abs(level_ft - alt_ft) <= CAPTURE_FT:
                end_ft = level_ft
    if not math.isnan(end_ft):
        until_s = (end_ft - alt_ft) / climb_fts
        out[ALT_FT] = alt_ft + climb_fts * min(since_s, until_s)
        out[LEVEL_S] = max(0.0, until_s - since_s)
    else:
        out[ALT_FT] = alt_ft + climb_fts * since_s
