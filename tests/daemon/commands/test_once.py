"""`run --once`: says what is heard, judged and refused, raises nothing to anybody, and says why nothing was heard."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

from tests.daemon.conftest import Listener, RunningBroker
from watchkeeper.daemon.cli import main
from watchkeeper.daemon.demo.broker import free_port
from watchkeeper.detectors.base import SEVERITIES

Send = Callable[[Listener, int], None]


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    running = RunningBroker()
    yield running
    running.close()


@pytest.fixture
def listener(broker: RunningBroker) -> Iterator[Listener]:
    ear = Listener(broker.port, "#")
    yield ear
    ear.close()


@contextmanager
def sending(listener: Listener, send: Send) -> Iterator[None]:
    """Somebody publishes, again and again, until the block ends."""
    over = threading.Event()

    def work() -> None:
        t = 1000  # the aircraft of Listener meet at 1100
        while not over.wait(0.05):
            send(listener, t)
            t += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def once(tmp_path: Path, url: str, *words: str, more: str = "") -> int:
    file = tmp_path / "x.toml"
    file.write_text(f'[broker]\nurl = "{url}"\n[sinks]\nstate_dir = "{tmp_path}/state"\n{more}')
    return main(["run", "-c", str(file), "--once", "--seconds", "1.5", *words])


def two_aircraft_and_noise(listener: Listener, t: int) -> None:
    listener.aircraft(t, t)
    listener.send("telemetry/adsb/broken", b'{"t":1,"lon":.01}')
    listener.send("telemetry/gps/drone", {"t": t, "gps_x": 0, "gps_y": 0, "gps_z": 0})


def test_what_is_heard_judged_and_refused_is_said_and_nothing_is_published(
    broker: RunningBroker, listener: Listener, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with sending(listener, two_aircraft_and_noise):
        assert once(tmp_path, broker.url) == 0
    listener.catch_up()
    said = capsys.readouterr().out
    assert "connected" in said
    rows = {line.split()[0]: line for line in said.splitlines() if line.strip()}
    assert "adsb" in rows["east"]
    assert "conflict" in rows["east"]
    assert "gps_imu: it sends no IMU" in rows["drone"]
    [refused] = [line for line in said.splitlines() if line.startswith("refused: ")]
    assert "telemetry/adsb/broken (malformed)" in refused
    assert 'at ".01}"' in refused
    assert 'it begins \'{"t":1,"lon":.01}\'' in refused
    # the alarm by its sentence: who, what and how bad
    at = next(i for i, line in enumerate(said.splitlines()) if line.startswith("alarms in this time: 1 alarm."))
    alarm = said.splitlines()[at + 1]
    assert alarm.split()[0] in SEVERITIES
    assert "east and west: on course to lose separation" in alarm
    assert "NM apart now" in alarm
    # neither alarms nor a status, nor a state directory
    assert {topic.split("/")[0] for topic, _, _ in listener.messages} == {"telemetry"}
    assert not (tmp_path / "state").exists()


def test_only_refused_messages_are_a_failure(
    broker: RunningBroker, listener: Listener, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with sending(listener, lambda ear, _t: ear.send("telemetry/adsb/x", {"lat": 1, "lon": 2})):
        assert once(tmp_path, broker.url) == 1
    said = capsys.readouterr().out
    assert "(missing_field)" in said
    assert "no t;" in said
    assert "every message was refused" in said


def test_another_prefix_is_found_out(
    broker: RunningBroker, listener: Listener, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with sending(listener, lambda ear, t: ear.send("fleet/adsb/x", {"t": t, "lat": 1, "lon": 2})):
        assert once(tmp_path, broker.url) == 1
    assert "another prefix: the broker carries fleet/…" in capsys.readouterr().out


def test_no_broker_and_a_source_that_is_not_there_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = f'[[sources]]\ntype = "sbs"\nurl = "tcp://127.0.0.1:{free_port()}"\n'
    assert once(tmp_path, f"mqtt://127.0.0.1:{free_port()}", more=source) == 1
    said = capsys.readouterr().out
    assert "no connection" in said
    assert "source tcp://127.0.0.1:" in said
    assert "Connect call failed" in said or "refused" in said


def test_a_daemon_that_runs_under_the_same_name_is_not_disturbed(
    broker: RunningBroker, tmp_path: Path, start: Any, configure: Any, listener: Listener
) -> None:
    app = start(configure(broker.url))
    with sending(listener, lambda ear, t: ear.aircraft(t, t)):
        assert once(tmp_path, broker.url) == 0
    wait_for(app.ready)
    assert app.app.transport.reconnects == 0
    listener.catch_up()
    statuses = [json.loads(p)["state"] for topic, p, _ in listener.messages if topic == "watchkeeper/status" and p]
    assert "offline" not in statuses


def test_a_time_without_once_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """It would otherwise be a daemon that does not stop after it."""
    assert main(["run", "--seconds", "4"]) == 2
    assert "--seconds needs --once" in capsys.readouterr().err


def test_a_port_that_is_none_is_refused_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--port", "99999"], ["--port", "http"], ["--seconds", "soon"]):
        with pytest.raises(SystemExit) as ended:
            main(["demo", *words])
        assert ended.value.code == 2
        assert "expected" in capsys.readouterr().err
