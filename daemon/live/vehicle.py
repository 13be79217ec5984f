"""Everything about one vehicle, for the live page's drill-down: streams, recent samples, scores, channels, link.

Read from the fleet's ring buffers and the detectors' last evidence when a page asks for this vehicle; nothing is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from watchkeeper.daemon.live.scores import FRESH_S, Scores
from watchkeeper.daemon.outputs.coverage import coverage_of
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.detectors.incidents.incidents import link_stats
from watchkeeper.streams.batch import F8
from watchkeeper.streams.messages import COLUMN, FIELDS, Kind

# Digits after the point: a centimetre is finer than any of these is measured, a place needs more.
DIGITS, PLACE_DIGITS = 3, 6
# Points of a series: a small chart has no room for more.
POINTS = 128


def place(pipeline: Pipeline, name: str) -> tuple[float, float] | None:
    """Where a vehicle is, on Earth; None: not known."""
    slot = pipeline.fleet.slot_of.get(name)
    if slot is None:
        return None
    for kind in (Kind.ADSB, Kind.GPS):
        lat, lon = (float(pipeline.fleet.value[kind][COLUMN[kind][field], slot]) for field in ("lat", "lon"))
        if math.isfinite(lat) and math.isfinite(lon):
            return lat, lon
    return None


def describe(pipeline: Pipeline, scores: Scores, name: str) -> dict[str, Any]:
    """One vehicle at the last tick; `known` is false for one that is not in the fleet."""
    fleet = pipeline.fleet
    slot = fleet.slot_of.get(name)
    if slot is None:
        return {"type": "vehicle", "id": name, "known": False}
    t = pipeline.watermark
    return {
        "type": "vehicle",
        "id": name,
        "known": True,
        "callsign": fleet.callsigns.get(name, ""),
        "t": t,
        "streams": [_stream(fleet, kind, slot, t) for kind in Kind if fleet.count[kind, slot]],
        "series": _series(fleet, slot, enu=pipeline.config.frames.local == "enu"),
        "scores": _scores(scores, slot, t),
        "link": _link(pipeline, slot),
        "coverage": coverage_of(pipeline, slot),
    }


def _stream(fleet: Fleet, kind: Kind, slot: int, t: float) -> dict[str, Any]:
    value, value_t = fleet.value[kind][:, slot], fleet.value_t[kind][:, slot]
    ring, rate_hz = fleet.ring.get(kind), math.nan
    if ring is not None:
        times, _ = ring.history(slot)
        if len(times) > 1 and times[-1] > times[0]:
            rate_hz = (len(times) - 1) / float(times[-1] - times[0])
    return {
        "kind": kind.word,
        "samples": int(fleet.count[kind, slot]),
        "age_s": round(t - float(fleet.last_t[kind, slot]), DIGITS),
        "rate_hz": round(rate_hz, DIGITS),
        "values": [
            [f.name, round(float(value[i]), PLACE_DIGITS if f.unit == "deg" else DIGITS), f.unit]
            for i, f in enumerate(FIELDS[kind])
            if math.isfinite(value_t[i])
        ],
    }


def _series(fleet: Fleet, slot: int, *, enu: bool) -> dict[str, Any]:
    """Recent samples as charts draw them: name to unit, times and values."""
    found: dict[str, Any] = {}
    times, data = fleet.ring[Kind.ADSB].history(slot)
    if len(times):
        adsb = COLUMN[Kind.ADSB]
        found["altitude"] = points("ft", times, data[adsb["alt_ft"]])
        found["speed"] = points("kt", times, data[adsb["gs_kt"]])
    times, data = fleet.ring[Kind.GPS].history(slot)
    if len(times):
        gps = COLUMN[Kind.GPS]
        up = data[gps["gps_z"]] * (1.0 if enu else -1.0)
        alt = np.where(np.isnan(data[gps["alt_m"]]), up, data[gps["alt_m"]])
        found.setdefault("altitude", points("m", times, alt))
        speed = np.hypot(data[gps["gps_vx"]], data[gps["gps_vy"]])
        found.setdefault("speed", points("m/s", times, speed))
        found["satellites"] = points("", times, data[gps["sats"]])
    times, data = fleet.ring[Kind.IMU].history(slot)
    if len(times):
        imu = COLUMN[Kind.IMU]
        found["specific force"] = points("m/s2", times, _length(data, imu, "imu_ax", "imu_ay", "imu_az"))
        found["angular rate"] = points("rad/s", times, _length(data, imu, "imu_wx", "imu_wy", "imu_wz"))
    return {name: series for name, series in found.items() if series["v"]}


def _length(data: F8, column: dict[str, int], *names: str) -> F8:
    length: F8 = np.sqrt(sum(data[column[name]] ** 2 for name in names))
    return length


def points(unit: str, t: F8, v: F8) -> dict[str, Any]:
    """The known ones, thinned to what a chart can show."""
    known = np.flatnonzero(np.isfinite(v))
    known = known[:: -(-len(known) // POINTS)] if len(known) else known
    return {"unit": unit, "t": np.round(t[known], DIGITS).tolist(), "v": np.round(v[known], DIGITS).tolist()}


def _scores(scores: Scores, slot: int, t: float) -> list[dict[str, Any]]:
    """What each detector says about it; with numbers and causes where its last evidence names the vehicle."""
    said = []
    for row, kind in enumerate(scores.kinds):
        age_s = t - float(scores.t[row, slot])
        if age_s > FRESH_S:
            continue
        entry: dict[str, Any] = {"kind": kind, "ratio": float(scores.ratio[row, slot]), "age_s": round(age_s, DIGITS)}
        found = scores.latest[kind]
        rows = np.flatnonzero(found.a == slot)
        if len(rows):
            last = int(rows[-1])
            bits = 0 if found.cause_bits is None else int(found.cause_bits[last])
            entry["score"] = round(float(found.score[last]), DIGITS)
            entry["threshold"] = round(float(found.threshold[last]), DIGITS)
            entry["causes"] = [cause for i, cause in enumerate(found.causes) if bits >> i & 1]
            entry["numbers"] = {name: round(float(column[last]), DIGITS) for name, column in found.numbers.items()}
        said.append(entry)
    return said


def _link(pipeline: Pipeline, slot: int) -> dict[str, Any] | None:
    stats = link_stats(pipeline.detectors)
    if stats is None or not pipeline.fleet.count[stats.kinds, slot].any():
        return None
    via = int(stats.via[slot])
    ratio, gap_s = stats.rate_ratio()[:, slot], stats.gap_s()[:, slot]
    return {
        "via": pipeline.gateways[via] if via >= 0 else "",
        "streams": [
            {
                "kind": kind.word,
                "usual_hz": _round(stats.usual_rate[k, slot]),
                "rate_ratio": _round(ratio[k]),
                "gap_s": _round(gap_s[k]),
                "silent": bool(stats.silent[k, slot]),
            }
            for k, kind in enumerate(stats.kinds)
        ],
        "latency_excess_s": _round(stats.latency_s[slot] - stats.usual_latency_s[slot]),
        "jitter_s": _round(stats.jitter_s[slot]),
        "reordered": _round(stats.reordered[slot]),
    }


def _round(value: float) -> float:
    return round(float(value), DIGITS)


def finite(values: Iterable[float]) -> list[float | None]:
    """Numbers for JSON, rounded; None for what is not known."""
    return [round(float(value), DIGITS) if math.isfinite(value) else None for value in values]
