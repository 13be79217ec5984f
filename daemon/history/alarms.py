"""Alarms of the past: lists with filters, whole lives, and what was known of an alarm at a moment.

An alarm's evidence at a moment is that of its last event at or before it. Counts for people leave out alarms that are
symptoms of an incident among those that are counted, by the rule of detectors/incidents/fold.py. Lists are in pages: a
cursor names the last row of a page by its place in the order, so that alarms that come meanwhile neither repeat nor
hide a row.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from watchkeeper.daemon.history.blocks import DamagedError
from watchkeeper.detectors.alarms.events import CLEARED
from watchkeeper.detectors.base import SEVERITIES
from watchkeeper.streams.foreign.decode import ForeignError, json_decoder

# By what a list can be sorted, and the expression that does it.
ORDERS: dict[str, str] = {
    "t_raised": "t_raised",
    "t_last": "t",
    "severity": "severity",
    "kind": "kind",
    "score": "score",
}
# Whether an alarm is the symptom of an incident for which something holds.
_SYMPTOM = (
    "(alarms.incident IS NOT NULL AND EXISTS (SELECT 1 FROM alarms AS head "
    "WHERE head.alarm = alarms.incident AND head.era = alarms.era {}))"
)
# Those that ended later, or not: few, where those that were raised before are all of the past. Left to itself the
# planner walks through the subjects of all alarms.
_ACTIVE_SUBJECTS = """
SELECT subject, alarm, incident FROM (
  SELECT alarm, era, incident FROM alarms WHERE era = :era AND t_cleared > :t AND t_raised <= :t
  UNION ALL SELECT alarm, era, incident FROM alarms WHERE era = :era AND t_cleared IS NULL AND t_raised <= :t
) CROSS JOIN subjects USING (alarm, era)
"""
_COLUMNS = "alarm, era, kind, severity, state, t_onset, t_raised, t_cleared, t, score, said, events"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which alarms; None and empty: all. `at`: those that were active at this moment; `over_by`: over then.

    `symptoms`: only those that are symptoms of an incident, which is active too where active ones are asked for; or
    all but those.
    """

    kinds: Sequence[str] = ()
    severities: Sequence[str] = ()
    subject: str | None = None
    state: str | None = None
    active: bool | None = None
    text: str | None = None
    t0: float | None = None
    t1: float | None = None
    at: float | None = None
    over_by: float | None = None
    era: int | None = None
    symptoms: bool | None = None
    sort: str = "t_raised"
    descending: bool = True
    after: tuple[Any, str, int] | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class Row:
    """One alarm of a list. `severity` is the highest that it had, `score` the highest over its threshold."""

    id: str
    era: int
    kind: str
    severity: str
    state: str
    t_onset: float
    t_raised: float
    t_cleared: float | None
    t: float
    score: float
    say: str
    events: int
    place: Any = field(compare=False, default=None)


def _question(wanted: Wanted) -> tuple[list[str], list[Any]]:
    where: list[str] = []
    values: list[Any] = []

    def ask(words: str, *given: Any) -> None:
        where.append(words)
        values.extend(given)

    if wanted.kinds:
        ask(f"kind IN ({','.join('?' * len(wanted.kinds))})", *wanted.kinds)
    if wanted.severities:
        ranks = [SEVERITIES.index(severity) for severity in wanted.severities]
        ask(f"severity IN ({','.join('?' * len(ranks))})", *ranks)
    if wanted.subject is not None:
        ask("(alarm, era) IN (SELECT alarm, era FROM subjects WHERE subject = ?)", wanted.subject)
    if wanted.state is not None:
        ask("state = ?", wanted.state)
    if wanted.active is not None:
        ask("state <> ?" if wanted.active else "state = ?", CLEARED)
    if wanted.text:
        ask("instr(search, ?) > 0", wanted.text.lower())
    if wanted.era is not None:
        ask("era = ?", wanted.era)
    if wanted.t1 is not None:
        ask("t_raised <= ?", wanted.t1)
    if wanted.t0 is not None:
        ask("(t_cleared IS NULL OR t_cleared >= ?)", wanted.t0)
    if wanted.at is not None:
        ask("t_raised <= ? AND (t_cleared IS NULL OR t_cleared > ?)", wanted.at, wanted.at)
    if wanted.over_by is not None:
        ask("t_cleared <= ?", wanted.over_by)
    if wanted.symptoms is not None:
        then, given = ("AND head.t_raised <= ? AND (head.t_cleared IS NULL OR head.t_cleared > ?)", [wanted.at] * 2)
        if wanted.at is None:
            then, given = ("AND head.t_cleared IS NULL", []) if wanted.active else ("", [])
        ask(_SYMPTOM.format(then) if wanted.symptoms else f"NOT {_SYMPTOM.format(then)}", *given)
    return where, values


def listed(db: sqlite3.Connection, wanted: Wanted) -> list[Row]:
    """One page of alarms; one more than `limit` if there is a next page."""
    where, values = _question(wanted)
    by, way, beyond = ORDERS[wanted.sort], *(("DESC", "<") if wanted.descending else ("ASC", ">"))
    if wanted.after is not None:
        where.append(f"({by}, alarm, era) {beyond} (?, ?, ?)")
        values.extend(wanted.after)
    condition = f"WHERE {' AND '.join(where)}" if where else ""
    question = (
        f"SELECT {_COLUMNS}, {by} FROM alarms {condition} "  # noqa: S608  every part is ours, values are bound
        f"ORDER BY {by} {way}, alarm {way}, era {way} LIMIT ?"
    )
    rows = db.execute(question, (*values, wanted.limit + 1))
    return [Row(a, e, k, SEVERITIES[s], *rest) for a, e, k, s, *rest in rows]


def count(db: sqlite3.Connection, wanted: Wanted) -> int:
    """How many there are on all pages."""
    where, values = _question(wanted)
    condition = f"WHERE {' AND '.join(where)}" if where else ""
    return int(db.execute(f"SELECT count(*) FROM alarms {condition}", values).fetchone()[0])  # noqa: S608


def alarm(db: sqlite3.Connection, name: str, era: int | None = None) -> Row | None:
    """One alarm; of one that came in several eras the newest."""
    found = db.execute(
        f"SELECT {_COLUMNS} FROM alarms WHERE alarm = ? AND (? IS NULL OR era = ?) ORDER BY era DESC LIMIT 1",  # noqa: S608
        (name, era, era),
    ).fetchone()
    if found is None:
        return None
    a, e, k, s, *rest = found
    return Row(a, e, k, SEVERITIES[s], *rest)


def life(db: sqlite3.Connection, name: str, era: int, t: float | None = None) -> list[bytes]:
    """All events of an alarm in order, as JSON, those up to t."""
    rows = db.execute(
        "SELECT data FROM events WHERE alarm = ? AND era = ? AND (? IS NULL OR t <= ?) ORDER BY t, event",
        (name, era, t, t),
    )
    return [unpacked(data) for (data,) in rows]


def last_event(db: sqlite3.Connection, name: str, era: int, t: float | None = None) -> bytes | None:
    """An alarm's last event at or before t, or at all, as JSON."""
    found = db.execute(
        "SELECT data FROM events WHERE alarm = ? AND era = ? AND (? IS NULL OR t <= ?) "
        "ORDER BY t DESC, event DESC LIMIT 1",
        (name, era, t, t),
    ).fetchone()
    return unpacked(found[0]) if found is not None else None


def acks(db: sqlite3.Connection, name: str) -> list[tuple[str, float, bool]]:
    """Who acknowledged an alarm, or took that back, and when by the wall clock."""
    rows = db.execute("SELECT by, t, given FROM acks WHERE alarm = ? ORDER BY ack", (name,))
    return [(by, t, bool(given)) for by, t, given in rows]


def unpacked(data: bytes) -> bytes:
    """An event's JSON. Raises DamagedError."""
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise DamagedError(str(error)) from error


def raised_by_bucket(
    db: sqlite3.Connection, era: int, t0: float, step_s: float, t1: float
) -> list[tuple[int, str, int, int]]:
    """Alarms raised in [t0, t1) without symptoms: number of the step from t0, kind, severity's rank, and how many."""
    rows = db.execute(
        "SELECT CAST((t_raised - ?) / ? AS INTEGER) AS step, kind, severity, count(*) FROM alarms "  # noqa: S608  ours
        f"WHERE era = ? AND t_raised >= ? AND t_raised < ? AND NOT {_SYMPTOM.format('')} "
        "GROUP BY step, kind, severity",
        (t0, step_s, era, t0, t1),
    )
    return [(int(step), kind, int(severity), int(n)) for step, kind, severity, n in rows]


def active_subjects(db: sqlite3.Connection, era: int, t: float) -> Counter[str]:
    """How many alarms about each subject were active at t, without symptoms of incidents that are about it too."""
    rows = db.execute(_ACTIVE_SUBJECTS, {"era": era, "t": t})
    return _by_subject(rows.fetchall())


def of_subject(db: sqlite3.Connection, name: str) -> int:
    """How many alarms the history has about a subject, without symptoms of incidents that are about it too."""
    rows = db.execute(
        "SELECT subject, alarm, incident FROM subjects JOIN alarms USING (alarm, era) WHERE subject = ?", (name,)
    )
    return _by_subject(rows.fetchall())[name]


def _by_subject(rows: Sequence[tuple[str, str, str | None]]) -> Counter[str]:
    there = {(subject, name) for subject, name, _ in rows}
    return Counter(subject for subject, _, incident in rows if (subject, incident) not in there)


class _Named(msgspec.Struct, frozen=True):
    subjects: list[str]


_named = json_decoder(_Named)


def subjects(event: bytes) -> list[str]:
    """Whom an event is about. Raises DamagedError."""
    try:
        return _named(event).subjects
    except ForeignError as error:
        raise DamagedError(str(error)) from error
