"""A made-up day of a fleet, written into a history by the same jobs and the same packing as the daemon's."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np

from watchkeeper.daemon.history import keeping, writing
from watchkeeper.daemon.history.blocks import BUCKET_S, Rows, by_vehicle, joined, pack_blocks
from watchkeeper.daemon.history.layers import Layer, ratios, track, whole
from watchkeeper.daemon.history.tables import code_of, open_for_writing
from watchkeeper.daemon.live.scores import vehicle_kinds
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, UPDATED, AlarmEvent, alarm_id
from watchkeeper.streams.batch import F8, I8

# A day in November 2023, from a whole bucket on.
BEGAN_T = 1_700_000_100.0
ERA = 1
PERIOD_S = 5.0
SEVERITIES = ("advisory", "caution", "warning")
# A receiver writes a place with so much noise, in 1e-7 degrees.
NOISE = 300.0


def make(path: Path, ids: list[str], hours: float, alarms: int) -> None:
    """Write a day's history."""
    rng = np.random.default_rng(1)
    db = open_for_writing(path, 1 << 40)
    db.execute("BEGIN")
    writing.names({name: f"WKP{i:04d}" for i, name in enumerate(ids)}, BEGAN_T + hours * 3600)(db)
    codes = np.array([code_of(name) for name in ids], np.int64)
    kinds = vehicle_kinds()
    layers = track(kinds), ratios("scores", kinds)
    lat, lon = rng.uniform(45, 50, len(ids)), rng.uniform(5, 15, len(ids))
    course, speed = rng.uniform(0, 360, len(ids)), rng.uniform(150, 250, len(ids))
    first, last = int(BEGAN_T // BUCKET_S), int((BEGAN_T + hours * 3600) // BUCKET_S)
    for bucket in range(first, last):
        course += rng.normal(0, 20, len(ids))
        for layer in layers:
            rows = _samples(rng, layer, codes, lat, lon, course, speed)
            number = writing.layer_number(db, layer)
            carried = keeping.carry(db, ERA, bucket, number, len(layer.columns))
            vehicles, packed = pack_blocks(by_vehicle(joined([*([carried] if carried is not None else []), rows])))
            listed = [(ERA, bucket, number, code, data) for code, data in zip(vehicles, packed, strict=True)]
            db.executemany("INSERT INTO blocks VALUES (?, ?, ?, ?, ?)", listed)
        lat += speed * BUCKET_S * np.cos(np.radians(course)) / 111_000
        lon += speed * BUCKET_S * np.sin(np.radians(course)) / 75_000
        lat, lon = 45 + (lat - 45) % 5, 5 + (lon - 5) % 10
    for n in range(alarms):
        _alarm(db, rng, ids, n, BEGAN_T + hours * 3600 * n / alarms)
    for t in (BEGAN_T, BEGAN_T + hours * 3600):
        writing.reached(db, ERA, t)
    db.execute("COMMIT")
    db.close()


def _samples(
    rng: np.random.Generator, layer: Layer, codes: I8, lat: F8, lon: F8, course: F8,
    speed: F8,
) -> Rows:  # fmt: skip
    """One bucket of everybody: a straight line with noise, or scores well below their thresholds."""
    n, v = int(BUCKET_S / PERIOD_S), len(codes)
    s = (np.arange(n) * PERIOD_S)[None, :] + rng.uniform(0, 1, (v, 1))
    shape = v, n
    if layer.name == "scores":
        values = [rng.gamma(2.0, 0.05, shape) if i == 0 else np.full(shape, np.nan) for i in range(len(layer.columns))]
    else:
        north, east = np.cos(np.radians(course))[:, None], np.sin(np.radians(course))[:, None]
        y = (lat[:, None] + speed[:, None] * s * north / 111_000) * 1e7 + rng.normal(0, NOISE, shape)
        x = (lon[:, None] + speed[:, None] * s * east / 75_000) * 1e7 + rng.normal(0, NOISE, shape)
        values = [
            y, x, np.full(shape, 10_668.0), speed[:, None] + rng.normal(0, 0.3, shape),
            (course[:, None] + rng.normal(0, 0.2, shape)) % 360, rng.choice([0.0, 0.325, -0.325], shape),
            rng.gamma(2.0, 0.05, shape), np.zeros(shape), np.zeros(shape), np.zeros(shape),
        ]  # fmt: skip
    data = np.stack([whole(value.ravel(), c.quantum) for value, c in zip(values, layer.columns, strict=True)])
    return Rows(np.repeat(codes, n), (s * 1000).astype(np.int32).ravel(), data)


def _alarm(db: sqlite3.Connection, rng: np.random.Generator, ids: list[str], n: int, t: float) -> None:
    """One alarm: raised, updated three times, ended."""
    a, b = sorted(rng.choice(ids, 2, replace=False).tolist())
    severity = SEVERITIES[n % 3]
    for step, state in enumerate((RAISED, UPDATED, UPDATED, UPDATED, CLEARED)):
        at = round(t + 10.0 * step, 3)
        event = AlarmEvent(
            id=alarm_id("conflict", (a, b), t), kind="conflict", state=state, severity=severity, subjects=(a, b), t=at,
            t_onset=t, t_raised=t, t_cleared=at if state == CLEARED else None, score=1.5, threshold=1.0,
            evidence={"tcpa_s": 80.0 - step, "dcpa_nm": 2.31, "vsep_ft": 400.0, "sep_nm": 9.7, "probability": 0.93},
            ended="cause_gone" if state == CLEARED else None,
        )  # fmt: skip
        said = f"{a} and {b} come closer than they may: 2.3 NM in {80 - step} s."
        writing.event(ERA, event, said, f"{said} conflict {a} {b}")(db)
