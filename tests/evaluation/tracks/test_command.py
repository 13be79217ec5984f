"""`evaluate tracks`: the documented files, the same figures from every format and number of threads, clear failures."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from watchkeeper.daemon.cli import main
from watchkeeper.evaluation.tracks.command import dtw_km, edr, hausdorff_km

METADATA = {
    "generated_file": str,
    "real_data_file": str,
    "od_source": str,
    "evaluation_timestamp": str,
    "num_trajectory_comparisons": int,
    "grid_size": float,
    "edr_eps": float,
    "grid_bounds": dict,
}
RECORD = {
    "od_pair": list,
    "real_traj_idx": int,
    "gen_traj_idx": int,
    "hausdorff_km": float,
    "hausdorff_norm": float,
    "dtw_km": float,
    "dtw_norm": float,
    "edr": float,
    "len_real": int,
    "len_gen": int,
}


def write(path: Path, lines: list[np.ndarray]) -> Path:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("traj_id", "lat", "lon"))
        rows.writerows((k, *point) for k, line in enumerate(lines) for point in line.tolist())
    return path


@pytest.fixture
def lines() -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Real ones, and generated ones of other lengths between the same ends."""
    rng = np.random.default_rng(6)
    real, gen = [], []
    for _ in range(12):
        ends = rng.uniform((48.0, 2.0), (48.1, 2.2), (2, 2))
        for some, n in ((real, 20), (gen, 25)):
            share = np.linspace(0.0, 1.0, n + int(rng.integers(5)))[:, np.newaxis]
            line = ends[0] + (ends[1] - ends[0]) * share + rng.normal(0.0, 0.01, 2) * np.sin(np.pi * share)
            line[[0, -1]] = ends
            some.append(line)
    return real, gen


@pytest.fixture
def files(tmp_path, lines) -> list[str]:
    return [str(write(tmp_path / name, some)) for name, some in zip(("real.csv", "gen.csv"), lines, strict=True)]


def test_the_document_is_as_documented_and_its_figures_are_those_of_the_distances(tmp_path, files, lines):
    out = tmp_path / "m.json"
    assert main(["evaluate", "tracks", *files, "--out", str(out), "--edr-eps", "250", "--od-source", "train"]) == 0
    document = json.loads(out.read_bytes())
    assert list(document) == ["metadata", "trajectory_metrics"]
    assert {name: type(value) for name, value in document["metadata"].items()} == METADATA
    assert list(document["metadata"]) == list(METADATA)
    assert document["metadata"]["num_trajectory_comparisons"] == len(document["trajectory_metrics"]) == 12
    assert (document["metadata"]["od_source"], document["metadata"]["edr_eps"]) == ("train", 250.0)
    points = np.concatenate(lines[0])
    (south, west), (north, east) = points.min(axis=0).tolist(), points.max(axis=0).tolist()
    assert document["metadata"]["grid_bounds"] == {"south": south, "west": west, "north": north, "east": east}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", document["metadata"]["evaluation_timestamp"])
    for record in document["trajectory_metrics"]:
        assert {name: type(value) for name, value in record.items()} == RECORD
        assert list(record) == list(RECORD)
        assert [type(cell) for cell in record["od_pair"]] == [int, int]
        a, b = lines[0][record["real_traj_idx"]], lines[1][record["gen_traj_idx"]]
        mean_len = (len(a) + len(b)) / 2.0
        assert (record["len_real"], record["len_gen"]) == (len(a), len(b))
        assert record["hausdorff_km"] == hausdorff_km(a, b)
        assert record["dtw_km"] == dtw_km(a, b)
        assert record["edr"] == edr(a, b, 250.0)
        assert record["hausdorff_norm"] == pytest.approx(hausdorff_km(a, b) / mean_len, rel=1e-15)
        assert record["dtw_norm"] == pytest.approx(dtw_km(a, b) / mean_len, rel=1e-15)


def test_a_folder_gets_both_files_and_a_timestamp_where_asked(tmp_path, files, capsys):
    assert main(["evaluate", "tracks", *files, "--out", str(tmp_path / "eval" / "{timestamp}")]) == 0
    (folder,) = (tmp_path / "eval").iterdir()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d", folder.name)
    assert sorted(path.name for path in folder.iterdir()) == ["results.json", "trajectory_metrics.json"]
    records = json.loads((folder / "trajectory_metrics.json").read_bytes())["trajectory_metrics"]
    results = json.loads((folder / "results.json").read_bytes())
    assert results["comparisons"] == 12
    assert results["metrics"]["dtw_norm"]["mean"] == pytest.approx(np.mean([r["dtw_norm"] for r in records]))
    assert results["metrics"]["edr"]["std"] == pytest.approx(np.std([r["edr"] for r in records], ddof=1))
    text = capsys.readouterr().out
    for word in ("hausdorff_km", "hausdorff_norm", "dtw_km", "dtw_norm", "edr", "comparisons"):
        assert word in text


def test_threads_and_formats_change_nothing(tmp_path, files, lines, capsys):
    def records(*arguments: str) -> list[dict]:
        assert main(["evaluate", "tracks", *arguments, "--out", "-"]) == 0
        return json.loads(capsys.readouterr().out)["trajectory_metrics"]

    expected = records(*files, "--jobs", "1")
    assert records(*files, "--jobs", "4") == expected
    as_geojson = []
    for name, some in zip(("real", "gen"), lines, strict=True):
        features = [
            {"type": "Feature", "geometry": {"type": "LineString", "coordinates": line[:, ::-1].tolist()}}
            for line in some
        ]
        as_geojson.append(tmp_path / f"{name}.geojson")
        as_geojson[-1].write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    assert records(*map(str, as_geojson)) == expected


def test_nothing_changes_when_everything_is_moved_across_the_antimeridian(tmp_path, lines, capsys):
    # binary fractions, so that the move rounds nothing: cells must be the same, distances but for their last bits
    found = []
    for by_deg in (0.0, 177.875):
        paths = []
        for name, some in zip(("real.csv", "gen.csv"), lines, strict=True):
            moved = [np.round(line * 1024.0) / 1024.0 + (0.0, by_deg) for line in some]
            for line in moved:
                line[:, 1] = (line[:, 1] + 180.0) % 360.0 - 180.0
            paths.append(str(write(tmp_path / name, moved)))
        assert main(["evaluate", "tracks", *paths, "--grid-size", "0.0078125", "--out", "-"]) == 0
        found.append(json.loads(capsys.readouterr().out)["trajectory_metrics"])
    assert any(abs(np.diff(line[:, 1])).max() > 180.0 for line in moved), "one of them does cross it"
    for here, there in zip(*found, strict=True):
        assert here["od_pair"] == there["od_pair"]
        assert here["edr"] == there["edr"]
        for name in ("hausdorff_km", "dtw_km"):
            assert here[name] == pytest.approx(there[name], rel=1e-9)


def test_bounds_make_cells_that_do_not_depend_on_the_data(tmp_path, files, capsys):
    bounds = ["--bounds", "47", "1", "49", "3", "--grid-size", "0.01"]
    assert main(["evaluate", "tracks", *files, *bounds, "--out", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["metadata"]["grid_bounds"] == {"south": 47.0, "west": 1.0, "north": 49.0, "east": 3.0}
    record = document["trajectory_metrics"][0]
    lat, lon = np.loadtxt(files[0], delimiter=",", skiprows=1)[0, 1:]
    assert record["od_pair"][0] == int((lon - 1.0) // 0.01) * 201 + int((lat - 47.0) // 0.01)


def test_nothing_in_common_is_said_and_fails(tmp_path, files, capsys):
    away = write(tmp_path / "away.csv", [np.array([(48.0, 2.0), (48.05, 2.05)])])
    assert main(["evaluate", "tracks", files[0], str(away)]) == 1
    assert "no origin and destination in common" in capsys.readouterr().err


def test_one_comparison_of_identical_trajectories(tmp_path, capsys):
    line = np.array([(48.0, 2.0), (48.05, 2.05)])
    one, two = write(tmp_path / "a.csv", [line]), write(tmp_path / "b.csv", [line])
    assert main(["evaluate", "tracks", str(one), str(two), "--out", str(tmp_path / "f")]) == 0
    results = json.loads((tmp_path / "f" / "results.json").read_bytes())["metrics"]
    assert results["dtw_km"] == {"mean": 0.0, "std": None, "min": 0.0, "median": 0.0, "p90": 0.0, "max": 0.0}


def test_a_wrong_file_is_named_without_a_traceback(tmp_path, files, capsys):
    (bad := tmp_path / "bad.csv").write_text("traj_id,lat,lon\n0,48.0,2.0\n0,48.0,here\n")
    assert main(["evaluate", "tracks", files[0], str(bad)]) == 1
    assert capsys.readouterr().err == f"watchkeeper: {bad}: line 3: lon 'here' is not a number\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--grid-size", "0"),
        ("--grid-size", "nan"),
        ("--edr-eps", "-1"),
        ("--jobs", "0"),
        ("--od-source", "validation"),
        ("--plot", "x.doc"),
        ("--report", "x.pdf"),
        ("--gap-s", "0"),
        ("--slice", "weather"),
        ("--slice-hours", "0"),
        ("--utc-offset", "15"),
    ],
)
def test_wrong_arguments_are_usage_errors(files, arguments):
    with pytest.raises(SystemExit) as error:
        main(["evaluate", "tracks", *files, *arguments])
    assert error.value.code == 2


def timed(path: Path, lines: list[np.ndarray], hours: list[float]) -> str:
    """A CSV with times: each line begins at its hour and has a point a minute."""
    rows = [
        f"{k},{hour * 3600.0 + 60.0 * at},{lat},{lon}"
        for k, (line, hour) in enumerate(zip(lines, hours, strict=True))
        for at, (lat, lon) in enumerate(line.tolist())
    ]
    path.write_text("\n".join(["traj_id,t,lat,lon", *rows, ""]))
    return str(path)


def test_rates_divergences_and_slices_are_in_results_and_table(tmp_path, lines, capsys):
    hours = [float(k) for k in range(0, 24, 2)]
    real = timed(tmp_path / "real.csv", lines[0], hours)
    gen = timed(tmp_path / "gen.csv", [*lines[1][:-1], lines[1][-1][::-1]], hours)
    words = ["--slice", "time", "place", "--centre", "48.05", "2.1", "3", "--out", str(tmp_path / "f")]
    assert main(["evaluate", "tracks", real, gen, *words]) == 0
    results = json.loads((tmp_path / "f" / "results.json").read_bytes())
    assert results["match_rates"]["pair"] == {"matched": 11, "total": 12, "rate": pytest.approx(11 / 12)}
    assert list(results["divergences"]) == ["distance_km", "step_min", "trip_min", "radius_km", "gyration_km"]
    assert results["divergences"]["step_min"]["jsd"] == 0.0, "a point a minute on both sides"
    assert results["divergences"]["trip_min"]["jsd"] > 0.0
    assert [(s["name"], s["real"]) for s in results["slices"] if s["by"] == "time"] == [
        ("00:00-06:00", 3), ("06:00-12:00", 3), ("12:00-18:00", 3), ("18:00-24:00", 3),
    ]  # fmt: skip
    assert sum(s["comparisons"] for s in results["slices"] if s["by"] == "place") == 11
    text = capsys.readouterr().out
    for part in ("match pair              91.7 %   11 of 12", "JSD [nats]", "by time", "12:00-18:00", "by place"):
        assert part in text


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--slice", "time", "--slice-hours", "5"), "24 hours are no multiple"),
        (("--centre", "48", "2", "5"), "--centre is for --slice place"),
        (("--slice", "place", "--centre", "95", "2", "5"), "--centre 95 2 5: expected LAT"),
        (("--slice", "place", "--centre", "48", "2", "nan"), "KM above 0"),
    ],
)
def test_slices_that_cannot_be_are_usage_errors(files, capsys, words, problem):
    assert main(["evaluate", "tracks", *files, *words]) == 2
    assert problem in capsys.readouterr().err


def test_slices_of_the_day_need_times(files, capsys):
    assert main(["evaluate", "tracks", *files, "--slice", "time"]) == 1
    assert (
        capsys.readouterr().err == f"watchkeeper: {files[0]}: no times in it, so it cannot be sliced by time of day\n"
    )


def test_bounds_that_are_no_area_are_refused(files, capsys):
    assert main(["evaluate", "tracks", *files, "--bounds", "49", "1", "47", "3"]) == 2
    assert "SOUTH < NORTH" in capsys.readouterr().err


def test_the_picture_has_the_pairs(tmp_path, files):
    plot = tmp_path / "pairs.svg"
    assert main(["evaluate", "tracks", *files, "--plot", str(plot)]) == 0
    assert plot.read_text().count('<g id="axes_') == 6


def test_the_histograms_are_drawn_with_their_divergence(tmp_path, files):
    plot = tmp_path / "histograms.svg"
    assert main(["evaluate", "tracks", *files, "--histograms", str(plot), "--out", str(tmp_path / "f")]) == 0
    found = json.loads((tmp_path / "f" / "results.json").read_bytes())["divergences"]
    drawn = plot.read_text()
    assert drawn.count('<g id="axes_') == 3, "without times: distance and the two radii"
    for name, own in found.items():
        assert f"<!-- {name} -->" in drawn
        assert f"<!-- JSD {own['jsd']:.3g} nats -->" in drawn


def test_the_report_is_one_page_that_loads_nothing(tmp_path, files):
    report = tmp_path / "report.html"
    assert main(["evaluate", "tracks", *files, "--report", str(report)]) == 0
    page = report.read_text()
    for word in ("12", "hausdorff_norm", "real.csv", "match pair", "Jensen-Shannon", "data:image/svg+xml;base64,"):
        assert word in page
    assert not re.search(r"(src|href)=.?(http|/)|<script|<link|@import|url\(", page)
