"""systemd's notify protocol on a real socket: ready when watching, beats while the pump does, and what it says last."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from waiting import PATIENCE_S, wait_for

from watchkeeper.daemon.app import App
from watchkeeper.daemon.intake.pump import STUCK_S
from watchkeeper.daemon.supervisor import Supervisor


class Systemd:
    """The receiving end."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self._socket.setblocking(False)
        self._unread: list[str] = []

    def heard(self) -> list[str]:
        """Everything that has come since."""
        with suppress(BlockingIOError):
            while True:
                self._unread += self._socket.recv(4096).decode().split("\n")
        words, self._unread = self._unread, []
        return words

    def hear(self, word: str, patience_s: float = PATIENCE_S) -> list[str]:
        """Everything up to this word; what comes after it is heard next time."""
        words: list[str] = []

        def found() -> bool:
            words.extend(self.heard())
            return word in words

        wait_for(found, patience_s)
        end = words.index(word) + 1
        self._unread = words[end:]
        return words[:end]

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["file", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Systemd]:
    made = Systemd(str(tmp_path / "notify") if request.param == "file" else f"@watchkeeper-{os.getpid()}")
    yield made
    made.close()


def test_without_systemd_nothing_happens() -> None:
    supervisor = Supervisor({})
    supervisor.ready()
    asyncio.run(supervisor.run(lambda: True, lambda: "x"))
    assert supervisor.watchdog_s == 0
    Supervisor({"NOTIFY_SOCKET": "/nowhere/at/all"}).ready()


def test_the_watchdog_of_another_process_is_not_ours() -> None:
    theirs = {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}
    assert Supervisor(theirs).watchdog_s == 0
    assert Supervisor({**theirs, "WATCHDOG_PID": str(os.getpid())}).watchdog_s == 30
    assert Supervisor({**theirs, "WATCHDOG_USEC": "soon", "WATCHDOG_PID": str(os.getpid())}).watchdog_s == 0


def test_beats_come_three_times_a_period_and_stop_with_the_heart(systemd: Systemd) -> None:
    slept: list[float] = []
    beats: list[list[str]] = []

    class EnoughError(Exception):
        pass

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        beats.append(systemd.heard())
        if len(slept) == 8:
            raise EnoughError

    supervisor = Supervisor({"NOTIFY_SOCKET": systemd.address, "WATCHDOG_USEC": "150000"}, sleep)
    with pytest.raises(EnoughError):
        asyncio.run(supervisor.run(lambda: len(slept) < 5, lambda: "watching"))
    assert slept == pytest.approx([0.05] * 8)
    assert beats == [["WATCHDOG=1", "STATUS=watching"], *[["WATCHDOG=1"]] * 4, [], [], []]


def test_a_pump_that_hangs_has_no_heartbeat(configure: Callable[..., Any]) -> None:
    async def scene() -> None:
        app = App(configure("mqtt://127.0.0.1:1"))
        try:
            app.pump.beat_s = time.monotonic() - STUCK_S - 1
            assert app.pump.alive, "it has not begun"
            app.pump.running = True
            assert not app.pump.alive
            app.pump.beat_s = time.monotonic()
            assert app.pump.alive
        finally:
            app.close()

    asyncio.run(scene())


@pytest.mark.usefixtures("_compiled")
def test_a_real_daemon_tells_its_life_and_a_stopped_one_is_silent(broker: Any, tmp_path: Path) -> None:
    systemd = Systemd(str(tmp_path / "notify"))
    config = tmp_path / "watchkeeper.toml"
    config.write_text(
        f"[broker]\nurl = '{broker.url}'\n[http]\nport = 0\n"
        f"[sinks]\nstate_dir = '{tmp_path / 'state'}'\nterminal = false\n"
    )
    env = {**os.environ, "NOTIFY_SOCKET": systemd.address, "WATCHDOG_USEC": "900000"}
    command = [sys.executable, "-m", "watchkeeper.daemon.cli", "run", "-c", str(config)]
    with (tmp_path / "log").open("w") as log, subprocess.Popen(command, env=env, stderr=log) as process:
        try:
            first = systemd.hear("READY=1", patience_s=240)
            assert "WATCHDOG=1" not in first[: first.index("READY=1")]
            systemd.hear("STATUS=watching: 0 vehicles, 0 active alarms")
            assert systemd.hear("WATCHDOG=1").count("WATCHDOG=1") >= 1
            process.send_signal(signal.SIGHUP)
            systemd.hear("RELOADING=1")
            systemd.hear("READY=1")
            # a process that hangs sends nothing: systemd would restart it
            process.send_signal(signal.SIGSTOP)
            wait_for(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
            systemd.heard()
            time.sleep(1.0)
            assert systemd.heard() == []
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGTERM)
            systemd.hear("STOPPING=1")
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
    systemd.close()
