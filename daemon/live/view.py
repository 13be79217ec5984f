"""The live view: what happens now, for everybody who has the page open. See docs/live-page.md.

    pipeline ─ on_evidence ─▶ Scores ─┐
    pipeline.fleet ───────────────────┴▶ picture, once a second ─▶ Viewer ─▶ page
    AlarmRouter ─ put ─▶ Desk ──────────── events, at once ──────▶ Viewer ─▶ page

While nobody watches, nothing is made and the pipeline does not call here. The page itself and its connections are in
http.py.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from prometheus_client.core import Metric

from watchkeeper.config.schema import Config, Http
from watchkeeper.daemon.families import gauge, total
from watchkeeper.daemon.live import picture as live_picture
from watchkeeper.daemon.live.desk import Acknowledgement, Desk, Shown
from watchkeeper.daemon.live.network import network
from watchkeeper.daemon.live.roster import Roster
from watchkeeper.daemon.live.scores import Scores, vehicle_kinds
from watchkeeper.daemon.live.vehicle import describe, place
from watchkeeper.daemon.live.viewer import Picture, Viewer
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.outputs.base import Context, Declaration, idle
from watchkeeper.daemon.state.folder import StateFolder
from watchkeeper.detectors.alarms.events import AlarmEvent, encode_event
from watchkeeper.detectors.base import Evidence, Window
from watchkeeper.detectors.catalog import kinds
from watchkeeper.detectors.engine.pipeline import OnEvidence, Pipeline
from watchkeeper.detectors.sentence import said

log = logging.getLogger(__name__)

# Pictures are at least this far apart, and are drawn with the next tick after that, or so much later without one.
PERIOD_S, PATIENCE_S = 0.9, 0.3
# How long the answer to a person waits for the disk.
KEEP_S = 2.0


@dataclass(frozen=True, slots=True)
class Totals:
    """What was counted since the start; `queue` is now."""

    messages: int = 0
    dropped: int = 0
    queue: int = 0
    busy_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Watched:
    """What a page shows: a pipeline, and about the daemon or the replay that drives it what it is asked for.

    `totals` are for rates: the page shows differences. `turn_s` is the longest turn since it was last asked for.
    `not_ready` says why alarms cannot be relied on now, `warnings` what else is wrong: ways out that do not deliver.
    `feeds` says where samples come from: `name`, `connected` and what else is worth a line. `recorded`: a log that is
    played again has samples instead of messages, and no pages but this one. `alarms` are active ones about the daemon.
    `accept` ends the lasting state of a vehicle; None: nobody may, because what is shown is a recording.
    """

    pipeline: Pipeline
    version: str
    totals: Callable[[], Totals] = Totals
    turn_s: Callable[[], float] = float
    not_ready: Callable[[], list[str]] = list
    warnings: Callable[[], list[str]] = list
    feeds: Callable[[], list[dict[str, Any]]] = list
    recorded: bool = False
    alarms: Callable[[], Iterable[AlarmEvent]] = list
    accept: Callable[[str], Awaitable[list[AlarmEvent]]] | None = None

    def active(self) -> list[AlarmEvent]:
        """The alarms that are active now, those about the daemon itself last."""
        return [*self.pipeline.active.values(), *self.alarms()]


class FullError(Exception):
    """As many are watching as may."""


class RefusedError(Exception):
    """Why something that a person asked for is not done."""


class Live:
    """One live view. `draw_often` is a task; everything else is called from the event loop.

    As a sink it is done with an event when `put` returns: a page that is too slow is sent all alarms instead.
    """

    name = "live_page"
    failures = refused = dropped = waiting = 0

    def __init__(
        self, watched: Watched, viewers: int, now: Callable[[], float] = time.monotonic,
        state: StateFolder | None = None,
    ) -> None:  # fmt: skip
        self.watched = watched
        self._limit = viewers
        self._now = now
        self.viewers: set[Viewer] = set()
        self.delivered = 0
        self.turned_away = self.slow = self._resyncs = 0
        self.desk = Desk(watched.active, partial(place, watched.pipeline), state)
        self.desk.shelves.changed = self._shelves_changed
        self.picture: Picture | None = None
        self._scores = Scores(0)
        self._roster = Roster()
        self._fleet: object = None
        self._era = self._number = 0
        # so that a page knows its pictures of another run from those of this one
        self._run = secrets.token_hex(4)
        self._before = (0.0, Totals())
        # when the number of messages changed last, as far as pictures saw
        self._heard_s = now()
        # who else looks at the evidence, if anybody does
        self._others: OnEvidence | None = None
        self._watching, self._ticked = asyncio.Event(), asyncio.Event()
        # for the history: who acknowledged what
        self.on_acknowledged: Callable[[str, str, bool], None] = lambda _alarm, _by, _on: None

    # -- who watches ----------------------------------------------------------------------------------------

    def join(self) -> Viewer:
        """Somebody opened the page; FullError when there is no room."""
        if len(self.viewers) >= self._limit:
            self.turned_away += 1
            raise FullError
        viewer = Viewer(self)
        if not self.viewers:
            self._count(self._now(), self.watched.totals())
            self._others, self.watched.pipeline.on_evidence = self.watched.pipeline.on_evidence, self._take
            self._watching.set()
        self.viewers.add(viewer)
        if self.picture is None:
            # the first one need not wait for the next turn
            self.draw()
        viewer.wake.set()
        return viewer

    def leave(self, viewer: Viewer) -> None:
        """They closed it. The last one turns off the light."""
        self.viewers.discard(viewer)
        self._resyncs += viewer.resyncs
        if not self.viewers:
            self.watched.pipeline.on_evidence = self._others
            self._watching.clear()
            self.picture, self._fleet = None, None

    @property
    def scores(self) -> Scores:
        """The newest scores, kept while a page is open."""
        return self._scores

    @property
    def resyncs(self) -> int:
        """How often a page was too slow for single events and got all alarms again."""
        return self._resyncs + sum(viewer.resyncs for viewer in self.viewers)

    def metrics(self) -> Iterator[Metric]:
        """For Prometheus."""
        yield gauge("page_viewers", "Live pages that are open", len(self.viewers))
        yield total("page_refused", "Live pages turned away because there were too many", self.turned_away)
        yield total("page_resyncs", "Times that a slow live page was sent all alarms again", self.resyncs)
        yield total("page_stalled", "Live pages cut off because they took nothing", self.slow)

    # -- alarms, at once ------------------------------------------------------------------------------------

    def put(self, event: AlarmEvent) -> None:
        """Show one event to everybody who watches, and to those who come later."""
        self.delivered += 1
        self.desk.note(event)
        if self.viewers:
            more = {"say": said(event), "shelved": self.desk.shelves.of(event)}
            self._tell(b'{"event":' + encode_event(event) + b"," + msgspec.json.encode(more)[1:])

    async def run(self) -> None:
        """Task: nothing; the pictures are drawn by whoever serves the page, from before the watch begins."""
        await idle()

    async def flush(self) -> None:
        """Nothing waits here."""

    def health(self) -> list[str]:
        """Is there room for one more?"""
        full = len(self.viewers) >= self._limit
        return [f"{self._limit} pages are open, as many as may (http.viewers)"] if full else []

    def acknowledge(self, alarm: str, by: str, *, on: bool) -> Acknowledgement | None:
        """Mark an alarm, or take that back, and tell everybody; KeyError when it is not shown."""
        answer = self.desk.acknowledge(alarm, by, on=on)
        self.on_acknowledged(alarm, by, on)
        self._tell(msgspec.json.encode({"acknowledged": alarm, "by": answer}))
        return answer

    async def kept(self) -> None:
        """Return when what people have done would outlive us; a disk that does not answer is a trouble of its own."""
        with suppress(TimeoutError):
            async with asyncio.timeout(KEEP_S):
                await self.desk.written()

    async def accept(self, alarm: str, by: str) -> AlarmEvent:
        """A person takes the lasting state that an alarm is about as normal; the alarm's end.

        KeyError: no such alarm is active. RefusedError: its cause goes on, or nothing may be changed here.
        """
        event = next((event for event in self.watched.pipeline.active.values() if event.id == alarm), None)
        if event is None:
            raise KeyError(alarm)
        if self.watched.accept is None:
            raise RefusedError("this is a recording: nothing is accepted here")
        if not acceptable(event):
            raise RefusedError("the cause of this alarm goes on: only a state that lasts can be accepted")
        if alarm not in self.desk.acknowledged:
            self.acknowledge(alarm, by, on=True)
        log.info("state accepted", extra=kv(alarm=alarm, by=by, vehicle=event.subjects[0]))
        ended = [end for end in await self.watched.accept(event.subjects[0]) if end.id == alarm]
        if not ended:
            raise RefusedError("the state has changed meanwhile: there is nothing to accept any more")
        return ended[0]

    def _tell(self, news: bytes) -> None:
        for viewer in self.viewers:
            viewer.tell(news)

    # -- pictures, once a second ----------------------------------------------------------------------------

    async def draw_often(self) -> None:
        """Task: draw while somebody watches, until cancelled."""
        while True:
            await self._watching.wait()
            self._ticked.clear()
            self.draw()
            await asyncio.sleep(PERIOD_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    await self._ticked.wait()

    def _take(self, window: Window, evidence: list[Evidence]) -> None:
        if self._others is not None:
            self._others(window, evidence)
        self._settle()
        self._scores.take(window, evidence)
        self._ticked.set()

    def _settle(self) -> None:
        """A pipeline whose clock went back for good has a new fleet: what was known of the old one is void."""
        fleet = self.watched.pipeline.fleet
        if fleet is not self._fleet:
            self._fleet = fleet
            self._scores, self._roster = Scores(fleet.capacity), Roster()
            self._era += 1

    def draw(self) -> None:
        """Make the picture of this moment and offer it to everybody."""
        self._settle()
        pipeline = self.watched.pipeline
        self._roster.update(pipeline.fleet)
        t = pipeline.watermark
        enu = pipeline.config.frames.local == "enu"
        columns = live_picture.vehicles(pipeline.fleet, self._scores, t, enu=enu) | live_picture.pairs(self._scores)
        self._number += 1
        header = {
            "t": t if math.isfinite(t) else None,
            "t_now": pipeline.t_max if math.isfinite(pipeline.t_max) else None,
            "wall": time.time(),
            "kinds": vehicle_kinds(),
            "vehicles": len(pipeline.fleet),
            "figures": self._figures(),
            "state": self.watched.not_ready(),
            "warnings": self.watched.warnings(),
            "unwatched": pipeline.guard.alarms.vehicles,
        }
        self.picture = Picture(self._number, self._era, live_picture.encode(header, columns))
        for viewer in self.viewers:
            viewer.offer()

    def _figures(self) -> dict[str, float]:
        (before_s, before), now_s, now = self._before, self._now(), self.watched.totals()
        self._count(now_s, now)
        span_s = max(now_s - before_s, 1e-3)
        pipeline = self.watched.pipeline
        # where nothing comes time goes on without it
        lag_s = max(0.0, pipeline.t_max - pipeline.watermark)
        return {
            "messages_per_s": round((now.messages - before.messages) / span_s, 1),
            "quiet_s": round(now_s - self._heard_s, 1),
            "dropped": now.dropped,
            "queue": now.queue,
            "busy": round((now.busy_s - before.busy_s) / span_s, 3),
            "turn_ms": round(self.watched.turn_s() * 1e3, 1),
            "lag_s": round(lag_s, 2) if math.isfinite(lag_s) else math.nan,
            "ticks": pipeline.ticks,
        }

    def _count(self, now_s: float, now: Totals) -> None:
        if now.messages != self._before[1].messages:
            self._heard_s = now_s
        self._before = (now_s, now)

    # -- what a viewer asks for, see live_viewer.Show -------------------------------------------------------

    def everything(self) -> bytes:
        """All alarms, as one message."""
        accepts = {kind.name: kind.accepts for kind in kinds().values() if kind.accepts}
        about = {
            "version": self.watched.version,
            "recorded": self.watched.recorded,
            "accepts": accepts if self.watched.accept is not None else {},
        }
        shown = self.shown()
        more = {
            "say": {event.id: said(event) for event in shown.alarms},
            "shelved": {
                event.id: shelf for event in shown.alarms if (shelf := self.desk.shelves.of(event)) is not None
            },
        }
        return msgspec.json.encode({"type": "alarms", **msgspec.structs.asdict(shown), **more, **about})

    def shown(self) -> Shown:
        """The alarms that a page shows, and who looks after which."""
        return self.desk.everything()

    def _shelves_changed(self) -> None:
        """A shelf was put up or taken down: everybody is sent all alarms again."""
        for viewer in self.viewers:
            viewer.resync()

    def roster(self, since: int | None) -> tuple[bytes, int]:
        """The names that are new since this version (None: all of them), and their version."""
        version = self._roster.version
        if since == version:
            return b"", version
        names = self._roster.since(since or 0)
        return msgspec.json.encode(
            {"type": "roster", "reset": since is None, "era": f"{self._run}-{self._era}", **names}
        ), version

    def vehicle(self, name: str) -> bytes:
        """About one vehicle, now."""
        return msgspec.json.encode(describe(self.watched.pipeline, self._scores, name))

    def network(self) -> bytes:
        """The links, now."""
        return msgspec.json.encode({**network(self.watched.pipeline), "feeds": self.watched.feeds()})


def acceptable(event: AlarmEvent) -> bool:
    """Whether an alarm is about a state that lasts until a person accepts it."""
    kind = kinds().get(event.kind)
    return kind is not None and not set(kind.accepts).isdisjoint(event.evidence.get("causes", ()))


def make(settings: Http, context: Context) -> Live:
    """The live view of this daemon."""
    return Live(context.watched, settings.viewers, state=context.state)


def _asked(config: Config) -> list[Http]:
    """Always one: without a server there are no viewers, and it costs nothing."""
    return [config.http]


LIVE_PAGE = Declaration(
    name="live_page", help="every event at once on the live page", settings=Http, make=make, asked=_asked
)
