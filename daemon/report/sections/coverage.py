"""What was judged and what not: by detector, and vehicle by vehicle where there are few."""

from __future__ import annotations

from watchkeeper.daemon.report.markup import Cell, Html, el, table
from watchkeeper.daemon.report.result import Result
from watchkeeper.daemon.report.words import lasted
from watchkeeper.detectors.catalog import REGISTRY
from watchkeeper.detectors.coverage.declaration import spoken
from watchkeeper.detectors.coverage.table import Tally
from watchkeeper.detectors.declaration import Declaration
from watchkeeper.detectors.fleet.reasons import CODE_OF, words

# With more vehicles than this the table vehicle by vehicle is left to the list of vehicles.
VEHICLES = 12
MARKS = {"judged": "judged", "partly": "in part", "not": "not judged"}


def coverage(result: Result) -> Html:
    """The section."""
    pipeline = result.replay.pipeline
    declared = sorted((d.declaration for d in pipeline.detectors), key=lambda d: -result.tallies[d.name].vehicles)
    rows = [_detector(result, declaration, result.tallies[declaration.name]) for declaration in declared]
    off = sorted(set(REGISTRY) - {declaration.name for declaration in declared})
    heard = len(result.collector.rows.names) + result.collector.rows.without
    again = any(tally.vehicles > heard for tally in result.tallies.values())
    return el(
        "section.coverage",
        el("h2", "What was judged"),
        el("p.lead", "No alarm means that all is well only where somebody looked."),
        table("By detector", ("detector", "looks for", "judged", "not judged, and why"), rows),
        el("p.muted", f"Switched off by the settings: {', '.join(map(spoken, off))}.") if off else None,
        el("p.muted", "A vehicle that came back after it had been forgotten counts again.") if again else None,
        _by_vehicle(result),
        id="judged",
        aria_label="What was judged",
    )


def _detector(result: Result, declaration: Declaration, tally: Tally) -> list[Cell]:
    if not tally.vehicles:
        return [spoken(declaration.name), declaration.help, _state("none", "nobody"), _why_nobody(result, declaration)]
    why = [
        el("li", f"{n:,}: {words(CODE_OF[reason])}", f" ({_some(result, tally, reason, n)})")
        for reason, n in sorted(tally.not_judged.items(), key=lambda item: -item[1])
    ]
    why += [
        el("li", f"{n:,} only in part: {words(CODE_OF[reason])}", f" ({_some(result, tally, reason, n)})")
        for reason, n in sorted(tally.partly.items(), key=lambda item: -item[1])
    ]
    whole = "judged" if not why else "partly" if tally.judged else "not"
    judged = _state(whole, f"{tally.judged:,} of {tally.vehicles:,}")
    return [spoken(declaration.name), declaration.help, judged, el("ul.plain", why) if why else "everybody was judged"]


def _why_nobody(result: Result, declaration: Declaration) -> str:
    heard = result.replay.pipeline.samples
    groups = {group for kind in declaration.kinds for group in kind.needs}
    missing = [" or ".join(s.word.upper() for s in group) for group in groups if not any(heard[s.word] for s in group)]
    return f"does not apply: the log has no {' and no '.join(sorted(missing))}" if missing else "does not apply here"


def _some(result: Result, tally: Tally, reason: str, n: int) -> str:
    names = [result.called(name) for name in tally.examples.get(reason, [])]
    return ", ".join(names) + (", …" if n > len(names) else "")


def _state(state: str, said: str) -> Html:
    return el("span.state", said, data_state=state)


def _by_vehicle(result: Result) -> Html | None:
    names = result.collector.rows.names
    if not names or len(names) > VEHICLES:
        return None
    judged = result.collector.judged
    rows: list[list[Cell]] = []
    for row, name in enumerate(names):
        for found in judged.of(row):
            said = found.words if found.state != "judged" else f"for {lasted(found.seconds)}"
            rows.append([result.called(name), spoken(found.detector), _state(found.state, MARKS[found.state]), said])
    return table("Vehicle by vehicle", ("vehicle", "detector", "state", "how long, or why not"), rows) if rows else None
