"""The daemon on a real broker: a vehicle that is not watched is named, on its own topic, as an alarm, on the page."""

from __future__ import annotations

import json
from typing import Any

from watchkeeper.daemon.live.scores import Scores
from watchkeeper.daemon.live.vehicle import describe

ON = {"watch": {"enabled": True}}


def test_a_vehicle_without_an_imu_is_named_with_its_reason_and_not_when_it_is_forgotten(
    broker: Any, listener: Any, configure: Any, start: Any, wait_for: Any
) -> None:
    app = start(configure(broker.url, detectors=ON, time={"gap_skip_s": 30.0}, fleet={"evict_idle_s": 60.0}))
    listener.fixes("bare", 1000, 1045)
    [raised] = wait_for(lambda: [a for a in listener.alarms("raised") if a["kind"] == "watch"])
    assert (raised["subjects"], raised["evidence"]["causes"]) == (["bare"], ["no_imu"])
    assert raised["t_raised"] - 1000 <= 60

    def told() -> list[dict[str, Any]]:
        return [json.loads(p) for topic, p, _ in listener.messages if topic == "watchkeeper/watch/bare" and p]

    [first, *_] = wait_for(told)
    assert first["not_watched"][0] | {"since_t": 0} == {
        "detector": "gps_imu", "since_t": 0, "reason": "no_imu", "say": "it sends no IMU",
    }  # fmt: skip
    assert "silence" in first["watched"]
    assert describe(app.app.pipeline, Scores(100), "bare")["coverage"]["not_watched"][0]["reason"] == "no_imu"

    listener.fixes("other", 1046, 1130)
    wait_for(lambda: [p for topic, p, _ in listener.messages if topic == "watchkeeper/watch/bare"][-1] == b"")
    ended = [a for a in listener.alarms("cleared") if a["subjects"] == ["bare"] and a["kind"] == "watch"]
    assert [a["ended"] for a in ended] == ["forgotten"]
