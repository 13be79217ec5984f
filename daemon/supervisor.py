"""Tells systemd how we are: its notify protocol, a few words on the datagram socket that NOTIFY_SOCKET names.

    READY=1       compiled and watching; a broker that is away is no reason to wait
    WATCHDOG=1    three times per WATCHDOG_USEC, but only while the pump's heart beats: silence means "restart me"
    RELOADING=1   a SIGHUP is being obeyed (READY=1 ends it)
    STOPPING=1    the orderly end has begun
    STATUS=…      one line for `systemctl status`

Without NOTIFY_SOCKET, as in a terminal or a container, nothing is sent. The words are those of sd_notify(3).
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

# systemd restarts us after one WATCHDOG_USEC of silence: two words may be lost or late.
BEATS = 3
STATUS_S = 10.0


class Supervisor:
    """The other end of NOTIFY_SOCKET. Words that cannot be sent are lost: a daemon does not fail over its status."""

    def __init__(
        self, env: Mapping[str, str] = os.environ, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._sleep = sleep
        self._address = env.get("NOTIFY_SOCKET", "")
        if self._address.startswith("@"):  # an abstract socket begins with a zero byte
            self._address = "\0" + self._address[1:]
        ours = env.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        usec = env.get("WATCHDOG_USEC", "")
        self.watchdog_s = int(usec) / 1e6 if usec.isdigit() and ours else 0.0

    def tell(self, *words: str) -> None:
        """Send these assignments together."""
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as line:
            line.setblocking(False)
            line.sendto("\n".join(words).encode(), self._address)

    def ready(self) -> None:
        """We watch."""
        self.tell("READY=1")

    def reloading(self) -> None:
        """A new configuration is being read; `ready` when it has been."""
        self.tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """The end has begun."""
        self.tell("STOPPING=1", "STATUS=stopping")

    async def run(self, alive: Callable[[], bool], status: Callable[[], str]) -> None:
        """Task: the watchdog's beats while `alive`, and the status line when it changes."""
        if not self._address:
            return
        period_s = min(self.watchdog_s / BEATS, STATUS_S) if self.watchdog_s else STATUS_S
        said = ""
        while True:
            words = ["WATCHDOG=1"] if self.watchdog_s and alive() else []
            if (line := status()) != said:
                said = line
                words.append(f"STATUS={line}")
            if words:
                self.tell(*words)
            await self._sleep(period_s)
