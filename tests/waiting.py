"""Waiting in tests: for a condition, never for a length of time.

    alarm = wait_for(lambda: listener.alarms("raised"))     in a thread
    await until(lambda: sink.failures >= 1)                 in an event loop; the condition must not block

Both give the first true answer. PATIENCE_S only ends a test that cannot pass any more: it is many times what a busy
machine needs, and no verdict depends on how fast the condition came true.

    end_program(broker, proxy)                              what is not ours to judge, when a test is over
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE_S = 120.0
POLL_S = 0.01
ENDS_WITHIN_S = 10.0


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


def end_program(*programs: subprocess.Popen[Any]) -> None:
    """End programs of others: asked first, killed after a while.

    A program may miss the request: dump1090 clears its memory after it has begun to listen to signals, and forgets one
    that came before. That is no verdict on this project. Our own processes must end when asked: those are waited for.
    """
    for program in programs:
        program.terminate()
    for program in programs:
        try:
            program.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
