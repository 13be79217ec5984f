"""conflict and los: pairs of aircraft that will probably lose separation within the horizon, and that have lost it.

At each tick every aircraft whose track can be believed (tracks.py) and that is flying is carried along its geodesic
from its own report to the tick's time, position and altitude each by its own age. search.py finds the pairs that
come close on a straight line, probability.py judges how probably they lose separation. This file decides who takes
part and puts the result into evidence.

Evidence of both kinds is sparse, its rows sorted by the two ids. Score of `conflict`: the probability, from WORTH up;
of `los`, which is exact and not a prediction: separation minimum over distance. `conflict` contains the pairs of
`los` too, at probability 1. The threshold of `conflict` rises with the time to the loss (probability.py), because the
score does not know what is done about a loss that is far away.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from watchkeeper.config.schema import Config
from watchkeeper.detectors import base
from watchkeeper.detectors.base import Evidence, Window, full
from watchkeeper.detectors.conflict.constants import (
    CAPTURE_NEAR_FT,
    CAPTURE_SHARE,
    LEVELS_FT,
    MARGIN_FT,
    MARGIN_M,
    MIN_REPORTS,
    MOORED_MS,
    SCORE_MAX,
    SMALL_DRONE_MS,
    STEADY_FPM,
    STEP_SHARE,
    STRAIGHT_DPS,
    WORTH,
)
from watchkeeper.detectors.conflict.declaration import DECLARATION
from watchkeeper.detectors.conflict.followed import Followed, keys
from watchkeeper.detectors.conflict.futures import Motion, futures
from watchkeeper.detectors.conflict.ghosts import Ghosts
from watchkeeper.detectors.conflict.hindsight import Hindsight, rank
from watchkeeper.detectors.conflict.minima import Minima, between_kinds
from watchkeeper.detectors.conflict.probability import Asked, Outlook, judge
from watchkeeper.detectors.conflict.search import Pair, Scan, add_pairs, look_further
from watchkeeper.detectors.conflict.tracks import Track, Tracks
from watchkeeper.detectors.conflict.ways import Ways
from watchkeeper.detectors.conflict.zones import Zones, minima_at
from watchkeeper.detectors.declaration import Declaration
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.kernels.approach import ON_LIMIT_M, State, state_of
from watchkeeper.detectors.kernels.kinds import AIRCRAFT, DRONE, GLIDER, SHIP, kind_of
from watchkeeper.detectors.kernels.records import blank, layout, room
from watchkeeper.streams.batch import F8, I4, I8, U1, Bool
from watchkeeper.streams.geo import KT_MS, NM_M
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import ADSB, Kind


class PairNumbers:
    """The numbers of a pair's evidence (detectors/kernels/records.py)."""

    tcpa_s: float
    dcpa_nm: float
    dcpa_m: float
    vsep_ft: float
    sep_nm: float
    t_los_s: float
    t_out_s: float
    los: float


NUMBERS = layout(PairNumbers).names or ()
LOS = NUMBERS.index("los")
_CAUTION, _WARNING = 1, 2


class Conflict:
    """See the module's docstring."""

    declaration: ClassVar[Declaration] = DECLARATION

    def __init__(self, config: Config, fleet: Fleet) -> None:
        self._fleet = fleet
        self._tracks = Tracks(fleet.growing)
        self._followed = Followed()
        self._hindsight = Hindsight(fleet.ring[Kind.ADSB])
        self._ghosts = Ghosts(fleet.capacity, self._hindsight)
        self._joined = 0
        self._motion: NDArray[Any] = blank(Motion, fleet.capacity)
        self._row_of: I4 = np.zeros(fleet.capacity, np.int32)
        self._futures = futures()
        self._ways = Ways()
        self._last = (blank(Pair, 0), 0, 0)
        # the figures of the last step, if that was before a restart
        self._figures: dict[str, float] | None = None
        self._make_room(config.detectors.conflict.max_pairs)
        self.retune(config)

    def _make_room(self, max_pairs: int) -> None:
        self._scan = Scan(self._fleet.capacity, max_pairs)
        self._named: I8 = np.empty(max_pairs, np.int64)
        self._present = Present(self._scan.slot, self._scan.state, self._motion, self._row_of)

    def retune(self, config: Config) -> None:
        """Take new thresholds."""
        c = self._config = config.detectors.conflict
        self._los_enabled = config.detectors.los.enabled
        self._zones = Zones(c.zones)
        vertical_ft = c.vertical_ft - c.altitude_step_ft
        self._minima = Minima(c.horizon_s, c.separation_nm * NM_M, vertical_ft, MARGIN_M, MARGIN_FT, between_kinds(c))
        self._outlook = Outlook(c.horizon_s, c.turn_hold_s, c.level_off, STEP_SHARE * c.altitude_step_ft)
        self._asked = Asked(c.probability, c.high_ratio, c.probability_far, c.act_s, c.act_high_s)
        self._grades = Grades(c.warning_s, c.warning_probability, c.caution_s)
        self._entry = Entry(
            c.max_age_s, c.min_gs_kt * KT_MS, c.assume_same_level, 0.5 * c.horizon_s, c.altitude_step_ft
        )
        if len(self._scan.pairs) != c.max_pairs:
            self._make_room(c.max_pairs)

    def step(self, window: Window) -> list[Evidence]:
        """Take in the reports and find the pairs at the window's end."""
        fleet, scan, c, m = self._fleet, self._scan, self._config, self._minima
        adsb = Kind.ADSB
        if (samples := window.samples.get(adsb)) is not None:
            self._tracks.update(samples)
        elif not fleet.sends(adsb):
            # nobody here sends ADS-B: no kernel of pairs is needed, nor compiled
            self._last, self._figures, self._joined = (scan.pairs[:0], 0, 0), None, 0
            return []
        n = _take_part(
            window.t, self._tracks.rows[: fleet.high], fleet.value[adsb], fleet.value_t[adsb], self._entry,
            self._zones.table, self._present,
        )  # fmt: skip
        if n < 2 and not len(self._followed.key):
            # a pair needs two: everything that follows would be about nobody
            self._last, self._figures, self._joined = (scan.pairs[:0], 0, n), None, 0
            return [_nobody(kind) for kind, on in (("conflict", c.enabled), ("los", self._los_enabled)) if on]
        pairs = self._join(scan.pairs[: scan.run(n, m)], window.t)
        judge(pairs, self._row_of, scan.state, self._motion, self._outlook, self._asked, self._futures)
        pairs, followed = self._follow(pairs, n, window.t)
        named = self._named[: _worth_naming(pairs, followed, c.probability, self._named)]
        look_further(named, pairs, self._row_of, scan.state, m.horizon_s)
        self._last, self._figures = (pairs, scan.overflow, n), None
        a, b, order = fleet.order_pairs(pairs["a"][named], pairs["b"][named])
        rows = named[order]
        severity, epoch, told = np.empty(len(rows), np.uint8), np.empty(len(rows)), room(PairNumbers, len(rows))
        _tell(rows, pairs, fleet.last_t[adsb], self._grades, severity, epoch, told)
        vertical_ft = pairs["level_ft"][rows] + c.altitude_step_ft
        least = self._hindsight.least(a, b, vertical_ft, followed[rows], window.t)
        was_lost, ranks, closest = np.empty(len(rows), np.bool_), np.empty(len(rows)), room(PairNumbers, len(rows))
        _look_back(rows, pairs, least, was_lost, ranks, closest)
        found = Found(window.t, a, b, epoch, _table(told), np.ascontiguousarray(least["t"]), ranks, _table(closest))
        evidence = []
        if c.enabled:
            asked = pairs["asked"][rows]
            evidence.append(found.evidence("conflict", pairs["probability"][rows], asked, severity, self._further))
        if self._los_enabled and len(near := np.flatnonzero((lost := told["los"] > 0.0) | was_lost)):
            reach_nm = pairs["reach_m"][rows[near]] / NM_M
            closeness = np.minimum(reach_nm / np.maximum(told["sep_nm"][near], 1e-9), SCORE_MAX)
            score, warning = np.where(lost[near], closeness, 0.0), np.full(len(near), _WARNING, np.uint8)
            evidence.append(found.among(near).evidence("los", score, full(len(near), 1.0), warning))
        elif self._los_enabled:
            evidence.append(_nobody("los"))
        return evidence

    def _further(self, a: int, b: int, lost: bool) -> dict[str, Any]:
        """The ways out of a pair, from the states of this tick; where separation is lost, nothing keeps it."""
        if lost:
            return {}
        slots = (a, b)
        ids = (self._fleet.ids[slots[0]], self._fleet.ids[slots[1]])
        i, j = (int(self._row_of[slot]) for slot in slots)
        return {"ways": self._ways.of(i, j, ids, self._scan.state, self._minima)}

    def kernels(self) -> list[Callable[[], object]]:
        """The one that no step calls by itself."""
        return [self._ways.compile]

    def _join(self, pairs: NDArray[Any], t: float) -> NDArray[Any]:
        """The pairs without those that are one aircraft under two addresses."""
        one = self._ghosts.among(pairs, self._scan.state, self._row_of, self._fleet.ids, t)
        if len(one):
            one = one[~self._followed.among(keys(pairs["a"][one], pairs["b"][one]))]
        self._joined = len(one)
        if not len(one):
            return pairs
        kept = np.delete(pairs, one)
        pairs[: len(kept)] = kept
        return pairs[: len(kept)]

    def _follow(self, pairs: NDArray[Any], n: int, t: float) -> tuple[NDArray[Any], Bool]:
        """The pairs, with those that were in conflict a little while ago and are harmless now; which are followed."""
        followed, scan = self._followed, self._scan
        c = self._config
        key, probability, asked = keys(pairs["a"], pairs["b"]), pairs["probability"], pairs["asked"]
        over = (probability >= asked) | pairs["lost"]
        if len(followed.key):
            # an alarm lasts until it is well below, and is to see all of it
            over |= (probability >= asked * c.debounce.clear_ratio) & followed.among(key)
        if len(followed.key) or over.any():
            followed.note(key[over], t, len(scan.pairs))
        if not len(followed.key):
            return pairs, np.zeros(len(pairs), np.bool_)
        a, b = followed.missing(key)
        more = add_pairs(a, b, self._row_of, scan.slot, n, self._minima, scan.state, scan.pairs[len(pairs) :])
        scan.pairs["asked"][len(pairs) : len(pairs) + more] = c.probability
        # what was added is followed
        among = np.ones(len(pairs) + more, np.bool_)
        among[: len(pairs)] = followed.among(key)
        return scan.pairs[: len(pairs) + more], among

    def quiet_until(self, t: float) -> float:
        """Predictions move on while there is anybody to predict; after that nothing changes without reports."""
        aircraft = self._last[2] if self._figures is None else self._figures["aircraft"]
        return t if aircraft else math.inf

    def forget(self, slots: I4) -> None:
        """Clear the tracks of these slots."""
        self._tracks.forget(slots)
        self._followed.forget(slots)
        self._ghosts.forget(slots)
        self._hindsight.forget(slots)

    def gauges(self) -> dict[str, float]:
        """Smallest TCPA and DCPA, largest probability (NaN: no pair), and counts of pairs and aircraft."""
        if self._figures is None:
            return {**_figures(*self._last), "pairs_joined": float(self._joined)}
        return self._figures

    def snapshot(self) -> dict[str, Any]:
        """The tracks, and the figures of the last step."""
        tracks = self._tracks.snapshot(self._fleet.high)
        return {**tracks, "followed": self._followed.snapshot(), "figures": self.gauges()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._tracks.restore(state)
        self._followed.restore(state["followed"])
        self._ghosts.forget(slice(None))
        self._hindsight.forget(slice(None))
        self._figures = dict(state["figures"])


def _figures(pairs: NDArray[Any], overflow: int, aircraft: int) -> dict[str, float]:
    """Figures of the last step; its pairs hold until the next one."""
    close = ~np.isnan(pairs["t_in_s"])
    some = bool(close.any())
    return {
        "tcpa_min_s": float(pairs["tcpa_s"][close].min()) if some else math.nan,
        "dcpa_min_m": float(pairs["dcpa_m"][close].min()) if some else math.nan,
        "probability_max": float(pairs["probability"].max()) if len(pairs) else math.nan,
        "pairs": float(close.sum() + overflow),
        "pairs_los": float(pairs["lost"].sum()),
        "pairs_overflow": float(overflow),
        "aircraft": float(aircraft),
    }


@cache
def _nobody(kind: str) -> Evidence:
    """Evidence of this kind about no pair."""
    no_slot, nothing = np.empty(0, np.int32), np.empty(0)
    numbers = dict.fromkeys(NUMBERS, nothing)
    return Evidence(
        kind, no_slot, nothing, nothing, nothing, nothing, np.empty(0, np.uint8), no_slot, numbers, sparse=True
    )


class Found(NamedTuple):
    """What is said about the pairs of a tick, whatever kind of alarm it is for."""

    t: float
    a: I4
    b: I4
    epoch: F8
    told: F8
    """The numbers of now, a row for each pair."""
    least_t: F8
    rank: F8
    least: F8
    """When they were closest of late, how bad that was, and the numbers of then."""

    def among(self, rows: I8) -> Found:
        """What is said about some of them."""
        a, b, epoch, told = self.a[rows], self.b[rows], self.epoch[rows], self.told[rows]
        return Found(self.t, a, b, epoch, told, self.least_t[rows], self.rank[rows], self.least[rows])

    def evidence(
        self, kind: str, score: F8, threshold: F8, severity: U1, further: Callable[[int, int, bool], Any] | None = None
    ) -> Evidence:
        """The evidence for one kind. `further`: of a pair, and whether it has lost separation."""
        a, b, told = self.a, self.b, self.told

        def of_row(row: int) -> dict[str, Any]:
            return further(int(a[row]), int(b[row]), told[row, LOS] > 0.0) if further is not None else {}

        return Evidence(
            kind=kind,
            a=a,
            b=b,
            t=full(len(a), self.t),
            epoch=self.epoch,
            score=score,
            threshold=threshold,
            severity=severity,
            numbers=dict(zip(NUMBERS, told.T, strict=True)),
            sparse=True,
            hindsight=base.Hindsight(self.least_t, self.rank, dict(zip(NUMBERS, self.least.T, strict=True))),
            further=of_row if further is not None else None,
        )


def _table(told: NDArray[Any]) -> F8:
    """Records of numbers as a table with a row for each."""
    return told.view(np.float64).reshape(len(told), len(NUMBERS))


@njit(cache=True)
def _look_back(
    rows: I8, pairs: NDArray[Any], least: NDArray[Any], was_lost: Bool, ranks: F8, closest: NDArray[Any]
) -> None:
    """Of the closest moments of these pairs: whether separation was lost, how bad they were, and their numbers."""
    for i in range(rows.size):
        then, out = least[i], closest[i]
        was_lost[i] = then.level and then.sep_m < pairs[rows[i]].apart_m - ON_LIMIT_M
        ranks[i] = rank(then.t, then.sep_m, then.level)
        out.tcpa_s, out.t_out_s = 0.0, math.nan
        out.dcpa_nm = out.sep_nm = then.sep_m / NM_M
        out.dcpa_m, out.vsep_ft = then.sep_m, then.vsep_ft
        out.t_los_s, out.los = (0.0, 1.0) if was_lost[i] else (math.nan, 0.0)


@njit(cache=True)
def _worth_naming(pairs: NDArray[Any], followed: Bool, near: float, named: I8) -> int:
    """The rows worth naming, into `named`; returns how many. What is lost is certain, and near."""
    count = 0
    for k in range(pairs.size):
        if pairs[k].lost:
            pairs[k].probability, pairs[k].asked = 1.0, near
        if pairs[k].probability >= WORTH or followed[k]:
            named[count] = k
            count += 1
    return count


@njit(cache=True)
def _tell(
    rows: I8, pairs: NDArray[Any], last_t: F8, grades: Grades, severity: U1, epoch: F8, told: NDArray[Any]
) -> None:
    """Severity, epoch and numbers of the pairs in these rows.

    Severity goes by the time to loss of separation, the straight line's, or where that sees none, the prediction's, and
    by the probability; an alarm that is about to end is no more than an advisory. A pair that has lost separation is a
    warning while it comes closer, and a caution when it parts.
    """
    for i in range(rows.size):
        pair, out = pairs[rows[i]], told[i]
        t_loss = pair.when_s if math.isnan(pair.t_in_s) else pair.t_in_s
        likely = pair.probability >= grades.warning_probability
        if pair.lost:
            severity[i] = _WARNING if pair.tcpa_s > 0.0 else _CAUTION
        else:
            severity[i] = (
                _WARNING
                if t_loss < grades.warning_s and likely
                else _CAUTION
                if t_loss < grades.caution_s and pair.probability >= pair.asked
                else 0
            )
        epoch[i] = max(last_t[pair.a], last_t[pair.b])
        out.tcpa_s, out.dcpa_nm, out.dcpa_m = pair.tcpa_s, pair.dcpa_m / NM_M, pair.dcpa_m
        out.vsep_ft, out.sep_nm = pair.vsep_ft, pair.now_m / NM_M
        out.t_los_s, out.t_out_s, out.los = pair.t_in_s, pair.t_out_s, 1.0 if pair.lost else 0.0


class Grades(NamedTuple):
    """From when on a conflict is a caution, and a warning; see config/detectors/conflict.py."""

    warning_s: float
    warning_probability: float
    caution_s: float


class Entry(NamedTuple):
    """Who takes part, and how; see config/detectors/conflict.py."""

    max_age_s: float
    min_gs_ms: float
    assume_same_level: bool
    half_horizon_s: float
    altitude_step_ft: float


class Present(NamedTuple):
    """The aircraft of a tick: slot, state and motion by row, and the row of each slot."""

    slot: I4
    state: NDArray[Any]
    motion: NDArray[Any]
    row_of: I4


@njit(cache=True)
def _take_part(
    t: float, tracks: NDArray[Any], value: F8, value_t: F8, entry: Entry, zones: NDArray[Any], present: Present
) -> int:
    """Fill `present` with the aircraft that can be in conflict at time t; returns how many."""
    n = 0
    oldest = t - entry.max_age_s
    for s in range(tracks.size):
        track = tracks[s]
        if not (track.trusted >= MIN_REPORTS and track.t >= oldest and track.velocity_t >= oldest):
            continue
        level_known = track.alt_t >= oldest
        if not (level_known or entry.assume_same_level):
            continue
        # what it is does not change
        kind = kind_of(value[ADSB.category, s])
        if kind == DRONE and track.gs_ms > SMALL_DRONE_MS:
            kind = AIRCRAFT
        if _parked(kind, track.gs_ms, value[ADSB.on_ground, s], value_t[ADSB.on_ground, s] >= oldest, entry):
            continue
        age_s = t - track.t
        state, motion = present.state[n], present.motion[n]
        state_of(track.lat_deg, track.lon_deg, track.trk_deg, track.gs_ms, age_s + entry.half_horizon_s, state)
        climb_fpm = track.climb_fpm if track.climb_t >= oldest else 0.0
        state.alt_ft, state.climb_fts, state.level_s = math.nan, climb_fpm / 60.0, math.inf
        motion.free, motion.level_ft = False, math.nan
        if level_known:
            motion.level_ft = track.level_ft
            selected_ft = value[ADSB.sel_alt_ft, s] if value_t[ADSB.sel_alt_ft, s] >= oldest else math.nan
            _level_off(track, t, selected_ft, state, motion)
        separation_m, vertical_ft, tau_s, zone = minima_at(track.lat_deg, track.lon_deg, state.alt_ft, zones)
        state.separation_m, state.vertical_ft = separation_m, vertical_ft - entry.altitude_step_ft
        state.tau_s, state.kind, state.zone = tau_s, kind, zone
        motion.turn_rads = math.radians(track.turn_dps) if abs(track.turn_dps) >= STRAIGHT_DPS else 0.0
        motion.age_s = age_s
        present.slot[n] = s
        present.row_of[s] = n
        n += 1
    return n


@njit(cache=True, inline="always")
def _parked(kind: int, gs_ms: float, on_ground: float, told: bool, entry: Entry) -> bool:
    """Ships are on the ground and under way; of the others only what cannot hover is parked for being slow."""
    if kind == SHIP:
        return gs_ms < MOORED_MS
    if told:
        return on_ground == 1.0
    return gs_ms < entry.min_gs_ms and (kind in (AIRCRAFT, GLIDER))


@njit(cache=True)
def _level_off(track: Track, t: float, selected_ft: float, state: State, motion: Motion) -> None:
    """Altitude now, and where a climb or descent will end: at the selected altitude, or at the one being captured."""
    since_s = t - track.alt_t
    climb_fts, alt_ft = state.climb_fts, track.alt_ft
    end_ft = math.nan
    if abs(climb_fts) * 60.0 >= STEADY_FPM:
        motion.free = True
        if (selected_ft - alt_ft) * climb_fts > 0.0:
            end_ft = selected_ft
            motion.free = False
        elif 0.0 < 60.0 * climb_fts / track.slow_climb_fpm < CAPTURE_SHARE:
            levels = alt_ft / LEVELS_FT
            level_ft = LEVELS_FT * (math.ceil(levels) if climb_fts > 0.0 else math.floor(levels))
            if abs(level_ft - alt_ft) <= CAPTURE_NEAR_FT:
                end_ft = level_ft
    if not math.isnan(end_ft):
        until_s = (end_ft - alt_ft) / climb_fts
        state.alt_ft = alt_ft + climb_fts * min(since_s, until_s)
        state.level_s = max(0.0, until_s - since_s)
    else:
        state.alt_ft = alt_ft + climb_fts * since_s
