"""The list of vehicles: to sort, and to choose whose plots are shown."""

from __future__ import annotations

from watchkeeper.daemon.outputs.terminal import clock
from watchkeeper.daemon.report.gather.judged import Verdict
from watchkeeper.daemon.report.markup import Cell, Html, el, shape, table
from watchkeeper.daemon.report.result import Result, arrival_detectors
from watchkeeper.daemon.report.words import count, lasted
from watchkeeper.detectors.base import SEVERITIES
from watchkeeper.detectors.incidents.fold import counted

LISTED = 400


def vehicles(result: Result, plotted: set[int]) -> Html | None:
    """The section; None with fewer than two vehicles. `plotted` have plots in the page."""
    names = result.collector.rows.names
    if len(names) < 2:
        return None
    arrival = arrival_detectors(result.replay)
    order = sorted(
        range(len(names)), key=lambda row: (row not in plotted, -_rank(result, names[row]), -_heard_s(result, row))
    )
    rows = [_vehicle(result, row, row in plotted, arrival) for row in order[:LISTED]]
    more = len(names) + result.collector.rows.without - len(rows)
    return el(
        "section.vehicles",
        el("h2", "Vehicles ", el("span.n", f"{len(names) + result.collector.rows.without:,}")),
        el("p.lead", "Choose one to see its plots. ", _limit(len(plotted), len(names))),
        table("Vehicles", ("vehicle", "id", "heard", "for", "samples", "alarms", "judged"), rows, sortable=True),
        el("p.muted", f"and {count(more, 'more vehicle')}") if more > 0 else None,
        id="vehicles",
        aria_label="Vehicles",
    )


def _limit(plotted: int, total: int) -> str:
    if plotted >= total:
        return ""
    return f"{plotted:,} of {total:,} have plots here, those with alarms first: more would make the page too large."


def _rank(result: Result, name: str) -> int:
    return max((life.rank + 1 for life in result.alarms_of.get(name, ())), default=0)


def _heard_s(result: Result, row: int) -> float:
    spans = [s for table_of in result.collector.streams.values() if (s := table_of.of(row)) is not None]
    return max((s.t_last for s in spans), default=0.0) - min((s.t_first for s in spans), default=0.0)


def _vehicle(result: Result, row: int, plotted: bool, arrival: frozenset[str]) -> list[Cell]:
    name = result.collector.rows.names[row]
    spans = [s for table_of in result.collector.streams.values() if (s := table_of.of(row)) is not None]
    first = min((s.t_first for s in spans), default=0.0)
    samples = sum(s.samples for s in spans)
    alarms = counted(life.last for life in result.alarms_of.get(name, [])).alarms
    rank = _rank(result, name)
    mark = el("span", shape(SEVERITIES[rank - 1]), f" {alarms}", data_severity=SEVERITIES[rank - 1]) if rank else "0"
    label = f"Show the plots of {result.called(name)}"
    called: Html | str = result.called(name)
    if plotted:
        called = el("button.choose", result.called(name), type="button", data_vehicle=row, aria_label=label)
    heard_s = _heard_s(result, row)
    state, words = _judged([v for v in result.collector.judged.of(row) if v.detector not in arrival])
    return [
        (called, result.called(name)),
        el("code", name),
        (clock(first) if spans else "never", first),
        (lasted(heard_s), heard_s),
        (f"{samples:,}", samples),
        (mark, 1000 * rank + alarms),
        el("span.state", words, data_state=state),
    ]


def _judged(found: list[Verdict]) -> tuple[str, str]:
    """In one word and its reason."""
    wanting = [verdict for verdict in found if verdict.state != "judged"]
    if not found:
        return "none", "nothing applies"
    if not wanting:
        return "judged", "judged"
    good = len(wanting) < len(found) or any(verdict.state == "partly" for verdict in wanting)
    return ("partly", f"in part: {wanting[0].words}") if good else ("not", f"no: {wanting[0].words}")
