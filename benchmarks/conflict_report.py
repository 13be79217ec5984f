"""The figures of `bench conflicts` for people: lines for the terminal, a table for a page of docs/, and a plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchkeeper.benchmarks.conflicts import Promise, Row

BEGIN = "<!-- written by: watchkeeper bench conflicts --table -->"
END = "<!-- end -->"
TITLES = {
    "ours": "watchkeeper",
    "futures": "with all futures",
    "compiled": "BlueSky, compiled",
    "numpy": "BlueSky, NumPy",
}
COLUMNS = ("N", "detector", "median ms", "p99 ms", "min ms", "rounds", "pairs", "bytes/aircraft", "ratio to ours")
DISTURBED = "Something else kept the core busy: elapsed times are longer than processor times. Measure again."
# Elapsed over processor time from which a core was not ours alone.
_SHARED = 1.1
_WIDTHS = (7, 18, 11, 11, 11, 6, 8, 14, 13)
_COLOURS = {"ours": "#0b6e4f", "futures": "#56b4e9", "compiled": "#c8553d", "numpy": "#8d6a9f"}
HEAD = "  ".join(name.rjust(width) for name, width in zip(COLUMNS, _WIDTHS, strict=True))


def disturbed(rows: Sequence[Row]) -> bool:
    """Whether the machine had other things to do."""
    return any(row.median_ms > _SHARED * row.cpu_ms for row in rows if not row.note)


def _cells(row: Row, ours: Row | None) -> list[str]:
    first = [f"{row.n:,}", TITLES[row.detector]]
    if row.note:
        return [*first, row.note]
    ratio = row.cpu_ms / ours.cpu_ms if ours else 1.0
    return [
        *first, _ms(row.median_ms), _ms(row.p99_ms), _ms(row.min_ms), str(row.rounds), f"{row.pairs:,}",
        f"{row.bytes_per_aircraft:,.0f}", f"{ratio:,.1f}" if ratio < 10 else f"{ratio:,.0f}",
    ]  # fmt: skip


def _ms(value: float) -> str:
    """Three figures, no more digits than were measured."""
    return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f}"


def line(row: Row, ours: Row | None) -> str:
    """One row for the terminal, below HEAD."""
    cells = _cells(row, ours)
    fixed = "  ".join(cell.rjust(width) for cell, width in zip(cells[:2], _WIDTHS[:2], strict=True))
    if row.note:
        return f"{fixed}  {row.note}"
    return "  ".join((fixed, *(cell.rjust(width) for cell, width in zip(cells[2:], _WIDTHS[2:], strict=True))))


def verdict(promise: Promise) -> str:
    """One line: ok, MISS or -, what was measured, and what was promised."""
    asked = f"at {'least' if promise.at_least else 'most'} {promise.limit:g} {promise.unit}"
    if promise.value is None:
        return f"-     {promise.text}: not measured, {promise.note} ({asked})"
    value = f"{promise.value:,.{1 if promise.value < 100 else 0}f} {promise.unit}"
    return f"{'MISS' if promise.broken else 'ok':4}  {promise.text}: {value} ({asked})"


def write_table(path: Path, machine: Mapping[str, str], rows: Sequence[Row], promises: Sequence[Promise]) -> None:
    """Put machine, table and promises between the two markers of the page."""
    page = path.read_text()
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{path} lacks the line {BEGIN!r} or, after it, {END!r}")
    ours = {row.n: row for row in rows if row.detector == "ours"}
    lines = [", ".join(f"{name} {value}" for name, value in machine.items()) + f". {datetime.now(UTC):%Y-%m-%d}.", ""]
    lines += [DISTURBED, ""] if disturbed(rows) else []
    lines += ["| " + " | ".join(COLUMNS) + " |", "|--:|---|" + "--:|" * (len(COLUMNS) - 2)]
    for row in rows:
        cells = _cells(row, ours.get(row.n))
        lines.append("| " + " | ".join(cells + [""] * (len(COLUMNS) - len(cells))) + " |")
    lines += ["", "```", *map(verdict, promises), "```"]
    path.write_text(f"{head}{begin}\n" + "\n".join(lines) + f"\n{end}{tail}")


def plot(path: Path, rows: Sequence[Row]) -> None:
    """Time and extra memory over the number of aircraft, both axes logarithmic."""
    try:
        from matplotlib import rc_context  # noqa: PLC0415
    except ImportError:
        raise SystemExit("--plot needs matplotlib: pip install 'watchkeeper[plots]'") from None
    # text stays text and names do not change from run to run: a small file with small differences
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "watchkeeper", "font.size": 9}):
        _draw(path, rows)


def _draw(path: Path, rows: Sequence[Row]) -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(8.0, 3.6), layout="constrained")
    time_axes, memory_axes = figure.subplots(1, 2)
    for detector, title in TITLES.items():
        points = [row for row in rows if row.detector == detector and not row.note]
        n = [row.n for row in points]
        style = {"color": _COLOURS[detector], "marker": "o", "markersize": 3, "label": title}
        time_axes.plot(n, [row.median_ms for row in points], **style)
        time_axes.fill_between(
            n, [row.min_ms for row in points], [row.p99_ms for row in points], color=_COLOURS[detector], alpha=0.2
        )
        memory_axes.plot(n, [max(row.bytes_per_aircraft * row.n, 1.0) / 1e6 for row in points], **style)
    for axes, title in ((time_axes, "time of one scan [ms]: median, min to p99"), (memory_axes, "extra memory [MB]")):
        axes.set(xscale="log", yscale="log", xlabel="aircraft", title=title)
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    time_axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
