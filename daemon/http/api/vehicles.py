"""Vehicles over the API: a table of all of them, now or at a moment, and one vehicle's track, scores and residuals."""

from __future__ import annotations

import math
import sqlite3
from bisect import bisect_right
from collections import Counter
from typing import Any, Literal, NamedTuple

import numpy as np

from watchkeeper.daemon.history import alarms as past_alarms
from watchkeeper.daemon.history import past
from watchkeeper.daemon.history.layers import ratios, track
from watchkeeper.daemon.history.reader import NoHistoryError, Series, era_of, series, thinned
from watchkeeper.daemon.history.tables import code_of
from watchkeeper.daemon.http.api.served import Served, cursor, place_of
from watchkeeper.daemon.http.api.shapes import (
    Channels,
    Query,
    SpanQuery,
    Track,
    VehicleDetail,
    VehiclePage,
    VehicleQuery,
    VehicleRow,
    WatchChange,
    WatchHistory,
)
from watchkeeper.daemon.http.api.table import Call, Refusal, Route
from watchkeeper.daemon.live import picture
from watchkeeper.daemon.live.scores import NO_KIND, Scores
from watchkeeper.daemon.live.vehicle import describe
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.catalog import kinds
from watchkeeper.detectors.declaration import fields_of
from watchkeeper.detectors.fleet.reasons import JUDGED, NAMES, Code
from watchkeeper.detectors.incidents.fold import counted
from watchkeeper.streams.batch import F8
from watchkeeper.streams.foreign.decode import from_json

# Without a wish: an hour.
SPAN_S = 3600.0
# Samples that a chart has room for; a longer span is thinned to about so many, unless a step is asked for.
POINTS = 2000
# Samples in one answer at most.
MOST = 100_000
FRAMES: tuple[Literal["adsb", "gps", "local"], ...] = ("adsb", "gps", "local")
PLACE_DIGITS, DIGITS = 7, 3
GONE = {404: "No such vehicle is known"}


def routes(served: Served) -> list[Route]:
    """The paths below /vehicles."""
    handlers = _Vehicles(served)
    one = "/vehicles/{id}"
    return [
        Route(
            method="GET", path="/vehicles", summary="All vehicles, now or at a moment", query=VehicleQuery,
            answer=VehiclePage, handle=handlers.page,
        ),
        Route(
            method="GET", path=one, summary="One vehicle", answer=VehicleDetail, handle=handlers.one, refusals=GONE
        ),
        Route(
            method="GET", path=f"{one}/track", summary="Where it was", query=SpanQuery, answer=Track,
            handle=handlers.track_of, refusals=GONE,
        ),
        Route(
            method="GET", path=f"{one}/scores", summary="Its scores over their thresholds, by alarm kind",
            query=SpanQuery, answer=Channels, handle=handlers.scores, refusals=GONE,
        ),
        Route(
            method="GET", path=f"{one}/residuals", summary="The channels of gps_imu", query=SpanQuery, answer=Channels,
            handle=handlers.residuals, refusals=GONE,
        ),
        Route(
            method="GET", path=f"{one}/watch", summary="What was watched of it, and what not and why", query=Query,
            answer=WatchHistory, handle=handlers.watch, refusals=GONE,
        ),
    ]  # fmt: skip


class _Vehicles:
    def __init__(self, served: Served) -> None:
        self._served = served

    async def page(self, call: Call) -> VehiclePage:
        query: VehicleQuery = call.query
        after = place_of(query.cursor, str)
        table = self._now() if query.t is None else await self._then(query.t, query.era)
        if table is None:
            return VehiclePage([], query.t, 0, None)
        found = [(name, i) for i, (name, _) in enumerate(table.names) if name]
        if query.text:
            text = query.text.lower()
            found = [(n, i) for n, i in found if text in n.lower() or text in table.names[i][1].lower()]
        found.sort()
        first = 0 if after is None else bisect_right(found, after, key=lambda one: one[0])
        shown = found[first : first + query.limit]
        more = first + len(shown) < len(found)
        return VehiclePage(_rows(table, shown), table.t, len(found), cursor(shown[-1][0]) if more and shown else None)

    def _now(self) -> _Table | None:
        pipeline = self._served.live.watched.pipeline
        fleet, t = pipeline.fleet, pipeline.watermark
        if not math.isfinite(t):
            return None
        scores = self._scores()
        columns = picture.vehicles(fleet, scores, t, enu=pipeline.config.frames.local == "enu")
        slots = columns["slot"].tolist()
        table = pipeline.guard.coverage
        code = table.code[:, columns["slot"].astype(np.int64)]
        wrong = ~np.isin(code, (*JUDGED, Code.NOT_APPLICABLE))
        unwatched: dict[int, list[str]] = {}
        for d, row in zip(*np.nonzero(wrong), strict=True):
            unwatched.setdefault(int(row), []).append(f"{table.detectors[d]}: {NAMES[code[d, row]]}")
        names = [(fleet.ids[slot], fleet.callsigns.get(fleet.ids[slot], "")) for slot in slots]
        alarms_of: dict[str, list[AlarmEvent]] = {}
        for event in pipeline.active.values():
            for name in event.subjects:
                alarms_of.setdefault(name, []).append(event)
        # of one vehicle: a symptom of an incident that is about another one is all that there is to say of this one
        active = Counter({name: counted(events).alarms for name, events in alarms_of.items()})
        told_t = t - columns["age_s"].astype(np.float64)
        return _Table(names, columns, told_t, t, scores.kinds, active, unwatched)

    async def _then(self, t: float, number: int | None) -> _Table | None:
        forget_s = self._served.config().fleet.evict_idle_s

        def ask(db: sqlite3.Connection) -> _Table | None:
            era = era_of(db, number)
            if era is None:
                return None
            here = past.moment(db, era.era, t, forget_s)
            who = past.named(db, here.code)
            names = [who.get(code, (0, "", ""))[1:] for code in here.code.tolist()]
            active = past_alarms.active_subjects(db, era.era, t)
            return _Table(names, here.columns, here.t, t, here.kinds, active, {}) if len(here) else None

        return await self._served.ask(ask)

    async def one(self, call: Call) -> VehicleDetail:
        name = call.path["id"]
        live = self._served.live
        now = describe(live.watched.pipeline, self._scores(), name)
        known = bool(now["known"])
        try:
            found = await self._served.ask(lambda db: _known(db, name))
        except (NoHistoryError, Refusal):
            found = None
        if found is None and not known:
            raise Refusal(404, "not_found", f"no vehicle {name!r} is known, now or in the history")
        callsign, era, t_first, t_last, alarms = found or ("", None, None, None, 0)
        return VehicleDetail(
            id=name, callsign=now.get("callsign") or callsign, now=now if known else None, t_first=t_first,
            t_last=t_last, era=era, alarms=alarms,
        )  # fmt: skip

    def _scores(self) -> Scores:
        """The newest scores: those of the history, which looks at every tick, or those of open pages."""
        history = self._served.history
        found = history.recorder.scores if history is not None else self._served.live.scores
        capacity = self._served.live.watched.pipeline.fleet.capacity
        return found if found is not None and found.t.shape[1] == capacity else Scores(capacity)

    async def track_of(self, call: Call) -> Track:
        era, found, step_s = await self._span(call, "track", highest=False)
        c = found.columns
        earth = c["frame"] != picture.LOCAL
        y, x = c["y"], c["x"]
        return Track(
            id=call.path["id"], era=era, step_s=step_s, t=np.round(found.t, DIGITS).tolist(),
            lat=_finite(np.where(earth, y / picture.DEGREE, np.nan), PLACE_DIGITS),
            lon=_finite(np.where(earth, x / picture.DEGREE, np.nan), PLACE_DIGITS),
            north_m=_finite(np.where(earth, np.nan, y / picture.METRE)),
            east_m=_finite(np.where(earth, np.nan, x / picture.METRE)),
            **{name: _finite(c[name]) for name in ("alt_m", "speed_mps", "track_deg", "climb_mps", "score")},
        )  # fmt: skip

    async def scores(self, call: Call) -> Channels:
        meaning = {name: kind.help for name, kind in kinds().items()}
        return await self._channels(call, "scores", "score over its threshold", meaning)

    async def residuals(self, call: Call) -> Channels:
        facts = fields_of(kinds()["gps_imu"].facts)
        return await self._channels(call, "residuals", "sigma", {field.name: field.meaning for field in facts})

    async def _channels(self, call: Call, layer: str, unit: str, meaning: dict[str, str]) -> Channels:
        era, found, step_s = await self._span(call, layer, highest=True)
        columns = {name: _finite(values) for name, values in found.columns.items() if not np.isnan(values).all()}
        return Channels(
            id=call.path["id"], era=era, step_s=step_s, unit=unit, t=np.round(found.t, DIGITS).tolist(),
            columns=columns, meaning={name: meaning.get(name, "") for name in columns},
        )  # fmt: skip

    async def _span(self, call: Call, layer: str, *, highest: bool) -> tuple[int, Series, float]:
        query: SpanQuery = call.query
        name = call.path["id"]

        def ask(db: sqlite3.Connection) -> tuple[int, Series, float] | None:
            era = era_of(db, query.era)
            if era is None:
                return None
            t1 = era.t_last if query.t1 is None else query.t1
            t0 = t1 - SPAN_S if query.t0 is None else query.t0
            # outside of its era nothing is to be found
            t0, t1 = max(t0, era.t_first - SPAN_S), min(t1, era.t_last + SPAN_S)
            found = series(db, era.era, layer, name, t0, t1) if t0 <= t1 else None
            if found is None:
                known = db.execute("SELECT 1 FROM vehicles WHERE code = ?", (code_of(name),)).fetchone()
                return (era.era, _none(layer), 0.0) if known else None
            step_s = query.step
            if step_s is None:
                step_s = max(0.0, (t1 - t0) / POINTS) if len(found.t) > POINTS else 0.0
            found = thinned(found, step_s, highest=highest)
            if len(found.t) > MOST:
                raise Refusal(
                    400, "too_much", f"{len(found.t):,} samples: ask for a shorter span or a larger step", "step"
                )
            return era.era, found, step_s

        answer = await self._served.ask(ask)
        if answer is None:
            raise Refusal(404, "not_found", f"the history knows no vehicle {name!r}")
        return answer

    async def watch(self, call: Call) -> WatchHistory:
        name = call.path["id"]

        def ask(db: sqlite3.Connection) -> list[WatchChange] | None:
            if db.execute("SELECT 1 FROM vehicles WHERE code = ?", (code_of(name),)).fetchone() is None:
                return None
            era = era_of(db, None)
            rows = db.execute(
                "SELECT t, data FROM watch WHERE era = ? AND code = ? ORDER BY t DESC LIMIT 1000",
                (era.era if era else 0, code_of(name)),
            )
            return [WatchChange(t, from_json(data)) for t, data in rows]

        changes = await self._served.ask(ask)
        if changes is None:
            raise Refusal(404, "not_found", f"the history knows no vehicle {name!r}")
        return WatchHistory(name, changes)


def _none(layer: str) -> Series:
    columns = track(()) if layer == "track" else ratios(layer, ())
    return Series(np.empty(0), {name: np.empty(0) for name in columns.names}, columns)


def _known(db: sqlite3.Connection, name: str) -> tuple[str, int | None, float | None, float | None, int] | None:
    row = db.execute("SELECT callsign FROM vehicles WHERE code = ?", (code_of(name),)).fetchone()
    if row is None:
        return None
    alarms = past_alarms.of_subject(db, name)
    era = era_of(db, None)
    if era is None:
        return row[0], None, None, None, alarms
    first, last = past.extent(db, era.era, code_of(name))
    return row[0], era.era, first, last, alarms


class _Table(NamedTuple):
    """Everybody who is known at a moment, as columns: rows are made of those that are shown."""

    names: list[tuple[str, str]]
    columns: dict[str, Any]
    told_t: F8
    t: float
    kinds: tuple[str, ...]
    alarms: Counter[str]
    unwatched: dict[int, list[str]]


def _rows(table: _Table, shown: list[tuple[str, int]]) -> list[VehicleRow]:
    """Some of the table: (name, row)."""
    at = np.array([i for _, i in shown], np.int64)
    columns = {name: column[at] for name, column in table.columns.items()}
    earth = columns["frame"] != picture.LOCAL
    y, x = columns["y"].astype(np.float64), columns["x"].astype(np.float64)
    listed = zip(
        shown,
        columns["frame"].tolist(),
        np.round(table.told_t[at], DIGITS).tolist(),
        _finite(np.where(earth, y / picture.DEGREE, np.nan), PLACE_DIGITS),
        _finite(np.where(earth, x / picture.DEGREE, np.nan), PLACE_DIGITS),
        _finite(np.where(earth, np.nan, y / picture.METRE)),
        _finite(np.where(earth, np.nan, x / picture.METRE)),
        *(_finite(columns[name].astype(np.float64)) for name in ("alt_m", "speed_mps", "track_deg", "climb_mps")),
        (columns["ground"] > 0).tolist(),
        _finite(columns["score"].astype(np.float64)),
        columns["worst"].astype(int).tolist(),
        strict=True,
    )
    t, kinds_ = table.t, table.kinds
    return [
        VehicleRow(
            id=name, callsign=table.names[i][1], kind=FRAMES[int(f)], t=told, age_s=round(t - told, DIGITS), lat=lat,
            lon=lon, north_m=north, east_m=east, alt_m=alt, speed_mps=speed, track_deg=course, climb_mps=climb,
            on_ground=ground, score=score,
            score_kind=kinds_[worst] if worst != NO_KIND and worst < len(kinds_) else None,
            alarms=table.alarms[name], not_watched=table.unwatched.get(i, []),
        )
        for (name, i), f, told, lat, lon, north, east, alt, speed, course, climb, ground, score, worst in listed
    ]  # fmt: skip


def _finite(values: F8, digits: int = DIGITS) -> list[float | None]:
    """Numbers for JSON, rounded; None for what is not known."""
    rounded = np.round(values, digits)
    unknown = np.isnan(rounded)
    if not unknown.any():
        return rounded.tolist()  # type: ignore[no-any-return]
    if unknown.all():
        return [None] * len(rounded)
    return np.where(unknown, None, rounded).tolist()  # type: ignore[no-any-return,call-overload]
