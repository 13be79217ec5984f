"""The index of several reports: a table to sort, in which a log that could not be read has its row too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from watchkeeper.daemon.report.html import TONES, whole
from watchkeeper.daemon.report.markup import Cell, Html, el, shape, table
from watchkeeper.daemon.report.result import Result
from watchkeeper.daemon.report.sections.pictures import plain_bar
from watchkeeper.daemon.report.words import alarm_count, count, day, lasted
from watchkeeper.detectors.coverage.declaration import WATCH, spoken

ORDER = ("warning", "caution", "advisory", "unjudged", "partly", "clean")
SEVERE = ("warning", "caution", "advisory")
NAMES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row. `error` is why there is no page."""

    log: str
    error: str = ""
    page: str = ""
    vehicle: str = ""
    recorded: str = ""
    seconds: float = 0.0
    tone: str = ""
    headline: str = ""
    alarms: int = 0
    worst: str = ""
    not_judged: str = ""


def entry_of(result: Result, page: str) -> Entry:
    """The row of a log that has a page."""
    names = [result.called(name) for name in result.collector.rows.names]
    groups = [group for group in result.groups if group.head.first.kind != WATCH]
    worst = groups[0].head if groups else None
    return Entry(
        log=result.title,
        page=page,
        vehicle=", ".join(names[:NAMES]) + (f" and {len(names) - NAMES:,} more" if len(names) > NAMES else ""),
        recorded=day(result.t_first),
        seconds=result.seconds,
        tone=result.verdict.tone,
        headline=result.verdict.headline,
        alarms=result.replay.raised.count.alarms,
        worst=""
        if worst is None
        else f"{spoken(worst.first.kind)} {' × '.join(map(result.called, worst.first.subjects))}",
        not_judged=" ".join(result.verdict.unjudged),
    )


def index(entries: Sequence[Entry]) -> str:
    """The page."""
    tones = Counter("unread" if entry.error else entry.tone for entry in entries)
    said = [f"{count(tones[tone], 'log')}: {TONES[tone].lower()}" for tone in ORDER if tones[tone]]
    if tones["unread"]:
        said.append(f"{count(tones['unread'], 'log')} could not be read")
    head = ("log", "vehicle", "recorded", "length", "verdict", "alarms", "worst alarm", "not judged")
    section = el(
        "section.index",
        el("h2", f"{count(len(entries), 'log')}"),
        el("p.lead", "; ".join(said), "."),
        table("Reports", head, [_row(entry) for entry in entries], sortable=True),
        id="verdict",
        aria_label="Reports",
    )
    title = el("div.title", el("h1", "Reports"))
    return whole("Reports · Watchkeeper", plain_bar("", time=False), [title, section], {"alarms": [], "vehicles": []})


def _row(entry: Entry) -> list[Cell]:
    if entry.error:
        why = el("span.state", f"could not be read: {entry.error}", data_state="not")
        return [entry.log, "", "", ("", -1), (why, len(ORDER)), ("", -1), "", "everything"]
    mark = (
        shape(entry.tone)
        if entry.tone in SEVERE
        else el("svg.shape", el("use", href=f"#shape-{entry.tone}"), aria_hidden="true")
    )
    verdict = el("span.verdict-cell", mark, " ", entry.headline, data_tone=entry.tone)
    link: Html = el("a", entry.log, href=quote(entry.page))
    return [
        (link, entry.log),
        entry.vehicle,
        entry.recorded,
        (lasted(entry.seconds), entry.seconds),
        (verdict, ORDER.index(entry.tone)),
        (alarm_count(entry.alarms, entry.tone), entry.alarms),
        entry.worst,
        entry.not_judged,
    ]
