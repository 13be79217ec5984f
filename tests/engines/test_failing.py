"""A detector that fails in several operators: one alarm, which ends when the last of them is well again."""

from __future__ import annotations

import msgspec

from watchkeeper.config.schema import Config
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, UPDATED, AlarmEvent
from watchkeeper.engines.merge import Merge
from watchkeeper.engines.steps import Answer, Clock, Told

RAISE = AlarmEvent(
    id="a", kind="watch", state=RAISED, severity="warning", subjects=("detector", "gps_imu"), t=1.0, t_onset=1.0,
    t_raised=1.0, t_cleared=None, score=1.0, threshold=1.0, evidence={"causes": ["failed"], "detail": "it raised"},
)  # fmt: skip


def at(merge: Merge, tick: int, *events: AlarmEvent | None) -> list[AlarmEvent]:
    """What each operator says at one tick; None: nothing."""
    answers = [Answer([] if event is None else [Told(tick, [event])]) for event in events]
    return merge.take([Clock(first=1 if tick == 1 else None, tick=tick)], [answers])


def test_one_alarm_until_the_last_is_well() -> None:
    merge = Merge(Config())
    again = msgspec.structs.replace(RAISE, id="b", t=2.0, t_onset=2.0, t_raised=2.0)
    end = msgspec.structs.replace(RAISE, state=CLEARED, t=3.0, t_cleared=3.0, ended="cause_gone")
    assert [(e.id, e.state) for e in at(merge, 1, RAISE, None)] == [("a", RAISED)]
    assert [(e.id, e.state) for e in at(merge, 2, None, again)] == [("a", UPDATED)]
    assert at(merge, 3, end, None) == []
    moved = Merge(Config())
    moved.load(merge.dump())
    assert [(e.id, e.state) for e in at(moved, 4, None, msgspec.structs.replace(end, id="b", t=4.0))] == [
        ("a", CLEARED)
    ]
    assert not moved.book.active
