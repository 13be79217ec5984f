"""Reads `trajectory_metrics.json` of several models and pairs their records.

The file may be another tool's: only the fields that are compared must be there, `NaN` and null are values that are not
finite, and a wrong field is an error that names file, record and field.

Records belong together when origin, destination and the real trajectory are the same. Where a record does not say
which real trajectory it is about, the first one left over of the same origin and destination is taken.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from watchkeeper.streams.foreign.decode import ForeignError, from_python_json
from watchkeeper.streams.foreign.files import read_document
from watchkeeper.streams.frames.cells import FrameError, numbers
from watchkeeper.streams.frames.read import columns_in
from watchkeeper.streams.logs.source import LogError

OdPair = tuple[int, int]
# What must be the same in two files, and its type.
METADATA: dict[str, Any] = {"od_source": str, "grid_size": int | float, "edr_eps": int | float}
BOUNDS = ("south", "west", "north", "east")
PLACES = ("origin", "destination", "real_traj_idx")


@dataclass(frozen=True, slots=True)
class Record:
    """One comparison of a model: what it is about, and its metrics."""

    od_pair: OdPair
    real_traj_idx: int | None
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a model: its seed, "" where the folder names none, its file, and what it comes to."""

    seed: str
    path: Path
    figures: dict[str, float]


@dataclass(frozen=True, slots=True)
class Model:
    """The records of one model, in the order of its file; with several runs, their means (seeds.py)."""

    path: Path
    metadata: dict[str, Any]
    records: list[Record]
    runs: tuple[Run, ...] = ()
    folder: str = ""
    """Where its results lie; empty where they are not from files."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Which record of one model goes with which of the other, as indices, and how they were found."""

    numbers: list[tuple[int, int]]
    by_index: int
    by_order: int


def read_model(path: Path, metrics: Sequence[str]) -> Model:
    """One model's records with these metrics. Raises LogError."""
    try:
        document = from_python_json(read_document(path))
    except ForeignError as error:
        raise LogError(path, f"not a JSON document: {error}") from error
    if not isinstance(document, dict):
        raise LogError(path, "not an object with metadata and trajectory_metrics")
    metadata, records = document.get("metadata"), document.get("trajectory_metrics")
    if not isinstance(metadata, dict):
        raise LogError(path, f"metadata {_what(metadata)}: expected an object")
    for name, kind in METADATA.items():
        if not isinstance(metadata.get(name), kind):
            raise LogError(path, f"metadata: {name} {_what(metadata.get(name))}")
    _check_bounds(path, metadata.get("grid_bounds"))
    if not isinstance(records, list):
        raise LogError(path, f"trajectory_metrics {_what(records)}: expected a list")
    return Model(path, metadata, [_record(path, number, record, metrics) for number, record in enumerate(records)])


def _check_bounds(path: Path, bounds: Any) -> None:
    """Files of other tools need not say where their grid lies; one that does says it in numbers."""
    if bounds is None:
        return
    if not isinstance(bounds, dict):
        raise LogError(path, f"metadata: grid_bounds {_what(bounds)}: expected an object with {', '.join(BOUNDS)}")
    for side in BOUNDS:
        value = bounds.get(side)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise LogError(path, f"metadata: grid_bounds.{side} {_what(value)}: expected a number")


def frame_model(data: object, metrics: Sequence[str]) -> Model:
    """One model's records in a frame of `evaluate.tracks`: origin, destination, perhaps real_traj_idx, and the metrics.

    A frame does not say how it was made (od_source, grid_size, edr_eps): that is not checked then.
    """
    columns = columns_in(data)
    if missing := [name for name in ("origin", "destination", *metrics) if name not in columns]:
        raise FrameError(f"no column {', '.join(map(repr, missing))}; the frame has: {', '.join(columns)}")
    values = {name: numbers(columns[name], name, "a number").tolist() for name in metrics}
    cells = {name: numbers(columns[name], name, "a whole number") for name in PLACES if name in columns}
    index = cells.get("real_traj_idx", np.full(len(cells["origin"]), np.nan)).tolist()
    records = [
        Record(
            (int(origin), int(destination)),
            None if math.isnan(index[row]) else int(index[row]),
            {name: values[name][row] for name in metrics},
        )
        for row, (origin, destination) in enumerate(zip(cells["origin"], cells["destination"], strict=True))
    ]
    return Model(Path("<frame>"), dict.fromkeys(METADATA), records)


def _record(path: Path, number: int, record: Any, metrics: Sequence[str]) -> Record:
    where = f"record {number:,}"
    if not isinstance(record, dict):
        raise LogError(path, f"{where} {_what(record)}: expected an object")
    od = record.get("od_pair")
    if not isinstance(od, list) or len(od) != 2 or not all(map(_is_int, od)):
        raise LogError(path, f"{where}: od_pair {_what(od)}: expected two whole numbers")
    index = record.get("real_traj_idx")
    if index is not None and not _is_int(index):
        raise LogError(path, f"{where}: real_traj_idx {_what(index)}: expected a whole number")
    values: dict[str, float] = {}
    for name in metrics:
        value = record.get(name)
        if name not in record or isinstance(value, bool) or not isinstance(value, int | float | None):
            raise LogError(path, f"{where}: {name} {_what(value)}: expected a number")
        try:
            values[name] = math.nan if value is None else float(value)
        except OverflowError as error:
            raise LogError(path, f"{where}: {name} {_what(value)}: too large for a number") from error
    return Record((od[0], od[1]), index, values)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _what(value: Any) -> str:
    return "is missing" if value is None else f"is {json.dumps(value)[:40]}"


def pair(first: Sequence[Record], second: Sequence[Record]) -> Pairs:
    """Pair two models' records, in the order of the first."""
    waiting: defaultdict[tuple[OdPair, int], deque[int]] = defaultdict(deque)
    for k, record in enumerate(second):
        if record.real_traj_idx is not None:
            waiting[record.od_pair, record.real_traj_idx].append(k)
    numbers: list[tuple[int, int]] = []
    for i, record in enumerate(first):
        if record.real_traj_idx is not None and waiting[record.od_pair, record.real_traj_idx]:
            numbers.append((i, waiting[record.od_pair, record.real_traj_idx].popleft()))
    by_index = len(numbers)
    numbers += _by_order(first, second, numbers)
    return Pairs(sorted(numbers), by_index, len(numbers) - by_index)


def _by_order(
    first: Sequence[Record], second: Sequence[Record], taken: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Pairs among the rest in which one of the two does not say which real trajectory it is about."""
    taken_first, taken_second = {i for i, _ in taken}, {k for _, k in taken}
    named: defaultdict[OdPair, deque[int]] = defaultdict(deque)
    unnamed: defaultdict[OdPair, deque[int]] = defaultdict(deque)
    for k, record in enumerate(second):
        if k not in taken_second:
            (unnamed if record.real_traj_idx is None else named)[record.od_pair].append(k)
    found: list[tuple[int, int]] = []
    for i, record in enumerate(first):
        if i in taken_first:
            continue
        queues = [unnamed[record.od_pair], *([named[record.od_pair]] if record.real_traj_idx is None else [])]
        queue = min((queue for queue in queues if queue), key=lambda queue: queue[0], default=None)
        if queue:
            found.append((i, queue.popleft()))
    return found
