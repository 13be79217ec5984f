"""link: slow, lossy and thin links are told apart, and a healthy one is left alone."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.link.detector import LinkDetector
from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.messages import Kind

T0 = 1000.0
RATE = 20


def run(seconds: int, change: dict[str, float], from_s: int = 60, *, seed: int = 1) -> list[AlarmEvent]:
    """IMU of one still vehicle at 20 Hz with a link report a second; from `from_s` on something changes."""
    rng = np.random.default_rng(seed)
    pipeline, events = Pipeline(DEFAULT), []
    for s in range(seconds):
        on = s >= from_s
        t = T0 + s + np.arange(RATE) / RATE + rng.uniform(0.0, 0.005, RATE)
        keep = np.ones(RATE, bool)
        if on and "loss" in change:
            keep = rng.random(RATE) >= change["loss"]
        if on and "rate" in change:
            keep = np.arange(RATE) % round(1 / change["rate"]) == 0
        if on and "stop" in change:
            keep[:] = False
        latency = (
            change.get("clock", 0.0) * -1 + 5.0 + rng.normal(0, 0.01) + (change.get("latency", 0.0) if on else 0.0)
        )
        t = t[keep]
        still = {f"imu_{a}": np.zeros(len(t)) for a in ("ax", "ay", "az", "wx", "wy", "wz")}
        kinds = {}
        if len(t):
            kinds[Kind.IMU] = columns_of(Kind.IMU, np.zeros(len(t), np.int32), t, still)
            at, values = np.array([t[-1]]), {"latency_s": np.array([latency])}
            kinds[Kind.LINK] = columns_of(Kind.LINK, np.zeros(1, np.int32), at, values, seq=np.array([len(t)]))
        # somebody else keeps time going
        other = T0 + s + np.array([0.5, 0.99])
        seq = len(t) + 1 + np.arange(2)
        zero = {"heading_delta_deg": np.zeros(2), "speed_delta_kt": np.zeros(2)}
        kinds[Kind.ACTION] = columns_of(Kind.ACTION, np.ones(2, np.int32), other, zero, seq=seq)
        events += pipeline.feed(Batch(["a", "clock"], kinds))
    return [e for e in events if e.kind == "link"]


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"latency": 0.4}, "latency"),
        ({"latency": -0.4}, "early"),
        ({"loss": 0.5}, "imu_loss"),
        ({"rate": 0.25}, "imu_rate"),
    ],
)
def test_each_change_has_its_name(change: dict[str, float], cause: str) -> None:
    events = run(85, change)
    assert [e.state for e in events[:1]] == ["raised"]
    assert events[0].evidence["causes"] == [cause]
    # within the window and the three epochs of the debounce
    assert 60.0 <= events[0].t - T0 <= 60.0 + 13.0
    assert events[0].subjects == ("a",)


def test_numbers_say_how_much() -> None:
    late = run(80, {"latency": 0.4})[-1].evidence
    assert late["latency_excess_s"] == pytest.approx(0.4, abs=0.05)
    thin = run(90, {"rate": 0.25})[-1].evidence
    assert thin["rate_ratio"] == pytest.approx(0.25, abs=0.05)


@pytest.mark.parametrize("change", [{}, {"clock": 300.0}, {"stop": 1.0}, {"loss": 0.05}, {"latency": 0.05}])
def test_what_is_usual_small_or_silent_is_no_link_alarm(change: dict[str, float]) -> None:
    assert run(90, change) == []


def test_an_alarm_clears_when_the_link_recovers() -> None:
    rng = np.random.default_rng(2)
    pipeline, events = Pipeline(DEFAULT), []
    for s in range(120):
        latency = 0.1 + rng.normal(0, 0.01) + (0.5 if 60 <= s < 80 else 0.0)
        t = T0 + s + np.arange(RATE) / RATE
        still = {f"imu_{a}": np.zeros(RATE) for a in ("ax", "ay", "az", "wx", "wy", "wz")}
        link = columns_of(
            Kind.LINK, np.zeros(1, np.int32), t[-1:], {"latency_s": np.array([latency])}, seq=np.array([RATE])
        )
        kinds = {Kind.IMU: columns_of(Kind.IMU, np.zeros(RATE, np.int32), t, still), Kind.LINK: link}
        events += pipeline.feed(Batch(["a"], kinds))
    states = [(e.state, e.t - T0) for e in events if e.kind == "link" and e.state != "updated"]
    assert [state for state, _ in states] == ["raised", "cleared"]
    assert states[0][1] < 66.0
    assert 80.0 < states[1][1] < 90.0


def test_a_vehicle_that_comes_between_two_looks_has_no_rate_yet(bench):
    # ticks of 50 ms, bins of a second: the diagnosis may ask at any tick
    quick = msgspec.structs.replace(DEFAULT, time=msgspec.structs.replace(DEFAULT.time, tick_s=0.05))
    scene = bench(LinkDetector, quick)
    for k in range(1, 45):
        names = ["a"] if k < 43 else ["a", "b"]
        t = 0.05 * k
        scene.tick(t, gps=[{"id": name, "t": t, "gps_x": 0.0, "gps_y": 0.0} for name in names])
    assert scene.detector.stats.rate_ratio().shape == (2, 2)
    assert np.isnan(scene.detector.stats.rate_ratio()[:, 1]).all()


def test_short_ticks_give_the_same_verdict_as_long_ones(bench):
    def worst(tick_s: float) -> list[float]:
        config = msgspec.structs.replace(DEFAULT, time=msgspec.structs.replace(DEFAULT.time, tick_s=tick_s))
        scene, found = bench(LinkDetector, config), []
        for k in range(1, round(80 / tick_s) + 1):
            t = k * tick_s
            # five a second, in the middle of the shorter ticks; from 50 s on two of three are lost
            numbers = range(round(5 * (t - tick_s)) + 1, round(5 * t) + 1)
            heard = [0.2 * i - 0.1 for i in numbers if i <= 250 or i % 3 == 0]
            rows = [{"id": "a", "t": x, "gps_x": 0.0, "gps_y": 0.0} for x in heard]
            evidence = scene.tick(t, **({"gps": rows} if rows else {}))
            found += [round(float(e.score[0]), 6) for e in evidence]
        return found

    short, long = worst(0.2), worst(1.0)
    # with short ticks the first interval is known a second earlier; from then on second by second the same
    assert short[-40:] == pytest.approx(long[-40:], abs=0.01)
    assert max(long) > 1.0 > min(long[-40:])
