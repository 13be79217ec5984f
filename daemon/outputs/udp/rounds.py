"""Rounds of datagrams over UDP: what a receiver shows for as long as it is sent again and again.

UDP confirms nothing: an event is delivered when a round that shows it went out without an error. That the port is
closed is known on the own machine and network only.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Iterable
from urllib.parse import urlsplit

from watchkeeper.detectors.alarms.events import AlarmEvent

ROUND_S, ANSWER_S = 1.0, 0.05


class Rounds:
    """One address. `run` is a task; `messages` says what a round is."""

    refused = dropped = 0

    def __init__(self, url: str) -> None:
        self.delivered = self.failures = self.waiting = 0
        self._url = url
        self._problem = ""

    def messages(self) -> Iterable[bytes]:
        """One round."""
        raise NotImplementedError

    def put(self, event: AlarmEvent) -> None:  # noqa: ARG002  what is active, the pipeline knows
        """See Sink."""
        self.waiting += 1

    def health(self) -> list[str]:
        """See Sink."""
        return [f"{self._url}: {self._problem}"] if self._problem else []

    async def flush(self) -> None:
        """See Sink."""
        while self.waiting:
            await asyncio.sleep(0.005)

    async def run(self) -> None:
        """Task: one round a second, or at once when there is news."""
        where = urlsplit(self._url)
        line: socket.socket | None = None
        try:
            while True:
                shown = self.waiting
                try:
                    line = line or _open(where.hostname or "", where.port or 0)
                    for message in self.messages():
                        line.send(message)
                    # that nobody listens is answered after a moment, and would else be raised by the next round
                    await asyncio.sleep(ANSWER_S)
                    if code := line.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                        raise OSError(code, os.strerror(code))
                    self._problem = ""
                    self.shown(shown)
                except OSError as error:
                    self.failures += 1
                    self._problem = error.strerror or str(error)
                    if line is not None:
                        line.close()
                    line = None
                await self.pause()
        finally:
            if line is not None:
                line.close()

    def shown(self, events: int) -> None:
        """So many events were in a round that went out."""
        self.delivered += events
        self.waiting -= events

    async def pause(self) -> None:
        """Until the next round is due, or there is news that can go out."""
        began = time.monotonic()
        while time.monotonic() - began < ROUND_S and (not self.waiting or self._problem):
            await asyncio.sleep(0.02)


def _open(host: str, port: int) -> socket.socket:
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    line.setblocking(False)
    line.connect((host, port))
    return line
