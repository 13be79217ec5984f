"""A report as one HTML file: the parts in order, the data, style and script inside, nothing to load.

Everything that a log says of itself is escaped (markup.py), the data is JSON without a `<` in it, and the content
security policy of the page lets no other script run than those that are in it by their hashes.
"""

from __future__ import annotations

import msgspec

from watchkeeper.daemon.outputs.terminal import clock
from watchkeeper.daemon.report.bundle import first, policy, script, shapes, style
from watchkeeper.daemon.report.data import document, plotted
from watchkeeper.daemon.report.markup import Html, el, text
from watchkeeper.daemon.report.result import Result
from watchkeeper.daemon.report.sections.about import about
from watchkeeper.daemon.report.sections.alarms import alarms
from watchkeeper.daemon.report.sections.coverage import coverage
from watchkeeper.daemon.report.sections.health import health
from watchkeeper.daemon.report.sections.pictures import bar, plots, track_map
from watchkeeper.daemon.report.sections.sky import sky
from watchkeeper.daemon.report.sections.vehicles import vehicles
from watchkeeper.daemon.report.verdict import Verdict
from watchkeeper.daemon.report.words import alarm_count, count, day, lasted

# Characters of all parts and the data together: with style and script a page stays below 3 MB.
PAGE_ROOM = 2_500_000
TONES = {
    "warning": "Warning", "caution": "Caution", "advisory": "Advisory", "clean": "No alarm", "partly": "Judged in part",
    "unjudged": "Not judged",
}  # fmt: skip


def page(result: Result) -> str:
    """The whole file."""
    top = [_head(result), _verdict(result, result.verdict)]
    told, below = [sky(result), alarms(result)], [coverage(result), health(result), about(result)]
    written = sum(len(part) for part in (*top, *told, *below) if part is not None)
    found = document(result, PAGE_ROOM - written)
    middle = [*told, plots(result, found), vehicles(result, plotted(found))]
    parts = [*top, track_map(result, found), *middle, *below]
    return whole(f"{result.title} · Watchkeeper report", bar(result), parts, found)


def whole(title: str, top: Html, parts: list[Html | None], found: object) -> str:
    """A page of ours around any parts."""
    data = (
        msgspec.json.encode(found)
        .decode()
        .replace("<", "\\u003c")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )
    code = script()
    head = [
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy(first(), code)),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="dark light"),
        el("title", title),
        el("script", Html(first())),
        el("style", Html(style())),
    ]
    body = [
        el("a.skip", "Skip to the verdict", href="#verdict"),
        top,
        el("main", parts),
        Html(shapes()),
        el("script", Html(data), type="application/json", id="data"),
        el("script", Html(code)),
    ]
    return f"<!doctype html>\n{el('html', el('head', head), el('body', body), lang='en', data_theme='light')}\n"


def _head(result: Result) -> Html:
    collector, pipeline = result.collector, result.replay.pipeline
    vehicles_heard = len(collector.rows.names) + collector.rows.without
    when = " ".join(filter(None, (day(result.t_first), f"{clock(result.t_first)} to {clock(result.t_last)}")))
    facts = [
        ("recorded", when if result.spanned else "–"),
        ("length", lasted(result.seconds)),
        ("vehicles", f"{vehicles_heard:,}"),
        ("samples", f"{pipeline.samples.total():,}"),
        ("alarms", alarm_count(result.replay.raised.count.alarms, result.verdict.tone)),
    ]
    return el(
        "div.title",
        el("h1", result.title),
        el("dl.figures", (el("div", el("dt", name), el("dd", value)) for name, value in facts)),
    )


def _verdict(result: Result, found: Verdict) -> Html:
    happened = el("ul.happened", (el("li", line) for line in found.happened)) if found.happened else None
    unjudged = None
    if found.unjudged:
        title = "Why not" if found.tone == "unjudged" else "What could not be judged"
        unjudged = el("div.unjudged", el("h3", title), el("ul", (el("li", _sentence(line)) for line in found.unjudged)))
    notes = el("ul.notes", (el("li", _sentence(line)) for line in found.notes)) if found.notes else None
    back = result.collector.restarts
    again = (
        el("p.muted", f"Time went back {count(back, 'time')} in this log: parts of it lie over each other below.")
        if back
        else None
    )
    return el(
        "section.verdict",
        el("p.tone", el("svg.shape", el("use", href=f"#shape-{found.tone}"), aria_hidden="true"), TONES[found.tone]),
        el("h2", found.headline),
        text([happened, unjudged, notes, again]),
        id="verdict",
        data_tone=found.tone,
        aria_label="Verdict",
        tabindex="-1",
    )


def _sentence(line: str) -> str:
    """A line with a capital letter, except where it begins with the name of a vehicle, which is as it is."""
    return line if line.partition(" ")[0].endswith(":") else line[:1].upper() + line[1:]
