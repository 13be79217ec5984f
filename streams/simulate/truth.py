"""What really happened: which aircraft flew when, and every loss of separation, from exact trajectories.

Runs the pilots of a scenario again without reports or noise. Between whole seconds the relative motion of a pair
is taken as straight, so the times of loss and of closest approach are good to about a millisecond, not to a second.
Separation is lost below 5 NM (geodesic on the ellipsoid) and 1,000 ft; exactly as much is separated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from watchkeeper.streams.batch import F8, I4, I8
from watchkeeper.streams.geo import NM_M, inverse
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.simulate.traffic import Pilot

SEPARATION_NM = 5.0
VERTICAL_FT = 1000.0
# Candidates: in one second two aircraft close by less than 0.5 NM and 200 ft, even head-on and diving.
_REACH_LAT_DEG = 5.6 / 59.5
_REACH_M = 5.6 * NM_M
_REACH_FT = 1200.0


@dataclass(slots=True)
class Loss:
    """One loss of separation of one pair, in seconds since the start."""

    t_in: float
    t_out: float
    min_sep_m: float
    t_cpa: float
    min_vsep_ft: float


def fly(pilot: Pilot, seconds: float, t0: float) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    """The aircraft and the losses of separation, as they stand in the truth file."""
    traffic = pilot.traffic
    vehicles: dict[int, dict[str, Any]] = {}
    names: dict[int, str] = {}
    losses: dict[tuple[int, int], list[Loss]] = {}
    known = np.full(traffic.n, -1, np.int64)
    for s in range(math.ceil(seconds)):
        pilot.decide(s)
        traffic.steer()
        for row in np.flatnonzero(traffic.active & (traffic.serial != known)).tolist():
            serial = int(traffic.serial[row])
            names[serial] = traffic.names[row]
            vehicles[serial] = {
                "kind": "aircraft", "callsign": traffic.callsigns[row], "role": traffic.role[row],
                "t_first": t0 + s, "t_last": t0 + seconds,
            }  # fmt: skip
            known[row] = serial
        for row in np.flatnonzero(~traffic.active & (known >= 0)).tolist():
            vehicles[int(known[row])]["t_last"] = t0 + s
            known[row] = -1
        rows = np.flatnonzero(traffic.active).astype(np.int32)
        rows = rows[np.argsort(traffic.lat[rows], kind="stable")]
        before = np.stack((traffic.lat, traffic.lon, traffic.alt_ft))
        traffic.step()
        after = np.stack((traffic.lat, traffic.lon, traffic.alt_ft))
        found = np.empty((7, max(64, 8 * len(rows))))
        while (n := _losses(rows, before, after, found)) > found.shape[1]:
            found = np.empty((7, n))
        _add(losses, traffic.serial, found[:, :n], s, seconds)
    pairs = [_pair(names[a], names[b], loss, t0) for (a, b), each in losses.items() for loss in each]
    pairs.sort(key=lambda p: (p["t_los_in"], p["a"], p["b"]))
    return {names[k]: v for k, v in vehicles.items()}, pairs


def _add(losses: dict[tuple[int, int], list[Loss]], serial: I8, found: F8, s: int, seconds: float) -> None:
    """Take in one second: a loss that lasted up to its start goes on, any other is a new one."""
    for a, b, at_in, at_out, sep_m, at_cpa, vsep_ft in found.T.tolist():
        if s + at_in >= seconds:
            continue
        low, high = sorted((int(serial[int(a)]), int(serial[int(b)])))
        each = losses.setdefault((low, high), [])
        t_out = min(s + at_out, seconds)
        if each and at_in == 0.0 and each[-1].t_out == s:
            loss = each[-1]
            loss.t_out = t_out
            loss.min_vsep_ft = min(loss.min_vsep_ft, vsep_ft)
            if sep_m < loss.min_sep_m:
                loss.min_sep_m, loss.t_cpa = sep_m, s + at_cpa
        else:
            each.append(Loss(s + at_in, t_out, sep_m, s + at_cpa, vsep_ft))


def _pair(a: str, b: str, loss: Loss, t0: float) -> dict[str, Any]:
    return {
        "a": min(a, b), "b": max(a, b), "t_los_in": t0 + loss.t_in, "t_los_out": t0 + loss.t_out,
        "min_sep_nm": loss.min_sep_m / NM_M, "min_vsep_ft": loss.min_vsep_ft, "tcpa_t": t0 + loss.t_cpa,
    }  # fmt: skip


@njit(cache=True)
def _losses(rows: I4, before: F8, after: F8, out: F8) -> int:
    """Pairs without separation during one second; rows are sorted by latitude. Returns how many there are.

    Columns of `out`: both rows, when in the second (0..1) it was lost and regained, least distance in m and when,
    least vertical distance in ft.
    """
    n = 0
    limit_m = SEPARATION_NM * NM_M
    for i in range(rows.size):
        a = rows[i]
        for j in range(i + 1, rows.size):
            b = rows[j]
            if before[0, b] - before[0, a] > _REACH_LAT_DEG:
                break
            if abs(before[2, b] - before[2, a]) > _REACH_FT:
                continue
            cos_lat = max(math.cos(math.radians(before[0, b])), 0.01)
            dlon = abs((before[1, b] - before[1, a] + 180.0) % 360.0 - 180.0)
            if dlon * 111_000.0 * cos_lat > _REACH_M * 1.02:
                continue
            s0, az0, _ = inverse(before[0, a], before[1, a], before[0, b], before[1, b])
            s1, az1, _ = inverse(after[0, a], after[1, a], after[0, b], after[1, b])
            x, y = s0 * math.sin(math.radians(az0)), s0 * math.cos(math.radians(az0))
            dx, dy = s1 * math.sin(math.radians(az1)) - x, s1 * math.cos(math.radians(az1)) - y
            z, dz = before[2, b] - before[2, a], after[2, b] - after[2, a] - (before[2, b] - before[2, a])
            lo, hi = _inside(dx * dx + dy * dy, 2.0 * (x * dx + y * dy), x * x + y * y - limit_m * limit_m)
            zlo, zhi = _inside(dz * dz, 2.0 * z * dz, z * z - VERTICAL_FT * VERTICAL_FT)
            lo, hi = max(lo, zlo), min(hi, zhi)
            if hi <= lo:
                continue
            if n < out.shape[1]:
                speed2 = dx * dx + dy * dy
                at = min(max(-(x * dx + y * dy) / speed2, lo), hi) if speed2 > 0.0 else lo
                zat = min(max(-z / dz, lo), hi) if dz != 0.0 else lo
                out[0, n], out[1, n], out[2, n], out[3, n] = a, b, lo, hi
                out[4, n], out[5, n] = math.hypot(x + dx * at, y + dy * at), at
                out[6, n] = abs(z + dz * zat)
            n += 1
    return n


@njit(cache=True)
def _inside(a: float, b: float, c: float) -> tuple[float, float]:
    """Where in [0, 1] the parabola a x^2 + b x + c (a >= 0) is below zero; (1, 0) if nowhere."""
    if a < 1e-12:
        return (0.0, 1.0) if c < 0.0 else (1.0, 0.0)
    root2 = b * b - 4.0 * a * c
    if root2 <= 0.0:
        return 1.0, 0.0
    root = math.sqrt(root2)
    return max((-b - root) / (2.0 * a), 0.0), min((-b + root) / (2.0 * a), 1.0)
