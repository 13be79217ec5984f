"""Alarms from memory, for a daemon without a history, or with one that cannot be read: those that the page shows."""

from __future__ import annotations

from typing import Any

from watchkeeper.daemon.history.alarms import Wanted
from watchkeeper.daemon.http.api.shapes import Ack, AlarmRow, whole
from watchkeeper.daemon.live.view import Live
from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent, encode_event
from watchkeeper.detectors.base import SEVERITIES
from watchkeeper.detectors.incidents.fold import symptoms
from watchkeeper.detectors.sentence import said

# Rows have an era; these are of none.
NO_ERA = 0


def listed(live: Live, wanted: Wanted) -> tuple[list[tuple[AlarmRow, Any]], int, int]:
    """One page of what the live page shows, how many there are, and how many of them are symptoms."""
    events = live.desk.everything().alarms
    rows = [_row(event) for event in events]
    inside = symptoms(event for event, row in zip(events, rows, strict=True) if _then(row, wanted))
    rows = [row for row in rows if _fits(row, wanted) and wanted.symptoms in (None, row.id in inside)]
    placed = [(row, _place(row, wanted.sort)) for row in rows]
    placed.sort(key=lambda found: (found[1], found[0].id, found[0].era), reverse=wanted.descending)
    after = wanted.after
    if after is not None:
        beyond = [(place, row.id, row.era) for row, place in placed]
        ahead = [(k < after) if wanted.descending else (k > after) for k in beyond] if _alike(beyond, after) else []
        placed = [found for found, keep in zip(placed, ahead, strict=False) if keep]
    return placed[: wanted.limit + 1], len(rows), sum(row.id in inside for row in rows)


def _alike(keys: list[tuple[Any, str, int]], after: tuple[Any, str, int]) -> bool:
    return all(isinstance(key[0], str) == isinstance(after[0], str) and after[0] is not None for key in keys)


def life(live: Live, name: str) -> tuple[AlarmRow, list[AlarmEvent], list[Ack]] | None:
    """An alarm's last event, which is all that memory has."""
    for event in live.desk.everything().alarms:
        if event.id == name:
            return _row(event), [event], []
    return None


def _row(event: AlarmEvent) -> AlarmRow:
    return AlarmRow(
        id=event.id, era=NO_ERA, kind=event.kind, state=event.state, severity=event.severity,
        subjects=list(event.subjects), t_onset=event.t_onset, t_raised=event.t_raised, t_cleared=event.t_cleared,
        t=event.t, score=event.score / event.threshold if event.threshold else event.score, say=said(event),
        events=1, acknowledged=None, shelved=None, event=whole(encode_event(event)),
    )  # fmt: skip


def _place(row: AlarmRow, sort: str) -> Any:
    found = {"t_last": row.t, "severity": SEVERITIES.index(row.severity), "score": row.score}
    return found[sort] if sort in found else getattr(row, sort)


def _fits(row: AlarmRow, wanted: Wanted) -> bool:
    text = " ".join([row.say, row.kind, row.id, *row.subjects]).lower()
    over_t = row.t_cleared if row.t_cleared is not None else float("inf")
    return (
        _then(row, wanted)
        and (not wanted.kinds or row.kind in wanted.kinds)
        and (not wanted.severities or row.severity in wanted.severities)
        and (wanted.subject is None or wanted.subject in row.subjects)
        and (wanted.state is None or row.state == wanted.state)
        and (not wanted.text or wanted.text.lower() in text)
        and (wanted.era is None or wanted.era == NO_ERA)
        and (wanted.t1 is None or row.t_raised <= wanted.t1)
        and (wanted.t0 is None or over_t >= wanted.t0)
    )


def _then(row: AlarmRow, wanted: Wanted) -> bool:
    """Whether it is of the moment that is asked for: now, or `at`."""
    over_t = row.t_cleared if row.t_cleared is not None else float("inf")
    active = row.state != CLEARED
    return (wanted.active is None or active is wanted.active) and (
        wanted.at is None or row.t_raised <= wanted.at < over_t
    )
