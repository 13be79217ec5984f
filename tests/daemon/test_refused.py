"""A broker that does not let us speak or hear: the daemon says so, and no alarm counts as heard that was refused."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mqtt_clients import need_mosquitto
from waiting import wait_for as _wait_for

from tests.daemon.conftest import RunningBroker
from watchkeeper.daemon.cli import main
from watchkeeper.daemon.demo.broker import EmbeddedBroker
from watchkeeper.daemon.outputs import mqtt as sink
from watchkeeper.daemon.outputs.readback import echo
from watchkeeper.streams.mqtt import refusals

RULES = """\
topic readwrite telemetry/#
topic readwrite listener/#
topic read watchkeeper/#
topic write watchkeeper/status
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    file = tmp_path / "acl"
    file.write_text(RULES)
    for path in (tmp_path.parent.parent, tmp_path.parent, tmp_path, file):
        path.chmod(0o755)
    return file


@pytest.fixture
def strict_broker(rules: Path) -> Iterator[RunningBroker]:
    """Alarms may not be published on it."""
    broker = RunningBroker(f"acl_file {rules}")
    yield broker
    broker.close()


@need_mosquitto
def test_a_refused_alarm_is_said_not_confirmed_and_published_once_it_is_allowed(
    strict_broker: RunningBroker,
    rules: Path,
    listen: Any,
    configure: Any,
    start: Any,
    wait_for: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(sink, "RETRY_S", 0.1)
    monkeypatch.setattr(refusals, "LASTING_S", 0.0)
    listener = listen(strict_broker.port)
    app = start(configure(strict_broker.url))
    listener.fixes("quiet", 100, 105)
    listener.fixes("busy", 100, 115)
    words = "the broker refuses what we publish on watchkeeper/alarm/silence/…: not authorized"
    body = wait_for(lambda: page if words in (page := app.get("/readyz")[1]) else None)
    assert words in json.loads(body)["reasons"]
    assert listener.alarms() == []
    assert 'watchkeeper_mqtt_refused_total{reason="not authorized"}' in app.get("/metrics")[1]
    # not while it is being offered again
    wait_for(lambda: 'watchkeeper_sink_queue_depth{sink="mqtt"} 1.0' in app.get("/metrics")[1])
    confirmed = tmp_path / "state" / "journal.sent"
    before = confirmed.exists() and confirmed.read_bytes()

    rules.write_text("topic readwrite #\n")
    os.kill(strict_broker.pid, signal.SIGHUP)
    [raised] = wait_for(lambda: listener.alarms("raised"))
    assert raised["subjects"] == ["quiet"]
    wait_for(app.ready)
    wait_for(lambda: 'watchkeeper_sink_queue_depth{sink="mqtt"} 0.0' in app.get("/metrics")[1])
    wait_for(lambda: confirmed.exists() and confirmed.read_bytes() != before)


@need_mosquitto
def test_telemetry_that_may_not_be_published_is_a_failure_with_the_brokers_reason(
    strict_broker: RunningBroker, rules: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rules.write_text("topic read #\n")
    os.kill(strict_broker.pid, signal.SIGHUP)
    words = ["simulate", "crossing", "--seconds", "5", "--to-mqtt", strict_broker.url, "--speed", "max"]
    _wait_for(lambda: main(words) == 1)
    assert "the broker refuses what we publish on telemetry/…: not authorized" in capfd.readouterr().err


def test_a_recording_of_what_may_not_be_heard_is_a_failure(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rights = (
        'authorization { users: [{ user: "u", password: "p", permissions: { subscribe: { deny: ["telemetry.>"] } } }] }'
    )
    config = tmp_path / "config.toml"

    async def scene() -> int:
        async with EmbeddedBroker(kind="nats", settings=[rights]) as broker:
            config.write_text(f'[broker]\nurl = "{broker.url}"\nusername = "u"\npassword = "p"\n')
            words = ["record", str(tmp_path / "x.wklog"), "-c", str(config), "--seconds", "1"]
            return await asyncio.to_thread(subprocess.call, [sys.executable, "-m", "watchkeeper.daemon.cli", *words])

    assert asyncio.run(scene()) == 1
    assert "the broker does not let us subscribe to telemetry/#: refused" in capfd.readouterr().err


# What the login of the daemon may do; the others may do all.
HALF = {
    "read": "topic read telemetry/#\ntopic write watchkeeper/#\ntopic read watchkeeper/status\n",
    "write": "topic read telemetry/#\ntopic read watchkeeper/#\ntopic write watchkeeper/status\n",
}
ALL = "topic readwrite #\n\nuser watchkeeper\n"
TOPIC = "watchkeeper/alarm/silence/quiet"


@need_mosquitto
@pytest.mark.parametrize("denied", HALF)
@pytest.mark.parametrize("transport", ["mqtt5", "aiomqtt"])
def test_alarms_that_nobody_may_hear_are_said_and_the_broker_is_put_right_when_they_may(
    transport: str,
    denied: str,
    rules: Path,
    strict_broker: RunningBroker,
    listen: Any,
    configure: Any,
    start: Any,
    wait_for: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, seconds in (("HEARD_S", 0.5), ("HEARD_MOST_S", 0.5), ("AGAIN_S", 0.5), ("LOOK_S", 0.1)):
        monkeypatch.setattr(echo, name, seconds)
    monkeypatch.setattr(sink, "RETRY_S", 0.5)
    monkeypatch.setattr(refusals, "LASTING_S", 1.0)
    rules.write_text(ALL + HALF[denied])
    os.kill(strict_broker.pid, signal.SIGHUP)
    listener = listen(strict_broker.port)
    ghost = {
        "id": "00000000deadbeef", "kind": "silence", "state": "raised", "severity": "warning", "subjects": ["ghost"],
        "t": 5.0, "t_onset": 1.0, "t_raised": 5.0, "t_cleared": None, "score": 2.0, "threshold": 1.0, "evidence": {},
        "diagnosis": None,
    }  # fmt: skip
    listener._client.publish("watchkeeper/alarm/silence/ghost", json.dumps(ghost), 1, True).wait_for_publish(10)
    login = {"transport": transport, "username": "watchkeeper", "password": "x"}
    app = start(configure(strict_broker.url, broker=login), ready=False)
    wait_for(lambda: app.app.transport.connected)
    listener.fixes("quiet", 100, 105)
    listener.fixes("busy", 100, 115)
    wait_for(lambda: any("alarm/silence" in reason for reason in app.app.condition.not_ready()))

    rules.write_text(ALL + "topic read telemetry/#\ntopic readwrite watchkeeper/#\n")
    os.kill(strict_broker.pid, signal.SIGHUP)
    wait_for(app.ready)
    # what we follow is shown, and the alarm of a run that nobody remembers is ended
    wait_for(lambda: list(listener.retained()) == [TOPIC])
    assert ghost["id"] in {event["id"] for event in listener.alarms("cleared")}
