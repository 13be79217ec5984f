"""Background work that must not hold up an exit: threads that compile for a minute, tasks that linger.

asyncio's own worker threads are waited for when a program ends; those of `in_background` are left behind.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable

PREFIX = "background "
CANCEL_AGAIN_S = 0.5


async def end(*tasks: asyncio.Task[None]) -> None:
    """Cancel these tasks and wait until they are done; what they raised stays in them.

    A client library may lose a cancellation that comes while it connects, so they are asked again.
    """
    while pending := [task for task in tasks if not task.done()]:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=CANCEL_AGAIN_S)
    await asyncio.gather(*tasks, return_exceptions=True)


async def in_background(name: str, work: Callable[[], object]) -> None:
    """Run `work` in a thread and wait for it. Cancelled, it leaves the thread to itself: see `leave`."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: Exception | None) -> None:
        if not done.done():
            done.set_exception(error) if error is not None else done.set_result(None)

    def run() -> None:
        error = None
        try:
            work()
        except Exception as problem:
            error = problem
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, error)

    threading.Thread(target=run, name=PREFIX + name, daemon=True).start()
    await done


def leave(code: int) -> int:
    """The exit code to return at the end of a command, unless such a thread is still at work.

    Then the process ends here and now: an ordinary exit would take the interpreter down under a running compiler.
    """
    if any(thread.name.startswith(PREFIX) for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code
