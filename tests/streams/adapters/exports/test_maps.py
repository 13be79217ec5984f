"""GeoJSON and KML: parsers find every position with its time, names as they are, and alarms where they were raised."""

from __future__ import annotations

import json
import zipfile
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree

from watchkeeper.daemon.cli import main
from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.messages import Kind

from plain_samples import Row, converted, log_rows, odd_log, simulated

KML = {"k": "http://www.opengis.net/kml/2.2", "gx": "http://www.google.com/kml/ext/2.2"}
FT_M = 0.3048


def seconds(date: str) -> float:
    assert date.endswith("Z")
    return datetime.fromisoformat(date).timestamp()


def features(path: Path) -> list[dict[str, Any]]:
    """The features of a file, which is what RFC 7946 asks for."""
    document = json.loads(path.read_text())
    assert document["type"] == "FeatureCollection"
    for feature in document["features"]:
        assert feature["type"] == "Feature"
        assert isinstance(feature["properties"], dict)
        if (geometry := feature["geometry"]) is not None:
            lines = {"Point": [[geometry["coordinates"]]], "LineString": [geometry["coordinates"]]}
            (line,) = lines.get(geometry["type"], [geometry["coordinates"]])
            assert geometry["type"] != "LineString" or len(line) >= 2
            assert all(len(at) in (2, 3) and abs(at[0]) <= 180 and abs(at[1]) <= 90 for at in line)
            if geometry["type"] == "LineString":
                assert all(abs(a[0] - b[0]) <= 180 for a, b in pairwise(line))
    return document["features"]


def tracks(found: list[dict[str, Any]]) -> dict[str, list[tuple[float, list[float]]]]:
    """Times and positions of each vehicle, from its lines."""
    result: dict[str, list[tuple[float, list[float]]]] = {}
    for feature in found:
        about, geometry = feature["properties"], feature["geometry"]
        if about["what"] == "track":
            line = geometry["coordinates"] if geometry["type"] == "LineString" else [geometry["coordinates"]]
            times = [seconds(date) for date in about["coordTimes"]]
            assert len(times) == len(line)
            result.setdefault(about["id"], []).extend(zip(times, line, strict=True))
    return result


def expected_tracks(rows: list[Row]) -> dict[str, list[tuple[float, list[float]]]]:
    result: dict[str, list[tuple[float, list[float]]]] = {}
    for row in sorted((row for row in rows if row["kind"] == "adsb"), key=lambda row: row["t"]):
        altitude = [round(row["alt_ft"] * FT_M, 4)] if "alt_ft" in row else []
        result.setdefault(row["id"], []).append((row["t"], [row["lon"], row["lat"], *altitude]))
    return result


def same_tracks(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, positions in expected.items():
        assert [where for _, where in found[name]] == [where for _, where in positions]
        # to the microsecond
        assert [t for t, _ in found[name]] == pytest.approx([t for t, _ in positions], abs=0.6e-6, rel=0)


def placemarks(root: Any, folder: str) -> list[Any]:
    return root.xpath(f"/k:kml/k:Document/k:Folder[k:name='{folder}']/k:Placemark", namespaces=KML)


def kml_tracks(root: Any, folder: str = "adsb") -> dict[str, list[tuple[float, list[float]]]]:
    result: dict[str, list[tuple[float, list[float]]]] = {}
    for mark in placemarks(root, folder):
        (name,) = mark.xpath("k:ExtendedData/k:Data[@name='id']/k:value/text()", namespaces=KML)
        for track in mark.xpath("gx:MultiTrack/gx:Track", namespaces=KML):
            order = [etree.QName(child).localname for child in track]
            assert order == sorted(order, key=["altitudeMode", "when", "coord"].index)
            (mode,) = track.xpath("k:altitudeMode/text()", namespaces=KML)
            times = track.xpath("k:when/text()", namespaces=KML)
            for date, coord in zip(times, track.xpath("gx:coord/text()", namespaces=KML), strict=True):
                where = [float(x) for x in coord.split(" ")]
                assert len(where) == 3
                result.setdefault(name, []).append((seconds(date), where if mode == "absolute" else where[:2]))
    return result


@pytest.mark.parametrize("make", [odd_log, simulated], ids=["odd", "mixed"])
def test_every_position_is_on_both_maps_with_its_time(tmp_path: Path, make: Any) -> None:
    log = make(tmp_path / "x.wklog")
    expected = expected_tracks(log_rows(log))
    assert expected
    same_tracks(tracks(features(converted(log, tmp_path / "x.geojson"))), expected)
    same_tracks(kml_tracks(etree.parse(converted(log, tmp_path / "x.kml"))), expected)
    with zipfile.ZipFile(converted(log, tmp_path / "x.kmz")) as archive:
        assert archive.namelist() == ["doc.kml"]
        assert archive.read("doc.kml") == (tmp_path / "x.kml").read_bytes()


def test_a_real_day_too(recordings: Path, tmp_path: Path) -> None:
    log = recordings / "adsb" / "watsonville.csv.gz"
    expected = expected_tracks(log_rows(log))
    same_tracks(tracks(features(converted(log, tmp_path / "x.geojson"))), expected)
    same_tracks(kml_tracks(etree.parse(converted(log, tmp_path / "x.kml"))), expected)


def test_lines_end_at_a_silence_and_at_the_antimeridian_and_text_is_kept(tmp_path: Path) -> None:
    found = features(converted(odd_log(tmp_path / "x.wklog"), tmp_path / "x.geojson"))
    lines = [f for f in found if f["properties"]["id"] == "a"]
    # east of the antimeridian, one position west of it before the silence, and the rest
    assert [f["geometry"]["type"] for f in lines] == ["LineString", "Point", "LineString"]
    assert [f["properties"]["leg"] for f in lines] == [1, 2, 3]
    assert {sign for f in found if (sign := f["properties"]["callsign"])} == {"DLH<1>&"}
    assert all(f["properties"]["via"] == ['gw "1", <x>'] for f in lines)
    root = etree.parse(converted(tmp_path / "x.wklog", tmp_path / "x.kml"))
    names = [mark.findtext("k:name", namespaces=KML) for mark in placemarks(root, "adsb")]
    assert sorted(names) == sorted(["a", "B<&>\"' (DLH<1>&)", 'say "hi", you', "ü/+#~ 1", "x" * 64])


def test_points_have_all_that_a_sample_says(tmp_path: Path) -> None:
    log = odd_log(tmp_path / "x.wklog")
    found = features(converted(log, tmp_path / "x.geojson", "--points"))
    points = [f for f in found if f["properties"]["what"] == "sample"]
    assert any(f["properties"]["what"] == "track" for f in found)
    for feature, row in zip(points, log_rows(log), strict=True):
        about = dict(feature["properties"])
        assert seconds(about.pop("time")) == pytest.approx(row["t"], abs=0.6e-6, rel=0)
        del about["what"]
        lon, lat, *_ = feature["geometry"]["coordinates"]
        assert about | {"lon": lon, "lat": lat} == row


def test_a_local_frame_has_a_folder_once_its_origin_is_known(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = simulated(tmp_path / "x.wklog", "drones", vehicles=2, seconds=5)
    assert main(["convert", str(log), str(tmp_path / "x.kml")]) == 1
    assert "nothing to draw" in (said := capfd.readouterr().err)
    assert "--origin" in said
    assert not (tmp_path / "x.kml").exists()
    root = etree.parse(converted(log, tmp_path / "x.kml", "--origin", "47.4,8.5,500"))
    found = kml_tracks(root, "gps")
    assert len(found) == 2
    assert all(where[1] == pytest.approx(47.4, abs=0.1) for _, where in found.popitem()[1])


@pytest.fixture(scope="module")
def alarmed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A log and its alarms; one of them says things in angle brackets, and nobody knows where its vehicle was."""
    folder = tmp_path_factory.mktemp("alarmed")
    log, alarms = simulated(folder / "x.wklog", "head-on", vehicles=2, seconds=120), folder / "alarms.jsonl"
    assert main(["replay", str(log), "--alarms", str(alarms)]) == 0
    event = json.loads(alarms.read_text().splitlines()[0])
    odd = event | {"id": "0" * 16, "subjects": ["<nobody>"], "say": "<b>5 > 4 & 3</b>", "t_cleared": None}
    with alarms.open("a") as file:
        file.write(json.dumps(odd) + "\n")
    return log, alarms


def test_alarms_are_where_their_vehicles_were(alarmed: tuple[Path, Path], tmp_path: Path) -> None:
    log, alarms = alarmed
    events = {event["id"]: event for event in map(json.loads, alarms.read_text().splitlines())}
    found = features(converted(log, tmp_path / "x.geojson", "--alarms", str(alarms)))
    drawn = [f for f in found if f["properties"]["what"] == "alarm"]
    assert {f["properties"]["id"] for f in drawn} == events.keys()
    rows = log_rows(log)
    for feature in drawn:
        event = events[feature["properties"]["id"]]
        assert seconds(feature["properties"]["raised"]) == pytest.approx(event["t_raised"], abs=1e-6, rel=0)
        if event["subjects"] == ["<nobody>"]:
            assert feature["geometry"] is None
            assert feature["properties"]["say"] == "<b>5 > 4 & 3</b>"
            continue
        for name, at in zip(event["subjects"], feature["geometry"]["coordinates"], strict=True):
            near = min((row for row in rows if row["id"] == name), key=lambda row: abs(row["t"] - event["t_raised"]))
            assert at[:2] == [near["lon"], near["lat"]]
    root = etree.parse(converted(log, tmp_path / "x.kml", "--alarms", str(alarms)))
    marks = placemarks(root, "alarms")
    assert len(marks) == len(events)
    spans = [seconds(mark.findtext("k:TimeSpan/k:begin", namespaces=KML)) for mark in marks]
    assert spans == pytest.approx([event["t_raised"] for event in events.values()], abs=1e-6, rel=0)
    assert "<b>5 > 4 & 3</b>" in [mark.findtext("k:description", namespaces=KML) for mark in marks]
    assert len(root.xpath("//k:MultiGeometry/k:Point", namespaces=KML)) == 2 * (len(events) - 1)


@pytest.mark.parametrize("line", ["", "{}", "[1]", '{"id": 5}', "x" * 2_000_000, "\xff"])
def test_a_file_without_alarms_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str], line: str) -> None:
    log, alarms, out = odd_log(tmp_path / "x.wklog"), tmp_path / "alarms.jsonl", tmp_path / "x.kml"
    alarms.write_text(line + "\n", encoding="latin-1")
    code = main(["convert", str(log), str(out), "--alarms", str(alarms)])
    assert code == (1 if line else 0)
    assert out.exists() == (not line)
    if line:
        assert "alarms.jsonl: event 1" in capfd.readouterr().err


def test_samples_without_a_time_or_a_place_are_left_out_and_counted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    t = np.array([10.0, 11.0, np.nan, 13.0, -5.0])
    fields = {"lat": np.array([50.0, 91.0, 50.0, np.inf, 50.0]), "lon": np.full(5, 8.0)}
    log = tmp_path / "x.wklog"
    with LogWriter(log) as writer:
        writer.write(Batch(["a"], {Kind.ADSB: columns_of(Kind.ADSB, np.zeros(5, np.int32), t, fields)}))
    (feature,) = features(converted(log, tmp_path / "x.geojson"))
    assert feature["geometry"] == {"type": "Point", "coordinates": [8.0, 50.0]}
    assert "4 samples that are out of range or incomplete" in capfd.readouterr().err
    converted(log, tmp_path / "x.mcap")
    assert "2 samples whose time is none, left out" in capfd.readouterr().err
