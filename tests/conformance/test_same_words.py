"""Every output shows the event's own sentence: nobody makes another one. All golden events, by the parts that make
lines, payloads and messages; tests/daemon/test_same_sentence.py has one alarm of each kind through a whole daemon.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import watchkeeper as wk
from watchkeeper.config.outputs import Alertmanager
from watchkeeper.daemon.outputs.alertmanager import AlertmanagerSink
from watchkeeper.daemon.outputs.notify.message import message
from watchkeeper.daemon.outputs.terminal import line_of
from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent, encode_event
from watchkeeper.detectors.catalog import kinds

GOLDEN = Path(__file__).parents[1] / "golden"
EVENTS = [
    AlarmEvent.of(line)
    for path in sorted(GOLDEN.glob("*.jsonl"))
    if path.name.count(".") == 1
    for line in path.read_bytes().splitlines()
]


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_the_sentence_is_the_same_everywhere(kind: str) -> None:
    for event in (event for event in EVENTS if event.kind == kind):
        assert event.say in line_of(event).plain
        # MQTT, journal, webhook, page and alarms file have these bytes
        assert msgspec.json.decode(encode_event(event))["say"] == event.say
        sink = AlertmanagerSink(Alertmanager(url="http://127.0.0.1:1"), "watch")
        assert sink._alert(event, event.state == CLEARED)["annotations"]["summary"] == event.say
        assert message([event], lambda _event: "", {}).body == event.say


def test_a_frame_of_alarms_has_the_sentence_of_each_last_event() -> None:
    alarms = wk.watch(wk.simulate("head-on", seed=1, seconds=240))
    assert alarms.to_frame("polars")["say"].to_list() == [alarm.say for alarm in alarms]
