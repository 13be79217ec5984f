"""A person accepts a position that moved away, on the real daemon: the alarm ends, and a crash undoes nothing."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest
from waiting import PATIENCE_S

from watchkeeper.config.schema import DEFAULT
from watchkeeper.evaluation.attacks.flight import Flight, Stream
from watchkeeper.evaluation.attacks.scene import GPS
from watchkeeper.evaluation.protocol.feed import Variant, batches
from watchkeeper.evaluation.protocol.splits import Recipe, simulated
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.codec.encode import encode_batch

# No snapshot in the test's time: what a person did must be in the input log.
CONFIG = """
[broker]
url = "{url}"
client_id = "{name}"
reconnect_min_s = 0.05
[time]
lateness_s = 2
idle_timeout_s = 3600
[http]
port = 0
[fleet]
max_vehicles = 100
[diagnosis]
enabled = false
[sinks]
state_dir = "{state_dir}"
snapshot_s = 3600
terminal = false
"""
MOVED_T, ACCEPTED_T, END_T = 90.0, 190.0, 240.0
ALARM = "watchkeeper/alarm/gps_imu/0"


@pytest.fixture(scope="module")
def flight() -> Flight:
    """A flight whose position is 30 m off from MOVED_T on, for good."""
    clean = simulated("quad-5", Recipe(seed=5, seconds=int(END_T))).from_zero()
    data = clean.gps.data.copy()
    data[GPS["gps_x"]] += np.where(clean.gps.t >= MOVED_T, 30.0, 0.0)
    return replace(clean, gps=Stream(clean.gps.t, data))


def between(flight: Flight, start: float, stop: float) -> Iterator[Batch]:
    for batch in batches([Variant(flight)], strict=True):
        if start <= min(float(cols.t[0]) for cols in batch.kinds.values()) < stop:
            yield batch


@pytest.fixture
def watching(tmp_path: Path, broker: Any, daemon: Any, wait_for: Any) -> Callable[[], Any]:
    path = tmp_path / "watch.toml"
    path.write_text(CONFIG.format(url=broker.url, name=tmp_path.name, state_dir=tmp_path / "state"))

    def start() -> Any:
        running = daemon(path)
        wait_for(lambda: "url=" in running.log and running.figure("watchkeeper_ready ") == 1.0)
        return running

    return start


def send(listener: Any, running: Any, wait_for: Any, sent: Iterator[Batch]) -> None:
    before, n = running.figure("watchkeeper_samples_total"), 0
    for batch in sent:
        for topic, payload in encode_batch(batch, DEFAULT.topics):
            listener.send(topic, payload)
        n += len(batch)
    wait_for(lambda: running.figure("watchkeeper_samples_total") >= before + n)


def accept(running: Any, alarm: str, **body: str) -> tuple[int, str]:
    url = running.log.partition("url=")[2].split()[0]
    post = Request(f"{url}/alarms/{alarm}/accept", json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urlopen(post, timeout=PATIENCE_S) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_what_a_person_accepts_ends_the_alarm_and_a_crash_does_not_bring_it_back(
    flight: Flight, watching: Any, listener: Any, wait_for: Any, tmp_path: Path
) -> None:
    first = watching()
    send(listener, first, wait_for, between(flight, 0.0, MOVED_T + 10.0))
    [raised] = wait_for(lambda: [a for a in listener.alarms("raised") if a["kind"] == "gps_imu"])
    assert accept(first, "ffffffffffffffff")[0] == 404
    status, words = accept(first, raised["id"])
    assert (status, words) == (409, "the cause of this alarm goes on: only a state that lasts can be accepted\n")

    send(listener, first, wait_for, between(flight, MOVED_T + 10.0, ACCEPTED_T))
    wait_for(lambda: "not_reestablished" in listener.retained()[ALARM]["evidence"]["causes"])
    assert accept(first, raised["id"], of="tower")[0] == 400
    status, answer = accept(first, raised["id"], by="tower")
    assert (status, json.loads(answer)["ended"]) == (200, "accepted")
    [ended] = wait_for(lambda: [a for a in listener.alarms("cleared") if a["kind"] == "gps_imu"])
    assert (ended["id"], ended["ended"]) == (raised["id"], "accepted")
    assert "by=tower" in first.log
    assert accept(first, raised["id"])[0] == 404

    first.end(signal.SIGKILL)
    second = watching()
    send(listener, second, wait_for, between(flight, ACCEPTED_T, END_T))
    second.end()
    listener.catch_up()
    events = [a for a in listener.alarms() if a["kind"] == "gps_imu" and a["state"] != "updated"]
    assert [(a["id"], a["state"]) for a in events] == [(raised["id"], "raised"), (raised["id"], "cleared")]
    journal = [json.loads(line) for line in (tmp_path / "state" / "journal.jsonl").read_text().splitlines()]
    assert [a["ended"] for a in journal if a["kind"] == "gps_imu" and a["state"] == "cleared"] == ["accepted"]
    assert ALARM not in listener.retained()


def test_the_button_on_the_page_asks_once_more_and_then_ends_the_alarm(
    flight: Flight, watching: Any, listener: Any, wait_for: Any, browser: Any
) -> None:
    running = watching()
    page = browser.new_page()
    page.goto(running.log.partition("url=")[2].split()[0])
    send(listener, running, wait_for, between(flight, 0.0, MOVED_T + 10.0))
    row = page.locator(".alarm", has_text="gps imu")
    button = row.get_by_role("button", name="Accept the position as true and end the alarm: 0")
    row.wait_for()
    assert not button.is_visible()
    send(listener, running, wait_for, between(flight, MOVED_T + 10.0, ACCEPTED_T))
    button.wait_for(timeout=1000 * PATIENCE_S)
    button.click()
    assert button.text_content() == "Press again to end the alarm"
    assert listener.retained()[ALARM]["state"] != "cleared"
    button.click()
    page.locator(".alarm.cleared", has_text="accepted").wait_for(timeout=1000 * PATIENCE_S)
    assert not button.is_visible()
    assert page.locator("#say").text_content() == "accepted: the alarm has ended"
    wait_for(lambda: ALARM not in listener.retained())
