"""Looks, while the world goes on, at what anybody who comes to the broker now is shown; matters once all has been calm.

ghost, hidden   the retained alarms are those that the daemon has as active
status          the retained status says online while the daemon is connected, and offline when there is none
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from watchkeeper.daemon.outputs.readback import echo

if TYPE_CHECKING:
    from watchkeeper.daemon.app import App
    from watchkeeper.detectors.alarms.events import AlarmEvent

    from chaos.world import World

TOPICS = ("watchkeeper/alarm/", "watchkeeper/incident/")
STATUS = "watchkeeper/status"
# So long after the last disturbance, start or end of the daemon, all must be in order.
SETTLED_S = 5.0
# An alarm that the daemon knows nothing of has this long to be raised again.
UNKNOWN_S = 7.0 + echo.UNKNOWN_S


def active_alarms(app: App) -> list[AlarmEvent]:
    """What the daemon has as active: about vehicles, and about itself."""
    return [*app.pipeline.active.values(), *app.troubles.active]


class _Id(msgspec.Struct):
    id: str


class _Status(msgspec.Struct):
    state: str


class Calm:
    """Called with each probe; says each thing that is wrong once."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._since_s = 0.0
        self._start = 0
        self._alive = False
        self._said: set[str] = set()
        # what was wrong at the last look: an event may be on its way at this moment, but not for half a second
        self._seen: set[str] = set()
        self._found: set[str] = set()

    def look(self) -> None:
        """Compare what is retained with what is."""
        self._seen, self._found = self._found, set()
        world, now = self._world, self._world.timeline.now
        alive = world.daemon.process.alive
        app = world.daemon.app
        if world.disturbed or (self._start, self._alive) != (world.daemon.starts, alive):
            self._since_s, self._start, self._alive = now, world.daemon.starts, alive
            return
        if app is not None and (not app.transport.connected or app._stopping.is_set()):
            self._since_s = now
        if now - self._since_s < SETTLED_S:
            return
        if alive or not world.broker.no_will:
            self.status("online" if alive else "offline", self._suspect)
        if app is None:
            return
        retained = world.broker.retained
        shown = {
            msgspec.json.decode(payload, type=_Id).id: topic
            for topic, payload in retained.items()
            if topic.startswith(TOPICS)
        }
        active = {event.id: event for event in active_alarms(app)}
        for alarm_id in shown.keys() - active.keys() if now - self._since_s >= UNKNOWN_S else ():
            self._suspect("ghost", f"{shown[alarm_id]} {alarm_id} is retained and not active")
        for alarm_id in active.keys() - shown.keys():
            event = active[alarm_id]
            self._suspect("hidden", f"{event.kind} {'~'.join(event.subjects)} {alarm_id} is active and not retained")

    def _suspect(self, invariant: str, words: str) -> None:
        self._found.add(words)
        if words in self._seen:
            self._say(invariant, words)

    def status(self, wanted: str, say: Callable[[str, str], None] | None = None) -> None:
        """The retained status is this; else `say` is told, or it is said here and now."""
        payload = self._world.broker.retained.get(STATUS)
        state = msgspec.json.decode(payload, type=_Status).state if payload else "nothing"
        if state != wanted:
            (say or self._say)("status", f"says {state} while the daemon is {wanted}")

    def _say(self, invariant: str, words: str) -> None:
        if words not in self._said:
            self._said.add(words)
            self._world.fault(invariant, words)
