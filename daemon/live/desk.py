"""Alarms as the live page shows them: the active ones, those that ended lately, and who has acknowledged which.

An acknowledgement says "somebody looks after this". It changes nothing about the alarm: not the event, not its bytes on
MQTT or in the journal, and a replay does not know it. It is kept for as long as the alarm is shown, over a restart too,
in `acknowledged.json` of the state directory. Where that is lost, every alarm asks for attention again, which is the
safe way to be wrong. What is shelved is in shelves.py.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

import msgspec

from watchkeeper.daemon.live.shelves import ShelfList, Where
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.state.folder import StateFolder
from watchkeeper.daemon.state.sheet import Sheet
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


class _Kept(msgspec.Struct, frozen=True):
    acknowledged: dict[str, Acknowledgement]


class Desk:
    """The alarms of one daemon. `active` gives those that the pipeline holds now, `where` the place of a vehicle."""

    def __init__(
        self, active: Callable[[], Iterable[AlarmEvent]], where: Where, state: StateFolder | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._active = active
        self._now = now
        self._recent: OrderedDict[str, AlarmEvent] = OrderedDict()
        self._sheet = Sheet(state, "acknowledged.json", "every alarm asks for attention again")
        found = self._sheet.read(_Kept)
        self.acknowledged = found.acknowledged if found is not None else {}
        # whether all alarms of the run before are known again
        self._settled = state is None
        self.shelves = ShelfList(where, state, now)

    def settle(self) -> None:
        """All alarms of the run before are known again: of those that are not, nobody looks after anything."""
        self._settled = True
        if self._forget() or self._sheet.spoilt:
            self._keep()

    def note(self, event: AlarmEvent) -> None:
        """Take in one event: an alarm that ends stays for a while, one that left is forgotten with all about it."""
        if event.state != CLEARED:
            return
        self._recent[event.id] = event
        self._recent.move_to_end(event.id)
        forgotten = False
        while len(self._recent) > RECENT:
            gone, _ = self._recent.popitem(last=False)
            forgotten |= self.acknowledged.pop(gone, None) is not None
        if forgotten:
            self._keep()

    def acknowledge(self, alarm: str, by: str, *, on: bool = True) -> Acknowledgement | None:
        """Mark an alarm as looked after, or take that back; KeyError when no such alarm is shown.

        Of two people who acknowledge one alarm the first stands. `written` waits until a crash would not undo it.
        """
        if alarm not in self._recent and all(event.id != alarm for event in self._active()):
            raise KeyError(alarm)
        if not on:
            if self.acknowledged.pop(alarm, None) is not None:
                log.info("acknowledgement taken back", extra=kv(alarm=alarm, by=by))
                self._keep()
            return None
        if alarm not in self.acknowledged:
            self._forget()
            self.acknowledged[alarm] = Acknowledgement(by, round(self._now(), 3))
            log.info("alarm acknowledged", extra=kv(alarm=alarm, by=by))
            self._keep()
        return self.acknowledged[alarm]

    async def written(self) -> None:
        """Return when the disk has what people have done, or refused it, which /readyz says."""
        await self._sheet.written()
        await self.shelves.written()

    def everything(self) -> Shown:
        """All that a page shows, for one that has just come or has lost its place."""
        active = list(self._active())
        ids = {event.id for event in active} | self._recent.keys()
        acknowledged = {alarm: ack for alarm, ack in self.acknowledged.items() if alarm in ids}
        return Shown([*self._recent.values(), *active], acknowledged)

    def _forget(self) -> bool:
        """Drop what is about alarms that are not shown: one that is corrected at the start ends without an event."""
        if not self._settled:
            return False
        ids = {event.id for event in self._active()} | self._recent.keys()
        gone = self.acknowledged.keys() - ids
        for alarm in gone:
            del self.acknowledged[alarm]
        return bool(gone)

    def _keep(self) -> None:
        self._sheet.put(_Kept(self.acknowledged))
