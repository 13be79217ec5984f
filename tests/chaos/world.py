"""One seed: a scene, a plan of faults, and the daemon between them; `run` plays it and gives the verdict.

Everything that chance decides comes from the seed, in one thread of control: the same seed is the same world.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from watchkeeper.daemon.app import App

from chaos import scenes
from chaos.broker import Broker, Message
from chaos.calm import Calm
from chaos.daemon import Daemon
from chaos.disk import Disk
from chaos.faults import FAULTS, SILENT, Outage, draw
from chaos.network import Line
from chaos.senders import Sender
from chaos.timeline import START_S, Timeline

PROBE_S = 0.5
# The orderly end has this long, DRAIN_S and a little.
ENDS_WITHIN_S = 15.0


@dataclass(slots=True)
class Probe:
    """What /readyz said, and what was wrong then."""

    at_s: float
    said: list[str]
    wrong: str


@dataclass(slots=True)
class Said:
    """A publication of the daemon: when the broker had it, and when the daemon knew (None: it never did)."""

    at_s: float
    message: Message
    start: int
    # the disk took nothing then, and /readyz said so
    unkept: bool
    confirmed_s: float | None = None


@dataclass
class World:
    """See the module's docstring. `faults`: those to play, drawn from the seed when None."""

    seed: int
    faults: tuple[str, ...] | None = None
    trace: list[tuple[float, str, str]] | None = None
    timeline: Timeline = field(default_factory=Timeline)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        if self.faults is None:
            self.faults = draw(self.random)
        self.scene = scenes.scene(self.seed % scenes.SCENES)
        config = scenes.config(
            expiry_s=0 if "no_session" in self.faults else 300,
            fsync="power" in self.faults,
            queue=100 if "flood" in self.faults else 200_000,
        )
        self.disk = Disk(self.timeline, self.random)
        self.disk.blown = self._fuse_blown
        self.broker = Broker(self.timeline, self.note)
        self.broker.unkept = self._unkept
        self.broker.may_forget = "no_session" in self.faults
        self.cut: Literal["", "reset", "silent"] = ""
        self.cut_off: set[str] = set()
        self.lines: list[Line] = []
        self.slow = 1.0
        self.wall_s = 0.0
        self.refused_until_s = 0.0
        # the App of which a detector fails now
        self.failing: App | None = None
        self.slow_disk_s = 0.0
        self.said: list[Said] = []
        self.probes: list[Probe] = []
        self.problems: list[tuple[str, str]] = []
        self.outages: list[Outage] = []
        self.daemon = Daemon(self, config)
        self._calm = Calm(self)
        self.messages = self.scene.messages()
        self.senders = {name: Sender(self, name, due) for name, due in self.messages.items()}

    # -- what the parts ask for -----------------------------------------------------------------------------

    def note(self, who: str, what: str) -> None:
        """A line of the trace."""
        if self.trace is not None:
            self.trace.append((self.timeline.now - START_S, who, what))

    def fault(self, invariant: str, what: str) -> None:
        """Something that must never be."""
        self.problems.append((invariant, what))
        self.note("VERDICT", f"{invariant}: {what}")

    def latency_s(self) -> float:
        """Of a packet."""
        return self.random.uniform(0.001, 0.01) * self.slow

    def thread_delay_s(self) -> float:
        """Until a thread gets its turn and the disk has answered."""
        return self.random.expovariate(1000.0) + self.slow_disk_s * self.random.random()

    def published(self, message: Message) -> None:
        """The broker has a message of the daemon."""
        self.said.append(Said(self.timeline.now, message, self.daemon.starts, self._unkept()))
        self.note(
            "daemon", f"-> {message.topic} {message.payload[:600].decode(errors='replace')} retain={message.retain}"
        )

    def confirmed(self, message: Message) -> None:
        """The daemon knows that the broker has it."""
        for said in reversed(self.said):
            if said.message is message:
                said.confirmed_s = self.timeline.now
                return

    def cannot_start(self, error: Exception) -> None:
        """App refused to begin."""
        self.fault("start", f"does not start: {type(error).__name__}: {error}")

    def ended_by(self, error: BaseException) -> None:
        """App.run raised."""
        errors: Iterable[BaseException] = error.exceptions if isinstance(error, BaseExceptionGroup) else (error,)
        self.fault("crash", "ended by " + ", ".join(repr(each) for each in errors))

    def break_lines(self) -> None:
        """Every connection to the daemon's host is reset."""
        for line in self.lines:
            line.broken()
        self.lines.clear()

    def _unkept(self) -> bool:
        """The disk takes nothing or next to nothing, or did not a moment ago, and the daemon says so.

        That /readyz says so while it lasts, and not much longer, is an invariant of its own.
        """
        app = self.daemon.app
        said = app is not None and any(word.startswith("input log not written") for word in app.memory.health())
        return self.disk.trouble or self.disk.deleted or said

    def started(self) -> None:
        """A process begins: on a disk that cannot be read it knows nothing of what was kept."""
        if self.broker.may_forget and self.daemon.ends:
            # nobody has kept what was said meanwhile, or can say that nothing was: who was silent is judged anew
            self.outages.append(Outage(self.daemon.ends[self.daemon.starts - 1], self.timeline.now, SILENT))
        if self.disk.broken:
            self.forgotten()

    def forgotten(self) -> None:
        """What was kept is out of reach for the next process."""
        for due in self.messages.values():
            for _, message in due:
                message.doubtful |= message.acknowledged

    def ended(self) -> None:
        """A process is gone: what it could not keep may be gone too."""
        for due in self.messages.values():
            for _, message in due:
                message.doubtful |= message.unkept or (self.disk.deleted and message.acknowledged)

    def _fuse_blown(self, what: str) -> None:
        self.daemon.end(f"killed at: {what}")

    # -- the play -------------------------------------------------------------------------------------------

    def run(self) -> None:
        """From the first start to the last orderly end."""
        assert self.faults is not None
        self.note("world", f"seed {self.seed}, scene {self.scene.number}, faults {', '.join(self.faults) or 'none'}")
        self.timeline.at(START_S + 0.1, self.daemon.start)
        self.timeline.after(scenes.BEGIN_S, self._probe)
        for name in self.faults:
            FAULTS[name](self, self.random)
        self.timeline.run(START_S + scenes.END_S + 0.5)
        self.daemon.restart = False
        if not self.daemon.process.alive:
            self.fault("start", "is not running at the end")
        self.daemon.terminate()
        self.timeline.run(self.timeline.now + ENDS_WITHIN_S, lambda: not self.daemon.process.alive)
        if self.daemon.process.alive:
            self.fault("stop", "does not stop")
            self.daemon.end("given up")
        self.timeline.run(self.timeline.now + 1.0)
        self._calm.status("offline")

    def _probe(self) -> None:
        self.timeline.after(PROBE_S, self._probe)
        self._calm.look()
        app = self.daemon.app
        if app is not None and app.condition.warm:
            said = [*app.condition.not_ready(), *app.condition.warnings()]
            self.probes.append(Probe(self.timeline.now, said, self._wrong()))

    def _wrong(self) -> str:
        if self.cut == "silent" or any(line.open and line.silent for line in self.lines):
            return "silent line"
        if self.cut or not self.broker.up:
            return "no broker"
        if self.failing is not None and self.failing is self.daemon.app:
            return "detector"
        if self.disk.deleted:
            return "no folder"
        return "disk" if self.disk.trouble else ""

    @property
    def disturbed(self) -> bool:
        """A fault is on that the daemon cannot do anything about."""
        refused = self.timeline.now < self.refused_until_s
        return bool(self._wrong() or self.slow > 1.0 or self.slow_disk_s or refused)
