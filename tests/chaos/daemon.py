"""The daemon in the model: one process after another on the same disk, each with an App as `watchkeeper run` builds it.

A supervisor (systemd, in the world outside) starts the next one a moment after one has ended, however it ended.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from watchkeeper.config.schema import Config
from watchkeeper.daemon.app import App

from chaos.timeline import Killed, Loop

if TYPE_CHECKING:
    from chaos.world import World

COMPILES_S = (0.05, 0.8)
# A supervisor is quick, a machine that boots again is not.
RESTARTS_S, BOOTS_S = (0.2, 1.5), (5.5, 9.0)


class Process:
    """One life. `alive` ends for good with a kill or with the end of `App.run`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.alive = True
        self.loop = Loop(world.timeline, self)
        self.app: App | None = None
        self.task: asyncio.Task[None] | None = None

    def thread_delay_s(self) -> float:
        """A thread begins soon; on a slow disk later."""
        return self._world.thread_delay_s()

    def crashed(self, error: BaseException) -> None:
        """A callback raised."""
        self._world.fault("crash", f"exception in a callback: {error!r}")


class Daemon:
    """Starts, stops and restarts processes. `restart`: the supervisor is at work."""

    def __init__(self, world: World, config: Config) -> None:
        self._world = world
        self._config = config
        self.restart = True
        self.starts = 0
        # when each process ended, by the number of its start
        self.ends: dict[int, float] = {}
        self.process = Process(world)
        self._buried: list[Process] = []

    @property
    def loop(self) -> Loop:
        """The event loop of the present process."""
        return self.process.loop

    @property
    def app(self) -> App | None:
        """The present App; None while there is no process."""
        return self.process.app if self.process.alive else None

    async def compile(self) -> None:
        """What a start takes."""
        await asyncio.sleep(self._world.random.uniform(*COMPILES_S))

    def start(self) -> None:
        """The supervisor starts it."""
        world = self._world
        self.starts += 1
        self._buried.append(self.process)
        self.process = process = Process(world)
        world.note("daemon", f"start {self.starts}")
        world.started()
        world.timeline.current = process
        try:
            process.app = App(self._config, reload=lambda: self._config)
            process.task = process.loop.create_task(process.app.run(signals=False))
            process.task.add_done_callback(lambda task: self._ended(process, task))
        except Killed:
            return
        except Exception as error:
            self._world.cannot_start(error)
            self.end("does not start")
        finally:
            world.timeline.current = None

    def _ended(self, process: Process, task: asyncio.Task[None]) -> None:
        if not process.alive:
            return
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._world.ended_by(error)
        self.end("ended" if error is None else "failed")

    def end(self, why: str) -> None:
        """The process is gone, now; the supervisor starts another."""
        world, process = self._world, self.process
        if not process.alive:
            return
        world.note("daemon", why)
        process.alive = False
        self.ends[self.starts] = world.timeline.now
        world.disk.process_ended(process)
        world.ended()
        world.timeline.after(world.random.uniform(0.0, 0.01), world.break_lines)
        if self.restart:
            pause_s = world.random.uniform(*(BOOTS_S if world.random.random() < 0.15 else RESTARTS_S))
            world.timeline.after(pause_s, self._restart, process)

    def _restart(self, after: Process) -> None:
        if self.process is after and self.restart:
            self.start()

    def terminate(self) -> None:
        """SIGTERM."""
        if (app := self.app) is not None:
            self._world.note("daemon", "SIGTERM")
            self.loop.call_soon(app.stop)

    def hang_up(self) -> None:
        """SIGHUP."""
        if (app := self.app) is not None:
            self._world.note("daemon", "SIGHUP")
            self.loop.call_soon(app.reload)

    def bury(self) -> None:
        """Close what the dead processes were in the middle of; it cannot touch anything any more."""
        for process in (*self._buried, self.process):
            process.alive = False
            for task in asyncio.all_tasks(process.loop):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                with suppress(BaseException):
                    task.get_coro().close()  # type: ignore[union-attr]
