"""Waiting in tests: for a condition, never for a length of time.

    alarm = wait_for(lambda: listener.alarms("raised"))     in a thread
    await until(lambda: sink.failures >= 1)                 in an event loop; the condition must not block

Both give the first true answer. PATIENCE_S only ends a test that cannot pass any more: it is many times what a busy
machine needs, and no verdict depends on how fast the condition came true.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 120.0
POLL_S = 0.01


def wait_for(what: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
    """The first true answer of `what`."""
    end_s = time.monotonic() + patience_s
    while not (answer := what()):
        if time.monotonic() > end_s:
            raise AssertionError(f"not within {patience_s:g} s, the last answer was {answer!r}")
        time.sleep(POLL_S)
    return answer


async def until(what: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
    """The first true answer of `what`, while the other tasks go on."""
    end_s = time.monotonic() + patience_s
    while not (answer := what()):
        if time.monotonic() > end_s:
            raise AssertionError(f"not within {patience_s:g} s, the last answer was {answer!r}")
        await asyncio.sleep(POLL_S)
    return answer
