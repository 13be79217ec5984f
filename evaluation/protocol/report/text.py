"""The protocol's result as plain text: failures first, then averages, false positives, alarms, limits, every attack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from watchkeeper.evaluation.protocol.baseline import NAME as PEER
from watchkeeper.evaluation.protocol.cases import OURS
from watchkeeper.evaluation.protocol.figures import GroupFigures, Macro
from watchkeeper.evaluation.protocol.report.bars import bars
from watchkeeper.evaluation.protocol.report.words import NONE, count, milliseconds, number, numbers, percent, percents
from watchkeeper.evaluation.protocol.river import RiverFigures
from watchkeeper.evaluation.protocol.splits import MIXED
from watchkeeper.evaluation.protocol.study import SHORT, Result
from watchkeeper.evaluation.protocol.until_end import Lasting
from watchkeeper.evaluation.shared.bootstrap import Interval

Table = tuple[str, Sequence[str], list[Sequence[str]]]
"""Title, heads and rows."""


def terminal(result: Result) -> str:
    """Everything, for a terminal."""
    return "\n\n".join(_plain(table) for table in tables(result))


def markdown(result: Result, *, brief: bool = False) -> str:
    """The same tables in Markdown; the brief form lists every attack for the mixed flights alone."""
    parts = []
    shown = list(tables(result))
    # the last tables are those of the attacks, one for each group, and the mixed flights come first
    for title, heads, rows in shown[: len(shown) - len(result.groups) + 1] if brief else shown:
        lines = [f"**{title}**", "", f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
        parts.append("\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]))
    return "\n\n".join(parts) + "\n"


def tables(result: Result) -> Iterator[Table]:
    """All tables, the failures first."""
    yield _failures(result)
    yield _bars(result)
    if result.notes:
        yield "Flights that are left out", ("why",), [(note,) for note in result.notes]
    yield _averages(result)
    yield _thresholds(result)
    yield from _false_positives(result)
    yield _alarms(result)
    yield _shift(result)
    if result.lasting:
        yield _lasting(result.lasting)
    if result.minimum_detectable:
        yield _smallest(result)
    yield _floor(result)
    if result.bounds:
        yield _bounds(result)
    if result.river:
        yield _river(result.river)
    for figures in result.groups.values():
        yield _attacks(figures, result.baseline[figures.group])


def _river(river: RiverFigures) -> Table:
    rows: list[Sequence[str]] = [
        (
            row.name, f"{percent(row.fpr_low, 2)} to {percent(row.fpr_high, 2)}", str(row.runs), number(row.auroc),
            percent(row.recall_1, 1), percent(row.event_recall_1, 1),
        )
        for row in river.rows
    ]  # fmt: skip
    title = (
        f"What river adds (mixed, one onset per attack). ADWIN on the score: {river.adwin_per_clean_hour:.0f} changes "
        f"per clean hour, one in {percent(river.adwin_in_attacks)} of attacks"
    )
    heads = ("score", "realised FPR at 1 %", "clean runs of N", "AUROC", "recall at 1 %", "events at 1 %")
    return title, heads, rows


def _failures(result: Result) -> Table:
    mixed = result.groups[MIXED]
    own = [f for f in result.failures if f.group == MIXED]
    rows = [
        (f.attack, f.group, f.lasts, percent(f.recall_1), percent(f.event_recall_1), percent(f.alarm_recall))
        for f in own
    ]
    forever = sum(f.lasts != SHORT for f in own)
    also = f"; {forever} until the end of the flight" if result.lasting else ""
    title = (
        f"FAILURES: {len(own) - forever} of {len(mixed.attacks)} attacks have a recall under 50 % "
        f"(epochs, at 1 % FPR, {MIXED}){also}"
    )
    return title, ("attack", "flights", "lasts", "epochs found", "events found", "alarm raised"), list(rows)


def _bars(result: Result) -> Table:
    rows = [(bar.what, bar.asked, bar.seen, "yes" if bar.met else "NO") for bar in bars(result)]
    return "What was asked for", ("figure", "asked", "seen", "met"), list(rows)


def _averages(result: Result) -> Table:
    rows: list[Sequence[str]] = []
    for name, figures in result.groups.items():
        for who, found in ((OURS, figures), (PEER, result.baseline[name])):
            rows.append((*_average(name, who, "attack", found.macro), percent(found.windows_1)))
            rows.append((*_average(name, who, "family", found.by_family), ""))
        rows.append((*_average(name, f"{OURS}, not attacked", "attack", result.not_attacked[name]), ""))
    heads = (
        "flights", "detector", "mean over", "AUROC", "recall at 1 %", "recall at 5 %", "F1",
        "event AUROC", "events found at 1 %", "alarm raised", "clean windows flagged",
    )  # fmt: skip
    return "Averages (epoch level up to F1, then event level; 95 % intervals over flights)", heads, rows


def _average(group: str, who: str, over: str, m: Macro) -> tuple[str, ...]:
    return (
        group, who, over, f"{number(m.auroc)} ({numbers(m.auroc_95)})", _share(m.recall_1, m.recall_1_95),
        _share(m.recall_5, m.recall_5_95), number(m.f1), number(m.event_auroc),
        _share(m.event_recall_1, m.event_recall_1_95),
        NONE if who == PEER else _share(m.alarm_recall, m.alarm_recall_95),
    )  # fmt: skip


def _share(value: float, bounds: Interval | None) -> str:
    return f"{percent(value, 1)} ({percents(bounds)})"


def _thresholds(result: Result) -> Table:
    rows: list[Sequence[str]] = []
    for name, figures in result.groups.items():
        judged: dict[tuple[str, ...], list[str]] = {}
        for flight in figures.flights:
            judged.setdefault(flight.calibrated_on, []).append(flight.flight)
        levels = {f.calibrated_on: (number(f.threshold_1), number(f.threshold_5)) for f in figures.flights}
        rows += [(name, ", ".join(own), *levels[by], ", ".join(by)) for by, own in judged.items()]
    heads = ("flights", "judged", "at 1 %", "at 5 %", "set by the clean flights")
    return f"Thresholds: {result.settings['threshold_from']}", heads, rows


def _false_positives(result: Result) -> Iterator[Table]:
    heads = (
        "flight", "watchkeeper 1 %", "5 %", "recall at 1 %", "innovation test 1 %", "5 %", "recall at 1 %",
        "epochs", "warm-up", "unscored",
    )  # fmt: skip
    for name, figures in result.groups.items():
        rows: list[Sequence[str]] = [
            (
                f.flight, percent(f.fpr_1, 2), percent(f.fpr_5, 2), percent(f.recall_1), percent(peer.fpr_1, 2),
                percent(peer.fpr_5, 2), percent(peer.recall_1), f"{f.epochs:,}", f"{f.warmup_epochs:,}",
                f"{f.unscored_epochs:,}",
            )
            for f, peer in zip(figures.flights, result.baseline[name].flights, strict=True)
        ]  # fmt: skip
        spread = percent(figures.recall_1_std, 1)
        title = f"Held-out flights ({name}): realised false-positive rate at nominal 1 % and 5 %, recall (std {spread})"
        yield title, heads, rows


def _alarms(result: Result) -> Table:
    rows = [
        (a.profile, f"{a.n}", f"{a.alarms}", f"{a.hours:.2f}", f"{a.per_hour:.2f}", numbers(a.per_hour_95, 2))
        for a in result.false_alarms
    ]
    heads = ("profile", "epochs in a row", "false alarms", "clean hours", "per hour", "95 % interval")
    return "False alarms on clean flights (debounced, as the daemon raises them)", heads, list(rows)


def _shift(result: Result) -> Table:
    rows = [
        (s.shift, f"{len(s.flights)}", percent(s.fpr_1, 2), percent(s.worst_fpr_1, 2), percent(s.fpr_5, 2),
         f"{s.alarms}", f"{s.per_hour:.2f}")
        for s in result.shift
    ]  # fmt: skip
    heads = (
        "clean flights that are different",
        "flights",
        "FPR at 1 %",
        "worst flight",
        "FPR at 5 %",
        "alarms",
        "per hour",
    )
    return "Distribution shift: thresholds and settings as before", heads, list(rows)


def _lasting(lasting: Lasting) -> Table:
    late = {row.attack: row for row in lasting.late}
    rows: list[Sequence[str]] = []
    for row in lasting.figures.attacks:
        e, v, after = row.epoch, row.event, late[row.attack]
        rows.append((
            row.attack, f"{after.lasted_s:.0f} s", number(e.auroc), percent(e.recall_1), percents(e.recall_1_95),
            percent(e.recall_5), number(e.f1), percent(v.recall_1), percent(v.alarm_recall),
            milliseconds(v.alarm_latency_ms), percent(after.recall_1), percent(after.alarm_up),
            percent(after.alarm_at_end),
        ))  # fmt: skip
    minute = f"after {lasting.late_s:.0f} s"
    heads = (
        "attack", "lasts", "AUROC", "recall at 1 %", "95 %", "at 5 %", "F1", "events at 1 %", "alarms", "alarm latency",
        f"{minute}: recall at 1 %", f"{minute}: alarm up", "alarm up at the end",
    )  # fmt: skip
    return f"Attacks until the end of the flight ({MIXED}, one onset per attack and flight)", heads, rows


def _smallest(result: Result) -> Table:
    rows = [
        (
            d.family,
            f"{d.magnitude:.3g} {d.unit}" if d.magnitude else NONE,
            f"{d.bracket[0]:.3g} … {d.bracket[1]:.3g}",
            d.note,
        )
        for d in result.minimum_detectable
    ]
    heads = ("family", "smallest", "between", "")
    return "Minimum detectable magnitude: an alarm in half of the cases", heads, list(rows)


def _floor(result: Result) -> Table:
    rows = [(f.flight, number(f.step_m), number(f.drift_10s_mps), number(f.drift_30s_mps)) for f in result.noise_floor]
    heads = ("flight", "from fix to fix, m", "over 10 s, m/s", "over 30 s, m/s")
    return (
        "Noise floor: GPS position against GPS velocity without any attack, exceeded 1 % of the time",
        heads,
        list(rows),
    )


def _bounds(result: Result) -> Table:
    rows = [
        (b.attack, f"{b.smallest:.3g}", f"{b.allowed} of {b.cases}", f"{b.found}", percent(b.ratio))
        for b in result.bounds
    ]
    ratios = [b.ratio for b in result.bounds if b.ratio is not None]
    rows.append(("mean", "", "", "", percent(sum(ratios) / len(ratios) if ratios else None)))
    heads = ("attack", "smallest, median", "large enough", "found in 10 s", "ratio")
    return "Bound by the flight's own noise (Neyman-Pearson, position against velocity, 10 s)", heads, list(rows)


def _attacks(figures: GroupFigures, peer: GroupFigures) -> Table:
    peers = {row.attack: row for row in peer.attacks}
    rows: list[Sequence[str]] = []
    for row in figures.attacks:
        e, v, peer_row = row.epoch, row.event, peers[row.attack]
        mark = " (best)" if row.attack == figures.best else " (worst)" if row.attack == figures.worst else ""
        rows.append((
            row.attack + mark, number(e.auroc), percent(e.recall_1), percents(e.recall_1_95),
            percent(e.recall_5), number(e.f1), percent(v.recall_1), milliseconds(v.latency_ms), count(v.latency_epochs),
            percent(v.alarm_recall), milliseconds(v.alarm_latency_ms), count(v.alarm_latency_epochs),
            number(peer_row.epoch.auroc), percent(peer_row.epoch.recall_1), percent(peer_row.event.recall_1),
        ))  # fmt: skip
    heads = (
        "attack", "AUROC", "recall at 1 %", "95 %", "at 5 %", "F1", "events at 1 %", "latency", "epochs", "alarms",
        "alarm latency", "epochs", "innovation test: AUROC", "recall at 1 %", "events at 1 %",
    )  # fmt: skip
    return f"Every attack ({figures.group}; epoch level up to F1, then event level)", heads, rows


def _plain(table: Table) -> str:
    title, heads, rows = table
    widths = [max(len(cell) for cell in column) for column in zip(heads, *rows, strict=True)] if rows else []
    if not rows:
        return f"{title}\n  none"
    lines = [
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in (heads, *rows)
    ]
    return "\n".join((title, *(line.rstrip() for line in lines)))
