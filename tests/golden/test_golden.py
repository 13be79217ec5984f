"""Replays whose alarms must not change unnoticed. `python tests/golden/test_golden.py` writes the files anew.

Times, ids, kinds and states are compared to the letter; numbers to a millionth, because another processor may
round the last bit of a sine differently.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from watchkeeper.config.schema import Config, FleetLimits
from watchkeeper.detectors.alarms import encode_event
from watchkeeper.detectors.pipeline import Pipeline
from watchkeeper.streams.simulate import simulate

HERE = Path(__file__).parent
# File to (scenario, seed, seconds): everything that raises an alarm, in a few kilobytes each.
GOLDEN: dict[str, tuple[str, int, float]] = {
    "demo": ("demo", 7, 60.0),
    "vertical": ("vertical", 1, 240.0),
    "overtaking": ("overtaking", 1, 240.0),
    "formation": ("formation", 1, 60.0),
}


def alarms(name: str) -> list[bytes]:
    """The events of one golden replay."""
    scenario, seed, seconds = GOLDEN[name]
    pipeline = Pipeline(Config(fleet=FleetLimits(max_vehicles=100)))
    events = [e for batch in simulate(scenario, seed=seed, seconds=seconds).batches() for e in pipeline.feed(batch)]
    return [encode_event(e) for e in events + pipeline.finish()]


def close(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, float) and isinstance(b, float):
        return a == pytest.approx(b, rel=1e-6, abs=2e-4)
    return bool(a == b)


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_alarms_are_what_they_were(name: str) -> None:
    expected = [msgspec.json.decode(line) for line in (HERE / f"{name}.jsonl").read_bytes().splitlines()]
    found = [msgspec.json.decode(line) for line in alarms(name)]
    assert [(e["t"], e["kind"], e["state"], e["id"]) for e in found] == [
        (e["t"], e["kind"], e["state"], e["id"]) for e in expected
    ]
    for a, b in zip(found, expected, strict=True):
        assert close(a, b), (a, b)


if __name__ == "__main__":
    for golden in GOLDEN:
        (HERE / f"{golden}.jsonl").write_bytes(b"".join(line + b"\n" for line in alarms(golden)))
