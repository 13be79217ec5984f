"""intent's running figures equal those of `evaluate conflicts` on any recording: random traffic, starts and steps.

A recording has a handful of aircraft that meet in a small area. Reports come at odd times and stop for a while now and
then, some aircraft are commanded, some have waypoints, which change, and some arrive. It begins at any time, since 1970
or since a start, and on or next to the end of a step, where an error of rounding shows.
"""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

from watchkeeper.config.schema import Config
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.evaluation.conflicts.command import HallucinationDetector
from watchkeeper.evaluation.conflicts.log import read_log
from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.messages import Kind

OTHERS = ("conflict", "los", "gps_imu", "kinematics", "silence", "gnss_interference", "link")
SHARED = ("tp", "fp", "fn", "tn", "num_conflict_steps", "precision", "recall", "alert_duty_cycle", "avg_lead_time_s")
STEPS_S = (10.0, 10.0, 1.0, 2.0, 2.5, 3.3, 7.0, 1.00001, 12.25, 30.0, 60.0)
SPAN_S = 400.0
Rows = dict[Kind, list[tuple[float, int, dict[str, float]]]]


def config(step_s: float) -> Config:
    off = {name: {"enabled": False} for name in OTHERS}
    return msgspec.convert({"fleet": {"max_vehicles": 40}, "detectors": {**off, "intent": {"step_s": step_s}}}, Config)


def start(rng: np.random.Generator, step_s: float) -> float:
    """Near 0 or a Unix time; anywhere, at a whole second, at the end of a step, or a moment next to that."""
    base = float(rng.choice([0.0, 86_400.0, 1_700_000_000.0, 1_763_424_000.0])) + float(rng.uniform(0.0, 1e5))
    on = round(base / step_s) * step_s
    return float(rng.choice([base, math.floor(base), on, math.nextafter(on, 0.0), on + 0.4, on - 0.4, on + 1.2]))


def recording(seed: int) -> tuple[float, list[Batch]]:
    """The step, and batches of about five seconds."""
    rng = np.random.default_rng(seed)
    step_s = float(rng.choice(STEPS_S))
    t0, n = start(rng, step_s), int(rng.integers(2, 9))
    rows: Rows = {kind: [] for kind in Kind}
    grid = float(rng.choice([0.0, 1.0, 0.5]))  # some senders report on whole seconds
    for vid in range(n):
        _fly(rng, vid, t0, grid, rows)
    ids = [f"v{vid}" for vid in range(n)]
    # the first command may be the first sample of all, or come much later
    begins = t0 + float(rng.choice([0.0, 0.0, rng.uniform(0.0, SPAN_S / 2)]))
    for kind in (Kind.ACTION, Kind.ROUTE):
        rows[kind] = [row for row in rows[kind] if row[0] >= begins]
    rows[Kind.ACTION].append((begins, 0, {"heading_delta_deg": 0.0, "speed_delta_kt": 0.0}))
    return step_s, _batches(ids, rows, t0)


def _fly(rng: np.random.Generator, vid: int, t0: float, grid: float, rows: Rows) -> None:
    """One aircraft: its reports along a straight line with turns, its commands and its waypoints."""
    lat, lon = 50.0 + rng.uniform(-0.25, 0.25), 8.0 + rng.uniform(-0.35, 0.35)
    trk, gs, alt = rng.uniform(0, 360), rng.uniform(200, 480), float(rng.choice([33e3, 34e3, 33.5e3]))
    controlled, routed = rng.random() < 0.7, rng.random() < 0.5
    silent_from = t0 + (rng.uniform(0.0, SPAN_S) if rng.random() < 0.4 else 10 * SPAN_S)
    silent_to = silent_from + rng.uniform(5.0, 60.0)
    t, before = t0 + float(rng.uniform(0.0, 3.0)), t0
    way = 50.0 + rng.uniform(-0.2, 0.2), 8.0 + rng.uniform(-0.3, 0.3)
    if routed:
        rows[Kind.ROUTE].append((t, vid, {"lat": way[0], "lon": way[1]}))
    while t < t0 + SPAN_S:
        if grid:
            t = max(math.ceil(t / grid) * grid, before)
        moved_deg = gs * (t - before) / 3600.0 / 60.0
        lat += moved_deg * math.cos(math.radians(trk))
        lon += moved_deg * math.sin(math.radians(trk)) / math.cos(math.radians(lat))
        report = {"lat": lat, "lon": lon, "gs_kt": gs, "trk_deg": trk % 360.0, "alt_ft": alt, "vs_fpm": 0.0}
        if rng.random() < 0.1:
            del report["alt_ft"]
        if rng.random() < 0.02:
            report["on_ground"] = 1.0
        if not silent_from <= t < silent_to:
            rows[Kind.ADSB].append((t, vid, report))
        if controlled and rng.random() < 0.25:
            turn, faster = rng.uniform(-20, 20) * (rng.random() < 0.7), rng.uniform(-12, 12) * (rng.random() < 0.4)
            rows[Kind.ACTION].append((t, vid, {"heading_delta_deg": float(turn), "speed_delta_kt": float(faster)}))
            trk += turn
        if routed and rng.random() < 0.03:
            if rng.random() < 0.5:
                way = 50.0 + rng.uniform(-0.2, 0.2), 8.0 + rng.uniform(-0.3, 0.3)
            reached = {} if rng.random() < 0.5 else {"reached": float(rng.random() < 0.4)}
            rows[Kind.ROUTE].append((t, vid, {"lat": way[0], "lon": way[1], **reached}))
        before, t = t, t + float(rng.choice([1.0, 1.0, rng.uniform(0.3, 4.0)]))


def _batches(ids: list[str], rows: Rows, t0: float) -> list[Batch]:
    batches = []
    arrived = sorted(((row, kind) for kind, found in rows.items() for row in found), key=lambda item: item[0][0])
    for low in np.arange(t0 - 5.0, t0 + SPAN_S + 10.0, 5.0).tolist():
        now = [item for item in arrived if low <= item[0][0] < low + 5.0]
        kinds = {}
        for kind in {kind for _, kind in now}:
            here = [(seq, *row) for seq, (row, its) in enumerate(now) if its is kind]
            names = {name for *_, values in here for name in values}
            values = {name: np.array([row[3].get(name, math.nan) for row in here]) for name in names}
            seq, vid = np.array([row[0] for row in here]), np.array([row[2] for row in here], np.int32)
            kinds[kind] = columns_of(kind, vid, np.array([row[1] for row in here]), values, seq=seq)
        if kinds:
            batches.append(Batch(ids, kinds))
    return batches


def compared(path: Path, seed: int) -> dict[str, float]:
    """Run one recording both ways, hold them against each other, and say what was in it."""
    step_s, batches = recording(seed)
    pipeline = Pipeline(config(step_s))
    with LogWriter(path) as writer:
        for batch in batches:
            pipeline.feed(batch)
            writer.write(batch)
    pipeline.finish()
    found = HallucinationDetector(action_period_s=step_s).examine(read_log(path, step_s))
    live = {name.removeprefix("intent_"): v for name, v in pipeline.gauges().items() if name.startswith("intent_")}
    assert live["steps"] == len(found.episode.t), (seed, step_s)
    shared = {name: found.metrics[name] for name in SHARED}
    assert {name: live[name] for name in SHARED} == pytest.approx(shared, nan_ok=True), (seed, step_s)
    return shared


@pytest.mark.parametrize("count", [24, pytest.param(200, marks=pytest.mark.long)])
def test_live_equals_offline_on_random_recordings(tmp_path, count):
    total = dict.fromkeys(SHARED, 0.0)
    for seed in range(count):
        for name, value in compared(tmp_path / f"{seed}.wklog", seed).items():
            total[name] += value
    # a bit of everything, or nothing was compared
    assert min(total[name] for name in ("tp", "fp", "fn", "tn", "num_conflict_steps")) > 0.0
