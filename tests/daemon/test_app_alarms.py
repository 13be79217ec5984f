"""The daemon in this process, on a real broker: what subscribers see, and when."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from journal_lines import journal_lines
from waiting import PATIENCE_S

from watchkeeper.daemon.app import App
from watchkeeper.daemon.intake.pump import Pump
from watchkeeper.detectors.alarms.events import AlarmEvent, encode_event
from watchkeeper.streams.mqtt.transport import Transport

TOPIC = "watchkeeper/alarm/silence/quiet"


def raise_silence(listener: Any) -> None:
    """A drone that falls silent at t = 105 while another goes on to t = 115."""
    listener.fixes("quiet", 100, 105)
    listener.fixes("busy", 100, 115)


def test_an_alarm_is_retained_while_active_and_gone_after_it_cleared(
    broker: Any, listener: Any, configure: Any, start: Any, wait_for: Any, tmp_path: Path
) -> None:
    start(configure(broker.url))
    raise_silence(listener)
    [raised] = wait_for(lambda: listener.alarms("raised"))
    assert raised["kind"] == "silence"
    assert raised["subjects"] == ["quiet"]
    assert listener.retained()[TOPIC] == raised

    listener.fixes("quiet busy", 116, 120)
    [cleared] = wait_for(lambda: listener.alarms("cleared"))
    assert cleared["id"] == raised["id"]
    # first the end for everybody who listens, then the empty message that removes what the broker kept
    wait_for(lambda: [p for t, p, _ in listener.messages if t == TOPIC][-1] == b"")
    assert listener.retained() == {}

    journal = journal_lines(tmp_path / "state" / "journal.jsonl")
    published = [p for t, p, _ in listener.messages if t == TOPIC and p]
    assert journal == published


def test_alarms_may_be_published_as_messagepack(
    broker: Any, listener: Any, configure: Any, start: Any, wait_for: Any, tmp_path: Path
) -> None:
    start(configure(broker.url, sinks={"encoding": "msgpack", "terminal": False}))
    raise_silence(listener)
    payload = wait_for(lambda: [p for t, p, _ in listener.messages if t == TOPIC])[0]
    event = msgspec.msgpack.decode(payload, type=AlarmEvent)
    assert encode_event(event) == journal_lines(tmp_path / "state" / "journal.jsonl")[0]


def test_status_is_online_then_offline_and_retained(
    broker: Any, listener: Any, listen: Any, configure: Any, start: Any, wait_for: Any
) -> None:
    app = start(configure(broker.url))
    online = wait_for(listener.status)
    assert online["state"] == "online"
    assert set(online) == {"state", "t", "version", "instance"}
    assert abs(online["t"] - time.time()) < 30
    assert wait_for(listen(broker.port).status) == online
    app.stop()
    assert wait_for(lambda: listener.status()["state"] == "offline")
    assert wait_for(listen(broker.port).status)["state"] == "offline"


def test_a_daemon_that_has_said_goodbye_says_nothing_more(
    broker: Any, listener: Any, listen: Any, configure: Any, start: Any, monkeypatch: Any, wait_for: Any
) -> None:
    """The connection breaks before the broker has confirmed the goodbye, and is there again at once."""
    app = start(configure(broker.url))
    wait_for(listener.status)

    async def publish(transport: Transport, topic: str, payload: bytes, **how: Any) -> bool:
        done = transport.post(topic, payload, **how)
        transport.renew()
        return await done

    monkeypatch.setattr(Transport, "publish", publish)
    app.stop()
    assert app.app.transport.reconnects == 1
    later = listen(broker.port)
    assert wait_for(later.status)["state"] == "offline"


def test_bad_input_is_shown_on_the_dead_letter_topic_and_good_input_goes_on(
    broker: Any, listener: Any, configure: Any, start: Any, wait_for: Any
) -> None:
    app = start(configure(broker.url))
    listener.send("telemetry/gps/d1", b'{"t": "noon"}')
    listener.send("telemetry/submarine/d1", b"\xff\x00" * 500)
    listener.send("telemetry/gps/d1", {"t": 100, "lat": 91, "lon": 0})
    raise_silence(listener)
    letters = wait_for(
        lambda: (
            found
            if len(found := [json.loads(p) for t, p, _ in listener.messages if t == "watchkeeper/deadletter"]) >= 3
            else None
        )
    )
    by_reason = {letter["reason"]: letter for letter in letters}
    assert set(by_reason) == {"wrong_type", "unknown_topic", "out_of_range"}
    assert by_reason["wrong_type"]["payload"] == '{"t": "noon"}'
    assert by_reason["unknown_topic"]["encoding"] == "base64"
    assert by_reason["unknown_topic"]["size"] == 1000
    assert wait_for(lambda: listener.alarms("raised"))
    page = app.get("/metrics")[1]
    assert 'watchkeeper_drops_total{reason="unknown_topic",stream="unknown"} 1.0' in page
    assert 'watchkeeper_drops_total{reason="wrong_type",stream="gps"} 1.0' in page


def test_silence_of_everybody_is_noticed_by_the_wall_clock(
    broker: Any, listener: Any, configure: Any, start: Any, wait_for: Any
) -> None:
    start(configure(broker.url, time={"lateness_s": 0.0, "idle_timeout_s": 0.3}))
    listener.fixes("alone", 100, 110)
    assert not listener.alarms()
    [alarm] = wait_for(lambda: listener.alarms("raised"))
    assert alarm["subjects"] == ["alone"]
    assert alarm["t"] >= 113.0


def test_a_broker_that_lost_its_memory_is_told_again_but_nobody_sees_it_raised_twice(
    own_broker: Any, listen: Any, configure: Any, start: Any, wait_for: Any
) -> None:
    app = start(configure(own_broker.url))
    ear = listen(own_broker.port)
    raise_silence(ear)
    [raised] = wait_for(lambda: ear.alarms("raised"))
    own_broker.stop()
    wait_for(lambda: not app.ready())
    assert "not connected" in app.get("/readyz")[1]
    own_broker.start()
    again = listen(own_broker.port)
    [told] = wait_for(again.alarms)
    assert told == {**raised, "state": "updated"}
    assert again.retained() == {TOPIC: told}

    wait_for(app.ready)
    again.fixes("quiet busy", 116, 120)
    [cleared] = wait_for(lambda: again.alarms("cleared"))
    assert cleared["id"] == raised["id"]
    wait_for(lambda: again.retained() == {})


def test_ready_only_once_the_broker_is_there(own_broker: Any, configure: Any, start: Any, wait_for: Any) -> None:
    own_broker.stop()
    app = start(configure(own_broker.url), ready=False)
    status, body = wait_for(lambda: answer if (answer := app.get("/readyz"))[0] else None)
    assert status == 503
    assert json.loads(body)["ready"] is False
    body = wait_for(lambda: page if "refused" in (page := app.get("/readyz")[1]) else None)
    reasons = json.loads(body)["reasons"]
    assert own_broker.url in reasons[-1]
    # alive all the time: a restart would not bring the broker back
    assert app.get("/healthz")[0] == 200
    own_broker.start()
    wait_for(app.ready)


def test_without_a_state_directory_nothing_is_written(
    broker: Any, listener: Any, configure: Any, start: Any, wait_for: Any, tmp_path: Path
) -> None:
    app = start(configure(broker.url, sinks={"state_dir": "", "terminal": False}))
    raise_silence(listener)
    assert wait_for(lambda: listener.alarms("raised"))
    app.stop()
    assert list(tmp_path.iterdir()) == []


def test_an_alarm_that_nobody_can_follow_any_more_is_ended_at_the_start(
    broker: Any, listener: Any, configure: Any, start: Any, wait_for: Any, tmp_path: Path
) -> None:
    (tmp_path / "state").mkdir()
    left = {
        "id": "0123456789abcdef", "kind": "retired", "state": "raised", "severity": "warning", "subjects": ["x"],
        "t": 5.0, "t_onset": 1.0, "t_raised": 5.0, "t_cleared": None, "score": 2.0, "threshold": 1.0, "evidence": {},
        "diagnosis": None,
    }  # fmt: skip
    (tmp_path / "state" / "journal.jsonl").write_text(json.dumps(left) + "\n")
    start(configure(broker.url))
    [cleared] = wait_for(lambda: listener.alarms("cleared"))
    assert (cleared["id"], cleared["ended"]) == (left["id"], "not_resumed")
    wait_for(lambda: listener.retained() == {})


def test_a_part_that_fails_ends_the_daemon_so_that_its_supervisor_restarts_it(
    broker: Any, configure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(pump: Pump) -> None:
        while not pump._online:
            await asyncio.sleep(0.01)
        raise RuntimeError("pump broke")

    monkeypatch.setattr("watchkeeper.daemon.intake.pump.Pump.run", fails)
    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(App(configure(broker.url)).run(signals=False))
    assert caught.group_contains(RuntimeError, match="pump broke")


def test_a_client_library_that_loses_a_cancellation_does_not_keep_the_daemon_from_stopping(
    broker: Any, configure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = []
    started: list[App] = []

    async def stubborn(_transport: Transport) -> None:
        started[0].stop()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            lost.append(True)
        await asyncio.Event().wait()

    async def main() -> None:
        started.append(App(configure(broker.url)))
        async with asyncio.timeout(PATIENCE_S):
            await started[0].run(signals=False)

    monkeypatch.setattr("watchkeeper.streams.mqtt.transport.Transport.run", stubborn)
    asyncio.run(main())
    assert lost == [True]
