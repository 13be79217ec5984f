"""Metrics: documented by name, complete from the first scrape, and bounded whatever the input."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from watchkeeper.config.loader import load
from watchkeeper.daemon.app import App
from watchkeeper.detectors.fleet.crowd import room_for
from watchkeeper.streams.messages import Drop

from where import DOCS

PAGE = DOCS / "metrics.md"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    settings = {
        "fleet": {"max_vehicles": 10}, "detectors": {"conflict": {"max_pairs": 10}},
        "time": {"lateness_s": 0.0}, "sinks": {"state_dir": str(tmp_path)},
    }  # fmt: skip
    made = App(load(None, env={}, overrides=settings))
    yield made
    made.close()


def scrape(app: App) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    text = generate_latest(app.metrics.registry).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def feed(app: App, topic: str, payload: bytes) -> None:
    app.intake.put(topic, payload)
    asyncio.run(app.pump._drain())


def test_every_metric_is_documented_and_every_documented_metric_exists(app: App) -> None:
    written = set(re.findall(r"`(watchkeeper_[a-z0-9_]+)", PAGE.read_text()))
    text = generate_latest(app.metrics.registry).decode()
    exported = set(re.findall(r"^# TYPE (watchkeeper_\w+) (?!histogram)", text, re.MULTILINE))
    exported |= {"watchkeeper_alarm_latency_seconds"}
    exported = {name for name in exported if not name.endswith("_created")}
    assert written == exported


def test_no_two_parts_say_the_same_metric(app: App) -> None:
    names = [family.name for part in app.metrics.parts for family in part()]
    assert sorted(names) == sorted(set(names))


def test_series_exist_before_the_first_message(app: App) -> None:
    found = scrape(app)
    assert found["watchkeeper_vehicles", ()] == 0
    for stream in ("adsb", "gps", "imu", "action", "route", "unknown"):
        for reason in Drop.ALL:
            assert found["watchkeeper_drops_total", (("reason", reason), ("stream", stream))] == 0
    for kind in ("conflict", "los", "gps_imu", "kinematics", "silence"):
        assert found["watchkeeper_alarms_active", (("kind", kind), ("severity", "warning"))] == 0
        assert found["watchkeeper_alarm_events_total", (("kind", kind), ("state", "raised"))] == 0
    for name in ("watchkeeper_conflict_min_tcpa_seconds", "watchkeeper_conflict_min_dcpa_meters"):
        assert found[name, ()] != found[name, ()], f"{name} is NaN while there is no conflict"
    assert found["watchkeeper_alarm_latency_seconds_count", ()] == 0


def test_labels_stay_the_same_whatever_arrives(app: App) -> None:
    before = scrape(app).keys()
    random = Random(1)
    for i in range(2000):
        kind = random.choice(["gps", "adsb", "imu", "zzz", "%41", "../x"])
        payload = random.choice([random.randbytes(20), json.dumps({"t": i, "gps_x": i, "gps_y": 0}).encode()])
        feed(app, f"telemetry/{kind}/{random.randbytes(4).hex()}", payload)
    feed(app, "elsewhere", b"")
    found = scrape(app)
    assert found.keys() == before
    drops = sum(v for (name, _), v in found.items() if name == "watchkeeper_drops_total")
    samples = sum(v for (name, _), v in found.items() if name == "watchkeeper_samples_total")
    # those that may be of another time wait for the next one to decide
    assert drops + samples + len(app.pipeline.clock.held) == 2001
    # of ten places one is kept free for newcomers
    assert found["watchkeeper_vehicles", ()] == room_for(10) == 9
    assert found["watchkeeper_messages_total", ()] == 2001


def test_active_alarms_and_lag_are_read_from_the_pipeline(app: App) -> None:
    fix = {"gps_x": 0, "gps_y": 0, "gps_z": 0}
    for t in range(30):
        feed(app, "telemetry/gps/busy", json.dumps({"t": t, **fix}).encode())
        if t < 10:
            feed(app, "telemetry/gps/quiet", json.dumps({"t": t, **fix}).encode())
    found = scrape(app)
    assert found["watchkeeper_alarms_active", (("kind", "silence"), ("severity", "caution"))] == 1
    assert found["watchkeeper_samples_total", (("stream", "gps"),)] == 40
    assert found["watchkeeper_event_timestamp_seconds", ()] == 29
    assert 0 <= found["watchkeeper_watermark_lag_seconds", ()] <= 2
