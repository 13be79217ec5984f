"""A flood of malformed payloads among good ones: every good one is judged, every bad one is counted by its reason."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec
import psutil
import pytest

from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.codec.decode import Decoder
from watchkeeper.streams.messages import Drop

GOOD = {"lat": 50.0, "lon": 8.0, "alt_ft": 3e4, "gs_kt": 400, "trk_deg": 10, "vs_fpm": 0}
Bad = tuple[str, bytes, set[str]]


def bad_payload(rng: random.Random, t: float) -> Bad:
    """A malformed message: topic, payload, and the reasons that would be right to give."""
    topic = f"telemetry/adsb/x{rng.randrange(50)}"
    message = {"t": t, **GOOD}
    whole = json.dumps(message).encode()
    pack = msgspec.msgpack.encode
    makers: list[Callable[[], Bad]] = [
        lambda: (topic, whole[: rng.randrange(1, len(whole))], {Drop.SYNTAX}),
        lambda: (topic, pack(message)[: rng.randrange(1, 60)], {Drop.SYNTAX}),
        lambda: (topic, json.dumps({**message, "lat": "north"}).encode(), {Drop.TYPE}),
        lambda: (topic, json.dumps({**message, "t": [1]}).encode(), {Drop.TYPE}),
        lambda: (topic, pack({**message, "lon": math.nan}), {Drop.MISSING}),
        lambda: (topic, pack({**message, "t": math.nan}), {Drop.TIME}),
        lambda: (topic, pack({**message, "gs_kt": math.inf}), {Drop.FINITE}),
        lambda: (topic, json.dumps({**message, "lat": rng.uniform(91, 1e9)}).encode(), {Drop.RANGE}),
        lambda: (topic, b'{"t":1,"x":' + b"[" * 3000 + b"]" * 3000 + b"}", {Drop.DEPTH}),
        lambda: (topic, b'{"t":1,"x":"' + b"a" * 1_000_000 + b'"}', {Drop.SIZE}),
        lambda: (topic, json.dumps({**message, "t": t + rng.uniform(1e3, 1e8)}).encode(), {Drop.TIME_JUMP, Drop.CLOCK}),
        lambda: (topic, json.dumps({**message, "t": rng.uniform(0, t - 1e4)}).encode(), {Drop.TIME_JUMP, Drop.CLOCK}),
        lambda: (topic, json.dumps({**message, "t": t - rng.uniform(3, 25)}).encode(), {Drop.LATE, Drop.CLOCK}),
        lambda: (f"telemetry/{rng.choice(['sonar', 'adsb/a/b', '', 'ADSB/x'])}", whole, {Drop.TOPIC}),
        lambda: (topic, rng.randbytes(rng.randrange(0, 200)), {Drop.SYNTAX, Drop.TYPE, Drop.MISSING}),
        lambda: ("telemetry/adsb", pack({"id": ["a", "b"], "t": t, "lat": b"\0" * 7, "lon": b"\0" * 16}), {Drop.FRAME}),
    ]
    return rng.choice(makers)()


def flood(bad: int, seed: int) -> Iterator[tuple[bool, str, bytes, set[str]]]:
    """Bad messages with a good one after each; time goes on at a hundred good ones a second."""
    rng = random.Random(seed)
    t = 1_700_000_000.0
    for i in range(bad):
        yield False, *bad_payload(rng, t)
        t += 0.01
        yield True, f"telemetry/adsb/good{i % 20}", json.dumps({"t": round(t, 3), **GOOD}).encode(), set()


def run_flood(bad: int, seed: int) -> None:
    reasons: Counter[str] = Counter()
    decoder = Decoder(Config().topics, Config().limits, lambda _topic, reason, _payload: reasons.update([reason]))
    pipeline = Pipeline(Config(fleet=FleetLimits(max_vehicles=200)))
    wanted: list[set[str]] = []
    good = 0
    process = psutil.Process()
    memory: list[int] = []
    for i, (is_good, topic, payload, right) in enumerate(flood(bad, seed)):
        decoder.add(topic, payload)
        good += is_good
        if not is_good:
            wanted.append(right)
        if i % 500 == 499:
            pipeline.feed(decoder.take())
            if i > bad // 2:
                memory.append(process.memory_info().rss)
    if (batch := decoder.take()) is not None:
        pipeline.feed(batch)
    pipeline.finish()
    counted = reasons.copy()
    for (_, reason), n in pipeline.drops.items():
        counted[reason] += n
    assert pipeline.samples["adsb"] == good
    assert sum(counted.values()) == bad
    # those with one right reason are counted under it, at least as often as they were sent
    certain = Counter(next(iter(right)) for right in wanted if len(right) == 1)
    assert all(counted[reason] >= n for reason, n in certain.items())
    # what earlier tests leave is given back at any time: only growth counts
    assert max(memory) - memory[0] < 20e6


def test_five_thousand_malformed_payloads_among_good_ones() -> None:
    run_flood(5_000, seed=1)


@pytest.mark.long
def test_a_hundred_thousand_malformed_payloads_among_good_ones() -> None:
    run_flood(100_000, seed=2)


@pytest.mark.long
def test_a_hundred_thousand_malformed_payloads_over_a_real_broker(
    broker: Any, listener: Any, daemon: Any, wait_for: Any, tmp_path: Any
) -> None:
    config = tmp_path / "wk.toml"
    config.write_text(
        f'[broker]\nurl = "{broker.url}"\nclient_id = "flood"\n[http]\nport = 0\n'
        f'[sinks]\nterminal = false\nstate_dir = "{tmp_path / "state"}"\n[time]\nidle_timeout_s = 3600.0\n'
    )
    process = daemon(config)
    wait_for(lambda: "connected to the broker" in process.log)

    def caught_up(sent: int) -> bool:
        return process.figure("watchkeeper_messages_total") >= sent and process.figure("watchkeeper_queue_depth") == 0

    bad, memory = 100_000, []
    running = psutil.Process(process.process.pid)
    for sent, (_, topic, payload, _) in enumerate(flood(bad, seed=3), 1):
        listener._client.publish(topic, payload, qos=1)
        if sent % 5_000 == 0:
            wait_for(partial(caught_up, sent), 120.0)
            memory.append(running.memory_info().rss)
    adsb = 'watchkeeper_samples_total{stream="adsb"}'
    wait_for(lambda: process.figure(adsb) + process.figure("watchkeeper_drops_total{") >= 2 * bad)
    accepted, dropped = process.figure(adsb), process.figure("watchkeeper_drops_total{")
    assert accepted + dropped == 2 * bad
    # as many good ones as bad ones; of those whose time is wrong one or another may come when it is right
    assert bad <= accepted <= bad + 5
    process.end()
    settled = memory[len(memory) // 2 :]
    assert max(settled) - min(settled) < 30e6
