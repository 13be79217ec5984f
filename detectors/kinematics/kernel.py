"""Each ADS-B report against the track of its aircraft so far. Called by detector.py, which tells what is compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from watchkeeper.detectors.kernels.kinds import DRONE, GLIDER, SHIP, kind_of
from watchkeeper.detectors.kernels.records import blank
from watchkeeper.detectors.kernels.reports import REACQUIRE
from watchkeeper.detectors.kinematics.state import (
    ALT_NOISE_M,
    BASE_MAX_S,
    BASE_MIN_S,
    BREAK_S,
    CLIMB,
    DUPLICATE,
    FLIPS_AWAY,
    FLIPS_BACK,
    FLIPS_MAX,
    HELD_S,
    JUMP,
    OPERATOR,
    POSITION,
    SPEED,
    SPEED_MIN,
    SPEED_S,
    TOO_FAST,
    ByKind,
    Finding,
    Fix,
    Limits,
    Track,
)
from watchkeeper.streams.batch import F8, I4
from watchkeeper.streams.geo import EARTH_M, FT_M, KT_MS
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import ADSB

_UNKNOWN, _NOTHING = blank(Track, 1), blank(Finding, 1)


@njit(cache=True)
def follow(slot: I4, t: F8, data: F8, by_kind: ByKind, tracks: NDArray[Any], found: NDArray[Any]) -> None:
    """Fill the findings of reports that are sorted by (slot, t), and extend the tracks."""
    for i in range(slot.size):
        if not t[i] - tracks[slot[i]].heard_t <= BREAK_S:
            tracks[slot[i]] = _UNKNOWN[0]
        found[i] = _NOTHING[0]
        track, finding = tracks[slot[i]], found[i]
        track.heard_t = t[i]
        if not np.isnan(data[ADSB.category, i]):
            track.kind = kind_of(data[ADSB.category, i])
        limits = _limits(track.kind, by_kind)
        gs_kt, trk_deg = data[ADSB.gs_kt, i], data[ADSB.trk_deg, i]
        if gs_kt != track.seen_gs_kt or trk_deg != track.seen_trk_deg:
            track.seen_gs_kt, track.seen_trk_deg, track.seen_velocity_t = gs_kt, trk_deg, t[i]
        held = t[i] - track.seen_velocity_t > HELD_S
        speed_ms = np.nan if held or data[ADSB.on_ground, i] == 1.0 else gs_kt * KT_MS
        if not (np.isnan(speed_ms) or track.fastest_ms >= speed_ms):
            track.fastest_ms = speed_ms
        lat, lon, alt_m = data[ADSB.lat, i], data[ADSB.lon, i], data[ADSB.alt_ft, i] * FT_M
        if alt_m == track.alt_m:
            track.alt_t = t[i]  # level flight repeats itself too
        if lat != track.seen_lat or lon != track.seen_lon:
            track.seen_lat, track.seen_lon, track.seen_t = lat, lon, t[i]
            _position(track, _fix(t[i], lat, lon, speed_ms), limits, finding)
        if not np.isnan(alt_m) and alt_m != track.seen_alt_m:
            track.seen_alt_m = alt_m
            _altitude(track, t[i], alt_m, limits.climb_ms, finding)
        if track.kind in (DRONE, GLIDER, SHIP) and gs_kt * KT_MS > limits.jump_ms:
            finding.bits |= TOO_FAST
            finding.score = max(finding.score, gs_kt * KT_MS / limits.jump_ms)
        finding.operator_m = data[ADSB.operator_m, i]
        if finding.operator_m > by_kind.operator_m:
            finding.bits |= OPERATOR
            finding.score = max(finding.score, finding.operator_m / by_kind.operator_m)
        finding.epoch = track.seen_t


@njit(cache=True, inline="always")
def _limits(kind: int, by_kind: ByKind) -> Limits:
    if kind == DRONE:
        return by_kind.drone
    if kind == GLIDER:
        return by_kind.glider
    return by_kind.ship if kind == SHIP else by_kind.aircraft


@njit(cache=True)
def _fix(t: float, lat_deg: float, lon_deg: float, speed_ms: float) -> Fix:
    """A sphere is enough: the limits are coarse and only short distances matter."""
    lat, lon = np.radians(lat_deg), np.radians(lon_deg)
    return Fix(
        t,
        EARTH_M * np.cos(lat) * np.cos(lon),
        EARTH_M * np.cos(lat) * np.sin(lon),
        EARTH_M * np.sin(lat),
        speed_ms,
    )


@njit(cache=True)
def _from(fix: Fix, x_m: float, y_m: float, z_m: float) -> float:
    """How far a position is from another."""
    return float(np.sqrt((fix.x_m - x_m) ** 2 + (fix.y_m - y_m) ** 2 + (fix.z_m - z_m) ** 2))


@njit(cache=True)
def _position(track: Track, fix: Fix, limits: Limits, finding: Finding) -> None:
    """A new position against the last trusted one, and against the reported speed."""
    if not np.isnan(track.t):
        away_m = _from(fix, track.x_m, track.y_m, track.z_m)
        implied_ms = max(0.0, away_m - limits.noise_m) / (fix.t - track.t)
        finding.speed_ms = implied_ms
        finding.score = implied_ms / limits.jump_ms
        if finding.score >= 1.0:
            finding.bits |= JUMP
        elif fix.t - track.t > BASE_MAX_S and implied_ms > track.fastest_ms + limits.error_ms:
            # a turn can only make it less: nobody gets further than his speed all the while
            finding.bits |= SPEED
            finding.score = max(1.0, (implied_ms - track.fastest_ms) / limits.error_ms)
        if finding.bits:
            _away(track, fix, limits, finding)
            return
        if track.agree > 0:
            # back on the old track: a spike if it happened once, two vehicles if it goes on
            track.flips = min(track.flips + 1, FLIPS_MAX)
            track.agree = 0
            if track.flips >= FLIPS_BACK and fix.t - track.new_t < BASE_MAX_S:
                finding.bits |= DUPLICATE
                finding.score = max(finding.score, 1.0)
        elif track.flips > 0 and fix.t - track.new_t > BASE_MAX_S:
            track.flips = 0
    _speed(track, fix, limits, finding)
    track.t, track.x_m, track.y_m, track.z_m = fix.t, fix.x_m, fix.y_m, fix.z_m
    track.fastest_ms = fix.speed_ms


@njit(cache=True)
def _away(track: Track, fix: Fix, limits: Limits, finding: Finding) -> None:
    """A position that jumped: does it go on from the last place that the aircraft jumped to?"""
    agrees = False
    if not np.isnan(track.new_t):
        between_m = _from(fix, track.new_x_m, track.new_y_m, track.new_z_m)
        agrees = max(0.0, between_m - limits.noise_m) < limits.jump_ms * (fix.t - track.new_t)
    track.agree = track.agree + 1 if agrees else 1
    track.new_t, track.new_x_m, track.new_y_m, track.new_z_m = fix.t, fix.x_m, fix.y_m, fix.z_m
    if track.flips >= FLIPS_AWAY:
        finding.bits |= DUPLICATE
    if track.agree >= REACQUIRE:
        track.t = np.nan
        track.agree = 0
    track.base_t = np.nan


@njit(cache=True)
def _speed(track: Track, fix: Fix, limits: Limits, finding: Finding) -> None:
    """Reported speed against displacement, report by report from base to base, balanced over SPEED_S."""
    base_s = fix.t - track.base_t
    if np.isnan(fix.speed_ms):
        track.base_t = np.nan
        return
    if not base_s <= BASE_MAX_S:
        track.excess_m, track.span_s, track.compared, track.error_ms = 0.0, 0.0, 0, np.nan
        _rebase(track, fix)
    elif base_s >= BASE_MIN_S:
        flown_m = _from(fix, track.base_x_m, track.base_y_m, track.base_z_m)
        low_m, high_m = min(track.base_ms, fix.speed_ms) * base_s, max(track.base_ms, fix.speed_ms) * base_s
        excess_m = flown_m - min(max(flown_m, low_m), high_m)
        kept = np.exp(-base_s / SPEED_S)
        track.excess_m, track.span_s = track.excess_m * kept + excess_m, track.span_s * kept + base_s
        track.compared += 1
        if track.compared >= SPEED_MIN:
            now_ms = max(0.0, abs(excess_m) - limits.noise_m) / base_s
            long_ms = max(0.0, abs(track.excess_m) - limits.noise_m) / track.span_s
            track.error_ms = min(now_ms, long_ms) if excess_m * track.excess_m > 0.0 else 0.0
        _rebase(track, fix)
    finding.error_ms = track.error_ms
    if track.error_ms >= limits.error_ms:
        finding.bits |= SPEED
    if track.error_ms > finding.score * limits.error_ms:
        finding.score = track.error_ms / limits.error_ms


@njit(cache=True)
def _rebase(track: Track, fix: Fix) -> None:
    """The next comparison begins here."""
    track.base_t, track.base_x_m, track.base_y_m, track.base_z_m = fix.t, fix.x_m, fix.y_m, fix.z_m
    track.base_ms = fix.speed_ms


@njit(cache=True)
def _altitude(track: Track, t: float, alt_m: float, climb_ms: float, finding: Finding) -> None:
    """A new altitude against the last trusted one; it counts for a report whose position contradicts itself too."""
    if np.isnan(track.alt_m):
        track.alt_m, track.alt_t = alt_m, t
        return
    finding.climb_ms = max(0.0, abs(alt_m - track.alt_m) - ALT_NOISE_M) / max(t - track.alt_t, 0.1)
    ratio = finding.climb_ms / climb_ms
    if ratio < 1.0:
        track.alt_m, track.alt_t, track.alt_agree = alt_m, t, 0
        return
    if finding.bits & POSITION:
        finding.score = max(finding.score, ratio)
    finding.bits |= CLIMB
    agrees = not np.isnan(track.new_alt_m) and abs(alt_m - track.new_alt_m) < ALT_NOISE_M * 2.0
    track.alt_agree = track.alt_agree + 1 if agrees else 1
    track.new_alt_m = alt_m
    if track.alt_agree >= REACQUIRE:
        track.alt_m, track.alt_t, track.alt_agree = alt_m, t, 0
