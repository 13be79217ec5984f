"""What /readyz says is heard as alarms, after a while, and ends when it has ended; the clock is stepped."""

from __future__ import annotations

import msgspec

from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.troubles import CALM_S, SETTLE_S, Troubles, about_daemon
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.sentence import say


class Daemon:
    """Says what the test lets it say."""

    def __init__(self) -> None:
        self.config = DEFAULT
        self.reasons: list[str] = []
        self.warnings: list[str] = []
        self.troubles = Troubles(lambda: self.config, lambda: self.reasons, lambda: self.warnings, lambda _e, _t: None)
        self.t = 1000.0

    def play(self, seconds: float) -> list[AlarmEvent]:
        events: list[AlarmEvent] = []
        for _ in range(int(seconds)):
            self.t += 1.0
            events += self.troubles.step(self.t)
        return events


def test_a_full_disk_is_one_alarm_until_there_is_room_again() -> None:
    daemon = Daemon()
    daemon.reasons = ["journal no space left on device", "warming up"]
    events = daemon.play(SETTLE_S + 2)
    assert [(e.state, e.severity, e.subjects) for e in events] == [("raised", "warning", ("watchkeeper", "journal"))]
    assert about_daemon(events[0])
    assert say(events[0]).startswith("Watchkeeper: its journal is in trouble since ")
    assert say(events[0]).endswith(": journal no space left on device.")
    daemon.reasons = []
    assert daemon.play(CALM_S - 1) == []
    [ended] = daemon.play(3)
    assert (ended.id, ended.state, ended.ended) == (events[0].id, "cleared", "cause_gone")
    assert daemon.troubles.active == []


def test_a_short_outage_is_no_alarm_and_parts_are_told_apart() -> None:
    daemon = Daemon()
    daemon.reasons = ["not connected to the broker mqtt://127.0.0.1:1 refused"]
    assert daemon.play(SETTLE_S - 1) == []
    daemon.reasons = []
    assert daemon.play(20) == []
    daemon.warnings = ["hook: 500", "input: 96 % of telemetry/imu/q1 is refused (out_of_range), such as ''"]
    raised = daemon.play(SETTLE_S + 1)
    assert {(e.subjects[1], e.severity) for e in raised} == {("hook", "caution"), ("input", "caution")}


def test_an_alarm_goes_on_after_a_restart_or_ends_there() -> None:
    daemon = Daemon()
    daemon.reasons = ["journal gone"]
    [raised] = daemon.play(SETTLE_S + 1)
    again = Daemon()
    again.t = daemon.t
    again.troubles.adopt([raised])
    again.reasons = ["journal gone"]
    assert {e.state for e in again.play(30)} == {"updated"}
    again.reasons = []
    assert [(e.state, e.id) for e in again.play(CALM_S + 1)][-1] == ("cleared", raised.id)


def test_switched_off_nothing_is_raised_and_what_is_active_ends() -> None:
    daemon = Daemon()
    daemon.reasons = ["journal gone"]
    daemon.play(SETTLE_S + 1)
    replace = msgspec.structs.replace
    watch = replace(DEFAULT.detectors.watch, enabled=False)
    daemon.config = replace(DEFAULT, detectors=replace(DEFAULT.detectors, watch=watch))
    assert [e.state for e in daemon.play(CALM_S + 1)] == ["cleared"]
