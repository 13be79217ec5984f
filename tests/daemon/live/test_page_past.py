"""The past on the live page, in a real browser: a replay that is over is searched, opened, and handed on as a link."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE_S

from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.simulate import simulate

SECONDS = 240.0
DESKTOP = {"width": 1440, "height": 900}
# The numbers of the opened alarm's evidence as they are on the screen: what is measured, and the exact value.
EVIDENCE = """() => Object.fromEntries([...document.querySelectorAll('.alarm.chosen .facts div')]
  .filter((line) => line.querySelector('dd').title !== '')
  .map((line) => [line.querySelector('dt').title.match(/\\((\\w+)\\)$/)?.[1] ?? line.querySelector('dt').textContent,
    Number(line.querySelector('dd').title)]))"""
VIEW = """() => ({
  t: watchkeeper.timeline.paused, clock: document.getElementById('clock').textContent, chosen: watchkeeper.chosen,
  selected: watchkeeper.selected, rows: [...document.querySelectorAll('.alarm')].map((row) => row.dataset.id),
  search: document.getElementById('q').value,
  place: ['x', 'y'].map((axis) => Math.round(watchkeeper.map.view[axis] / 100)),
  scale: watchkeeper.map.view.scale.toPrecision(3),
})"""


@dataclass(frozen=True, slots=True)
class Recording:
    """A replay with a page, whose log has been read to its end, and the alarm file that it wrote."""

    url: str
    events: list[dict[str, Any]]

    def last_event(self, alarm: str, t: float) -> dict[str, Any]:
        """What the alarm file says of an alarm at a moment."""
        return [event for event in self.events if event["id"] == alarm and event["t"] <= t][-1]

    def raised_in_minute(self, minute: int) -> dict[str, Any]:
        """The last alarm that was raised in this minute of the log, counted from one."""
        first_t = self.events[0]["t_onset"] // 100 * 100
        begin_t = first_t + 60.0 * (minute - 1)
        raised = [event for event in self.events if event["state"] == "raised"]
        return [event for event in raised if begin_t <= event["t"] < begin_t + 60.0][-1]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    folder = tmp_path_factory.mktemp("past")
    with LogWriter(folder / "traffic.wklog") as log:
        for batch in simulate("random", seed=5, vehicles=60, seconds=SECONDS).batches():
            log.write(batch)
    command = [sys.executable, "-m", "watchkeeper.daemon.cli", "replay", "traffic.wklog", "--http", "0"]
    command += ["--speed", "max", "--alarms", "alarms.jsonl"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder)
    assert process.stderr is not None
    url = next(found[1] for line in process.stderr if (found := re.search(r"look at it: (\S+)", line)))
    try:
        yield Recording(url, wait_for_the_end(folder / "alarms.jsonl"))
    finally:
        process.terminate()
        process.wait(30)


def wait_for_the_end(file: Path) -> list[dict[str, Any]]:
    """All alarm events, once no more of them come: every alarm of this log ends."""
    end = time.monotonic() + PATIENCE_S
    while True:
        events = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        states = {event["id"]: event["state"] for event in events}
        if len(states) >= 6 and set(states.values()) == {"cleared"}:
            return events
        assert time.monotonic() < end, states
        time.sleep(0.1)


class Tab:
    """A page of its own context, with everything that it complained about."""

    def __init__(self, browser: Any, url: str) -> None:
        self.context = browser.new_context(viewport=DESKTOP, reduced_motion="reduce")
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(url)

    def see(self, expression: str, what: Callable[[Any], bool] = bool) -> Any:
        """The first value of this expression that is as wanted."""
        end = time.monotonic() + PATIENCE_S
        while not what(found := self.page.evaluate(expression)):
            assert time.monotonic() < end, f"{expression}: {found!r} {self.complaints}"
            time.sleep(0.05)
        return found

    def at(self, t: float) -> None:
        """Wait until picture and alarms of this moment are shown."""
        self.see(f"watchkeeper.past.t === {t} && watchkeeper.fleet.picture?.t === {t}")


@pytest.fixture
def tab(browser: Any, recording: Recording) -> Iterator[Callable[..., Tab]]:
    opened: list[Tab] = []

    def start(url: str = "") -> Tab:
        opened.append(Tab(browser, url or recording.url))
        opened[-1].see("window.watchkeeper?.playback.state !== null && window.watchkeeper.timeline.known !== null")
        return opened[-1]

    yield start
    for each in opened:
        each.context.close()
        assert each.complaints == []


def test_an_alarm_of_minute_two_is_found_opened_and_handed_on_after_the_replays_end(
    tab: Any, recording: Recording
) -> None:
    wanted = recording.raised_in_minute(2)
    one = tab()
    one.see("watchkeeper.playback.ended()")
    one.page.keyboard.press("s")
    one.page.keyboard.type(wanted["subjects"][0])
    # both alarms about it, the newest first
    about = {event["id"] for event in recording.events if wanted["subjects"][0] in event["subjects"]}
    one.see("[...document.querySelectorAll('.alarm')].map((row) => row.dataset.id)", lambda ids: set(ids) == about)
    one.page.locator(f'.alarm[data-id="{wanted["id"]}"] .open').click()
    one.at(wanted["t_raised"])
    shown = one.see(EVIDENCE, lambda found: "score" in found)
    told = recording.last_event(wanted["id"], wanted["t_raised"])
    assert told["state"] == "raised"
    numbers = {name: value for name, value in told["evidence"].items() if isinstance(value, int | float)}
    assert shown == {"score": told["score"], "threshold": told["threshold"], **numbers}

    # a moment later the evidence is that of then, and not what the alarm said in the end
    later_t = wanted["t_raised"] + 10.0
    one.page.keyboard.press(".")
    one.page.keyboard.press(".")
    one.at(later_t)
    then = recording.last_event(wanted["id"], later_t)
    assert then["t"] > told["t"]
    one.see(EVIDENCE, lambda found: found.get("score") == then["score"])

    one.page.locator(".alarm.chosen button", has_text="Copy link").click()
    one.see("document.querySelector('.alarm.chosen .small.done') !== null")
    link = one.page.evaluate("navigator.clipboard.readText()")
    view = one.page.evaluate(VIEW)
    other = tab(link)
    other.at(later_t)
    assert other.see(VIEW, lambda found: found == view)["t"] == later_t
    assert other.page.evaluate(EVIDENCE) == one.page.evaluate(EVIDENCE)

    # back: to the moment before, and to the search before that
    one.page.go_back()
    one.see("watchkeeper.timeline.paused === null || watchkeeper.chosen === null || watchkeeper.selected === null")
    one.page.go_forward()
    one.see(VIEW, lambda found: found["chosen"] == wanted["id"])


def test_a_reload_of_a_moment_loses_nothing(tab: Any, recording: Recording) -> None:
    wanted = recording.raised_in_minute(1)
    page = tab()
    page.page.evaluate(f"watchkeeper.timeline.show({wanted['t_raised']}, {{push: true}})")
    page.at(wanted["t_raised"])
    page.see(f"document.querySelector('.alarm[data-id=\"{wanted['id']}\"]') !== null")
    before = page.see(VIEW)
    page.see("location.hash.includes('t=')")
    page.page.reload()
    page.see("window.watchkeeper !== undefined")
    page.at(wanted["t_raised"])
    page.see(VIEW, lambda found: found == before)


def test_a_replay_is_moved_played_and_paused_and_nobody_looks_silent_at_sixty_times(
    tab: Any, recording: Recording
) -> None:
    page = tab()
    first = recording.events[0]["t_onset"]
    page.page.locator("#speed").select_option("60")
    page.see("watchkeeper.playback.state.speed === 60")
    page.page.evaluate(f"watchkeeper.playback.play({first} + 20)")
    # it goes on by itself, a minute in a second, and everybody is heard
    page.see("watchkeeper.timeline.paused === null && watchkeeper.newest.t", lambda t: t and t > first + 60)
    silent = page.page.evaluate("""() => {
      const {fleet} = watchkeeper, t = watchkeeper.now();
      return [...Array(fleet.rows).keys()].filter((row) => fleet.silence(row, t) > 6).length;
    }""")
    assert silent <= 0.1 * page.page.evaluate("watchkeeper.fleet.rows")
    page.page.keyboard.press("Space")
    page.see("document.body.classList.contains('paused') && watchkeeper.playback.state.paused")
    page.page.keyboard.press("Home")
    page.see("watchkeeper.past.t === watchkeeper.timeline.extent()[0]")
    page.page.keyboard.press("End")
    page.see("watchkeeper.playback.ended() && watchkeeper.timeline.paused === null")


def test_the_figure_of_a_chart_is_that_of_the_moment_shown(tab: Any) -> None:
    """It was the last one of the chart, which goes on behind the moment."""
    found = tab().page.evaluate(
        """async () => {
          const { valueAt } = await import('/page/charts.js');
          const [t, v] = [[1, 2, 3, 4, 5], [10, 20, null, NaN, 50]];
          return [0, 1, 2.5, 3, 4.5, 5, Infinity].map((moment) => valueAt(t, v, moment));
        }"""
    )
    assert found == [None, 10, 20, 20, 20, 50, 50]
