"""The past as a whole: everybody at a moment, and when alarms were raised."""

from __future__ import annotations

import sqlite3

from watchkeeper.daemon.history import alarms, past
from watchkeeper.daemon.history.reader import Era, NotBegunError, era_of, eras
from watchkeeper.daemon.http.api.served import Served
from watchkeeper.daemon.http.api.shapes import EraExtent, MomentQuery, Timeline, TimelineQuery, TimelineStep
from watchkeeper.daemon.http.api.table import Bytes, Call, Refusal, Route
from watchkeeper.daemon.live.picture import encode
from watchkeeper.detectors.base import SEVERITIES

PICTURE = "application/octet-stream"


def routes(served: Served) -> list[Route]:
    """The paths /picture and /timeline."""
    handlers = _Past(served)
    return [
        Route(
            method="GET", path="/picture", summary="Everybody at a moment, in the live page's own binary form",
            query=MomentQuery, answer=Bytes, handle=handlers.picture, others=(PICTURE,),
            refusals={404: "There is no such era"},
        ),
        Route(
            method="GET", path="/timeline", summary="How far the history reaches, and when alarms were raised",
            query=TimelineQuery, answer=Timeline, handle=handlers.timeline,
        ),
    ]  # fmt: skip


class _Past:
    def __init__(self, served: Served) -> None:
        self._served = served

    async def picture(self, call: Call) -> Bytes:
        query: MomentQuery = call.query
        forget_s = self._served.config().fleet.evict_idle_s

        def ask(db: sqlite3.Connection) -> bytes | None:
            era = era_of(db, query.era)
            if era is None:
                return None
            return encode(*past.picture_at(db, era, era.t_last if query.t is None else query.t, forget_s))

        found = await self._served.ask(ask)
        if found is None:
            # a daemon of a few seconds: what it knows is on its way to the disk
            await self._served.settle()
            found = await self._served.ask(ask)
        if found is None:
            raise Refusal(404, "no_such_era", "the history has nothing yet, or no such era", "era")
        return Bytes(found, PICTURE)

    async def timeline(self, call: Call) -> Timeline:
        query: TimelineQuery = call.query
        await self._served.settle()
        try:
            return await self._served.ask(lambda db: _timeline(db, query))
        except NotBegunError:
            return Timeline(eras=[], era=None, t0=None, t1=None, step_s=0.0, steps=[])


def _timeline(db: sqlite3.Connection, query: TimelineQuery) -> Timeline:
    extents = [EraExtent(era.era, era.t_first, era.t_last) for era in eras(db)]
    era: Era | None = era_of(db, query.era)
    if era is None:
        return Timeline(eras=extents, era=None, t0=None, t1=None, step_s=0.0, steps=[])
    t0 = era.t_first if query.t0 is None else query.t0
    t1 = era.t_last if query.t1 is None else query.t1
    if t1 <= t0:
        return Timeline(eras=extents, era=era.era, t0=t0, t1=t1, step_s=0.0, steps=[])
    step_s = (t1 - t0) / query.steps
    # the end itself belongs to the last step
    found: dict[int, TimelineStep] = {}
    for number, kind, rank, n in alarms.raised_by_bucket(db, era.era, t0, step_s, t1 + 1e-3):
        k = min(number, query.steps - 1)
        step = found.get(k) or TimelineStep(t0 + k * step_s, 0, {}, {})
        severity = SEVERITIES[rank]
        found[k] = TimelineStep(
            step.t,
            step.alarms + n,
            {**step.by_severity, severity: step.by_severity.get(severity, 0) + n},
            {**step.by_kind, kind: step.by_kind.get(kind, 0) + n},
        )
    return Timeline(eras=extents, era=era.era, t0=t0, t1=t1, step_s=step_s, steps=[found[k] for k in sorted(found)])
