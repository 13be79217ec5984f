"""Shelves over the API: put one up, look at them, take one down."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec

from watchkeeper.daemon.history import alarms as past
from watchkeeper.daemon.http.api.served import Served
from watchkeeper.daemon.http.api.shapes import NewShelf, ShelveAlarm, Shelves
from watchkeeper.daemon.http.api.table import Call, Refusal, Route
from watchkeeper.daemon.live.http import printable
from watchkeeper.daemon.live.shelves import FullError, Shelf, ShelfList
from watchkeeper.detectors.incidents.fold import counted

PAIR = 2


def routes(served: Served) -> list[Route]:
    """The paths below /shelves, and /alarms/<id>/shelve."""
    handlers = _Shelving(served)
    full = {409: "There are as many shelves as may be"}
    return [
        Route(method="GET", path="/shelves", summary="What is shelved now", answer=Shelves, handle=handlers.shown),
        Route(
            method="POST", path="/shelves", summary="Shelve what fits a rule", body=NewShelf, answer=Shelf, status=201,
            handle=handlers.add, role="operate", refusals=full,
        ),
        Route(
            method="DELETE", path="/shelves/{id}", summary="Take a shelf down", answer=None, handle=handlers.remove,
            role="operate", refusals={404: "There is no such shelf"}, status=204,
        ),
        Route(
            method="POST", path="/alarms/{id}/shelve", summary="Shelve an alarm, or what is like it", body=ShelveAlarm,
            answer=Shelf, status=201, handle=handlers.shelve, role="operate",
            refusals=full | {404: "There is no such alarm"},
        ),
    ]  # fmt: skip


class _Shelving:
    def __init__(self, served: Served) -> None:
        self._served = served

    @property
    def _shelves(self) -> ShelfList:
        return self._served.live.desk.shelves

    async def shown(self, _call: Call) -> Shelves:
        shelves = self._shelves
        active = self._served.live.watched.active()
        on = [event for event in active if shelves.of(event) is not None]
        return Shelves(shelves.current(), counted(on).alarms)

    async def add(self, call: Call) -> Shelf:
        wish: NewShelf = call.body
        if not any((wish.alarm, wish.vehicle, wish.pair, wish.kind, wish.area)):
            raise Refusal(400, "bad_request", "say what: an alarm, a vehicle, a pair, a kind or an area", "alarm")
        rule = Shelf(
            id="", t_wall=0.0, t_expires_wall=0.0, by=printable(wish.by or call.by), reason=wish.reason,
            alarm=wish.alarm or None, vehicle=wish.vehicle or None, pair=wish.pair, kind=wish.kind or None,
            area=wish.area,
        )  # fmt: skip
        return await self._put(rule, wish.minutes)

    async def shelve(self, call: Call) -> Shelf:
        wish: ShelveAlarm = call.body
        name = call.path["id"]
        await self._served.settle()
        event = next((event for event in self._served.live.watched.active() if event.id == name), None)
        kind, subjects = (event.kind, list(event.subjects)) if event is not None else await self._past(name)
        rule = Shelf(id="", t_wall=0.0, t_expires_wall=0.0, by=printable(wish.by or call.by), reason=wish.reason)
        about: dict[str, Any] = {"pair": subjects} if len(subjects) == PAIR else {"vehicle": subjects[0]}
        given: dict[str, Any] = {
            "alarm": {"alarm": name},
            "subjects": {"kind": kind, **about},
            "vehicle": {"vehicle": subjects[0]},
            "kind": {"kind": kind},
        }[wish.what]
        return await self._put(msgspec.structs.replace(rule, **given), wish.minutes)

    async def _past(self, name: str) -> tuple[str, list[str]]:
        def ask(db: sqlite3.Connection) -> tuple[str, list[str]] | None:
            row = past.alarm(db, name)
            event = past.last_event(db, name, row.era) if row is not None else None
            return (row.kind, past.subjects(event)) if row is not None and event is not None else None

        found = await self._served.ask(ask)
        if found is None or not found[1]:
            raise Refusal(404, "not_found", "no such alarm: it may be older than the history")
        return found

    async def remove(self, call: Call) -> None:
        if not self._shelves.remove(call.path["id"]):
            raise Refusal(404, "not_found", "no such shelf: it may have expired")
        await self._served.live.kept()

    async def _put(self, rule: Shelf, minutes: float) -> Shelf:
        try:
            made = self._shelves.add(rule, minutes)
        except FullError as error:
            raise Refusal(409, "full", "there are as many shelves as may be: take one down first") from error
        await self._served.live.kept()
        return made
