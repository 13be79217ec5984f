"""What the page's script draws, as one JSON document: alarms as spans, modes, tracks, and the plots of each vehicle.

A page stays small: plots get the room that everything else leaves, those of vehicles with alarms first, then of those
with most samples; the bins of plots and the points of tracks become coarser with the number of vehicles.
"""

from __future__ import annotations

from typing import Any

import msgspec

from watchkeeper.daemon.outputs.terminal import UNIX_FROM_S
from watchkeeper.daemon.report.channels import plots_of
from watchkeeper.daemon.report.gather.collect import EARTH_M
from watchkeeper.daemon.report.result import Result
from watchkeeper.daemon.report.series import TIME_DIGITS, points, track
from watchkeeper.detectors.coverage.declaration import spoken
from watchkeeper.streams.logs.told import Told
from watchkeeper.streams.messages import Kind

# Characters of all plots together at most, and positions of all tracks.
PLOTS_ROOM, POINTS_ROOM = 1_500_000, 60_000
# Bins of a plot by how many vehicles there are: a screen has some 1,200 columns.
BINS = ((1, 2048), (4, 1024), (12, 512), (10**9, 256))
# Spans of alarms that the script draws.
SPANS = 2000


def document(result: Result, room: int) -> dict[str, Any]:
    """The document in so many characters. Its `vehicles` have plots where there was room."""
    collector = result.collector
    names = collector.rows.names
    bins = next(bins for most, bins in BINS if len(names) <= most)
    order = sorted(
        range(len(names)),
        key=lambda row: (
            -max((life.rank + 1 for life in result.alarms_of.get(names[row], ())), default=0),
            -_samples(result, row),
        ),
    )
    total = sum(points(collector.readings[kind], row) for row in order for kind in (Kind.ADSB, Kind.GPS))
    every = 1
    while total / every > POINTS_ROOM:
        every *= 2
    vehicles = [_vehicle(result, row, every) for row in order]
    place = {vehicle["row"]: i for i, vehicle in enumerate(vehicles)}
    alarms = [_alarm(result, life, place) for life in result.lives[:SPANS]]
    room = min(PLOTS_ROOM, room - len(msgspec.json.encode((vehicles, alarms))))
    for vehicle in vehicles:
        plots = plots_of(collector, result.config, vehicle["row"], result.told.get(vehicle["id"]), bins)
        room -= _size(plots)
        if room < 0:
            break
        vehicle["plots"] = plots
    return {
        "t0": round(result.t_first, TIME_DIGITS),
        "t1": round(result.t_last, TIME_DIGITS),
        "unix": result.t_first >= UNIX_FROM_S,
        "middle": collector.middle,
        "degree_m": EARTH_M,
        "every": every,
        "vehicles": vehicles,
        "alarms": alarms,
    }


def plotted(found: dict[str, Any]) -> set[int]:
    """The rows of the vehicles that have plots."""
    return {vehicle["row"] for vehicle in found["vehicles"] if vehicle.get("plots")}


def _vehicle(result: Result, row: int, every: int) -> dict[str, Any]:
    collector, name = result.collector, result.collector.rows.names[row]
    adsb = track(collector.readings[Kind.ADSB], row, every)
    told = result.told.get(name)
    return {
        "row": row,
        "name": result.called(name),
        "id": name,
        "aircraft": adsb is not None,
        "earth": row in collector.on_earth,
        "track": adsb or track(collector.readings[Kind.GPS], row, every),
        **(_told(told) if told is not None else {}),
    }


def _told(told: Told) -> dict[str, Any]:
    spans = [
        {"what": s.what, "word": s.word, "t0": round(s.t, TIME_DIGITS), "t1": round(s.until_t, TIME_DIGITS)}
        for s in told.spans
    ]
    return {"spans": spans, "marks": [{"t": round(m.t, TIME_DIGITS), "words": m.words} for m in told.marks]}


def _alarm(result: Result, life: Any, place: dict[int, int]) -> dict[str, Any]:
    first = life.first
    rows = [place[row] for name in first.subjects if (row := result.collector.rows.get(name)) in place]
    return {
        "id": first.id,
        "kind": spoken(first.kind),
        "severity": life.severity,
        "who": " × ".join(result.called(name) for name in first.subjects),
        "of": rows,
        "t0": first.t_onset,
        "t1": round(life.until_t(result.t_last), TIME_DIGITS),
        "worst": life.worst.t,
        "active": life.active,
    }


def _samples(result: Result, row: int) -> int:
    return sum(int(s.samples[row]) for s in result.collector.streams.values() if row < len(s.samples))


def _size(plots: list[dict[str, Any]]) -> int:
    return sum(len(line["lo"]) + len(line.get("hi", "")) + 150 for plot in plots for line in plot["lines"])
