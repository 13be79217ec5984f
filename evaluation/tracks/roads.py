"""Trajectories as lists of roads: the road network (`roadmap.geo`) and the tables that name its roads.

The network is a CSV with a row per road: `geo_id` (or `road_id`), a whole number, and `coordinates`, a JSON list of
[longitude, latitude], at least two; other columns are passed over. A road counts as one point, the centroid of its
line: the mean of its parts' midpoints, weighted by their lengths in degrees.

A table of trajectories is a CSV with a row per trajectory. Real ones have `rid_list` and perhaps `time_list`, generated
ones `gene_trace_road_id` and perhaps `gene_trace_datetime`. Both are lists, with commas and with or without brackets
and quotes: `4,7,9` and `[4, 7, 9]`. Times are ISO 8601 (UTC where no zone is given) or seconds since 1970, one for each
road, none before the last. A wrong field is an error that names line and column. Called by files.py and api.py.
"""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from watchkeeper.evaluation.tracks.geojson import position
from watchkeeper.evaluation.tracks.pairs import Grid
from watchkeeper.evaluation.tracks.set import Tracks, tracks_of, wrapped
from watchkeeper.streams.batch import F8
from watchkeeper.streams.foreign.decode import ForeignError, from_json
from watchkeeper.streams.foreign.files import UnpackError, text_file
from watchkeeper.streams.logs.source import LogError

ROAD_COLUMNS = {"rid_list": "time_list", "gene_trace_road_id": "gene_trace_datetime"}
"""Columns of road ids, each with that of its times."""
ID_COLUMNS = ("geo_id", "road_id")
COORDINATES = "coordinates"
# what a list of NumPy's numbers looks like as text
_NUMPY = re.compile(r"np\.\w+\(([^)]*)\)")


@dataclass(frozen=True, slots=True)
class Roads:
    """A road network: where the centre of each road is."""

    path: Path
    index: dict[int, int]
    """From a road's id to its place in the columns."""
    lat: F8
    lon: F8

    def grid(self, size_deg: float) -> Grid:
        """The grid over all centres, the same for every file on this network; across the antimeridian if they are."""
        lon = self.lon
        if float(np.ptp(lon)) > 180.0:
            lon = np.where(lon < 0.0, lon + 360.0, lon)
        south, west, north, east = (float(k) for k in (self.lat.min(), lon.min(), self.lat.max(), lon.max()))
        return Grid(south, west, north, east, size_deg)


def read_roads(path: Path) -> Roads:
    """A road network. Raises LogError, which names the line and the road."""
    index: dict[int, int] = {}
    centres: list[tuple[float, float]] = []
    for line, header, row in _rows(path):
        who = next((header.index(name) for name in ID_COLUMNS if name in header), None)
        missing = [*([" or ".join(ID_COLUMNS)] if who is None else []), *({COORDINATES} - set(header))]
        if who is None or missing:
            raise LogError(path, f"line 1: no column {', '.join(missing)}; the header has: {', '.join(header)}")
        road = _whole(path, f"line {line:,}: {header[who]}", row[who])
        if road in index:
            raise LogError(path, f"line {line:,}: {header[who]} {road} is there twice")
        index[road] = len(centres)
        centres.append(_centre(path, f"line {line:,}: road {road}: {COORDINATES}", row[header.index(COORDINATES)]))
    if not index:
        raise LogError(path, "no road in it")
    lat, lon = np.array(centres, np.float64).T.copy()
    return Roads(path, index, lat, lon)


def names_roads(path: Path) -> bool:
    """Whether a CSV has road ids and no positions of its own."""
    with text_file(path) as text, suppress(csv.Error, UnpackError):  # what is damaged, the reader says
        header = [name.strip() for name in next(csv.reader(text), [])]
        return "lat" not in header and not ROAD_COLUMNS.keys().isdisjoint(header)
    return False


def read_road_tracks(path: Path, roads: Roads | None, *, gap_s: float | None = None) -> Tracks:
    """The trajectories of a table of road ids. Raises LogError, also without the network that they are of."""
    if roads is None:
        raise LogError(path, "road ids in it, so the road network is needed: --roads roadmap.geo")
    names: list[str] = []
    key, at, t = array("q"), array("q"), array("d")
    timed = False
    for line, header, row in _rows(path):
        column = next(name for name in ROAD_COLUMNS if name in header)
        own = _road_ids(path, line, column, row[header.index(column)], roads)
        timed = ROAD_COLUMNS[column] in header
        if timed:
            t.extend(_times(path, line, ROAD_COLUMNS[column], row[header.index(ROAD_COLUMNS[column])], len(own)))
        elif gap_s is not None:
            raise LogError(path, f"line 1: no column {ROAD_COLUMNS[column]}; the header has: {', '.join(header)}")
        key.extend([len(names)] * len(own))
        at.extend(own)
        names.append(_name(header, row, len(names)))
    places = np.array(at, np.int64)
    lat, lon, times = roads.lat[places], roads.lon[places], np.array(t) if timed else None
    return tracks_of(path, names, np.array(key, np.int64), lat, lon, t=times, gap_s=gap_s)


def _rows(path: Path) -> Iterator[tuple[int, list[str], list[str]]]:
    """Each row with the number of its line, and the header."""
    with text_file(path) as text:
        rows = csv.reader(text)
        try:
            header = [name.strip() for name in next(rows, [])]
            for row in rows:
                if row and len(row) != len(header):
                    raise LogError(path, f"line {rows.line_num:,}: {len(row)} cells, the header has {len(header)}")
                if row:
                    yield rows.line_num, header, row
        except (csv.Error, UnpackError) as error:
            raise LogError(path, f"line {rows.line_num + 1:,}: {error}") from error


def _centre(path: Path, where: str, cell: str) -> tuple[float, float]:
    """Latitude and longitude of a line's centroid."""
    try:
        line = from_json(cell)
    except ForeignError as error:
        raise LogError(path, f"{where}: not a list of positions: {error}") from error
    if not isinstance(line, list) or len(line) < 2:
        raise LogError(path, f"{where}: expected a list of at least two positions [longitude, latitude]")
    points = np.array([position(path, f"{where}, position {k:,}", pair) for k, pair in enumerate(line)])
    lon, lat = points.T
    if float(np.ptp(lon)) > 180.0:
        lon = lon[0] + wrapped(lon - lon[0])
    weight = np.hypot(np.diff(lon), np.diff(lat))
    if not weight.any():
        return float(lat[0]), float(lon[0])
    middle = [float((0.5 * (side[1:] + side[:-1]) * weight).sum() / weight.sum()) for side in (lat, lon)]
    return middle[0], float(wrapped(np.array(middle[1])))


def _road_ids(path: Path, line: int, column: str, cell: str, roads: Roads) -> list[int]:
    """Where the roads of one trajectory stand in the network."""
    own = []
    for k, word in enumerate(_items(cell)):
        road = _whole(path, f"line {line:,}: {column}, item {k:,}:", word)
        if road not in roads.index:
            raise LogError(path, f"line {line:,}: {column}, item {k:,}: road {road} is not in {roads.path}")
        own.append(roads.index[road])
    if not own:
        raise LogError(path, f"line {line:,}: {column} is empty: a trajectory has at least one road")
    return own


def _times(path: Path, line: int, column: str, cell: str, roads: int) -> list[float]:
    words = _items(cell)
    if len(words) != roads:
        raise LogError(path, f"line {line:,}: {column} has {len(words):,} times for {roads:,} roads")
    found: list[float] = []
    for k, word in enumerate(words):
        try:
            moment = _seconds(word)
        except (ValueError, OverflowError):
            raise LogError(path, f"line {line:,}: {column}, item {k:,}: {word[:30]!r} is no time") from None
        if found and moment < found[-1]:
            raise LogError(path, f"line {line:,}: {column}, item {k:,}: {word[:30]!r} is before the last")
        found.append(moment)
    return found


def _seconds(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        moment = datetime.fromisoformat(word)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if not math.isfinite(seconds):
        raise ValueError(word)
    return seconds


def _items(cell: str) -> list[str]:
    """The parts of a list, however it is written."""
    inner = _NUMPY.sub(r"\1", cell).strip().removeprefix("[").removesuffix("]")
    return [word.strip(" \t\r\n'\"") for word in inner.split(",")] if inner.strip() else []


def _whole(path: Path, where: str, word: str) -> int:
    if not re.fullmatch(r"\s*-?[0-9]{1,18}\s*", word, re.ASCII):
        raise LogError(path, f"{where} {word[:20]!r} is not a whole number")
    return int(word)


def _name(header: Sequence[str], row: Sequence[str], number: int) -> str:
    """What a trajectory is called: by its id or, without one, by its place in the file."""
    return next((row[header.index(name)] for name in ("traj_id", "id") if name in header), str(number))
