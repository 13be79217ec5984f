"""An evening of ADS-B: conflicts with their least separation, the busiest hours, how far aircraft were heard."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import numpy as np

from watchkeeper.daemon.outputs.terminal import UNIX_FROM_S, clock
from watchkeeper.daemon.report.gather.lives import Life
from watchkeeper.daemon.report.markup import Cell, Html, el, shape, table
from watchkeeper.daemon.report.result import Result
from watchkeeper.daemon.report.words import count, lasted
from watchkeeper.streams.batch import F8, I8
from watchkeeper.streams.messages import Kind

PAIRS = ("conflict", "los")
# Rows of the table of conflicts.
LISTED = 200
# Bars of the chart of hours, about; their widths are one of these, s.
BARS = 26
WIDTHS_S = (60, 300, 600, 1800, 3600, 7200, 21_600, 86_400, 604_800)
NM_M = 1852.0
EIGHTS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")


def sky(result: Result) -> Html | None:
    """The section; None where no aircraft was heard."""
    adsb = result.collector.readings[Kind.ADSB]
    if not adsb.rows or not result.spanned:
        return None
    return el(
        "section.sky",
        el("h2", "The sky"),
        _conflicts(result),
        _hours(result),
        _range(result),
        id="sky",
        aria_label="The sky",
    )


def _conflicts(result: Result) -> Html:
    found = [life for life in result.lives if life.first.kind in PAIRS]
    if not found:
        return el("p", "No conflict and no loss of separation.")
    losses = sum(life.first.kind == "los" for life in found)
    found.sort(key=_least)
    rows = [_conflict(result, life) for life in found[:LISTED]]
    said = f"{count(len(found) - losses, 'predicted conflict')} and {count(losses, 'loss', 'losses')} of separation"
    more = f" The {LISTED} closest are listed." if len(found) > LISTED else ""
    head = ("aircraft", "what", "began", "lasted", "least distance", "vertically at the closest point", "when", "show")
    return Html(
        el("p", f"{said}, the closest first.{more}")
        + table("Conflicts and losses of separation", head, rows, sortable=True)
    )


def _least(life: Life) -> float:
    value = life.worst.evidence.get("sep_nm")
    return math.inf if value is None else float(value)


def _conflict(result: Result, life: Life) -> list[Cell]:
    evidence = life.worst.evidence
    sep_nm, vsep_ft = evidence.get("sep_nm"), evidence.get("vsep_ft")
    who = " × ".join(result.called(name) for name in life.first.subjects)
    what = "separation lost" if life.first.kind == "los" else "predicted"
    seconds = life.until_t(result.t_last) - life.first.t_raised
    button = el("button.show", "Show", type="button", data_alarm=life.first.id, aria_label=f"Show {what} {who}")
    return [
        who,
        (el("span", shape(life.severity), f" {what}", data_severity=life.severity), life.rank),
        (clock(life.first.t_onset), life.first.t_onset),
        (lasted(seconds), seconds),
        ("unknown", math.inf) if sep_nm is None else (f"{sep_nm:.2f} NM", sep_nm),
        ("unknown", math.inf) if vsep_ft is None else (f"{vsep_ft:,.0f} ft", vsep_ft),
        (clock(life.worst.t), life.worst.t),
        button,
    ]


def _hours(result: Result) -> Html | None:
    adsb, n = result.collector.readings[Kind.ADSB], result.collector.readings[Kind.ADSB].rows
    width_s = next((w for w in WIDTHS_S if result.seconds / w <= BARS), WIDTHS_S[-1])
    start = math.floor(result.t_first / width_s) * width_s
    bars = 1 + math.floor((result.t_last - start) / width_s)
    aircraft, reports = np.zeros(bars, np.int64), np.zeros(bars, np.int64)
    for row in range(n):
        filled = np.flatnonzero(adsb.count[row])
        middle = adsb.origin_t[row] + (filled + 0.5) * adsb.width_s[row]
        place = np.clip(((middle - start) // width_s).astype(np.int64), 0, bars - 1)
        np.add.at(reports, place, adsb.count[row, filled])
        aircraft[np.unique(place)] += 1
    if bars < 3 or not aircraft.any():
        return None
    busiest = int(aircraft.argmax())
    words = (
        f"Busiest: {_hour(start + busiest * width_s, width_s)} with {aircraft[busiest]:,} aircraft "
        f"and {reports[busiest]:,} reports."
    )
    return el(
        "div.hours",
        el("h3", f"Aircraft in each {lasted(width_s)}"),
        _bars(aircraft, start, width_s),
        el("p.muted", words),
    )


def _hour(t: float, width_s: float) -> str:
    if t < UNIX_FROM_S:
        return clock(t)
    form = "%H:%M" if width_s < 86_400 else "%Y-%m-%d"
    return datetime.fromtimestamp(t, UTC).strftime(form) + ("Z" if width_s < 86_400 else "")


def _bars(values: I8, start: float, width_s: float) -> Html:
    wide, high = 32, 120
    top = max(int(values.max()), 1)
    parts = []
    every = max(1, math.ceil(len(values) / 9))
    for i, value in enumerate(values.tolist()):
        tall = high * value / top
        title = el("title", f"{_hour(start + i * width_s, width_s)}: {value:,} aircraft")
        parts.append(
            el(
                "rect.bar",
                title,
                x=i * wide + 2,
                y=f"{high - tall + 16:.1f}",
                width=wide - 4,
                height=f"{tall:.1f}",
                rx=2,
            )
        )
        parts.append(el("text.n", f"{value:,}", x=i * wide + wide / 2, y=f"{high - tall + 12:.1f}"))
        if i % every == 0:
            parts.append(el("text.tick", _hour(start + i * width_s, width_s), x=i * wide + 2, y=high + 30))
    told = ", ".join(f"{_hour(start + i * width_s, width_s)} {value}" for i, value in enumerate(values.tolist()))
    box = f"0 0 {wide * len(values)} {high + 36}"
    return el("svg.bars", parts, viewBox=box, role="img", aria_label=f"Aircraft by time: {told}")


def _range(result: Result) -> Html | None:
    """How far aircraft were heard from the middle of all positions: where the receiver is no log says."""
    adsb = result.collector.readings[Kind.ADSB]
    east, north = (column.reshape(-1) for column in adsb.first[:, : adsb.rows])
    known = np.isfinite(east) & np.isfinite(north)
    if known.sum() < 2:
        return None
    x, y = east[known] - np.median(east[known]), north[known] - np.median(north[known])
    reach: F8 = np.hypot(x, y) / NM_M
    bearing = np.degrees(np.arctan2(x, y)) % 360.0
    eighth = ((bearing + 22.5) // 45.0).astype(np.int64) % 8
    far = [float(reach[eighth == k].max(initial=0.0)) for k in range(8)]
    words = ", ".join(f"{name} {nm:.0f}" for name, nm in zip(EIGHTS, far, strict=True))
    middle = float(np.percentile(reach, 95))
    return el(
        "p",
        el("b", "Range. "),
        f"95 % of the positions are within {middle:.0f} NM of the middle of all of them, the farthest at "
        f"{reach.max():.0f} NM; "
        f"by direction, NM: {words}. The log does not say where the receiver is, so this is no range of the receiver.",
    )
