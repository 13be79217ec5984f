"""Trajectories as lists of roads: a made-up town through the whole command, and errors that name line and road."""

from __future__ import annotations

import csv
import json
import math
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

import watchkeeper as wk
from watchkeeper.daemon.cli import main
from watchkeeper.evaluation.tracks.command import dtw_km, edr, hausdorff_km, haversine_km
from watchkeeper.evaluation.tracks.files import read_tracks
from watchkeeper.evaluation.tracks.roads import read_road_tracks, read_roads
from watchkeeper.streams.logs.source import LogError

# Blocks that are no multiple of a cell, so that no centre lies on the edge of one.
BLOCKS, SOUTH, WEST, BLOCK_DEG = 8, 41.1, -8.65, 0.00237
MORNING = datetime(2013, 7, 1, 7, 30, tzinfo=UTC).timestamp()


class Town:
    """A grid of straight streets; every block of a street is two roads, one for each direction."""

    def __init__(self) -> None:
        self.lines: list[list[list[float]]] = []
        self.between: dict[tuple[tuple[int, int], tuple[int, int]], int] = {}
        for x in range(BLOCKS):
            for y in range(BLOCKS):
                for other in ((x + 1, y), (x, y + 1)):
                    if max(other) < BLOCKS:
                        for a, b in (((x, y), other), (other, (x, y))):
                            self.between[a, b] = len(self.lines)
                            self.lines.append([[WEST + BLOCK_DEG * k, SOUTH + BLOCK_DEG * i] for k, i in (a, b)])
        self.centres = np.array([np.mean(line, axis=0)[::-1] for line in self.lines])

    def trip(self, rng: np.random.Generator, a: tuple[int, int], b: tuple[int, int], *, detour: bool) -> list[int]:
        """Roads from a corner to another: across and up in any order, with a way round a block for a detour."""
        corners = [a]
        steps = [(np.sign(b[0] - a[0]), 0)] * abs(b[0] - a[0]) + [(0, np.sign(b[1] - a[1]))] * abs(b[1] - a[1])
        middle = [steps[k] for k in rng.permutation(len(steps) - 2) + 1]
        for dx, dy in [steps[0], *middle, steps[-1]]:
            corners.append((corners[-1][0] + int(dx), corners[-1][1] + int(dy)))
        if detour:
            at = len(corners) // 2
            corners[at:at] = [corners[at], corners[at - 1]]
        return [self.between[pair] for pair in pairwise(corners)]


def stamp(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def write(path: Path, head: tuple[str, ...], rows: list[tuple]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    return path


@pytest.fixture(scope="module")
def town(tmp_path_factory) -> dict:
    """The documented files: roadmap.geo, real trajectories, and those of two generators."""
    folder, town, rng = tmp_path_factory.mktemp("town"), Town(), np.random.default_rng(8)
    geo = [(k, "LineString", json.dumps(line), "residential", 1, "['a', 'b']") for k, line in enumerate(town.lines)]
    write(folder / "roadmap.geo", ("geo_id", "type", "coordinates", "highway", "lanes", "name"), geo)
    ends = [((0, int(rng.integers(3))), (BLOCKS - 1, BLOCKS - 1 - int(rng.integers(3)))) for _ in range(40)]
    trips: dict[str, list[list[int]]] = {"real": [town.trip(rng, *od, detour=False) for od in ends]}
    begins = MORNING + 1800.0 * np.arange(len(ends))
    rows = [
        (k, 100 + k, 0, ",".join(map(str, trip)), ",".join(stamp(begins[k] + 20 * at) for at in range(len(trip))))
        for k, trip in enumerate(trips["real"])
    ]
    write(folder / "test.csv", ("mm_id", "entity_id", "traj_id", "rid_list", "time_list"), rows)
    for name, share, step_s in (("near", 0.2, 20), ("far", 0.9, 35)):
        # the share of trips that go another way than the real one, and once back and forth
        trips[name] = [
            town.trip(rng, *od, detour=True) if rng.random() < share else trip
            for od, trip in zip(ends, trips["real"], strict=True)
        ]
        rows = [
            (str(trip), str([stamp(begins[k] + step_s * at) for at in range(len(trip))]))
            for k, trip in enumerate(trips[name])
        ]
        write(folder / f"{name}.csv", ("gene_trace_road_id", "gene_trace_datetime"), rows)
    return {"folder": folder, "centres": town.centres, **trips}


def test_a_town_goes_through_the_whole_command(town, tmp_path, capsys):
    folder = town["folder"]
    given = [str(folder / name) for name in ("test.csv", "near.csv")]
    words = ["--roads", str(folder / "roadmap.geo"), "--slice", "time", "place", "--report", str(tmp_path / "r.html")]
    assert main(["evaluate", "tracks", *given, *words, "--out", str(tmp_path / "near")]) == 0
    document = json.loads((tmp_path / "near" / "trajectory_metrics.json").read_bytes())
    (south, west), (north, east) = town["centres"].min(axis=0), town["centres"].max(axis=0)
    bounds = document["metadata"]["grid_bounds"]
    assert [bounds[k] for k in ("south", "west", "north", "east")] == pytest.approx([south, west, north, east])
    assert len(document["trajectory_metrics"]) >= 10
    for record in document["trajectory_metrics"]:
        a, b = (town["centres"][town[k][record[f"{w}_traj_idx"]]] for k, w in (("real", "real"), ("near", "gen")))
        assert (record["len_real"], record["len_gen"]) == (len(a), len(b)), "numbers of road segments"
        assert record["hausdorff_km"] == pytest.approx(hausdorff_km(a, b), rel=1e-9)
        assert record["dtw_km"] == pytest.approx(dtw_km(a, b), rel=1e-9)
        assert record["edr"] == pytest.approx(edr(a, b))
        height = math.ceil((north - south) / 0.001) + 1
        cell = [math.floor((k[1] - west) / 0.001) * height + math.floor((k[0] - south) / 0.001) for k in (a[0], a[-1])]
        assert record["od_pair"] == cell
    assert "match origin" in capsys.readouterr().out
    assert "data:image/svg+xml" in (tmp_path / "r.html").read_text()


def test_the_divergences_of_a_town_are_those_of_its_trips(town, tmp_path):
    folder = town["folder"]
    words = ["--roads", str(folder / "roadmap.geo"), "--out", str(tmp_path / "far")]
    assert main(["evaluate", "tracks", str(folder / "test.csv"), str(folder / "far.csv"), *words]) == 0
    found = json.loads((tmp_path / "far" / "results.json").read_bytes())["divergences"]
    ways = [
        np.array([sum(haversine_km(a, b) for a, b in pairwise(town["centres"][trip])) for trip in town[name]])
        for name in ("real", "far")
    ]
    edges = [*np.linspace(0.0, ways[0].max(), 100), math.inf]
    p, q = (np.histogram(way, edges)[0] for way in ways)
    assert found["distance_km"]["gen_mean"] == pytest.approx(ways[1].mean(), rel=1e-9)
    assert found["distance_km"]["jsd"] == pytest.approx(jensenshannon(p, q) ** 2, abs=0.02), "one trip at an edge"
    assert (found["step_min"]["real_mean"], found["step_min"]["gen_mean"]) == pytest.approx((20 / 60, 35 / 60))
    assert found["step_min"]["jsd"] == 0.0, "all real steps are the longest one, in the bin that is open above"
    assert found["trip_min"]["jsd"] > 0.3


def test_two_models_of_the_town_are_paired_and_a_model_on_another_grid_is_refused(town, tmp_path, capsys):
    folder = town["folder"]
    for name in ("near", "far"):
        given = [str(folder / "test.csv"), str(folder / f"{name}.csv"), "--roads", str(folder / "roadmap.geo")]
        assert main(["evaluate", "tracks", *given, "--out", str(tmp_path / name)]) == 0
    assert main(["evaluate", "paired", str(tmp_path / "near"), str(tmp_path / "far")]) == 0
    assert "near is nearer" in capsys.readouterr().out
    wide = ["--bounds", "41", "-9", "42", "-8", "--out", str(tmp_path / "wide")]
    assert main(["evaluate", "tracks", *given, *wide]) == 0
    assert main(["evaluate", "paired", str(tmp_path / "near"), str(tmp_path / "wide")]) == 1
    assert "cannot be compared" in capsys.readouterr().err


def test_from_python_the_network_is_an_argument(town):
    folder = town["folder"]
    result = wk.evaluate.tracks(folder / "test.csv", folder / "near.csv", roads=folder / "roadmap.geo")
    assert result.summary.real_trajectories == 40
    assert result.real.names[3] == "0", "traj_id of the file"
    assert result.gen.names[3] == "3", "without an id, its place"
    with pytest.raises(LogError, match=r"near\.csv: road ids in it, so the road network is needed: --roads"):
        wk.evaluate.tracks(folder / "near.csv", folder / "near.csv")


GEO = 'geo_id,type,coordinates\n4,LineString,"[[8.0, 50.0], [8.0, 50.2]]"\n7,LineString,"[[8.0, 50.2], [8.4, 50.2]]"\n'


def network(tmp_path: Path, text: str = GEO):
    (path := tmp_path / "roadmap.geo").write_text(text)
    return read_roads(path)


def table(tmp_path: Path, *rows: tuple, head: tuple[str, ...] = ("rid_list", "time_list")) -> Path:
    return write(tmp_path / "t.csv", head, list(rows))


def test_a_road_is_the_centroid_of_its_line(tmp_path):
    # parts of 3, 1 and 0 degrees: midpoints weighted by length
    bent = 'road_id,coordinates\n1,"[[0, 0], [3, 0], [3, 1], [3, 1]]"\n2,"[[5, 5, 99], [5, 5, 99]]"\n'
    roads = network(tmp_path, bent)
    assert (roads.lon[0], roads.lat[0]) == pytest.approx(((3 * 1.5 + 1 * 3.0) / 4, (3 * 0.0 + 1 * 0.5) / 4))
    assert (roads.lon[1], roads.lat[1]) == (5.0, 5.0), "a line without length"


lines = st.lists(st.tuples(st.floats(-5.0, 5.0), st.floats(-5.0, 5.0)), min_size=2, max_size=6)


@given(lines)
def test_the_centroid_is_the_mean_of_points_spread_evenly_over_the_line(tmp_path_factory, line):
    lengths = [math.dist(a, b) for a, b in pairwise(line)]
    if sum(lengths) < 1e-3:
        return
    share = (np.arange(20_000) + 0.5) / 20_000 * sum(lengths)
    at = np.concatenate(([0.0], np.cumsum(lengths)))
    spread = [np.interp(share, at, side) for side in np.array(line).T]
    roads = network(tmp_path_factory.getbasetemp(), f'geo_id,coordinates\n0,"{json.dumps(line)}"\n')
    assert (roads.lon[0], roads.lat[0]) == pytest.approx((spread[0].mean(), spread[1].mean()), abs=2e-3)


def test_a_network_across_the_antimeridian_has_a_small_grid(tmp_path):
    text = 'geo_id,coordinates\n0,"[[179.7, 1], [-179.9, 1]]"\n1,"[[-179.9, 1], [-179.7, 1.2]]"\n'
    grid = network(tmp_path, text).grid(0.1)
    assert (grid.lon_min, grid.lon_max) == (pytest.approx(179.9), pytest.approx(180.2))


@pytest.mark.parametrize(
    ("head", "row"),
    [
        (("rid_list", "time_list"), ("4,7", "2020-01-01T00:00:00Z,2020-01-01T00:01:00Z")),
        (("gene_trace_road_id", "gene_trace_datetime"), ("[4, 7]", "['2020-01-01T00:00:00Z', '2020-01-01T00:01:00Z']")),
        (
            ("gene_trace_road_id", "gene_trace_datetime"),
            ("[4,7]", '["2020-01-01T00:00:00", "2020-01-01T01:01:00+01:00"]'),
        ),
        (("gene_trace_road_id", "gene_trace_datetime"), ("[np.int64(4), np.int64(7)]", "1577836800,1577836860.0")),
    ],
)
def test_every_way_to_write_a_list(tmp_path, head, row):
    tracks = read_road_tracks(table(tmp_path, row, head=head), network(tmp_path))
    assert tracks.points(0).tolist() == [[pytest.approx(50.1), 8.0], [50.2, pytest.approx(8.2)]]
    assert tracks.t.tolist() == [1577836800.0, 1577836860.0]


def test_times_may_be_missing_but_not_to_cut_at_silences(tmp_path):
    path, roads = table(tmp_path, ("4,7",), head=("rid_list",)), network(tmp_path)
    assert read_road_tracks(path, roads).t is None
    with pytest.raises(LogError, match="no column time_list"):
        read_road_tracks(path, roads, gap_s=10.0)


def test_positions_in_the_file_come_before_road_ids(tmp_path):
    path = table(tmp_path, (1, 50.0, 8.0, "4,7"), (1, 50.1, 8.0, "4,7"), head=("id", "lat", "lon", "rid_list"))
    assert read_tracks(path).points(0).tolist() == [[50.0, 8.0], [50.1, 8.0]]


T2 = "2020-01-01T00:00:00Z,2020-01-01T00:01:00Z"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("4,99", T2), "line 3: rid_list, item 1: road 99 is not in "),
        (("4,x", T2), "line 3: rid_list, item 1: 'x' is not a whole number"),
        (("4,", T2), "line 3: rid_list, item 1: '' is not a whole number"),
        (("4.5,7", T2), "line 3: rid_list, item 0: '4.5' is not a whole number"),
        (("", T2), "line 3: rid_list is empty: a trajectory has at least one road"),
        (("[]", T2), "line 3: rid_list is empty"),
        (("4,7,4", T2), "line 3: time_list has 2 times for 3 roads"),
        (("4,7", ""), "line 3: time_list has 0 times for 2 roads"),
        (("4,7", "2020-01-01T00:00:00Z,noon"), "line 3: time_list, item 1: 'noon' is no time"),
        (("4,7", "nan,1"), "line 3: time_list, item 0: 'nan' is no time"),
        (("4,7", "7,3"), "line 3: time_list, item 1: '3' is before the last"),
        (("4,7",), "line 3: 1 cells, the header has 2"),
    ],
)
def test_a_wrong_list_is_named_with_line_and_item(tmp_path, row, words):
    path = table(tmp_path, ("4,7", T2), row)
    with pytest.raises(LogError) as error:
        read_tracks(path, roads=network(tmp_path))
    assert str(error.value).startswith(f"{path}: {words}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no road in it"),
        ("geo_id,type,coordinates\n", "no road in it"),
        ("geo_id,type\n1,LineString\n", "line 1: no column coordinates; the header has: geo_id, type"),
        ('id,coordinates\n1,"[]"\n', "line 1: no column geo_id or road_id"),
        ('geo_id,coordinates\nA,"[[1, 2], [3, 4]]"\n', "line 2: geo_id 'A' is not a whole number"),
        (f'{GEO}4,LineString,"[[1, 2], [3, 4]]"\n', "line 4: geo_id 4 is there twice"),
        ('geo_id,coordinates\n1,"[[1, 2], [3"\n', "line 2: road 1: coordinates: not a list of positions"),
        ('geo_id,coordinates\n1,"[1, 2]"\n', "line 2: road 1: coordinates, position 0: expected [longitude, latitude]"),
        (
            'geo_id,coordinates\n1,"[[1, 2]]"\n',
            "line 2: road 1: coordinates: expected a list of at least two positions",
        ),
        ('geo_id,coordinates\n1,"[]"\n', "line 2: road 1: coordinates: expected a list of at least two"),
        (
            'geo_id,coordinates\n1,"[[1, 2], [3, 95]]"\n',
            "line 2: road 1: coordinates, position 1: latitude 95 is not within",
        ),
        ('geo_id,coordinates\n1,"[[1, 2], [null, 5]]"\n', "line 2: road 1: coordinates, position 1: longitude None"),
        ("geo_id,coordinates\n1\n", "line 2: 1 cells, the header has 2"),
    ],
)
def test_a_wrong_network_is_named_with_line_and_road(tmp_path, text, words):
    with pytest.raises(LogError) as error:
        network(tmp_path, text)
    assert str(error.value).startswith(f"{tmp_path / 'roadmap.geo'}: {words}")


def test_a_network_that_is_not_there_is_named(town, tmp_path, capsys):
    assert main(["evaluate", "tracks", "a.csv", "b.csv", "--roads", str(tmp_path / "no.geo")]) == 1
    assert f"{tmp_path / 'no.geo'}: No such file" in capsys.readouterr().err
