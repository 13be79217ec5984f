"""GeoJSON (RFC 7946), `.geojson`: tracks as lines with times, alarms, and each position as a point if it is asked for.

    {"type": "FeatureCollection", "features": [
    {"type": "Feature", "geometry": {"type": "LineString", "coordinates": [[lon, lat, alt_m], …]},
     "properties": {"what": "track", "kind": "adsb", "id": …, "callsign": …, "via": […], "leg": 1, "coordTimes": […]}},
    …
    ]}

One feature per line of text. Altitudes are metres; a position without one has two numbers. `coordTimes` has the time of
each position, to the microsecond, under the name that Leaflet's and Mapbox's tools look for. A line ends where the
vehicle was silent for long (tracks.py) and at the antimeridian, as the RFC asks for; a leg of one position is a Point.
Alarms are points where their vehicles were, or features without a geometry where nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from watchkeeper.streams.adapters.base import AdapterDeclaration
from watchkeeper.streams.adapters.exports.alarms import Alarm
from watchkeeper.streams.adapters.exports.drawing import Drawing
from watchkeeper.streams.adapters.exports.positions import Positions
from watchkeeper.streams.adapters.exports.times import dates
from watchkeeper.streams.adapters.exports.tracks import Track, cut_where
from watchkeeper.streams.batch import F8, Batch, Columns
from watchkeeper.streams.logs.base import ALARMS, ORIGIN, POINTS, Origin, Target
from watchkeeper.streams.messages import FIELDS, Kind

_HALF_TURN_DEG = 180.0
_encode = msgspec.json.Encoder().encode


class GeoJsonWriter:
    """One file."""

    def __init__(
        self, path: Path, *, alarms: Path | None = None, points: bool = False, origin: Origin | None = None
    ) -> None:
        self.samples = 0
        self._drawing = Drawing(path, alarms, origin)
        self._points = points
        self._first = True
        self._file = path.open("wb")
        self._file.write(b'{"type":"FeatureCollection","features":[')

    @property
    def notes(self) -> tuple[str, ...]:
        """See Writer."""
        return self._drawing.notes

    def write(self, batch: Batch) -> None:
        """See Writer."""
        for kind, cols, found in self._drawing.add(batch):
            self.samples += len(found.rows)
            if self._points:
                for feature in _points(kind, cols, found, batch, self._drawing.tracks.callsigns):
                    self._put(feature)

    def close(self) -> None:
        """See Writer."""
        self._drawing.finish()
        for track in self._drawing.tracks.each():
            for number, leg in enumerate(_lines(track), 1):
                self._put(_line(track, number, leg))
        for alarm in self._drawing.alarms:
            self._put(_alarm(alarm, self._drawing.places.of(alarm)))
        self._file.write(b"\n]}\n")
        self._file.close()

    def _put(self, feature: dict[str, Any]) -> None:
        self._file.write(b"\n" if self._first else b",\n")
        self._first = False
        self._file.write(_encode({"type": "Feature", **feature}))


def _lines(track: Track) -> Iterator[F8]:
    """The legs of a track, none of which crosses the antimeridian."""
    for leg in track.legs():
        yield from cut_where(leg, np.abs(np.diff(leg[:, 1])) > _HALF_TURN_DEG)


def _line(track: Track, number: int, leg: F8) -> dict[str, Any]:
    coordinates = _coordinates(leg)
    times = dates(leg[:, 0])
    one = len(leg) == 1
    properties = {
        "what": "track", "kind": track.kind.word, "id": track.id, "callsign": track.callsign or None,
        "via": list(track.vias), "leg": number, "begin": times[0], "end": times[-1], "coordTimes": times,
    }  # fmt: skip
    geometry = {"type": "Point" if one else "LineString", "coordinates": coordinates[0] if one else coordinates}
    return {"geometry": geometry, "properties": properties}


def _points(
    kind: Kind, cols: Columns, found: Positions, batch: Batch, callsigns: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """Each position as a feature with all that its sample says; what is absent is left out."""
    rows = found.rows.tolist()
    fields = [(f.name, cols.data[c].tolist()) for c, f in enumerate(FIELDS[kind]) if f.name not in ("lat", "lon")]
    t, times = cols.t.tolist(), dates(found.where[:, 0])
    for row, position, time, vid, via in zip(
        rows, _coordinates(found.where), times, found.vid.tolist(), found.via.tolist(), strict=True
    ):
        name = batch.ids[vid]
        properties: dict[str, Any] = {"what": "sample", "kind": kind.word, "id": name, "t": t[row], "time": time}
        if sign := callsigns.get(name):
            properties["callsign"] = sign
        if via >= 0:
            properties["via"] = batch.vias[via]
        properties |= {field: column[row] for field, column in fields if column[row] == column[row]}
        yield {"geometry": {"type": "Point", "coordinates": position}, "properties": properties}


def _alarm(alarm: Alarm, places: list[F8]) -> dict[str, Any]:
    coordinates = _coordinates(np.array(places)) if places else []
    geometry: dict[str, Any] | None = None
    if len(coordinates) == 1:
        geometry = {"type": "Point", "coordinates": coordinates[0]}
    elif coordinates:
        geometry = {"type": "MultiPoint", "coordinates": coordinates}
    event = alarm.last
    ends = [event.t_onset, event.t_raised, *([] if event.t_cleared is None else [event.t_cleared])]
    onset, raised, *cleared = dates(np.array(ends))
    properties = {
        "what": "alarm", "kind": event.kind, "id": event.id, "subjects": event.subjects, "severity": alarm.severity,
        "say": event.words, "onset": onset, "raised": raised, "cleared": cleared[0] if cleared else None,
        "ended": event.ended, "score": event.score, "threshold": event.threshold,
    }  # fmt: skip
    return {"geometry": geometry, "properties": properties}


def _coordinates(where: F8) -> list[list[float]]:
    """Positions as GeoJSON has them: longitude, latitude, and the altitude where there is one."""
    return [[lon, lat] if isnan(alt) else [lon, lat, alt] for _, lon, lat, alt in where.tolist()]


GEOJSON = AdapterDeclaration(
    name="geojson",
    help="tracks and alarms for maps: QGIS, Leaflet, Mapbox, kepler.gl",
    docs="export.md",
    targets=(
        Target(
            name="geojson",
            help="tracks as lines with times, for maps: QGIS, Leaflet, Mapbox, kepler.gl",
            writer=f"{__name__}:GeoJsonWriter",
            suffixes=(".geojson",),
            takes=(ALARMS, POINTS, ORIGIN),
        ),
    ),
)
