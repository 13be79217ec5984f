"""Decoded Remote ID: both forms that receivers write, what they leave out, and what a spoofer puts in."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest

from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.adapters.receivers.remoteid import RemoteId
from watchkeeper.streams.messages import COLUMN, Kind

NOON = 1_709_294_400.0
MAC = "8e:3b:93:22:33:fa"


def line(lat: float, lon: float, *, name: str = "1581F5FJD229400", one: bool = False, **more: Any) -> bytes:
    parts: list[dict[str, Any]] = [
        {"Basic ID": {"id_type": "Serial Number (ANSI/CTA-2063-A)", "id": name, "MAC": MAC, "RSSI": -60}},
        {"Location/Vector Message": {"latitude": lat, "longitude": lon, "geodetic_altitude": 120.5, "speed": 12.5,
                                     "vert_speed": -0.5, "direction": 90, "op_status": "Airborne", **more}},
        {"Self-ID Message": {"text": "survey"}},
        {"System Message": {"latitude": 51.49, "longitude": -0.51}},
    ]  # fmt: skip
    return json.dumps({k: v for part in parts for k, v in part.items()} if one else parts).encode() + b"\n"


def rows(feed: RemoteId, data: bytes, now: float = math.nan) -> list[tuple[str, float, dict[str, float]]]:
    feed.push(data, now)
    batch = feed.take()
    if batch is None:
        return []
    cols = batch.kinds[Kind.ADSB]
    values = [dict(zip(COLUMN[Kind.ADSB], cols.data[:, i].tolist(), strict=True)) for i in range(len(cols))]
    return [
        (batch.ids[cols.vid[i]], float(cols.t[i]), {k: v for k, v in row.items() if v == v})
        for i, row in enumerate(values)
    ]


@pytest.mark.parametrize("one", [False, True])
def test_both_forms_are_read(one: bool) -> None:
    [(name, t, values)] = rows(RemoteId(), line(51.5, -0.5, one=one), NOON)
    assert (name, t) == ("1581F5FJD229400", NOON)
    assert values.pop("operator_m") == pytest.approx(1312, abs=5)
    assert values == pytest.approx({
        "lat": 51.5, "lon": -0.5, "alt_ft": 120.5 / 0.3048, "gs_kt": 12.5 * 3600 / 1852, "trk_deg": 90.0,
        "vs_fpm": -0.5 / 0.3048 * 60, "on_ground": 0.0, "category": 14.0,
    })  # fmt: skip


def test_texts_with_units_what_is_not_known_and_times() -> None:
    feed = RemoteId()
    odd = {"pressure_altitude": "150.0 m", "geodetic_altitude": -1000, "speed": 255, "direction": 361, "vert_speed": 63}
    [(_, t, values)] = rows(feed, line(51.5, -0.5, **odd, op_status="UNDECLARED", timestamp=NOON + 1))
    assert t == NOON + 1
    assert set(values) == {"lat", "lon", "alt_ft", "category", "operator_m"}
    assert values["alt_ft"] == pytest.approx(150 / 0.3048)
    assert not rows(feed, line(0.0, 0.0), NOON)
    assert not rows(feed, line(51.5, -0.5))
    assert feed.refused == {"missing_field": 1, "bad_time": 1}


def test_a_line_without_an_id_belongs_to_its_hardware_address() -> None:
    feed = RemoteId()
    alone = {"Location/Vector Message": {"latitude": 51.5, "longitude": -0.5, "MAC": MAC}}
    data = json.dumps(alone).encode() + b"\n"
    assert not rows(feed, data, NOON)
    assert feed.refused == {"bad_id": 1}
    rows(feed, line(51.5, -0.5), NOON)
    assert [name for name, _, _ in rows(feed, data, NOON + 1)] == ["1581F5FJD229400"]


def test_noise_never_raises() -> None:
    draw, whole = random.Random(1), line(51.5, -0.5)
    feed = RemoteId()
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(draw.randrange(1, 6)):
            data[draw.randrange(len(data) - 1)] = draw.randrange(256)
        feed.push(bytes(data), NOON)
    assert feed.refused.total() > 100


def causes(lines: list[bytes]) -> set[str]:
    """What kinematics says of a drone, one line a second."""
    feed, pipeline = RemoteId(), Pipeline(Config(fleet=FleetLimits(max_vehicles=10)))
    found: set[str] = set()
    for s, data in enumerate(lines):
        feed.push(data, NOON + s)
    batch = feed.take()
    assert batch is not None
    for event in pipeline.feed(batch) + pipeline.finish():
        if event.kind == "kinematics":
            found |= set(event.evidence["causes"])
            assert "operator" not in event.evidence["causes"] or event.evidence["operator_m"] > 20_000
    return found


def test_spoofed_drones_are_told() -> None:
    east = 12.5 / 69_000  # degrees a second
    honest = [line(51.5, -0.5 + east * s) for s in range(40)]
    assert causes(honest) == set()
    assert "operator" in causes([line(52.5, -0.5 + east * s) for s in range(40)])
    assert "too_fast" in causes([line(51.5, -0.5 + 20 * east * s, speed=250) for s in range(40)])
    # the same id 3 km away, in turn: an aircraft could be there, a drone could not
    twice = [line(51.5 + 0.027 * (s % 2), -0.5 + east * s) for s in range(40)]
    assert {"jump", "duplicate_id"} <= causes(twice)
    # 60 m/s over the ground and 12.5 m/s reported
    assert "speed" in causes([line(51.5, -0.5 + 4.8 * east * s, speed=12.5 + 0.25 * (s % 2)) for s in range(60)])
