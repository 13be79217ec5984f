"""Virtual time: one heap of things to do, in order, and asyncio event loops that run on it.

Every process of the simulation has a `Loop` of its own on the shared `Timeline`. A loop whose process was killed runs
nothing any more: what it had planned stays in the heap and is skipped, as after `kill -9`. Work for threads
(`run_in_executor`, ThreadPoolExecutor) is a step on the timeline too, after a delay that the process chooses.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from heapq import heappop, heappush
from typing import Any, Protocol

# The monotonic clock of the simulated machine at the start, and what its wall clock adds to that.
START_S = 10_000.0
EPOCH_S = 1_800_000_000.0 - START_S


class Killed(BaseException):
    """The process is gone in the middle of what it did."""


class Owner(Protocol):
    """A process: what is planned for it runs only while it lives."""

    alive: bool

    def thread_delay_s(self) -> float:
        """How long a thread takes to begin the next piece of work."""
        ...

    def crashed(self, error: BaseException) -> None:
        """Something raised where nobody was there to catch it."""
        ...


class Timeline:
    """The only clock. `current` is the process whose code runs now, None outside of all."""

    def __init__(self) -> None:
        self.now = START_S
        self.steps = 0
        self.current: Owner | None = None
        self._heap: list[tuple[float, int, Owner | None, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0

    def at(self, when: float, run: Callable[..., None], *args: Any, owner: Owner | None = None) -> None:
        """Plan something; equal times run in the order in which they were planned."""
        self._count += 1
        heappush(self._heap, (max(when, self.now), self._count, owner, run, args))

    def after(self, delay_s: float, run: Callable[..., None], *args: Any, owner: Owner | None = None) -> None:
        """Plan something relative to now."""
        self.at(self.now + delay_s, run, *args, owner=owner)

    def run(self, until_s: float, done: Callable[[], bool] = lambda: False) -> None:
        """Let time pass up to `until_s`, or until `done`."""
        heap = self._heap
        while heap and heap[0][0] <= until_s and not done():
            when, _, owner, run, args = heappop(heap)
            if owner is not None and not owner.alive:
                continue
            self.now = when
            self.steps += 1
            self.current = owner
            try:
                run(*args)
            except Killed:
                pass
            finally:
                self.current = None
        if not done():
            self.now = max(self.now, until_s)


class Loop(asyncio.AbstractEventLoop):
    """As much of an event loop as asyncio's tasks, futures and timeouts ask for; no sockets."""

    def __init__(self, timeline: Timeline, owner: Owner) -> None:
        self._timeline = timeline
        self._owner = owner
        self._pool = Pool(timeline, owner, ordered=False)

    def time(self) -> float:
        return self._timeline.now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self._owner.alive

    def is_closed(self) -> bool:
        return not self._owner.alive

    def call_soon(self, callback: Any, *args: Any, context: contextvars.Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._timeline.at(self._timeline.now, self._run, handle, owner=self._owner)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:
        return self.call_at(self._timeline.now + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._timeline.at(when, self._run, handle, owner=self._owner)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It stays in the heap and is skipped."""

    def _run(self, handle: asyncio.Handle) -> None:
        if handle._cancelled:
            return
        asyncio._set_running_loop(self)
        try:
            handle._run()
        finally:
            asyncio._set_running_loop(None)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Coroutine[Any, Any, Any], *, name: Any = None, context: Any = None) -> Any:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        pool = self._pool if executor is None else executor
        return asyncio.wrap_future(pool.submit(func, *args), loop=self)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if self._owner.alive and isinstance(error, BaseException) and not isinstance(error, Killed):
            self._owner.crashed(error)


class Pool:
    """Threads of a process. `ordered`: one thread, one piece of work after the other; else as many as there is work."""

    def __init__(self, timeline: Timeline, owner: Owner, *, ordered: bool = True) -> None:
        self._timeline = timeline
        self._owner = owner
        self._ordered = ordered
        self._queue: deque[tuple[Future[Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = deque()
        self._busy = False

    def submit(self, work: Callable[..., Any], *args: Any, **named: Any) -> Future[Any]:
        """As ThreadPoolExecutor does."""
        future: Future[Any] = Future()
        item = (future, work, args, named)
        if self._ordered:
            self._queue.append(item)
            self._begin()
        else:
            self._timeline.after(self._owner.thread_delay_s(), self._do, item, owner=self._owner)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do what is left, now."""
        while self._queue:
            self._do(self._queue.popleft())

    def _begin(self) -> None:
        if self._queue and not self._busy:
            self._busy = True
            self._timeline.after(self._owner.thread_delay_s(), self._next, owner=self._owner)

    def _next(self) -> None:
        self._busy = False
        if self._queue:
            self._do(self._queue.popleft())
            self._begin()

    @staticmethod
    def _do(item: tuple[Future[Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]) -> None:
        future, work, args, named = item
        if not future.set_running_or_notify_cancel():
            return
        loop = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        try:
            future.set_result(work(*args, **named))
        except Exception as error:
            future.set_exception(error)
        finally:
            asyncio._set_running_loop(loop)
