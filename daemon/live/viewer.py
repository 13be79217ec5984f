"""One page that is watching, seen from the daemon: what it has not been told yet, and never too much of it.

Pictures: the newest one only; a slow page skips some. Alarm news: in order and complete, up to NEWS_WAITING of
them; beyond that the waiting ones are dropped and the page gets all alarms again (a resync), which says the same. So a
page that stands still costs a bounded amount of memory, however long it stands.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from watchkeeper.streams.foreign.decode import ForeignError, from_json

NEWS_WAITING = 500
# How many of them go into one message.
NEWS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Picture:
    """One moment, encoded. Slots mean the same vehicles within an `era`: a clock that went back begins another."""

    number: int
    era: int
    data: bytes


class Show(Protocol):
    """What a viewer asks of the live view when it is ready for more."""

    picture: Picture | None

    def everything(self) -> bytes:
        """All alarms, as one message."""
        ...

    def roster(self, since: int | None) -> tuple[bytes, int]:
        """The names that are new since this version (None: all, from nothing; empty: none are), and their version."""
        ...

    def vehicle(self, name: str) -> bytes:
        """About one vehicle, at the newest picture."""
        ...

    def network(self) -> bytes:
        """The links, at the newest picture."""
        ...


@dataclass(slots=True, eq=False)
class Viewer:
    """`tell` and `offer` from the event loop; `next` when the connection can take another message."""

    show: Show
    selected: str | None = None
    wants_network: bool = False
    resyncs: int = 0
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    _news: deque[bytes] = field(default_factory=deque)
    _resync: bool = True
    _drawn: int = 0
    _era: int = -1
    _names: int = 0
    _extras: list[Callable[[], bytes]] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        """News that wait."""
        return len(self._news)

    def tell(self, news: bytes) -> None:
        """One alarm event or acknowledgement, encoded."""
        if self._resync:
            return  # all alarms will be sent, this one among them
        if len(self._news) >= NEWS_WAITING:
            self._news.clear()
            self._resync = True
            self.resyncs += 1
        else:
            self._news.append(news)
        self.wake.set()

    def resync(self) -> None:
        """Send all alarms again, in place of what waits."""
        self._news.clear()
        self._resync = True
        self.wake.set()

    def offer(self) -> None:
        """There is a new picture."""
        self.wake.set()

    def ask(self, wish: dict[str, Any]) -> None:
        """What the page says: `select` a vehicle (or none), `network` on or off. Anything else is ignored."""
        if "select" in wish:
            self.selected = wish["select"] if isinstance(wish["select"], str) else None
        if "network" in wish:
            self.wants_network = wish["network"] is True
        self._add_extras()
        self.wake.set()

    def next(self) -> bytes | None:
        """The next message, most urgent first: alarms, then names, then the picture and what belongs to it."""
        if self._resync:
            self._resync = False
            return self.show.everything()
        if self._news:
            some = [self._news.popleft() for _ in range(min(len(self._news), NEWS_AT_ONCE))]
            return b'{"type":"news","news":[' + b",".join(some) + b"]}"
        picture = self.show.picture
        if picture is not None and picture.number != self._drawn:
            message, self._names = self.show.roster(self._names if picture.era == self._era else None)
            self._era = picture.era
            if message:
                return message
            self._drawn = picture.number
            self._add_extras()
            return picture.data
        return self._extras.pop()() if self._extras else None

    def _add_extras(self) -> None:
        self._extras.clear()
        if self.selected is not None:
            self._extras.append(partial(self.show.vehicle, self.selected))
        if self.wants_network:
            self._extras.append(self.show.network)


def parse_wish(text: str) -> dict[str, Any]:
    """What a page sent; empty when it is nothing that we know."""
    try:
        wish = from_json(text)
    except ForeignError:
        return {}
    return wish if isinstance(wish, dict) else {}
