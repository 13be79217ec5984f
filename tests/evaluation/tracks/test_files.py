"""Trajectories from CSV, GeoJSON and logs: the same ones from each, and errors that name file, record and field."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from watchkeeper.evaluation.tracks.files import read_tracks
from watchkeeper.evaluation.tracks.set import Tracks
from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.logs.source import LogError
from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.messages import Kind

LINES = {"a": [(50.0, 8.0), (50.1, 8.1), (50.2, 8.3)], "b": [(-10.0, 179.9), (-10.0, -179.9)]}


def read(path: Path, gap_s: float | None = None) -> Tracks:
    return read_tracks(path, gap_s=gap_s)


def content(tracks: Tracks) -> dict[str, list[list[float]]]:
    return {name: tracks.points(k).tolist() for k, name in enumerate(tracks.names)}


EXPECTED = {name: [list(point) for point in line] for name, line in LINES.items()}


def csv_text(head: str = "traj_id,lat,lon") -> str:
    # the rows of the two take turns: they need not stand together
    rows = ["a,50.0,8.0", "b,-10.0,179.9", "a,50.1,8.1", "b,-10.0,-179.9", "a,50.2,8.3"]
    return "\n".join([head, *rows, ""])


def log(path: Path, *, local: bool = False, kind: Kind = Kind.ADSB) -> Path:
    names = [name for name, line in LINES.items() for _ in line]
    points = np.array([point for line in LINES.values() for point in line])
    t = 100.0 + np.arange(len(names), dtype=float)
    fields = ("gps_x", "gps_y") if local else ("lat", "lon")
    vid = np.array([list(LINES).index(name) for name in names], np.int32)
    columns = columns_of(kind, vid, t, dict(zip(fields, points.T, strict=True)))
    with LogWriter(path) as writer:
        writer.write(Batch(list(LINES), {kind: columns}))
    return path


def geojson(*geometries: dict, **more) -> str:
    features = [{"type": "Feature", "id": name, "geometry": g} for name, g in zip("ab", geometries, strict=False)]
    return json.dumps({"type": "FeatureCollection", "features": features} | more)


def line_string(points) -> dict:
    return {"type": "LineString", "coordinates": [[lon, lat, 1000.0] for lat, lon in points]}


def test_csv(tmp_path):
    (path := tmp_path / "x.csv").write_text(csv_text())
    assert content(read(path)) == EXPECTED


def test_csv_compressed_with_a_byte_order_mark_and_the_column_called_id(tmp_path):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + csv_text("id,lat,lon").encode()))
    assert content(read(path)) == EXPECTED


def test_csv_with_times_is_put_in_order_and_cut_at_silences(tmp_path):
    (path := tmp_path / "x.csv").write_text("id,t,lat,lon\na,30,3,3\na,0,1,1\na,10,2,2\nb,5,9,9\n")
    assert content(read(path)) == {"a": [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]], "b": [[9.0, 9.0]]}
    cut = read(path, gap_s=15.0)
    assert cut.names == ["a", "a", "b"]
    assert cut.lengths.tolist() == [2, 1, 1]


def test_csv_rows_of_other_kinds_are_passed_over(tmp_path):
    (path := tmp_path / "x.csv").write_text("kind,id,lat,lon,imu_ax\nadsb,a,1,2,\nimu,a,,,9.8\ngps,a,3,4,\n")
    assert content(read(path)) == {"a": [[1.0, 2.0], [3.0, 4.0]]}


@pytest.mark.parametrize("kind", [Kind.ADSB, Kind.GPS])
def test_wklog(tmp_path, kind):
    assert content(read(log(tmp_path / "x.wklog", kind=kind))) == EXPECTED


def test_wklog_with_local_positions_says_what_is_missing(tmp_path):
    with pytest.raises(LogError, match=r"x\.wklog: no trajectory.*5 gps samples have a local position only"):
        read(log(tmp_path / "x.wklog", local=True, kind=Kind.GPS))


def test_geojson(tmp_path):
    (path := tmp_path / "x.geojson").write_text(geojson(*map(line_string, LINES.values())))
    assert content(read(path)) == EXPECTED


def test_geojson_cut_in_two_at_the_antimeridian_as_the_standard_asks_is_one_trajectory(tmp_path):
    halves = {"type": "MultiLineString", "coordinates": [[[179.9, -10.0]], [[-179.9, -10.0]]]}
    (path := tmp_path / "x.json").write_text(geojson(line_string(LINES["a"]), halves))
    assert content(read(path)) == EXPECTED


def test_geojson_has_no_silences(tmp_path):
    (path := tmp_path / "x.geojson").write_text(geojson(*map(line_string, LINES.values())))
    cut = read(path, gap_s=1.0)
    assert content(cut) == EXPECTED
    assert "no times" in cut.remarks[0]


def test_geojson_of_one_feature_or_one_bare_line(tmp_path):
    (path := tmp_path / "x.geojson").write_text(json.dumps(line_string(LINES["a"])))
    assert content(read(path)) == {"0": EXPECTED["a"]}
    feature = {"type": "Feature", "properties": {"name": "a"}, "geometry": line_string(LINES["a"])}
    path.write_text(json.dumps(feature))
    assert content(read(path)) == {"a": EXPECTED["a"]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: no column lat, lon, traj_id or id; the header has: nothing"),
        ("id,lat,lng\n", "line 1: no column lon; the header has: id, lat, lng"),
        ("lat,lon\n1,2\n", "line 1: no column traj_id or id"),
        ("id,lat,lon\na,1,2\na,x,2\n", "line 3: lat 'x' is not a number"),
        ("id,lat,lon\na,1,\n", "line 2: lon is missing"),
        ("id,lat,lon\n,1,2\n", "line 2: id is missing"),
        ("id,lat,lon\na,1,2\n\na,91,2\n", "line 4: lat 91 is not within -90 … 90"),
        ("id,lat,lon\na,nan,2\n", "line 2: lat nan is not within"),
        ("id,lat,lon\na,1,-181\n", "line 2: lon -181 is not within -180 … 360"),
        ("id,lat,lon\na,1\n", "line 2: 2 cells, the header has 3"),
        ("id,lat,lon,t\na,1,2,yesterday\n", "line 2: t 'yesterday' is not a number"),
        ("id,lat,lon\n", "no trajectory in it"),
    ],
)
def test_a_wrong_csv_is_named_with_line_and_field(tmp_path, text, words):
    (path := tmp_path / "wrong.csv").write_text(text)
    with pytest.raises(LogError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}: {words}")


def test_cutting_at_silences_needs_times(tmp_path):
    (path := tmp_path / "x.csv").write_text(csv_text())
    with pytest.raises(LogError, match="no column t;"):
        read(path, gap_s=10.0)


FINE = line_string(LINES["a"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not a JSON document"),
        ("[]", "type None: expected FeatureCollection"),
        (json.dumps({"type": "Topology"}), "type 'Topology': expected FeatureCollection"),
        (json.dumps({"type": "FeatureCollection"}), "features is missing or not a list"),
        (json.dumps({"type": "FeatureCollection", "features": [{"type": "Feature"}]}), "feature 0: geometry.type None"),
        (json.dumps({"type": "FeatureCollection", "features": [1]}), "feature 0: type is not Feature"),
        (geojson(FINE, {"type": "Point", "coordinates": [1, 2]}), "feature 1: geometry.type 'Point': expected Line"),
        (geojson(FINE, {"type": "LineString"}), "feature 1: geometry.coordinates is missing"),
        (
            geojson(FINE, {"type": "LineString", "coordinates": [[1, 2], [3]]}),
            "feature 1: geometry.coordinates, position 1: expected [longitude, latitude]",
        ),
        (
            geojson({"type": "LineString", "coordinates": [[1, "2"]]}),
            "feature 0: geometry.coordinates, position 0: latitude '2' is not a number",
        ),
        (
            geojson({"type": "LineString", "coordinates": [[1, 2], [3, 95]]}),
            "feature 0: geometry.coordinates, position 1: latitude 95 is not within -90 … 90",
        ),
    ],
)
def test_a_wrong_geojson_is_named_with_feature_and_field(tmp_path, text, words):
    (path := tmp_path / "wrong.geojson").write_text(text)
    with pytest.raises(LogError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}: {words}")


def test_damaged_and_missing_files_are_named(tmp_path):
    for name in ("x.csv", "x.geojson", "x.wklog", "x.json"):
        with pytest.raises(LogError, match=rf"{name}: No such file"):
            read(tmp_path / name)
    for name in ("x.csv.gz", "x.geojson.gz"):
        (tmp_path / name).write_bytes(gzip.compress(csv_text().encode())[:-20])
        with pytest.raises(LogError, match=name):
            read(tmp_path / name)
