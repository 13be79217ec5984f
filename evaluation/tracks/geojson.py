"""Trajectories from GeoJSON (RFC 7946): one per feature, a LineString or a MultiLineString.

The parts of a MultiLineString are one trajectory, because the standard has lines cut in two at the antimeridian.
Positions are [longitude, latitude, …]; whatever follows them is ignored. Called by files.py; roads.py takes positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from watchkeeper.evaluation.tracks.set import LAT, LON, Tracks
from watchkeeper.streams.foreign.decode import ForeignError, from_json
from watchkeeper.streams.foreign.files import read_document, read_json
from watchkeeper.streams.logs.source import LogError

ENDINGS = (".geojson", ".geojson.gz")
# These names may be GeoJSON or one of the logs that are JSON; the document's `type` tells.
SHARED_ENDINGS = (".json", ".json.gz")
LINES = ("LineString", "MultiLineString")


class _Head(msgspec.Struct):
    """What tells GeoJSON from other documents."""

    type: Literal[
        "FeatureCollection", "Feature", "LineString", "MultiLineString", "Point", "MultiPoint", "Polygon",
        "MultiPolygon", "GeometryCollection",
    ]  # fmt: skip


def is_geojson(path: Path) -> bool:
    """Whether a file is GeoJSON, by its name or, where that says only JSON, by its content."""
    name = path.name.lower()
    if name.endswith(ENDINGS):
        return True
    if not name.endswith(SHARED_ENDINGS):
        return False
    try:
        from_json(read_document(path), _Head)
    except ForeignError:
        return False
    return True


def read_geojson(path: Path) -> Tracks:
    """The trajectories of a file. Raises LogError, which names the file, the feature and the member."""
    document = read_json(path)
    names: list[str] = []
    lengths: list[int] = []
    positions: list[tuple[float, float]] = []
    for number, feature in enumerate(_features(path, document)):
        names.append(_name(feature, number))
        before = len(positions)
        positions += _line(path, f"feature {number:,}", feature.get("geometry"))
        lengths.append(len(positions) - before)
    lon, lat = np.array(positions, np.float64).reshape(-1, 2).T.copy()
    return Tracks(path, names, lat, lon, np.cumsum([0, *lengths]))


def _features(path: Path, document: Any) -> Iterator[dict[str, Any]]:
    """All features; a bare geometry is one without properties."""
    kind = document.get("type") if isinstance(document, dict) else None
    if kind in LINES:
        yield {"geometry": document}
    elif kind == "Feature":
        yield document
    elif kind == "FeatureCollection":
        features = document.get("features")
        if not isinstance(features, list):
            raise LogError(path, "features is missing or not a list")
        for number, feature in enumerate(features):
            if not isinstance(feature, dict) or feature.get("type") != "Feature":
                raise LogError(path, f"feature {number:,}: type is not Feature")
            yield feature
    else:
        raise LogError(path, f"type {kind!r}: expected FeatureCollection, Feature, {' or '.join(LINES)}")


def _name(feature: dict[str, Any], number: int) -> str:
    properties = feature.get("properties")
    own = properties if isinstance(properties, dict) else {}
    candidates = (feature.get("id"), *(own.get(name) for name in ("traj_id", "id", "name")))
    return next((str(word) for word in candidates if isinstance(word, str | int)), str(number))


def _line(path: Path, where: str, geometry: Any) -> Iterator[tuple[float, float]]:
    """The positions of one geometry, all parts one after the other."""
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    if kind not in LINES:
        raise LogError(path, f"{where}: geometry.type {kind!r}: expected {' or '.join(LINES)}")
    coordinates = geometry.get("coordinates")
    parts = coordinates if kind == "MultiLineString" else [coordinates]
    if not isinstance(parts, list) or not all(isinstance(part, list) for part in parts):
        raise LogError(path, f"{where}: geometry.coordinates is missing or not a list of positions")
    for at, place in enumerate(place for part in parts for place in part):
        yield position(path, f"{where}: geometry.coordinates, position {at:,}", place)


def position(path: Path, where: str, value: Any) -> tuple[float, float]:
    """Longitude and latitude of a position in GeoJSON's order. Raises LogError."""
    if not isinstance(value, list) or len(value) < 2:
        raise LogError(path, f"{where}: expected [longitude, latitude]")
    for name, field, number in (("longitude", LON, value[0]), ("latitude", LAT, value[1])):
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise LogError(path, f"{where}: {name} {number!r} is not a number")
        if not field.lo <= number <= field.hi:
            raise LogError(path, f"{where}: {name} {number!r:.20} is not within {field.lo:g} … {field.hi:g}")
    return float(value[0]), float(value[1])
