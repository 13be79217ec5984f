"""A real broker, a listener that remembers, and the daemon as a process: what the daemon's tests are made of."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen
from uuid import uuid4

import paho.mqtt.client as paho
import pytest
from waiting import PATIENCE_S
from waiting import wait_for as _wait_for

from watchkeeper.config.loader import load
from watchkeeper.config.schema import DEFAULT, Config
from watchkeeper.daemon.app import App
from watchkeeper.daemon.compiling import prepare
from watchkeeper.daemon.demo.broker import EmbeddedBroker


class RunningBroker:
    """An EmbeddedBroker on a loop of its own, so that tests may be synchronous and may restart it."""

    def __init__(self, *settings: str) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._broker = EmbeddedBroker(kind="mosquitto" if settings else None, settings=settings)
        self._call(self._broker.__aenter__())
        self.port = self._broker.port
        self.url = self._broker.url

    @property
    def pid(self) -> int:
        return self._broker.pid

    def _call(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def stop(self) -> None:
        self._call(self._broker.__aexit__(None, None, None))

    def start(self) -> None:
        self._broker = EmbeddedBroker(port=self.port)
        self._call(self._broker.__aenter__())

    def close(self) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)


class Listener:
    """Subscribes to everything we publish, keeps every message, and publishes telemetry by hand."""

    def __init__(self, port: int, topic: str = "watchkeeper/#") -> None:
        self.messages: list[tuple[str, bytes, bool]] = []
        self._own_topic = f"listener/{uuid4().hex}"
        self._returned: set[bytes] = set()
        ready = threading.Event()
        self._client = paho.Client(paho.CallbackAPIVersion.VERSION2)
        self._client.on_message = lambda _c, _u, m: self._hear(m)
        self._client.on_subscribe = lambda *_: ready.set()
        self._client.on_connect = lambda *_: self._client.subscribe([(topic, 1), (self._own_topic, 1)])
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        assert ready.wait(PATIENCE_S)

    def _hear(self, message: paho.MQTTMessage) -> None:
        if message.topic == self._own_topic:
            self._returned.add(message.payload)
        else:
            self.messages.append((message.topic, message.payload, message.retain))

    def catch_up(self) -> None:
        """Wait until all that the broker has for us now is in `messages`.

        It delivers in order: retained messages before anything that is published after the subscription, and what
        others have published before what we publish now.
        """
        mark = uuid4().bytes
        self.send(self._own_topic, mark)
        _wait_for(lambda: mark in self._returned)

    def send(self, topic: str, payload: bytes | dict[str, Any]) -> None:
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        info = self._client.publish(topic, data, qos=1)
        info.wait_for_publish(PATIENCE_S)

    def fixes(self, names: str, first_t: int, last_t: int) -> None:
        """One GPS fix a second from each of these drones, which stand still."""
        for t in range(first_t, last_t + 1):
            for name in names.split():
                self.send(f"telemetry/gps/{name}", {"t": t, "gps_x": 0, "gps_y": 0, "gps_z": 0})

    def aircraft(self, first_t: int, last_t: int, *, turned: bool = False) -> None:
        """Two aircraft that meet head-on at t = 1100 on the equator, each second; `turned`: they now fly apart."""
        for t in range(first_t, last_t + 1):
            for name, side in (("east", 1.0), ("west", -1.0)):
                # 450 kt are an eighth of a mile per second
                lon = side * 0.125 * (1100 - t) / 60
                track = 270 - 180 * (side < 0) if not turned else 90 * (1 - side)
                report = {"t": t, "lat": 0, "lon": lon, "alt_ft": 30000, "gs_kt": 450, "trk_deg": track, "vs_fpm": 0}
                self.send(f"telemetry/adsb/{name}", report)

    def alarms(self, state: str | None = None) -> list[dict[str, Any]]:
        found = [json.loads(p) for topic, p, _ in self.messages if topic.startswith("watchkeeper/alarm/") and p]
        return [a for a in found if state in (None, a["state"])]

    def retained(self) -> dict[str, dict[str, Any]]:
        """What somebody who comes now is told, by topic."""
        other = Listener(int(self._client.port), "watchkeeper/alarm/#")
        try:
            other.catch_up()
            return {topic: json.loads(payload) for topic, payload, kept in other.messages if kept and payload}
        finally:
            other.close()

    def status(self) -> dict[str, Any] | None:
        found = [json.loads(p) for topic, p, _ in self.messages if topic == "watchkeeper/status"]
        return found[-1] if found else None

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


class Daemon:
    """`watchkeeper run` as a process."""

    def __init__(self, config: Path, log: Path, *args: str) -> None:
        self._log = log
        env = {k: v for k, v in os.environ.items() if not k.startswith("WATCHKEEPER_")}
        with log.open("ab") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "watchkeeper.daemon.cli", "run", "-c", str(config), *args],
                stdout=subprocess.PIPE, stderr=stderr, env=env, text=True,
            )  # fmt: skip

    @property
    def log(self) -> str:
        return self._log.read_text()

    def figure(self, name: str) -> float:
        """The sum of the metrics whose names, with their labels, begin like this."""
        url = self.log.partition("url=")[2].split()[0]
        with urlopen(f"{url}/metrics", timeout=PATIENCE_S) as page:
            lines = page.read().decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))

    def end(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()


class Running:
    """An App on a thread of its own."""

    def __init__(self, config: Config) -> None:
        self.app: App | None = None
        self._began = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run(config)), daemon=True)
        self._thread.start()
        assert self._began.wait(PATIENCE_S)

    async def _run(self, config: Config) -> None:
        self.app = App(config)
        self._loop = asyncio.get_running_loop()
        self._began.set()
        await self.app.run(signals=False)

    def get(self, page: str) -> tuple[int, str]:
        assert self.app is not None
        assert self.app.http is not None
        try:
            with urlopen(self.app.http.url + page, timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def ready(self) -> bool:
        return self.get("/readyz")[0] == 200

    def stop(self) -> None:
        assert self.app is not None
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self.app.stop)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


@pytest.fixture(scope="session")
def wait_for() -> Callable[..., Any]:
    """`wait_for(lambda: …)`: the first true answer."""
    return _wait_for


@pytest.fixture
def listen() -> Iterator[Callable[[int], Listener]]:
    """`listen(port)`: somebody who hears everything on that broker."""
    ears: list[Listener] = []

    def start(port: int) -> Listener:
        ears.append(Listener(port))
        return ears[-1]

    yield start
    for ear in ears:
        ear.close()


@pytest.fixture(scope="session")
def _compiled() -> None:
    """After a change to the kernels the first start takes a minute: not on the clock of the first test."""
    prepare(DEFAULT)


@pytest.fixture(scope="session")
def _shared_broker() -> Iterator[RunningBroker]:
    running = RunningBroker()
    yield running
    running.close()


@pytest.fixture
def own_broker() -> Iterator[RunningBroker]:
    """A broker that the test may stop and start."""
    running = RunningBroker()
    yield running
    running.close()


@pytest.fixture
def broker(_shared_broker: RunningBroker) -> Iterator[RunningBroker]:
    """A broker without retained messages."""
    yield _shared_broker
    cleaner = Listener(_shared_broker.port, "#")
    cleaner.catch_up()
    for topic in {topic for topic, payload, kept in cleaner.messages if kept and payload}:
        cleaner._client.publish(topic, b"", qos=1, retain=True).wait_for_publish(PATIENCE_S)
    cleaner.close()


@pytest.fixture
def listener(broker: RunningBroker, listen: Callable[[int], Listener]) -> Listener:
    """Somebody who hears everything."""
    return listen(broker.port)


# Event time is driven by the samples alone, a stream is silent after 3 s, ticks do not wait for stragglers.
SETTINGS: dict[str, Any] = {
    "time": {"lateness_s": 0.0, "idle_timeout_s": 3600.0},
    "http": {"port": 0},
    "fleet": {"max_vehicles": 100},
    # drones of these tests have no IMU, which is what `watch` would say after a while
    "detectors": {"conflict": {"max_pairs": 1000}, "silence": {"factor": 2.0}, "watch": {"enabled": False}},
    "sinks": {"terminal": False, "journal_fsync": False},
    # alarms by themselves; test_ping.py and tests/detectors/incidents/test_incidents.py are about incidents
    "diagnosis": {"enabled": False},
}


@pytest.fixture
def configure(_compiled: None, tmp_path: Path) -> Callable[..., Config]:
    """Settings for an App in this process: `configure(url, time={…})`."""

    def make(url: str, **sections: dict[str, Any]) -> Config:
        merged = {name: {**SETTINGS.get(name, {}), **sections.get(name, {})} for name in {*SETTINGS, *sections}}
        merged["broker"] = {"url": url, "session_expiry_s": 0, "reconnect_min_s": 0.05, **merged.get("broker", {})}
        merged["sinks"] = {"state_dir": str(tmp_path / "state"), **merged["sinks"]}
        return load(None, env={}, overrides=merged)

    return make


@pytest.fixture
def daemon(_compiled: None, tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    """Starts daemons on a configuration file, and ends them after the test."""
    started: list[Daemon] = []

    def start(config: Path, *args: str) -> Daemon:
        started.append(Daemon(config, tmp_path / f"daemon-{len(started)}.log", *args))
        return started[-1]

    yield start
    for each in started:
        each.end(signal.SIGKILL)


@pytest.fixture
def start(wait_for: Any) -> Iterator[Callable[..., Running]]:
    apps: list[Running] = []

    def begin(config: Config, *, ready: bool = True) -> Running:
        apps.append(Running(config))
        if ready:
            wait_for(apps[-1].ready)
        return apps[-1]

    yield begin
    for app in apps:
        app.stop()


@pytest.fixture
def sending() -> Callable[[Any], AbstractAsyncContextManager[Any]]:
    """`async with sending(sink)`: its `run` is a task meanwhile."""

    @asynccontextmanager
    async def send(sink: Any) -> AsyncIterator[Any]:
        task = asyncio.create_task(sink.run())
        try:
            yield sink
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    return send
