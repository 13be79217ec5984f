"""A blind spot of each kind is named with its reason within a minute, and nobody else is; read from the golden replay.

Whether the replay still gives these bytes, live or restarted, is test_golden.py's matter.
"""

from __future__ import annotations

from golden.replays import HERE
from golden.test_golden import lines

from watchkeeper.streams.simulate.scenarios import T0

REASONS = {
    "wing-2": "no_imu",
    "quad-3": "units_force",
    "wing-4": "units_rate",
    "quad-5": "wrong_frame",
    "wing-6": "never_aligns",
}
WITHIN_S = 60.0


def test_each_blind_spot_is_named_with_its_reason_within_a_minute() -> None:
    events = [event for event in lines((HERE / "unwatched.jsonl").read_bytes()) if event["kind"] == "watch"]
    raised = {event["subjects"][0]: event for event in events if event["state"] == "raised"}
    assert {name: event["evidence"]["causes"] for name, event in raised.items()} == {
        name: [reason] for name, reason in REASONS.items()
    }
    assert max(event["t_raised"] for event in raised.values()) <= T0 + WITHIN_S
    assert [event for event in events if event["state"] == "cleared"] == []
