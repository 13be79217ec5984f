"""A live source that delivers nothing, or whose input is refused, is said in words; the clock is stepped."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from watchkeeper.config.loader import load
from watchkeeper.daemon.app import App
from watchkeeper.daemon.intake.refusals import WINDOW_S
from watchkeeper.daemon.intake.source_health import SourceHealth
from watchkeeper.daemon.intake.sources import LiveSource
from watchkeeper.streams.adapters.catalog import make_feed

URL = "http://name:word@host/aircraft.json"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_source_that_is_not_there_is_said_after_a_while_and_until_it_delivers() -> None:
    clock = Clock()
    health = SourceHealth(URL, clock)
    health.lost("connection refused")
    assert health.health() == []
    clock.now = WINDOW_S
    assert health.health() == ["source http://(hidden)@host/aircraft.json delivers nothing: connection refused"]
    health.connected()
    assert health.health() == []


def test_most_input_refused_is_said_with_an_example_and_logged_at_both_ends(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    health = SourceHealth("tcp://host:30003", clock)
    health.connected()
    with caplog.at_level(logging.INFO):
        health.took(4)
        for _ in range(96):
            health.refused(1, "malformed", b"GET / HTTP/1.1")
        assert health.health() == []
        clock.now = WINDOW_S
        [said] = health.health()
        assert said == (
            "source tcp://host:30003: 96% of its messages are refused (malformed), such as in 'GET / HTTP/1.1'"
        )
        health.took(100)
        health.refused(5, "malformed", b"x")
        clock.now = 2 * WINDOW_S
        assert health.health() == []
    assert [record.message for record in caplog.records] == [
        "most input of a source is refused", "input of a source is taken again",
    ]  # fmt: skip


def test_readyz_and_the_alarms_about_the_daemon_say_it(tmp_path: Path) -> None:
    overrides = {
        "sources": [{"type": "sbs", "url": "tcp://127.0.0.1:1"}], "sinks": {"state_dir": str(tmp_path)},
        "fleet": {"max_vehicles": 10}, "http": {"enabled": False},
    }  # fmt: skip
    app = App(load(None, env={}, overrides=overrides))
    try:
        [live] = app.sources
        clock = Clock()
        live.health = SourceHealth(live.source.url, clock)
        garbage(live)
        clock.now = WINDOW_S
        said = next(said for said in app.condition.warnings() if said.startswith("source"))
        assert "100% of its messages are refused" in said
        app.troubles.step(0.0)
        [raised] = [event for event in app.troubles.step(60.0) if event.subjects == ("watchkeeper", "source")]
        assert raised.kind == "watch"
        assert "nonsense" in raised.evidence["detail"]
    finally:
        app.close()


def garbage(live: LiveSource) -> None:
    """What a source takes in when something else is at its port."""
    live.health.connected()
    live._take_in(make_feed(live.source), b"nonsense\r\n" * 50)
