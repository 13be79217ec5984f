"""Alarms as the live page shows them: the active ones, those that ended lately, and who has acknowledged which.

An acknowledgement says "somebody looks after this". It changes nothing about the alarm: not the event, not its bytes on
MQTT or in the journal, and a replay does not know it. It is kept in memory only, for as long as the alarm is shown:
after a restart every alarm asks for attention again, which is the safe way to be wrong.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

import msgspec

from watchkeeper.daemon.logs import kv
from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent

log = logging.getLogger(__name__)

# Ended alarms that a page still shows.
RECENT = 300
# Longest name that an acknowledgement carries, in characters.
BY_MAX = 64


class Acknowledgement(msgspec.Struct, frozen=True):
    """Who looks after an alarm, if they said so, and since when (Unix seconds)."""

    by: str
    t: float


class Shown(msgspec.Struct, frozen=True):
    """The alarms that a page shows, ended ones first, and who looks after which."""

    alarms: list[AlarmEvent]
    acknowledged: dict[str, Acknowledgement]


class Desk:
    """The alarms of one daemon. `active` gives those that the pipeline holds now."""

    def __init__(self, active: Callable[[], Iterable[AlarmEvent]], now: Callable[[], float] = time.time) -> None:
        self._active = active
        self._now = now
        self._recent: OrderedDict[str, AlarmEvent] = OrderedDict()
        self.acknowledged: dict[str, Acknowledgement] = {}

    def note(self, event: AlarmEvent) -> None:
        """Take in one event: an alarm that ends stays for a while, one that left is forgotten with all about it."""
        if event.state != CLEARED:
            return
        self._recent[event.id] = event
        self._recent.move_to_end(event.id)
        while len(self._recent) > RECENT:
            gone, _ = self._recent.popitem(last=False)
            self.acknowledged.pop(gone, None)

    def acknowledge(self, alarm: str, by: str, *, on: bool = True) -> Acknowledgement | None:
        """Mark an alarm as looked after, or take that back; KeyError when no such alarm is shown.

        Of two people who acknowledge one alarm the first stands.
        """
        if alarm not in self._recent and all(event.id != alarm for event in self._active()):
            raise KeyError(alarm)
        if not on:
            if self.acknowledged.pop(alarm, None) is not None:
                log.info("acknowledgement taken back", extra=kv(alarm=alarm, by=by))
            return None
        if alarm not in self.acknowledged:
            self.acknowledged[alarm] = Acknowledgement(by, round(self._now(), 3))
            log.info("alarm acknowledged", extra=kv(alarm=alarm, by=by))
        return self.acknowledged[alarm]

    def everything(self) -> Shown:
        """All that a page shows, for one that has just come or has lost its place."""
        active = list(self._active())
        ids = {event.id for event in active} | self._recent.keys()
        # an alarm that ended without an event that reached us (a restored one that was corrected) leaves no mark behind
        self.acknowledged = {alarm: ack for alarm, ack in self.acknowledged.items() if alarm in ids}
        return Shown([*self._recent.values(), *active], self.acknowledged)
