"""Real parts: mosquitto and the daemon as processes, killed and stopped over and over while half an hour is published.

50 kill -9 of the daemon (half of them within 5 s of ready), 20 SIGTERM, 40 deaths of the broker (half of them kill -9,
after which it comes back with what it last saved). At the end the journal must tell the alarms of an undisturbed
replay, each once and under the same id; the broker must show what is active and nothing else; and every message must
have been taken in.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from journal_lines import journal_lines
from waiting import PATIENCE_S, wait_for

from watchkeeper.config.loader import load
from watchkeeper.daemon.cli import main
from watchkeeper.daemon.demo.broker import SBIN, free_port
from watchkeeper.daemon.intake.inputlog import InputLog, Position
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.codec.decode import Decoder
from watchkeeper.streams.codec.encode import encode_batch
from watchkeeper.streams.logs.pacing import groups
from watchkeeper.streams.logs.wklog import LogReader

pytestmark = pytest.mark.long

KILLS, TERMS, DEATHS = 50, 20, 40
EARLY_S = 5.0
# What a broker has kept for a subscriber is with it this long after it is back.
CATCH_UP_S = 1.0
# Event time per fault: several times what a fault takes, so that nobody mistakes it for a live stream with latencies.
SECONDS = 16 * (KILLS + TERMS + DEATHS)

CONFIG = """
[broker]
url = "mqtt://127.0.0.1:{port}"
transport = "{transport}"
reconnect_min_s = 0.05
reconnect_max_s = 0.5
[time]
idle_timeout_s = 3600
[http]
port = 0
[fleet]
max_vehicles = 100
[sinks]
terminal = false
state_dir = "{state}"
"""
BROKER = """
listener {port} 127.0.0.1
allow_anonymous true
persistence true
persistence_location {folder}/
autosave_interval 2
max_inflight_messages 0
max_queued_messages 1000000
set_tcp_nodelay true
"""


class Mosquitto:
    """A broker that keeps what it had, or what it had two seconds before it was killed."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        folder.mkdir()
        self._conf = folder / "mosquitto.conf"
        self._conf.write_text(BROKER.format(port=self.port, folder=folder))
        if os.geteuid() == 0:
            self._conf.write_text(self._conf.read_text() + "user root\n")
        self.start()

    def start(self) -> None:
        program = shutil.which("mosquitto") or shutil.which("mosquitto", path=SBIN)
        self.process = subprocess.Popen([str(program), "-c", str(self._conf)], stderr=subprocess.DEVNULL)

    def die(self, number: int) -> None:
        self.process.send_signal(number)
        self.process.wait(PATIENCE_S)
        time.sleep(0.2)
        self.start()


class Vehicle:
    """Publishes with QoS 1, in order, whatever the broker does: what it has not acknowledged is sent again."""

    def __init__(self, port: int, name: str = "vehicles") -> None:
        self._client = paho.Client(paho.CallbackAPIVersion.VERSION2, name, clean_session=False)
        self._client.max_inflight_messages_set(100)
        self._client.reconnect_delay_set(1, 1)
        self.heard: list[dict[str, Any]] = []
        self.moments: list[tuple[float, bytes]] = []
        """When each of them came, and as which bytes."""
        self.connects_s: list[float] = []
        self.marks: set[str] = set()
        self._client.on_message = lambda _c, _u, m: self._hear(m)
        self._client.on_connect = lambda *_: self._connected()
        self._client.on_publish = lambda *_: self._taken.append(None)
        self._sent, self._taken = 0, list[None]()
        wait_for(lambda: self._connects(port))
        self._client.loop_start()

    def _connected(self) -> None:
        self.connects_s.append(time.monotonic())
        self._client.subscribe("watchkeeper/#", 1)

    def back_s(self, since_s: float) -> float:
        """When it had heard, after a death of the broker, what the broker had kept for it."""
        return CATCH_UP_S + next((at_s for at_s in self.connects_s if at_s > since_s), since_s)

    def _connects(self, port: int) -> bool:
        try:
            return self._client.connect("127.0.0.1", port) == 0
        except OSError:
            return False

    def _hear(self, message: paho.MQTTMessage) -> None:
        if message.topic == "watchkeeper/deadletter":
            self.marks.add(json.loads(message.payload)["payload"])
        elif message.topic.startswith(("watchkeeper/alarm/", "watchkeeper/incident/")) and message.payload:
            self.moments.append((time.monotonic(), message.payload))
            self.heard.append(json.loads(message.payload))

    def send(self, topic: str, payload: bytes) -> None:
        self._client.publish(topic, payload, qos=1)
        self._sent += 1

    def delivered(self) -> None:
        """Wait until the broker has everything."""
        wait_for(lambda: len(self._taken) >= self._sent)

    def judged(self) -> None:
        """Wait until the daemon has put everything that was sent into its pipeline: it says so of a bad payload."""
        mark = f"mark {random.random()}"
        sent_s = 0.0

        def heard() -> bool:
            nonlocal sent_s
            # a dead letter is an example: one that was published while we were away is gone
            if time.monotonic() - sent_s > 2.0:
                sent_s = time.monotonic()
                self.send("telemetry/gps/mark", mark.encode())
            return mark in self.marks

        wait_for(heard)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


class Archive:
    """Keeps a second name for every segment of the input log, so that all of it is there at the end."""

    def __init__(self, state: Path, folder: Path) -> None:
        folder.mkdir()
        self._state, self._folder = state, folder
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # the second name keeps the number of a file from being used again
        seen: set[int] = set()
        while not self._ending.wait(0.02):
            for path in self._state.glob("input-*.log"):
                # it may be deleted at any moment
                with suppress(FileNotFoundError):
                    number = path.stat().st_ino
                    if number not in seen:
                        os.link(path, self._folder / f"input-{len(seen) + 1:08d}.log")
                        seen.add(number)

    def payloads(self) -> Iterator[bytes]:
        self._ending.set()
        self._thread.join()
        for path in sorted(self._folder.iterdir()):
            alone = self._folder / path.stem
            alone.mkdir()
            path.rename(alone / path.name)
            log = InputLog(alone, max_bytes=1 << 40, fsync=False)
            for block in log.blocks(Position()):
                yield from (payload for _, payload, _ in block.items)


def published(log: Path, config: Any) -> list[tuple[str, bytes]]:
    """The recording as frames of a quarter of a second."""
    batches = groups(LogReader(log).batches(), 5.0)
    return [message for _, batch in batches for message in encode_batch(batch, config.topics)]


def undisturbed(messages: list[tuple[str, bytes]], config: Any) -> tuple[list[tuple[str, str]], set[str]]:
    """What a run without faults tells: (id, raised or cleared) in order, and the ids that are active at the end."""
    pipeline = Pipeline(config)
    decoder = Decoder(config.topics, config.limits, lambda *_: None)
    told: list[tuple[str, str]] = []
    for topic, payload in messages:
        decoder.add(topic, payload)
        if (batch := decoder.take()) is not None:
            told += [(e.id, e.state) for e in pipeline.feed(batch) if e.state != "updated"]
    return told, {event.id for event in pipeline.active.values()}


def doubled(
    heard: list[dict[str, Any]], moments: list[tuple[float, bytes]], deaths_s: list[tuple[float, float]]
) -> list[str]:
    """What a subscriber heard twice beyond what QoS 1 allows.

    A raise or an end may come again in the same bytes when the broker died in between, and only then: a daemon that was
    killed knows from the broker what has arrived. Something new about an alarm whose end was heard may never come, nor
    a second raise or end in other bytes. `updated` is a state, not an event: each connect tells it again.
    """
    first_s: dict[bytes, float] = {}
    said: set[tuple[str, str]] = set()
    found = []
    for event, (at_s, payload) in zip(heard, moments, strict=True):
        name, state = event["id"], event["state"]
        if payload in first_s:
            if state != "updated" and not any(first_s[payload] <= to_s and from_s <= at_s for from_s, to_s in deaths_s):
                found.append(f"{name} {state}: again, with no death of the broker in between")
        elif (name, "cleared") in said or (state != "updated" and (name, state) in said):
            found.append(f"{name} {state}: in other bytes, after {[s for i, s in sorted(said) if i == name]}")
        first_s.setdefault(payload, at_s)
        said.add((name, state))
    return found


def told_in(state: Path) -> list[tuple[str, str]]:
    """What the journal has, in order: (id, raised or cleared)."""
    lines = [json.loads(line) for line in journal_lines(state / "journal.jsonl")]
    return [(event["id"], event["state"]) for event in lines if event["state"] != "updated"]


@pytest.mark.parametrize("transport", ["mqtt5", "aiomqtt"])
def test_no_alarm_is_lost_doubled_or_renamed_and_no_message_thrown_away(
    transport: str, daemon: Any, tmp_path: Path
) -> None:
    broker = Mosquitto(tmp_path / "broker")
    state, config_path, log = tmp_path / "state", tmp_path / "wk.toml", tmp_path / "log.wklog"
    config_path.write_text(CONFIG.format(port=broker.port, transport=transport, state=state))
    config = load(config_path, env={})
    assert main(["simulate", "demo", "--seconds", str(SECONDS), "--out", str(log)]) == 0
    messages = published(log, config)
    wanted, active = undisturbed(messages, config)

    rng = random.Random(f"faults on {transport}")
    faults = ["kill early"] * (KILLS // 2) + ["kill late"] * (KILLS // 2) + ["term"] * TERMS
    faults += ["broker killed"] * (DEATHS // 2) + ["broker stopped"] * (DEATHS // 2)
    rng.shuffle(faults)
    deaths_s: list[tuple[float, float]] = []
    archive = Archive(state, tmp_path / "archive")
    vehicles = Vehicle(broker.port)
    process = daemon(config_path)

    def ready(process: Any) -> Any:
        wait_for(lambda: "connected to the broker" in process.log or process.process.poll() is not None)
        assert process.process.poll() is None, process.log[-2000:]
        return process, time.monotonic()

    try:
        process, since_s = ready(process)
        share = len(messages) / (len(faults) + 1)
        for i, fault in enumerate(faults):
            now = messages[int(i * share) : int((i + 1) * share)]
            cut = rng.randrange(len(now) + 1)
            if fault == "kill late":
                time.sleep(max(0.0, since_s + EARLY_S - time.monotonic()))
            for message in now[:cut]:
                vehicles.send(*message)
            time.sleep(rng.choice((0.0, 0.01, 0.1, 0.5)))
            if fault.startswith("broker"):
                if fault == "broker killed":
                    # it forgets what it has acknowledged to vehicles and to us; that is not ours to answer for
                    vehicles.delivered()
                    vehicles.judged()
                    wait_for(lambda: set(told_in(state)) <= {(e["id"], e["state"]) for e in list(vehicles.heard)})
                began_s = time.monotonic()
                broker.die(signal.SIGKILL if fault == "broker killed" else signal.SIGTERM)
                deaths_s.append((began_s, time.monotonic()))
            else:
                code = process.end(signal.SIGTERM if fault == "term" else signal.SIGKILL)
                assert fault != "term" or code == 0, process.log[-2000:]
            for message in now[cut:]:
                vehicles.send(*message)
            if not fault.startswith("broker"):
                process, since_s = ready(daemon(config_path))
            vehicles.delivered()
        for message in messages[int(len(faults) * share) :]:
            vehicles.send(*message)
        vehicles.delivered()
        vehicles.judged()
        shown = Vehicle(broker.port, "newcomer")
        # what somebody who comes now is told
        wait_for(lambda: {event["id"] for event in shown.heard} == active)
        shown.close()
        assert process.end() == 0
    finally:
        vehicles.close()
        broker.process.kill()
    told = told_in(state)
    taken = Counter(archive.payloads())
    lost = [payload for _, payload in messages if payload not in taken]
    # the last message before a death and its repetition may both reach a subscriber that comes back later than we do
    deaths_s = [(from_s, vehicles.back_s(to_s)) for from_s, to_s in deaths_s]
    heard = Counter((e["id"], e["state"]) for e in vehicles.heard if e["state"] != "updated")
    report = {
        "messages": len(messages), "thrown away": len(lost), "delivered twice": sum(taken.values()) - len(taken),
        "alarms": len({i for i, _ in wanted}), "lost": len({i for i, _ in wanted} - {i for i, _ in told}),
        "other ids": len({i for i, _ in told} - {i for i, _ in wanted}), "doubled": len(told) - len(set(told)),
        "repeated to subscribers": sum(n - 1 for n in heard.values()),
        "doubled to subscribers": len(twice := doubled(vehicles.heard, vehicles.moments, deaths_s)),
        "not heard": len(unheard := set(wanted) - set(heard)),
    }  # fmt: skip
    print(f"{transport}: {report}")
    assert lost == []
    assert told == wanted
    assert twice == []
    assert unheard == set()
