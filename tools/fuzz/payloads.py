"""Target: MQTT messages, damaged in topic and payload, through the decoder and a whole Pipeline.

A case is PER_CASE messages into a fresh decoder and pipeline, so that it can be run again by its number. Every message
is either taken or refused once with a reason of the closed set; every sample that was taken is judged or dropped with a
reason; no detector breaks down. Extreme but valid values are another fuzzer's work: here most messages are wrong.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import msgspec
import numpy as np

from tools.fuzz.mutate import mutated
from tools.fuzz.run import Case
from watchkeeper.config.loader import load
from watchkeeper.config.schema import Config
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.codec.decode import Decoder
from watchkeeper.streams.messages import Drop

PER_CASE = 200
T0 = 1_700_000_000.0
Message = tuple[str, bytes]


def _adsb(k: int) -> dict[str, object]:
    return {"t": T0 + k / 20, "lat": 50.0 + k / 1e4, "lon": 8.0, "alt_ft": 35_000, "gs_kt": 450.5, "trk_deg": 90.0,
            "vs_fpm": 0, "callsign": "BAW1", "nacp": 9, "on_ground": False, "via": "mast"}  # fmt: skip


def _gps(k: int) -> dict[str, object]:
    return {"t": T0 + k / 20, "gps_x": 1.0 * k, "gps_y": 2.0, "gps_z": 3.0, "gps_vx": 5.0, "gps_vy": 0.0, "gps_vz": 0.0,
            "fix": 3, "sats": 12, "eph": 1.5}  # fmt: skip


def _imu(k: int) -> dict[str, object]:
    return {"t": T0 + k / 20, **{f"imu_a{axis}": value for axis, value in zip("xyz", (0.1, 0.0, -9.8), strict=True)},
            **{f"imu_w{axis}": 0.01 for axis in "xyz"}}  # fmt: skip


def _frame(k: int) -> dict[str, object]:
    lat, lon = np.array([50.0, 51.0, 52.0]), np.array([8.0, 9.0, 10.0])
    return {"v": 1, "id": ["a", "b", "c"], "t": T0 + k / 20, "lat": lat.tobytes(), "lon": lon.tobytes(),
            "gs_kt": lat.astype("<f4").tobytes(), "via": ["m1", "m2", "m1"], "callsign": ["X", None, "Y"]}  # fmt: skip


def _list_frame(k: int) -> dict[str, object]:
    return {"v": 1, "id": ["a", "b"], "t": [T0 + k / 20] * 2, "lat": [50.0, None], "lon": [8.0, 9.0], "via": "m1"}


_MADE: tuple[tuple[str, Callable[[int], dict[str, object]]], ...] = (
    ("telemetry/adsb/4ca7b3", _adsb), ("telemetry/gps/d1", _gps), ("telemetry/imu/d1", _imu),
    ("telemetry/adsb", _frame), ("telemetry/adsb", _list_frame),
    ("telemetry/action/4ca7b3", lambda k: {"t": T0 + k / 20, "heading_delta_deg": 10.0, "speed_delta_kt": 0.0}),
    ("telemetry/route/4ca7b3", lambda k: {"t": T0 + k / 20, "lat": 51.0, "lon": 9.0, "reached": True}),
    ("telemetry/link/mast", lambda k: {"t": T0 + k / 20, "rtt_s": 0.02, "load": 0.3}),
)  # fmt: skip
_TOPICS = [topic.encode() for topic, _ in _MADE]


def _message(draw: random.Random, k: int) -> Message:
    topic, make = draw.choice(_MADE)
    content = make(k)
    as_json = draw.random() < 0.5 and not any(isinstance(value, bytes) for value in content.values())
    payload = msgspec.json.encode(content) if as_json else msgspec.msgpack.encode(content)
    if draw.random() < 0.15:
        topic = mutated(draw, _TOPICS)[:200].decode("utf-8", "replace")
    return topic, mutated(draw, [payload]) if draw.random() < 0.8 else payload


def payload_target() -> Case:
    """Cases of the whole way from the network to alarms."""
    sizes = {
        "fleet": {"max_vehicles": 40},
        "limits": {"max_gateways": 16},
        "detectors": {"conflict": {"max_pairs": 100}},
    }
    config = load(None, env={}, overrides=sizes)
    _case(random.Random(0), config)  # compiles
    return lambda draw: _case(draw, config)


def _case(draw: random.Random, config: Config) -> str:
    refused: Counter[str] = Counter()

    def on_bad(_topic: str, reason: str, _payload: bytes) -> None:
        refused[reason] += 1

    decoder, pipeline = Decoder(config.topics, config.limits, on_bad), Pipeline(config)
    fed = 0
    for k in range(PER_CASE):
        topic, payload = _message(draw, k)
        before, bad = decoder.pending, refused.total()
        decoder.add(topic, payload)
        assert (decoder.pending > before) != (refused.total() > bad), f"taken and refused, or neither: {topic}"
        if draw.random() < 0.3:
            fed += _feed(decoder, pipeline, refused)
    fed += _feed(decoder, pipeline, refused)
    pipeline.finish()
    assert set(refused) <= set(Drop.ALL), refused
    dropped = sum(n for (_, reason), n in pipeline.drops.items() if reason != Drop.DUPLICATE)
    assert pipeline.samples.total() + dropped == fed, (pipeline.samples, pipeline.drops, fed)
    assert not pipeline.guard.failures().total(), pipeline.guard.failures()
    return "part" if refused else "read"


def _feed(decoder: Decoder, pipeline: Pipeline, refused: Counter[str]) -> int:
    waiting, bad = decoder.pending, refused.total()
    batch = decoder.take()
    taken = 0 if batch is None else len(batch)
    assert taken + refused.total() - bad == waiting, "samples that were neither taken nor refused"
    if batch is not None:
        pipeline.feed(batch)
    return taken


TARGETS = {"payloads": payload_target}
