"""File handles: as many as we may have, some kept back, and few words when they run out.

When no handle is left, asyncio reports every connection that it cannot accept, thousands of lines a second. Here that
is one line every SAY_S, and the handles that were kept back are let go, so that the way to the broker, which matters
more than any page, can be opened again. Called once by the daemon when its loop runs.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import resource
from contextlib import suppress
from typing import Any

from watchkeeper.daemon.logs import kv

log = logging.getLogger(__name__)

SAY_S = 10.0
# A broker, a few sources and sinks, and a file or two at the same moment.
KEPT_BACK = 16
# More than a thousand vehicles' worth of viewers, sources and sinks; what systemd allows by default is more.
WANTED = 8192


class Handles:
    """The daemon's file handles. `exhausted` counts how often there was none."""

    def __init__(self) -> None:
        self.exhausted = 0
        self._said_s = -SAY_S
        self._unsaid = 0
        self._kept: list[int] = []
        self._again: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Ask for more handles, keep some back, and listen to what the loop reports."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            with suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        self._keep_back()
        loop.set_exception_handler(self._report)

    def stop(self) -> None:
        """Let go of what was kept back."""
        if self._again is not None:
            self._again.cancel()
        while self._kept:
            os.close(self._kept.pop())

    def _keep_back(self) -> None:
        self._again = None
        with suppress(OSError):
            while len(self._kept) < KEPT_BACK:
                self._kept.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    def _report(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)):
            loop.default_exception_handler(context)
            return
        self.exhausted += 1
        self._unsaid += 1
        if loop.time() - self._said_s < SAY_S:
            return
        log.error(
            "no file handle left", extra=kv(times=self._unsaid, limit=resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        )
        self._said_s, self._unsaid = loop.time(), 0
        self.stop()
        self._again = loop.call_later(3 * SAY_S, self._keep_back)
