"""Trajectories from files: CSV, GeoJSON and every log that the daemon reads. A wrong field is an error that names it.

CSV (`.csv`, `.csv.gz`): one row per point with `lat`, `lon` in degrees and `traj_id` (or `id`), optionally `t` in
seconds. Rows of one trajectory need not stand together. Where a `kind` column says that a row is neither adsb nor gps,
it is passed over. Unlike a live stream, in which a bad sample is counted and dropped, a comparison needs every point.
A CSV of road ids is read by roads.py.

Logs (`.wklog` and others of streams/logs/source.py): a trajectory is what one vehicle reports in `adsb`, or in `gps`
with latitude and longitude. Local positions (gps_x, gps_y) have no place on the Earth and are left out, with a remark.
"""

from __future__ import annotations

import csv
import io
import sys
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TypeAlias

import numpy as np
from narwhals.typing import IntoDataFrame
from rich.console import Console
from rich.progress import wrap_file

from watchkeeper.evaluation.tracks.geojson import is_geojson, read_geojson
from watchkeeper.evaluation.tracks.roads import Roads, names_roads, read_road_tracks
from watchkeeper.evaluation.tracks.set import LAT, LON, Tracks, tracks_of
from watchkeeper.streams.batch import F8, I8, Bool
from watchkeeper.streams.foreign.files import UnpackError, open_file, text_of
from watchkeeper.streams.frames.cells import Cells, FrameError, numbers, texts, times
from watchkeeper.streams.frames.read import columns_in, is_frame
from watchkeeper.streams.frames.sources import Log, sources_of
from watchkeeper.streams.logs.progress import shown
from watchkeeper.streams.logs.source import LogError, Source, open_log
from watchkeeper.streams.messages import COLUMN, T_MAX, T_MIN, Field, Kind

FRAME = Path("<frame>")
TrackData: TypeAlias = Log | IntoDataFrame | Mapping[str, object]
ID_COLUMNS = ("traj_id", "id")
T = Field("t", "s", T_MIN, T_MAX, "time of the point")
POSITION_KINDS = (Kind.ADSB, Kind.GPS)
_WORDS = tuple(kind.word for kind in POSITION_KINDS)


def tracks_in(
    data: TrackData, *, gap_s: float | None = None, quiet: bool = False, roads: Roads | None = None
) -> Tracks:
    """The trajectories of a file, a frame, a log or a simulation. Raises LogError or FrameError."""
    if isinstance(data, (str, PathLike)):
        return read_tracks(Path(data), gap_s=gap_s, quiet=quiet, roads=roads)
    if is_frame(data):
        return _read_frame(data, gap_s)
    (source,) = sources_of(data)
    tracks = _read_log(source, gap_s, quiet)
    if not len(tracks):
        raise LogError(tracks.path, "; ".join(("no trajectory in it", *tracks.remarks)))
    return tracks


def _read_frame(data: object, gap_s: float | None) -> Tracks:
    columns = columns_in(data)
    try:
        who, fields = _columns(FRAME, list(columns), timed=gap_s is not None)
    except LogError as error:
        raise FrameError(error.problem.removeprefix("line 1: ").replace("the header", "the frame")) from None
    keep = np.ones(len(columns["lat"]), bool)
    if "kind" in columns:
        keep = np.isin(texts(columns["kind"]), _WORDS)
    names = texts(columns[list(columns)[who]])
    values = {field.name: _checked(field, columns[field.name], keep) for field, _ in fields}
    if "" in {name for name, kept in zip(names, keep.tolist(), strict=True) if kept}:
        raise FrameError(f"column {list(columns)[who]!r}: a name is missing")
    index = {name: i for i, name in enumerate(dict.fromkeys(names))}
    key = np.fromiter(map(index.__getitem__, names), np.int64, len(names))[keep]
    if not len(key):
        raise FrameError("no trajectory in the frame")
    return tracks_of(FRAME, list(index), key, values["lat"], values["lon"], t=values.get("t"), gap_s=gap_s)


def _checked(field: Field, cells: Cells, keep: Bool) -> F8:
    """A column of which every value must be there: a comparison needs every point."""
    allowed = f"{field.lo:g} to {field.hi:g} {field.unit}"
    found = (times(cells, field.name)[0] if field.name == "t" else numbers(cells, field.name, allowed))[keep]
    bad = np.flatnonzero(~((found >= field.lo) & (found <= field.hi)))
    if len(bad):
        row, value = np.flatnonzero(keep)[bad[0]], found[bad[0]]
        what = "is missing" if np.isnan(value) else f"is {value:g}"
        raise FrameError(f"column {field.name!r}: row {row:,} {what}; allowed: {allowed}")
    return found


def read_tracks(path: Path, *, gap_s: float | None = None, quiet: bool = False, roads: Roads | None = None) -> Tracks:
    """The trajectories of a file, told by its name. Raises LogError, which names file, record and field.

    A CSV of road ids needs the network that they are of.
    """
    name = path.name.lower()
    try:
        if name.endswith((".csv", ".csv.gz")):
            named = names_roads(path)
            tracks = read_road_tracks(path, roads, gap_s=gap_s) if named else _read_csv(path, gap_s, quiet)
        elif is_geojson(path):
            tracks = read_geojson(path)
            if gap_s is not None:
                tracks = replace(tracks, remarks=("GeoJSON has no times, so no trajectory is cut at a silence",))
        else:
            tracks = _read_log(open_log(path), gap_s, quiet)
    except OSError as error:
        raise LogError(path, error.strerror or str(error)) from error
    if not len(tracks):
        raise LogError(path, "; ".join(("no trajectory in it", *tracks.remarks)))
    return tracks


def _read_csv(path: Path, gap_s: float | None, quiet: bool) -> Tracks:
    console = Console(file=sys.stderr)
    with open_file(path) as raw:
        size = raw.seek(0, io.SEEK_END)
        raw.seek(0)
        hidden = quiet or not console.is_terminal
        with wrap_file(
            raw, size, description=f"reading {path.name}", console=console, transient=True, disable=hidden
        ) as file:
            return _parse_csv(path, text_of(file), gap_s)


def _parse_csv(path: Path, text: io.TextIOWrapper, gap_s: float | None) -> Tracks:
    rows = csv.reader(text)
    index: dict[str, int] = {}
    key, values = array("q"), array("d")  # far less memory than lists of numbers
    try:
        header = [name.strip() for name in next(rows, [])]
        who, fields = _columns(path, header, timed=gap_s is not None)
        kind = header.index("kind") if "kind" in header else None
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise LogError(path, f"line {rows.line_num:,}: {len(row)} cells, the header has {len(header)}")
            if kind is not None and row[kind] not in _WORDS:
                continue
            if not row[who]:
                raise LogError(path, f"line {rows.line_num:,}: {header[who]} is missing")
            key.append(index.setdefault(row[who], len(index)))
            values.extend([_number(path, rows.line_num, field, row[at]) for field, at in fields])
    except (csv.Error, UnpackError) as error:
        raise LogError(path, f"line {rows.line_num + 1:,}: {error}") from error
    lat, lon, *t = np.array(values).reshape(-1, len(fields)).T
    return tracks_of(path, list(index), np.array(key, np.int64), lat, lon, t=t[0] if t else None, gap_s=gap_s)


def _columns(path: Path, header: Sequence[str], *, timed: bool) -> tuple[int, list[tuple[Field, int]]]:
    """Where the name of the trajectory stands, and the numbers: lat, lon and, where it is there, t."""
    who = next((header.index(name) for name in ID_COLUMNS if name in header), None)
    missing = [field.name for field in (LAT, LON, *([T] if timed else [])) if field.name not in header]
    if who is None:
        missing.append(" or ".join(ID_COLUMNS))
    if who is None or missing:
        raise LogError(
            path, f"line 1: no column {', '.join(missing)}; the header has: {', '.join(header) or 'nothing'}"
        )
    return who, [(field, header.index(field.name)) for field in (LAT, LON, T) if field.name in header]


def _number(path: Path, line: int, field: Field, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        problem = f"{cell[:20]!r} is not a number" if cell.strip() else "is missing"
        raise LogError(path, f"line {line:,}: {field.name} {problem}") from None
    if not field.lo <= value <= field.hi:
        raise LogError(path, f"line {line:,}: {field.name} {value:g} is not within {field.lo:g} … {field.hi:g}")
    return value


def _read_log(source: Source, gap_s: float | None, quiet: bool) -> Tracks:
    index: dict[tuple[Kind, str], int] = {}
    blocks: list[tuple[I8, F8, F8, F8]] = []
    local = 0
    for batch in shown(source.batches(), [source], "reading", hidden=quiet):
        for kind in POSITION_KINDS:
            cols = batch.kinds.get(kind)
            if cols is None:
                continue
            lat, lon = (cols.data[COLUMN[kind][name]] for name in ("lat", "lon"))
            placed = np.flatnonzero(~np.isnan(lat + lon))
            local += len(cols) - len(placed)
            numbers = np.array([index.setdefault((kind, name), len(index)) for name in batch.ids])
            blocks.append((numbers[cols.vid[placed]], cols.t[placed], lat[placed], lon[placed]))
    info = source.info()
    remarks = list(info.problems)
    if local:
        remarks.append(f"{local:,} gps samples have a local position only, not latitude and longitude: left out")
    if not blocks:
        blocks = [(np.zeros(0, np.int64), *(np.zeros(0),) * 3)]
    key, t, lat, lon = (np.concatenate(column) for column in zip(*blocks, strict=True))
    names = [name for _, name in index]
    return tracks_of(info.path, names, key, lat, lon, t=t, gap_s=gap_s, remarks=tuple(remarks))
