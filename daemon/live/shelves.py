"""Shelves: rules that hide and mute alarms for a while, with a reason. They change nothing about detection.

A shelf is about one alarm, a vehicle, a pair, a kind or a circle on Earth, or several of these at once; an alarm that
fits all that a shelf names is on it until it expires, by the wall clock. Alarms on a shelf are counted, and shown as
shelved. Shelves are kept over a restart, in `shelves.json` of the state directory; those that expired are taken down.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from watchkeeper.daemon.state.folder import StateFolder
from watchkeeper.daemon.state.sheet import Sheet
from watchkeeper.detectors.alarms.events import AlarmEvent

# More than anybody looks after; beyond it none can be put up.
MOST = 500
EARTH_M = 6_371_000.0
Where = Callable[[str], tuple[float, float] | None]


class Area(Struct, frozen=True, forbid_unknown_fields=True):
    """A circle on Earth."""

    lat: Annotated[float, Meta(ge=-90, le=90)]
    lon: Annotated[float, Meta(ge=-180, le=180)]
    radius_m: Annotated[float, Meta(gt=0, le=2e7)]

    def has(self, lat: float, lon: float) -> bool:
        """Whether a place is inside.

        >>> Area(48.0, 11.0, 2000.0).has(48.01, 11.0), Area(48.0, 11.0, 1000.0).has(48.01, 11.0)
        (True, False)
        """
        a, b = math.radians(self.lat), math.radians(lat)
        half = math.sin((b - a) / 2) ** 2 + math.cos(a) * math.cos(b) * math.sin(math.radians(lon - self.lon) / 2) ** 2
        return 2.0 * EARTH_M * math.asin(math.sqrt(min(half, 1.0))) <= self.radius_m


class Shelf(Struct, frozen=True, kw_only=True):
    """A rule that hides and mutes alarms. It changes nothing about detection, outputs or the journal."""

    id: str
    t_wall: float
    t_expires_wall: float
    by: str = ""
    reason: str = ""
    alarm: str | None = None
    vehicle: str | None = None
    pair: list[str] | None = None
    kind: str | None = None
    area: Area | None = None

    def fits(self, event: AlarmEvent, where: Where) -> bool:
        """Whether an alarm is on it."""
        if self.alarm is not None and self.alarm != event.id:
            return False
        if self.kind is not None and self.kind != event.kind:
            return False
        if self.vehicle is not None and self.vehicle not in event.subjects:
            return False
        if self.pair is not None and sorted(self.pair) != sorted(event.subjects):
            return False
        if self.area is not None:
            return any(self.area.has(*place) for place in _places(event, where))
        return True


def _places(event: AlarmEvent, where: Where) -> list[tuple[float, float]]:
    """Where an alarm is: its vehicles, or the middle of the place that it is about."""
    lat, lon = event.evidence.get("lat"), event.evidence.get("lon")
    if isinstance(lat, float | int) and isinstance(lon, float | int):
        return [(float(lat), float(lon))]
    return [place for place in map(where, event.subjects) if place is not None]


class FullError(Exception):
    """There are as many shelves as may be."""


class _Kept(Struct, frozen=True):
    shelves: list[Shelf]


class ShelfList:
    """The shelves of one daemon, or of one replay."""

    def __init__(self, where: Where, state: StateFolder | None = None, now: Callable[[], float] = time.time) -> None:
        self._where, self._now = where, now
        self._sheet = Sheet(state, "shelves.json", "what was shelved calls for attention again")
        found = self._sheet.read(_Kept)
        kept = found.shelves[:MOST] if found is not None else []
        self._shelves = {shelf.id: shelf for shelf in kept if shelf.t_expires_wall > now()}
        if self._sheet.spoilt:
            self._keep()
        # told when one is put up or taken down
        self.changed: Callable[[], None] = lambda: None

    def current(self) -> list[Shelf]:
        """Those that have not expired, the oldest first; expired ones are taken down."""
        now = self._now()
        for name in [name for name, shelf in self._shelves.items() if shelf.t_expires_wall <= now]:
            self.remove(name)
        return list(self._shelves.values())

    def add(self, shelf: Shelf, minutes: float) -> Shelf:
        """Put one up for so many minutes. Raises FullError."""
        if len(self.current()) >= MOST:
            raise FullError
        now = round(self._now(), 3)
        made = msgspec.structs.replace(
            shelf, id=secrets.token_hex(6), t_wall=now, t_expires_wall=round(now + 60.0 * minutes, 3)
        )
        self._shelves[made.id] = made
        self._keep()
        self.changed()
        return made

    def remove(self, name: str) -> bool:
        """Take one down; False when there is none of this name."""
        if self._shelves.pop(name, None) is None:
            return False
        self._keep()
        self.changed()
        return True

    def of(self, event: AlarmEvent) -> str | None:
        """The shelf that an alarm is on."""
        if not self._shelves:
            return None
        return next((shelf.id for shelf in self.current() if shelf.fits(event, self._where)), None)

    async def written(self) -> None:
        """Return when the disk has them, or refused them."""
        await self._sheet.written()

    def _keep(self) -> None:
        self._sheet.put(_Kept(list(self._shelves.values())))
