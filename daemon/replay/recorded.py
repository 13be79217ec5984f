"""The live view of a replay: what the page shows is the history at the place of the playback, not the pipeline.

The pipeline reads the log at full speed and may be far ahead. Pictures, names, alarms and a vehicle's card are made
from the history as of `playback.t`; the evidence of an alarm is that of its last event at or before it. The links are
not in the history: they are shown at the end of the log only.
"""

from __future__ import annotations

import sqlite3
import time
from typing import Any

import msgspec

from watchkeeper.daemon.history import alarms as past_alarms
from watchkeeper.daemon.history import past
from watchkeeper.daemon.history.history import History
from watchkeeper.daemon.history.reader import NoHistoryError, Series, era_of, series
from watchkeeper.daemon.history.tables import code_of
from watchkeeper.daemon.http.api.playback import Playback
from watchkeeper.daemon.live import picture
from watchkeeper.daemon.live.desk import RECENT, Shown
from watchkeeper.daemon.live.scores import FRESH_S
from watchkeeper.daemon.live.vehicle import points
from watchkeeper.daemon.live.view import Live, Watched
from watchkeeper.daemon.live.viewer import Picture
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.streams.foreign.decode import from_json

# What a vehicle's charts show, up to the moment.
CHART_S = 300.0


class RecordedLive(Live):
    """A live view that shows the past."""

    def __init__(self, watched: Watched, viewers: int, history: History, playback: Playback) -> None:
        super().__init__(watched, viewers)
        self._history, self._playback = history, playback
        self._shown: list[tuple[str, float, str]] = []
        self._names: dict[str, Any] = {}
        self._named = 0

    def put(self, event: AlarmEvent) -> None:
        """Note it; the page is told when the playback gets there."""
        self.delivered += 1
        self.desk.note(event)

    def draw(self) -> None:
        """Make the picture of the playback's moment, and tell of alarms that came or changed up to it."""
        t = self._playback.t
        forget_s = self.watched.pipeline.config.fleet.evict_idle_s

        def ask(db: sqlite3.Connection) -> tuple[dict[str, Any], picture.Columns] | None:
            era = era_of(db, None)
            return past.picture_at(db, era, t, forget_s) if era is not None and t > -float("inf") else None

        try:
            found = self._history.reader.use(ask)
        except NoHistoryError:
            found = None
        if found is None:
            super().draw()
            return
        header, columns = found
        names = header.pop("roster")
        if names != self._names:
            self._names, self._named = names, self._named + 1
        self._number += 1
        more = {
            "wall": time.time(),
            "figures": self._figures(),
            "state": self.watched.not_ready(),
            "warnings": self.watched.warnings(),
        }
        # names of another moment may have other slots: each change is an era of its own for the viewers
        self.picture = Picture(self._number, self._named, picture.encode({**header, **more}, columns))
        shown = [(event.id, event.t, event.state) for event in self._alarms()]
        changed, self._shown = shown != self._shown, shown
        for viewer in self.viewers:
            if changed:
                viewer.resync()
            viewer.offer()

    def shown(self) -> Shown:
        """The alarms at the playback's moment."""
        return Shown(self._alarms(), self.desk.acknowledged)

    def _alarms(self) -> list[AlarmEvent]:
        t = self._playback.t

        def ask(db: sqlite3.Connection) -> list[AlarmEvent]:
            era = era_of(db, None)
            if era is None:
                return []
            lately = past_alarms.Wanted(over_by=t, era=era.era, sort="t_last", limit=RECENT - 1)
            now = past_alarms.Wanted(
                at=t, era=era.era, descending=False, limit=self.watched.pipeline.config.alarms.max_active
            )
            rows = [*reversed(past_alarms.listed(db, lately)[:RECENT]), *past_alarms.listed(db, now)]
            events = (past_alarms.last_event(db, row.id, row.era, t) for row in rows)
            return [AlarmEvent.of(event) for event in events if event is not None]

        try:
            return self._history.reader.use(ask)
        except NoHistoryError:
            return []

    def roster(self, since: int | None) -> tuple[bytes, int]:
        """All names of the moment, or nothing when they are known."""
        if not self._names:
            return super().roster(since)
        return (b"", since) if since else (msgspec.json.encode(self._names), self._named)

    def vehicle(self, name: str) -> bytes:
        """About one vehicle at the playback's moment, as far as the history has it."""
        t = self._playback.t
        try:
            found = self._history.reader.use(lambda db: _vehicle(db, name, t))
        except NoHistoryError:
            found = {"type": "vehicle", "id": name, "known": False}
        return msgspec.json.encode(found)

    def network(self) -> bytes:
        """The links at the end of the log; before it they are not known."""
        if self._playback.at_end:
            return super().network()
        nothing = {"type": "network", "aircraft": 0, "gateways": [], "vehicles": [], "unlisted": 0}
        return msgspec.json.encode({**nothing, "feeds": self.watched.feeds()})


def _vehicle(db: sqlite3.Connection, name: str, t: float) -> dict[str, Any]:
    era = era_of(db, None)
    row = db.execute("SELECT callsign FROM vehicles WHERE code = ?", (code_of(name),)).fetchone()
    if era is None or row is None:
        return {"type": "vehicle", "id": name, "known": False}
    watch = db.execute(
        "SELECT data FROM watch WHERE era = ? AND code = ? AND t <= ? ORDER BY t DESC LIMIT 1",
        (era.era, code_of(name), t),
    ).fetchone()
    return {
        "type": "vehicle",
        "id": name,
        "known": True,
        "callsign": row[0],
        "t": t,
        "streams": [],
        "series": _charts(series(db, era.era, "track", name, t - CHART_S, t)),
        "scores": _scores(db, era.era, name, t),
        "link": None,
        "coverage": from_json(watch[0]) if watch is not None else {"watched": {}, "partly": [], "not_watched": []},
    }


def _charts(track: Series | None) -> dict[str, Any]:
    if track is None:
        return {}
    drawn = {
        "altitude": points("m", track.t, track.columns["alt_m"]),
        "speed": points("m/s", track.t, track.columns["speed_mps"]),
    }
    return {name: chart for name, chart in drawn.items() if chart["v"]}


def _scores(db: sqlite3.Connection, era: int, name: str, t: float) -> list[dict[str, Any]]:
    """The last scores that are fresh, with the channels of gps_imu."""
    found = series(db, era, "scores", name, t - 2.0 * FRESH_S, t)
    channels = series(db, era, "residuals", name, t - 2.0 * FRESH_S, t)
    if found is None:
        return []
    said = []
    for kind, values in found.columns.items():
        ratio = float(values[-1])
        if ratio == ratio:  # noqa: PLR0124  not NaN
            entry: dict[str, Any] = {"kind": kind, "ratio": ratio, "age_s": round(t - float(found.t[-1]), 3)}
            if kind == "gps_imu" and channels is not None:
                entry["numbers"] = {channel: float(column[-1]) for channel, column in channels.columns.items()}
                entry |= {"causes": [], "score": ratio, "threshold": 1.0}
            said.append(entry)
    return said
