"""The page is told for how long no message has come, also about the time in which no page was open."""

from __future__ import annotations

from typing import Any

from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.live import picture
from watchkeeper.daemon.live.view import Live, Totals, Watched
from watchkeeper.detectors.engine.pipeline import Pipeline


def test_what_hears_nothing_says_for_how_long() -> None:
    clock, messages = [1000.0], [0]
    live = Live(Watched(Pipeline(DEFAULT), "0", lambda: Totals(messages=messages[0])), 4, lambda: clock[0])

    def figures() -> dict[str, Any]:
        live.draw()
        assert live.picture is not None
        found: dict[str, Any] = picture.decode(live.picture.data)[0]["figures"]
        return found

    # a daemon to which nothing came since it started
    clock[0] += 50.0
    live.join()
    assert figures()["quiet_s"] == 50.0
    messages[0] += 1
    clock[0] += 1.0
    assert figures()["quiet_s"] == 0.0
    clock[0] += 40.0
    assert figures()["quiet_s"] == 40.0


def test_messages_that_came_while_no_page_was_open_count() -> None:
    clock, messages = [1000.0], [0]
    live = Live(Watched(Pipeline(DEFAULT), "0", lambda: Totals(messages=messages[0])), 4, lambda: clock[0])
    clock[0], messages[0] = 4600.0, 3600
    live.join()
    live.draw()
    assert live.picture is not None
    assert picture.decode(live.picture.data)[0]["figures"]["quiet_s"] == 0.0
