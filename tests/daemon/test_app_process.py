"""`watchkeeper run` as a process: signals, crashes, and two of them."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from waiting import PATIENCE_S

from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.daemon.state.checked import read_slots
from watchkeeper.detectors.alarms.events import AlarmEvent

ALARM = "watchkeeper/alarm/silence/quiet"
MESSAGES = 22
# The daemon allows itself six seconds to deliver what it has; a supervisor's usual limit is ninety.
ENDED_WITHIN_S = 30.0

CONFIG = """
[broker]
url = "{url}"
client_id = "{name}"
reconnect_min_s = 0.05
[time]
lateness_s = {lateness_s}
idle_timeout_s = 3600
[http]
port = 0
[fleet]
max_vehicles = 100
[detectors.conflict]
max_pairs = 1000
[detectors.silence]
factor = 2
min_silence_s = {min_silence_s}
[detectors.watch]
enabled = false
[diagnosis]
enabled = false
[sinks]
state_dir = "{state_dir}"
snapshot_s = 1
"""


@pytest.fixture
def write(tmp_path: Path, broker: Any) -> Callable[..., Path]:
    """Writes the daemon's configuration file; `extra` is added at the end."""

    def make(extra: str = "", *, lateness_s: float = 0.0, min_silence_s: float = 3.0) -> Path:
        text = CONFIG.format(
            url=broker.url, name=tmp_path.name, state_dir=tmp_path / "state", lateness_s=lateness_s,
            min_silence_s=min_silence_s,
        )  # fmt: skip
        path = tmp_path / "wk.toml"
        path.write_text(text + extra)
        return path

    return make


@pytest.fixture
def run(daemon: Any, wait_for: Any) -> Callable[..., Any]:
    """Starts a daemon and waits until it is connected."""

    def start(config: Path) -> Any:
        process = daemon(config)
        wait_for(lambda: "connected to the broker" in process.log or process.process.poll() is not None)
        assert process.process.poll() is None, process.log
        return process

    return start


def raise_silence(listener: Any) -> None:
    """MESSAGES fixes of two drones."""
    listener.fixes("quiet", 100, 105)
    listener.fixes("busy", 100, 115)


def test_sigterm_keeps_everything_that_has_arrived_for_the_next_run_and_exits_0(
    listener: Any, write: Any, run: Any, wait_for: Any, tmp_path: Path
) -> None:
    # nothing is judged while running: every tick waits a minute for stragglers
    process = run(write(lateness_s=60.0))
    raise_silence(listener)
    wait_for(lambda: process.figure("watchkeeper_messages_total") == MESSAGES)
    began = time.monotonic()
    assert process.end(signal.SIGTERM) == 0
    assert time.monotonic() - began < ENDED_WITHIN_S
    listener.catch_up()
    # a stop is no reason to judge without the stragglers
    assert not listener.alarms()
    assert listener.status()["state"] == "offline"
    assert (tmp_path / "state" / "snapshot.msgpack").exists()

    process = run(write(lateness_s=60.0))
    listener.fixes("busy", 116, 190)
    [alarm] = wait_for(lambda: listener.alarms("raised"))
    assert (alarm["subjects"], alarm["t"] < 116) == (["quiet"], True)
    assert process.end() == 0
    assert "RAISED" in process.process.stdout.read()


def test_sigterm_without_a_state_directory_judges_everything_that_has_arrived(
    listener: Any, write: Any, run: Any, wait_for: Any, tmp_path: Path
) -> None:
    config = write(lateness_s=60.0)
    config.write_text(config.read_text().replace(str(tmp_path / "state"), ""))
    process = run(config)
    raise_silence(listener)
    wait_for(lambda: process.figure("watchkeeper_messages_total") == MESSAGES)
    assert process.end(signal.SIGTERM) == 0
    listener.catch_up()
    [alarm] = listener.alarms("raised")
    assert alarm["subjects"] == ["quiet"]
    assert listener.retained()[ALARM] == alarm


def test_a_killed_daemon_is_reported_offline_by_the_broker(listener: Any, write: Any, run: Any, wait_for: Any) -> None:
    process = run(write())
    wait_for(lambda: (listener.status() or {}).get("state") == "online")
    process.end(signal.SIGKILL)
    wait_for(lambda: listener.status()["state"] == "offline")


class Conflict:
    """Two aircraft on collision course that turn away at t = 1020."""

    topic = "watchkeeper/alarm/conflict/east~west"

    @staticmethod
    def up(listener: Any) -> None:
        listener.aircraft(1000, 1008)

    @staticmethod
    def meanwhile(listener: Any) -> None:
        listener.aircraft(1009, 1012)

    @staticmethod
    def still_up(listener: Any) -> None:
        listener.aircraft(1013, 1016)

    @staticmethod
    def over(listener: Any) -> None:
        listener.aircraft(1017, 1030, turned=True)


class Silence:
    """A drone that falls silent at t = 105 and speaks again at t = 126."""

    topic = ALARM
    up = staticmethod(raise_silence)

    @staticmethod
    def meanwhile(listener: Any) -> None:
        listener.fixes("busy", 116, 120)

    @staticmethod
    def still_up(listener: Any) -> None:
        listener.fixes("busy", 121, 125)

    @staticmethod
    def over(listener: Any) -> None:
        listener.fixes("quiet busy", 126, 136)


@pytest.mark.parametrize(
    ("story", "snapshot"),
    [
        (Conflict, "kept"),
        (Silence, "kept"),
        pytest.param(Conflict, "lost", marks=pytest.mark.long),
        pytest.param(Conflict, "damaged", marks=pytest.mark.long),
    ],
)
def test_after_kill_9_an_active_alarm_keeps_its_id_is_not_raised_again_and_clears_once(
    listener: Any, write: Any, run: Any, wait_for: Any, tmp_path: Path, snapshot: str, story: Any
) -> None:
    process = run(write())
    story.up(listener)
    [raised] = wait_for(lambda: listener.alarms("raised"))
    saved = tmp_path / "state" / "snapshot.msgpack"
    wait_for(saved.exists)
    process.end(signal.SIGKILL)
    if snapshot == "lost":
        saved.unlink()
    elif snapshot == "damaged":
        saved.write_bytes(saved.read_bytes()[:-10] + b"0123456789")
    assert listener.retained() == {story.topic: raised}

    # what is published while nobody listens waits in our session
    story.meanwhile(listener)
    process = run(write())
    wait_for(lambda: "published again" in process.log)
    assert ("snapshot ignored" in process.log) == (snapshot == "damaged")
    story.still_up(listener)
    wait_for(lambda: listener.retained()[story.topic]["state"] == "updated")
    assert listener.retained()[story.topic]["id"] == raised["id"]

    story.over(listener)
    [cleared] = wait_for(lambda: listener.alarms("cleared"))
    wait_for(lambda: listener.retained() == {})
    assert process.end() == 0
    listener.catch_up()

    assert cleared["id"] == raised["id"]
    assert len(listener.alarms("raised")) == 1
    assert len(listener.alarms("cleared")) == 1
    journal = [json.loads(line) for line in (tmp_path / "state" / "journal.jsonl").read_text().splitlines()]
    assert {e["id"] for e in journal} == {raised["id"]}
    assert [e["state"] for e in journal if e["state"] != "updated"] == ["raised", "cleared"]


def confirmed(state: Path) -> bool:
    """Has the broker all that is in the journal, by the journal's own record of it?"""
    numbers, damaged = read_slots((state / "journal.sent").read_bytes())
    return not damaged and numbers["sent"] == numbers["last"]


def test_an_alarm_cleared_in_the_journal_but_not_on_the_broker_is_cleared_there_at_the_next_start(
    listener: Any, write: Any, run: Any, wait_for: Any, tmp_path: Path
) -> None:
    process = run(write())
    raise_silence(listener)
    [raised] = wait_for(lambda: listener.alarms("raised"))
    process.end(signal.SIGKILL)
    # the crash came between the disk and the network
    cleared = {**raised, "state": "cleared", "t": 120.0, "t_cleared": 120.0, "ended": "cause_gone"}
    journal = Journal(tmp_path / "state", fsync=False)
    journal.append([msgspec.convert(cleared, AlarmEvent)])
    journal.close()
    with journal.path.open("a") as file:
        file.write('{"id":"torn')
    process = run(write())
    assert wait_for(lambda: listener.alarms("cleared")) == [cleared]
    wait_for(lambda: listener.retained() == {})
    assert "torn line" in process.log
    # and only once, as soon as the journal has the broker's confirmation
    wait_for(lambda: confirmed(tmp_path / "state"))
    process.end(signal.SIGKILL)
    process = run(write())
    assert process.end() == 0
    listener.catch_up()
    assert listener.alarms("cleared") == [cleared]


def test_sighup_takes_new_thresholds_and_keeps_alarms_and_vehicles(
    listener: Any, write: Any, run: Any, wait_for: Any
) -> None:
    process = run(write())
    raise_silence(listener)
    [raised] = wait_for(lambda: listener.alarms("raised"))

    write("[log]\nlevel = 'loud'\n[detectors.gps_imu]\nthreshold = -1")
    process.process.send_signal(signal.SIGHUP)
    wait_for(lambda: process.log.count("configuration refused") == 2)
    assert "log.level" in process.log
    assert "detectors.gps_imu.threshold" in process.log

    write("[limits]\nqueue_messages = 100", min_silence_s=40.0)
    process.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "configuration reloaded" in process.log)
    assert "detectors.silence.min_silence_s" in process.log
    wait_for(lambda: "need a restart keys=limits.queue_messages" in process.log)

    # silent for 14 s, which is nothing under the new threshold: the alarm ends, by its id, and is not raised again
    listener.fixes("busy", 116, 119)
    [cleared] = wait_for(lambda: listener.alarms("cleared"))
    assert cleared["id"] == raised["id"]
    assert len(listener.alarms("raised")) == 1
    assert process.end() == 0


def test_two_daemons_cannot_share_a_state_directory(write: Any, run: Any, daemon: Any) -> None:
    first = run(write())
    second = daemon(write())
    assert second.process.wait(PATIENCE_S) == 1
    assert f"in use by another daemon (pid {first.process.pid})" in second.log
    assert first.process.poll() is None


def test_a_bad_configuration_never_starts_and_names_every_problem(write: Any, daemon: Any) -> None:
    process = daemon(write("[limits]\nqueue_mesages = 3\n[log]\nlevel = 'loud'"))
    assert process.process.wait(PATIENCE_S) == 78
    for word in ("limits.queue_mesages", "limits.queue_messages", "log.level"):
        assert word in process.log


def test_a_port_that_is_taken_is_a_failure_and_says_so(write: Any, daemon: Any, broker: Any) -> None:
    path = write()
    path.write_text(path.read_text().replace("port = 0", f"port = {broker.port}"))
    process = daemon(path)
    assert process.process.wait(PATIENCE_S) == 1
    assert str(broker.port) in process.log
    assert "address already in use" in process.log.lower()
