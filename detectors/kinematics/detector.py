"""kinematics: a track that contradicts itself.

Every ADS-B report is compared with the track so far, in SI units, per vehicle:
- jump: to get here from the last trusted position it would have had to fly faster than `jump_speed_kt`;
- speed: displacement disagrees with the reported ground speed by more than `speed_error_kt`, over half a minute;
- duplicate_id: it jumps away and comes back, again and again: two vehicles share one id;
- climb: altitude changed faster than `climb_fpm`. It is named, and it counts when the position contradicts itself too.
Each gives a ratio to its limit; the score is the largest, the threshold 1. A report that jumped is not trusted, so
a teleport stays anomalous while a single spike is one epoch; after REACQUIRE reports that agree with each other
the track goes on from the new place.

Why altitude alone raises nothing: it is a code of a dozen bits, which one disturbed bit or the reply of another
aircraft turns into any other. Real feeds carry wrong altitudes in singles and in rows of several that agree with each
other, for up to half a minute, on tracks with nothing else wrong.

Why speed needs half a minute: a position may be stamped, or resampled, several seconds late. The aircraft then seems
slow and after that fast, and over both it is neither. So the excess is balanced over SPEED_S, and counts while the
newest reports still add to it. The verdict stands until the next comparison. After a longer gap in the positions one
thing can still be said: nobody gets further than his highest speed all the while.

Many feeds repeat the last known value until there is a new one. A repeated position is not a measurement: it is not
compared and it is no new epoch, but an aircraft that is heard all the while has no break: the next new position must be
within reach of the last one. A velocity that stays the same for HELD_S is a repeated one and is not compared either,
and on the ground, where no airborne velocity is sent, none is.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from watchkeeper.config.schema import Config
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.declaration import Declaration
from watchkeeper.detectors.fleet.fleet import Fleet, Samples
from watchkeeper.detectors.kernels.reports import REACQUIRE
from watchkeeper.detectors.kinematics.declaration import DECLARATION
from watchkeeper.streams.batch import F8, I4, I8, U1
from watchkeeper.streams.geo import FT_M, KT_MS
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import COLUMN, Kind

CAUSES = ("jump", "climb", "speed", "duplicate_id")
_JUMP, _CLIMB, _SPEED, _DUPLICATE = 1, 2, 4, 8
_POSITION = _JUMP | _SPEED | _DUPLICATE
# Displacement is compared with reported speed over at least this long, so that position noise does not matter,
# and at most that long, because an aircraft may turn in between.
BASE_MIN_S, BASE_MAX_S = 5.0, 30.0
# The balance of displacement and speed fades with this time constant (feeds that resample stamp a position up to 10 s
# late), and means nothing before so many comparisons.
SPEED_S, SPEED_MIN = 30.0, 3.0
# Speed and track of an aircraft in the air change within this time, if only by a knot; unchanged, they are held values.
HELD_S = 60.0
# After a longer silence the track starts anew: nothing can be said about what happened in between.
BREAK_S = 120.0
# Altitude steps are 25 or 100 ft and barometric noise some tens: less than this is no spike, however fast.
ALT_NOISE_M = 150.0
# Mean radius.
EARTH_M = 6_371_000.0

_LAT, _LON, _ALT, _GS, _TRK, _GROUND = (
    COLUMN[Kind.ADSB][name] for name in ("lat", "lon", "alt_ft", "gs_kt", "trk_deg", "on_ground")
)
# Columns of the per-vehicle state.
(_T, _X, _Y, _Z, _H, _HT, _NT, _NX, _NY, _NZ, _AGREE, _BT, _BX, _BY, _BZ, _BV, _FLIPS, _NH, _HAGREE) = range(19)
# last seen latitude, longitude and altitude as they were sent, and when the position last changed
_SEEN_LAT, _SEEN_LON, _SEEN_H, _EPOCH = range(19, 23)
# metres flown beyond what the speed says (short of it: negative), the seconds they span, the error in m/s that follows
# and from how many comparisons; when it was last heard at all; the highest speed since the last trusted position
_EXCESS, _SPAN, _ERROR, _COMPARED, _HEARD, _FASTEST = range(23, 29)
# last seen speed and track as they were sent, and when one of them last changed
_SEEN_GS, _SEEN_TRK, _SEEN_AT = range(29, 32)
STATE = 32


class Kinematics:
    """See the module's docstring."""

    declaration: ClassVar[Declaration] = DECLARATION

    def __init__(self, config: Config, fleet: Fleet) -> None:
        self._fleet = fleet
        self._state: F8 = np.full((fleet.capacity, STATE), np.nan)
        self._anomalous = self._spikes = 0
        self.retune(config)

    def retune(self, config: Config) -> None:
        """Take new thresholds."""
        cfg = config.detectors.kinematics
        self._limits = np.array(
            [cfg.jump_speed_kt * KT_MS, cfg.climb_fpm * FT_M / 60.0, cfg.speed_error_kt * KT_MS, cfg.position_noise_m]
        )

    def step(self, window: Window) -> list[Evidence]:
        """Score each report against the track before it, then extend the track."""
        samples = window.samples.get(Kind.ADSB)
        if samples is None:
            return []
        return [self._score(samples)]

    def _score(self, s: Samples) -> Evidence:
        n = len(s)
        score, epoch, bits = np.zeros(n), np.empty(n), np.zeros(n, np.int64)
        implied = np.full((3, n), np.nan)
        _track(s.slot, s.t, s.data, self._limits, self._state, score, epoch, bits, implied)
        self._anomalous = int((score >= 1.0).sum())
        self._spikes = int((bits & _CLIMB > 0).sum())
        return Evidence(
            "kinematics",
            s.slot,
            t=s.t,
            epoch=epoch,
            score=score,
            threshold=np.ones(n),
            severity=_severity(score),
            numbers={
                "implied_speed_kt": implied[0] / KT_MS,
                "implied_climb_fpm": implied[1] * 60.0 / FT_M,
                "speed_error_kt": implied[2] / KT_MS,
            },
            causes=CAUSES,
            cause_bits=bits,
        )

    def forget(self, slots: I4) -> None:
        """Clear the state of these slots."""
        self._state[slots] = np.nan

    def gauges(self) -> dict[str, float]:
        """Reports of the last window that contradict their track, and those whose altitude does."""
        return {"reports": float(self._anomalous), "altitude_spikes": float(self._spikes)}

    def snapshot(self) -> dict[str, Any]:
        """The tracks' state."""
        return {"state": self._state[: self._fleet.high]}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        saved = state["state"]
        self._state[: len(saved)] = saved


def _severity(score: F8) -> U1:
    """A contradiction is a caution; ten times past the limit nobody doubts it."""
    return np.where(score >= 10.0, 2, 1).astype(np.uint8)


@njit(cache=True, inline="always")
def _distance(x1: float, y1: float, z1: float, x2: float, y2: float, z2: float) -> float:
    return float(np.sqrt((x1 - x2) ** 2 + (y1 - y2) ** 2 + (z1 - z2) ** 2))


@njit(cache=True)
def _track(slot: I4, t: F8, data: F8, limits: F8, state: F8, score: F8, epoch: F8, bits: I8, implied: F8) -> None:
    for i in range(slot.size):
        s = state[slot[i]]
        if not t[i] - s[_HEARD] <= BREAK_S:
            s[:] = np.nan
            s[_AGREE] = s[_FLIPS] = s[_HAGREE] = 0.0
        s[_HEARD] = t[i]
        gs_kt, trk_deg = data[_GS, i], data[_TRK, i]
        if gs_kt != s[_SEEN_GS] or trk_deg != s[_SEEN_TRK]:
            s[_SEEN_GS], s[_SEEN_TRK], s[_SEEN_AT] = gs_kt, trk_deg, t[i]
        held = t[i] - s[_SEEN_AT] > HELD_S
        speed_ms = np.nan if held or data[_GROUND, i] == 1.0 else gs_kt * KT_MS
        if not (np.isnan(speed_ms) or s[_FASTEST] >= speed_ms):
            s[_FASTEST] = speed_ms
        lat, lon, h = data[_LAT, i], data[_LON, i], data[_ALT, i] * FT_M
        if h == s[_H]:
            s[_HT] = t[i]  # level flight repeats itself too
        if lat != s[_SEEN_LAT] or lon != s[_SEEN_LON]:
            s[_SEEN_LAT], s[_SEEN_LON], s[_EPOCH] = lat, lon, t[i]
            _position(s, t[i], lat, lon, speed_ms, limits, i, score, bits, implied)
        if not np.isnan(h) and h != s[_SEEN_H]:
            s[_SEEN_H] = h
            _altitude(s, t[i], h, limits[1], i, score, bits, implied)
        epoch[i] = s[_EPOCH]


@njit(cache=True, inline="always")
def _position(
    s: F8,
    t: float,
    lat_deg: float,
    lon_deg: float,
    speed_ms: float,
    limits: F8,
    i: int,
    score: F8,
    bits: I8,
    implied: F8,
) -> None:
    """A new position against the last trusted one, and against the reported speed."""
    jump_ms, noise_m = limits[0], limits[3]
    # a sphere is enough: the limits are coarse and only short distances matter
    lat, lon = np.radians(lat_deg), np.radians(lon_deg)
    x = EARTH_M * np.cos(lat) * np.cos(lon)
    y = EARTH_M * np.cos(lat) * np.sin(lon)
    z = EARTH_M * np.sin(lat)
    if not np.isnan(s[_T]):
        away_m = _distance(x, y, z, s[_X], s[_Y], s[_Z])
        implied[0, i] = max(0.0, away_m - noise_m) / (t - s[_T])
        score[i] = implied[0, i] / jump_ms
        if score[i] >= 1.0:
            bits[i] |= _JUMP
        elif t - s[_T] > BASE_MAX_S and implied[0, i] > s[_FASTEST] + limits[2]:
            # a turn can only make it less: nobody gets further than his speed all the while
            bits[i] |= _SPEED
            score[i] = max(1.0, (implied[0, i] - s[_FASTEST]) / limits[2])
        if bits[i]:
            # does it go on from the last place it jumped to?
            agrees = not np.isnan(s[_NT]) and (
                max(0.0, _distance(x, y, z, s[_NX], s[_NY], s[_NZ]) - noise_m) < jump_ms * (t - s[_NT])
            )
            s[_AGREE] = s[_AGREE] + 1.0 if agrees else 1.0
            s[_NT], s[_NX], s[_NY], s[_NZ] = t, x, y, z
            if s[_FLIPS] >= 2.0:
                bits[i] |= _DUPLICATE
            if s[_AGREE] >= REACQUIRE:
                s[_T] = np.nan
                s[_AGREE] = 0.0
            s[_BT] = np.nan
            return
        if s[_AGREE] > 0.0:
            # back on the old track: a spike if it happened once, two vehicles if it goes on
            s[_FLIPS] = min(s[_FLIPS] + 1.0, 10.0)
            s[_AGREE] = 0.0
            if s[_FLIPS] >= 3.0 and t - s[_NT] < BASE_MAX_S:
                bits[i] |= _DUPLICATE
                score[i] = max(score[i], 1.0)
        elif s[_FLIPS] > 0.0 and t - s[_NT] > BASE_MAX_S:
            s[_FLIPS] = 0.0
    _speed(s, t, x, y, z, speed_ms, limits, i, score, bits, implied)
    s[_T], s[_X], s[_Y], s[_Z], s[_FASTEST] = t, x, y, z, speed_ms


@njit(cache=True, inline="always")
def _speed(
    s: F8, t: float, x: float, y: float, z: float, speed_ms: float, limits: F8, i: int, score: F8, bits: I8, implied: F8
) -> None:
    """Reported speed against displacement, report by report from base to base, balanced over SPEED_S."""
    error_ms, noise_m = limits[2], limits[3]
    base_s = t - s[_BT]
    if np.isnan(speed_ms):
        s[_BT] = np.nan
        return
    if not base_s <= BASE_MAX_S:
        s[_EXCESS], s[_SPAN], s[_COMPARED], s[_ERROR] = 0.0, 0.0, 0.0, np.nan
        s[_BT], s[_BX], s[_BY], s[_BZ], s[_BV] = t, x, y, z, speed_ms
    elif base_s >= BASE_MIN_S:
        flown_m = _distance(x, y, z, s[_BX], s[_BY], s[_BZ])
        low_m, high_m = min(s[_BV], speed_ms) * base_s, max(s[_BV], speed_ms) * base_s
        excess_m = flown_m - min(max(flown_m, low_m), high_m)
        kept = np.exp(-base_s / SPEED_S)
        s[_EXCESS], s[_SPAN] = s[_EXCESS] * kept + excess_m, s[_SPAN] * kept + base_s
        s[_COMPARED] += 1.0
        if s[_COMPARED] >= SPEED_MIN:
            now_ms = max(0.0, abs(excess_m) - noise_m) / base_s
            long_ms = max(0.0, abs(s[_EXCESS]) - noise_m) / s[_SPAN]
            s[_ERROR] = min(now_ms, long_ms) if excess_m * s[_EXCESS] > 0.0 else 0.0
        s[_BT], s[_BX], s[_BY], s[_BZ], s[_BV] = t, x, y, z, speed_ms
    implied[2, i] = s[_ERROR]
    if s[_ERROR] >= error_ms:
        bits[i] |= _SPEED
    if s[_ERROR] > score[i] * error_ms:
        score[i] = s[_ERROR] / error_ms


@njit(cache=True, inline="always")
def _altitude(s: F8, t: float, h: float, climb_ms: float, i: int, score: F8, bits: I8, implied: F8) -> None:
    """A new altitude against the last trusted one; it counts for a report whose position contradicts itself too."""
    if np.isnan(s[_H]):
        s[_H], s[_HT] = h, t
        return
    implied[1, i] = max(0.0, abs(h - s[_H]) - ALT_NOISE_M) / max(t - s[_HT], 0.1)
    ratio = implied[1, i] / climb_ms
    if ratio < 1.0:
        s[_H], s[_HT], s[_HAGREE] = h, t, 0.0
        return
    if bits[i] & _POSITION:
        score[i] = max(score[i], ratio)
    bits[i] |= _CLIMB
    agrees = not np.isnan(s[_NH]) and abs(h - s[_NH]) < ALT_NOISE_M * 2.0
    s[_HAGREE] = s[_HAGREE] + 1.0 if agrees else 1.0
    s[_NH] = h
    if s[_HAGREE] >= REACQUIRE:
        s[_H], s[_HT], s[_HAGREE] = h, t, 0.0
