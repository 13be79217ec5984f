"""Alarms over the API: lists now and past, whole lives, downloads, and what a person may do about one."""

from __future__ import annotations

import csv
import io
import sqlite3
from dataclasses import replace
from typing import Any, cast

import msgspec

from watchkeeper.daemon.history import alarms as past
from watchkeeper.daemon.history.reader import NoHistoryError
from watchkeeper.daemon.http.api import recent
from watchkeeper.daemon.http.api.served import Served, cursor, place_of
from watchkeeper.daemon.http.api.shapes import (
    Accept,
    Ack,
    Acknowledge,
    AlarmLife,
    AlarmLifeQuery,
    AlarmPage,
    AlarmQuery,
    AlarmRow,
    whole,
)
from watchkeeper.daemon.http.api.table import Bytes, Call, Refusal, Route
from watchkeeper.daemon.live.http import printable
from watchkeeper.daemon.live.view import RefusedError
from watchkeeper.detectors.alarms.events import AlarmEvent, encode_event

# Rows of a download.
DOWNLOAD = 10_000
_CSV = ("id", "era", "kind", "state", "severity", "subjects", "t_onset", "t_raised", "t_cleared", "t", "score", "say")
NO_ALARM = "no such alarm: it may be older than the history"


def routes(served: Served) -> list[Route]:
    """The paths below /alarms."""
    handlers = _Alarms(served)
    gone, conflict = {404: "There is no such alarm"}, {409: "Not now, or not with this alarm"}
    return [
        Route(
            method="GET", path="/alarms", summary="Alarms, now and past, with filters, in pages", query=AlarmQuery,
            answer=AlarmPage, handle=handlers.page, others=("text/csv",),
        ),
        Route(
            method="GET", path="/alarms/{id}", summary="The whole life of one alarm", query=AlarmLifeQuery,
            answer=AlarmLife, handle=handlers.life, refusals=gone,
        ),
        Route(
            method="POST", path="/alarms/{id}/acknowledge", summary="Somebody looks after this alarm", body=Acknowledge,
            answer=Ack | None, handle=handlers.acknowledge, role="operate", refusals=gone,
        ),
        Route(
            method="POST", path="/alarms/{id}/accept", summary="A state that lasts is as it should be: its alarm ends",
            body=Accept, answer=AlarmEvent, handle=handlers.accept, role="operate", refusals=gone | conflict,
        ),
    ]  # fmt: skip


class _Alarms:
    def __init__(self, served: Served) -> None:
        self._served = served

    async def page(self, call: Call) -> AlarmPage | Bytes:
        query: AlarmQuery = call.query
        table = query.format == "csv" or "text/csv" in call.request.headers.get("Accept", "")
        wanted = _wanted(query, DOWNLOAD if table else query.limit)
        await self._served.settle()
        try:
            rows, total, symptoms = await self._served.ask(lambda db: (_rows(db, wanted), *_counts(db, wanted)))
        except (NoHistoryError, Refusal):
            # what is active now is known without a history
            rows, total, symptoms = recent.listed(self._served.live, wanted)
        rows, more = rows[: wanted.limit], rows[wanted.limit :]
        last = rows[-1] if rows and more else None
        shown = [self._marked(row) for row, _ in rows]
        if query.shelved is not None:
            shown = [row for row in shown if (row.shelved is not None) is query.shelved]
        if table:
            return Bytes(_table(shown), "text/csv", "alarms.csv")
        following = cursor([last[1], last[0].id, last[0].era]) if last is not None else None
        return AlarmPage(shown, total, symptoms, sum(row.shelved is not None for row in shown), following)

    async def life(self, call: Call) -> AlarmLife:
        name, query = call.path["id"], call.query
        await self._served.settle()
        try:
            found = await self._served.ask(lambda db: _life(db, name, query.era, query.t))
        except (NoHistoryError, Refusal):
            found = recent.life(self._served.live, name)
        if found is None:
            raise Refusal(404, "not_found", NO_ALARM)
        row, events, acks = found
        return AlarmLife(self._marked(row), events, acks)

    async def acknowledge(self, call: Call) -> Ack | None:
        wish: Acknowledge = call.body
        try:
            answer = self._served.live.acknowledge(call.path["id"], printable(wish.by or call.by), on=wish.on)
        except KeyError as error:
            raise Refusal(404, "not_found", "no such alarm is shown: it may have ended long ago") from error
        await self._served.live.kept()
        return Ack(answer.by, answer.t) if answer is not None else None

    async def accept(self, call: Call) -> AlarmEvent:
        try:
            ended = await self._served.live.accept(call.path["id"], printable(call.body.by or call.by))
        except KeyError as error:
            raise Refusal(404, "not_found", "no such alarm is active") from error
        except RefusedError as error:
            raise Refusal(409, "not_now", str(error)) from error
        return whole(encode_event(ended))

    def _marked(self, row: AlarmRow) -> AlarmRow:
        """With what is known now: who looks after it, and the shelf that it is on."""
        served = self._served
        ack = served.live.desk.acknowledged.get(row.id)
        shelves = served.live.desk.shelves
        # the event is looked into only while something is shelved
        shelf = shelves.of(AlarmEvent.of(bytes(cast(msgspec.Raw, row.event)))) if shelves.current() else None
        given = Ack(ack.by, ack.t) if ack is not None else row.acknowledged
        return msgspec.structs.replace(row, acknowledged=given, shelved=shelf)


def _wanted(query: AlarmQuery, limit: int) -> past.Wanted:
    after = place_of(query.cursor, tuple[float | str | None, str, int])
    return past.Wanted(
        kinds=query.kind, severities=query.severity, subject=query.subject, state=query.state, active=query.active,
        text=query.text, t0=query.t0, t1=query.t1, at=query.at, era=query.era, symptoms=query.symptoms,
        sort=query.sort, descending=query.order == "desc", after=after, limit=limit,
    )  # fmt: skip


def _counts(db: sqlite3.Connection, wanted: past.Wanted) -> tuple[int, int]:
    """How many there are on all pages, and how many of them are symptoms."""
    total = past.count(db, wanted)
    if wanted.symptoms is not None:
        return total, total * wanted.symptoms
    return total, past.count(db, replace(wanted, symptoms=True))


def _rows(db: sqlite3.Connection, wanted: past.Wanted) -> list[tuple[AlarmRow, Any]]:
    found = []
    for row in past.listed(db, wanted):
        event = past.last_event(db, row.id, row.era, wanted.at)
        if event is not None:
            found.append((_shown(db, row, event), row.place))
    return found


def _shown(db: sqlite3.Connection, row: past.Row, event: bytes) -> AlarmRow:
    acks = past.acks(db, row.id)
    return AlarmRow(
        id=row.id, era=row.era, kind=row.kind, state=row.state, severity=row.severity, subjects=past.subjects(event),
        t_onset=row.t_onset, t_raised=row.t_raised, t_cleared=row.t_cleared, t=row.t, score=row.score, say=row.say,
        events=row.events, acknowledged=Ack(*acks[-1]) if acks and acks[-1][2] else None, shelved=None,
        event=whole(event),
    )  # fmt: skip


def _life(
    db: sqlite3.Connection, name: str, era: int | None, t: float | None
) -> tuple[AlarmRow, list[AlarmEvent], list[Ack]] | None:
    row = past.alarm(db, name, era)
    if row is None:
        return None
    events = past.life(db, name, row.era, t)
    if not events:
        return None
    return _shown(db, row, events[-1]), list(map(whole, events)), [Ack(*ack) for ack in past.acks(db, name)]


def _table(rows: list[AlarmRow]) -> bytes:
    file = io.StringIO()
    table = csv.writer(file)
    table.writerow(_CSV)
    for row in rows:
        values = {name: getattr(row, name) for name in _CSV} | {"subjects": " ".join(row.subjects)}
        table.writerow([_plain(values[name]) for name in _CSV])
    return file.getvalue().encode()


def _plain(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
