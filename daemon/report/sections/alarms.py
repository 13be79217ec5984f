"""Alarms, the worst first: the sentence, the life, the worst moment with its figures, and all evidence to open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from watchkeeper.daemon.outputs.terminal import clock
from watchkeeper.daemon.report.figures import Shown, causes, figures
from watchkeeper.daemon.report.gather.lives import Group, Life
from watchkeeper.daemon.report.markup import Html, el, shape, table
from watchkeeper.daemon.report.result import Result
from watchkeeper.daemon.report.sections.ways import ways_out
from watchkeeper.daemon.report.words import brief, count, exact
from watchkeeper.detectors.coverage.declaration import spoken
from watchkeeper.detectors.incidents.clues import clues, fault_at, others
from watchkeeper.detectors.incidents.declaration import INCIDENT, likely
from watchkeeper.detectors.words import span

# Alarms told one by one, and those of them that are open at once; the others are counted.
CARDS, OPEN = 100, 12
# Figures of the worst moment that stand on a card.
FIGURES = 6


def alarms(result: Result) -> Html | None:
    """The section; None without any alarm."""
    groups = result.groups
    if not groups:
        return None
    cards, shown = [], 0
    for group in groups:
        if shown >= CARDS:
            break
        cards.append(_group(result, group))
        shown += 1 + len(group.alarms)
    total = result.replay.raised.count.alarms
    left = total - len(cards)
    more = el("p.muted", f"{left:,} more are not shown one by one; --alarms writes all.") if left else None
    return el(
        "section.alarms",
        el("h2", "Alarms ", el("span.n", f"{total:,}")),
        el(
            "p.lead", "The worst first. Show leads to the span in all plots; the figures are those of the worst moment."
        ),
        el("ol.cards", (el("li", card) for card in cards[:OPEN])),
        el(
            "details.rest",
            el("summary", f"{len(cards) - OPEN} more"),
            el("ol.cards", (el("li", card) for card in cards[OPEN:])),
        )
        if len(cards) > OPEN
        else None,
        more,
        id="alarms",
        aria_label="Alarms",
    )


def _group(result: Result, group: Group) -> Html:
    inside = el("ol.cards.inside", (el("li", _card(result, life)) for life in group.alarms)) if group.alarms else None
    return _card(result, group.head, _diagnosis(group.head.last.diagnosis), inside)


def _card(result: Result, life: Life, diagnosis: Html | None = None, inside: Html | None = None) -> Html:
    event, worst = life.last, life.worst
    who = " × ".join(result.called(name) for name in event.subjects)
    label = f"Show in the plots: {event.kind} {who}"
    head = el(
        "header",
        shape(life.severity),
        el("h3", el("span.kind", spoken(event.kind)), " ", el("span.who", who)),
        el("span.tag", f"{life.severity}{', active at the end' if life.active else ''}"),
        el("button.show", "Show", type="button", data_alarm=event.id, aria_label=label),
    )
    parts = [
        head,
        el("p.say", life.say),
        el("p.life", " · ".join(_life(result, life))),
        diagnosis,
        None if event.kind == INCIDENT else _worst(worst, event.kind, event.threshold),
        _evidence(event.kind, worst, event.threshold),
        ways_out(result, life),
        inside,
    ]
    return el("article.alarm", parts, id=f"alarm-{event.id}", data_severity=life.severity, data_id=event.id)


def _life(result: Result, life: Life) -> Iterator[str]:
    event = life.last
    yield f"began {clock(event.t_onset)}"
    yield f"raised {clock(event.t_raised)}"
    if event.t_cleared is None:
        yield f"still active at the end, {span(result.t_last - event.t_onset)} after it began"
        return
    yield f"ended {clock(event.t_cleared)}, after {span(event.t_cleared - event.t_onset)}"


def _worst(worst: Any, kind: str, threshold: float) -> Html:
    shown = [figure for figure in figures(kind, worst.evidence, threshold) if figure.tells]
    ratio = f" ({brief(worst.score / threshold)} times its threshold)" if threshold > 0.0 else ""
    facts = [
        el("div", el("dt", f.words, title=f.meaning), el("dd", f"{f.short} {f.unit}".rstrip(), title=f.value))
        for f in shown[:FIGURES]
    ]
    return el(
        "div.worst",
        el("p", el("b", f"Worst at {clock(worst.t)}"), f": score {brief(worst.score)}{ratio}"),
        el("dl.facts", facts) if facts else None,
    )


def _evidence(kind: str, worst: Any, threshold: float) -> Html | None:
    rows = [
        ("score", exact(worst.score), "", f"an alarm is due from {exact(threshold)} on"),
        *((f.name, f.value, f.unit, f.meaning) for f in figures(kind, worst.evidence, threshold) if _says(f)),
    ]
    named = [
        el("li", el("b", name), f": {meaning}" if meaning else "") for name, meaning in causes(kind, worst.evidence)
    ]
    if len(rows) == 1 and not named:
        return None
    return el(
        "details.evidence",
        el("summary", f"All evidence of that moment ({count(len(rows), 'figure')})"),
        el("ul.causes", named) if named else None,
        table(f"Evidence at {clock(worst.t)}", ("figure", "value", "unit", "meaning"), rows),
    )


def _says(figure: Shown) -> bool:
    return bool(figure.value)


def _diagnosis(found: dict[str, Any] | None) -> Html | None:
    if not found:
        return None
    rivals = "; ".join(others(found.get("alternatives") or []))
    said = clues(found.get("evidence") or [])
    return el(
        "div.diagnosis",
        el(
            "p",
            el("b", fault_at(found)),
            f", {likely(found['confidence'])} sure",
            f"; or {rivals}" if rivals else "",
        ),
        el("ul", (el("li", line) for line in said)) if said else None,
    )
