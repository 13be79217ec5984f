"""The sensors' own health: how each stream came in, and what receiver and IMU show of themselves."""

from __future__ import annotations

import numpy as np

from watchkeeper.daemon.outputs.terminal import clock
from watchkeeper.daemon.report.gather.collect import SCATTER
from watchkeeper.daemon.report.gather.envelope import Envelope
from watchkeeper.daemon.report.gather.streams import Stream
from watchkeeper.daemon.report.markup import Cell, Html, el, table
from watchkeeper.daemon.report.result import Result
from watchkeeper.daemon.report.words import lasted
from watchkeeper.streams.messages import Kind

# Vehicles whose streams are listed: those with alarms first, then those with most samples.
VEHICLES = 25
# A hole counts when it is so many times the usual interval.
HOLE = 3.0
# The part of the quietest seconds that shows what is noise alone.
QUIET = 10.0


def health(result: Result) -> Html | None:
    """The section; None without any sample."""
    names = result.collector.rows.names
    chosen = sorted(
        range(len(names)), key=lambda row: (-len(result.alarms_of.get(names[row], ())), -_samples(result, row))
    )
    streams: list[list[Cell]] = []
    sensors: list[list[Cell]] = []
    for row in chosen[:VEHICLES]:
        for kind, table_of in sorted(result.collector.streams.items()):
            if (stream := table_of.of(row)) is not None:
                streams.append(_stream(result.called(names[row]), kind, stream))
        sensors += _sensors(result, row)
    if not streams:
        return None
    more = len(names) - VEHICLES
    drops = [
        f"{n:,} of {stream} were refused: {reason}"
        for (stream, reason), n in sorted(result.replay.pipeline.drops.items())
    ]
    return el(
        "section.health",
        el("h2", "Sensors and streams"),
        el("p.lead", f"Of {len(names):,} vehicles those {VEHICLES} with most alarms and samples.")
        if more > 0
        else None,
        table(
            "Streams", ("vehicle", "stream", "samples", "usual rate", "longest hole", "heard"), streams, sortable=True
        ),
        table("What the sensors show of themselves", ("vehicle", "sensor", "figure", "value", "meaning"), sensors)
        if sensors
        else None,
        el("ul.plain", (el("li", line) for line in drops)) if drops else None,
        _messages(result),
        id="health",
        aria_label="Sensors and streams",
    )


def _samples(result: Result, row: int) -> int:
    return sum(int(s.samples[row]) for s in result.collector.streams.values() if row < len(s.samples))


def _stream(name: str, kind: Kind, stream: Stream) -> list[Cell]:
    rate = "–" if stream.rate_hz is None else f"{stream.rate_hz:.3g} Hz"
    hole: Cell = ("none", 0.0)
    if stream.rate_hz is not None and stream.gap_s > HOLE / stream.rate_hz:
        hole = f"{lasted(stream.gap_s)} from {clock(stream.gap_t)}", stream.gap_s
    span = f"{clock(stream.t_first)} to {clock(stream.t_last)}"
    return [
        name,
        kind.word.upper(),
        (f"{stream.samples:,}", stream.samples),
        (rate, stream.rate_hz or 0.0),
        hole,
        (span, stream.t_first),
    ]


def _sensors(result: Result, row: int) -> list[list[Cell]]:
    name = result.called(result.collector.rows.names[row])
    gps, imu = result.collector.readings[Kind.GPS], result.collector.scatter
    found: list[list[Cell]] = []
    for column, figure, unit, meaning in (
        ("sats", "satellites", "", "used by the receiver"),
        ("eph", "horizontal accuracy", "m", "the receiver's own estimate"),
        ("epv", "vertical accuracy", "m", "the receiver's own estimate"),
        ("hdop", "dilution of precision", "", "horizontal"),
    ):
        if (seen := _range(gps, column, row)) is not None:
            least, middle, most = seen
            if least or most:
                found.append(
                    [
                        name,
                        "GPS",
                        figure,
                        f"{middle:.3g} {unit}".rstrip() + f" (from {least:.3g} to {most:.3g})",
                        meaning,
                    ]
                )
    for column, figure, unit in (
        (SCATTER[0], "noise of specific force", "m/s2"),
        (SCATTER[1], "noise of angular rate", "rad/s"),
    ):
        quiet = _quiet(imu, column, row)
        if quiet is not None:
            low, high = quiet
            meaning = "scatter within a second: in the quietest tenth of the log, and at most (motion is in it)"
            found.append([name, "IMU", figure, f"{low:.3g} {unit}, at most {high:.3g}", meaning])
    for figure_told in (
        result.told[result.collector.rows.names[row]].figures if result.collector.rows.names[row] in result.told else ()
    ):
        value = figure_told.value[np.isfinite(figure_told.value)]
        if len(value):
            middle, most = float(np.median(value)), float(value.max())
            said = f"{middle:.3g} {figure_told.unit}".rstrip() + f" (up to {most:.3g})"
            found.append([name, "GPS", figure_told.name, said, figure_told.meaning])
    return found


def _range(envelope: Envelope, column: str, row: int) -> tuple[float, float, float] | None:
    """Least, middle and greatest value."""
    c = envelope.columns.index(column)
    if row >= envelope.rows or not np.isfinite(envelope.hi[c, row]).any():
        return None
    lo, hi = envelope.lo[c, row], envelope.hi[c, row]
    return float(np.nanmin(lo)), float(np.nanmedian(0.5 * (lo + hi))), float(np.nanmax(hi))


def _quiet(envelope: Envelope, column: str, row: int) -> tuple[float, float] | None:
    c = envelope.columns.index(column)
    if row >= envelope.rows or not np.isfinite(envelope.lo[c, row]).any():
        return None
    return float(np.nanpercentile(envelope.lo[c, row], QUIET)), float(np.nanmax(envelope.hi[c, row]))


def _messages(result: Result) -> Html | None:
    """What the autopilot itself said: failsafes and warnings, which are shown and not judged."""
    lines = [
        (s.t, f"{s.word} until {clock(s.until_t)}")
        for told in result.told.values()
        for s in told.spans
        if s.what == "failsafe"
    ]
    lines += [(m.t, m.words) for told in result.told.values() for m in told.marks]
    if not lines:
        return None
    said = [el("li", el("time", clock(t)), " ", words) for t, words in sorted(lines)]
    return el(
        "details.messages", el("summary", f"What the autopilot logged itself ({len(said):,})"), el("ul.plain", said)
    )
