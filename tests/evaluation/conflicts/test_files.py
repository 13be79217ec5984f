"""Files to metrics: formats that say the same, errors that name file, record and field, the command and its report."""

from __future__ import annotations

import copy
import csv
import json
import math
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.benchmarks.conflict_metrics import random_trajectory
from watchkeeper.daemon.cli import main
from watchkeeper.evaluation.conflicts.command import EpisodeError, HallucinationDetector, evaluate_file
from watchkeeper.evaluation.conflicts.load import read_episodes
from watchkeeper.evaluation.conflicts.metrics import METRICS
from watchkeeper.evaluation.conflicts.summary import aggregate
from watchkeeper.streams.logs.source import LogError

TRAJECTORY = random_trajectory(4, 40, 4)
COLUMNS = (
    "timestamp", "agent", "lat", "lon", "heading_deg", "speed_kt", "heading_delta_deg", "speed_delta_kt",
    "waypoint_lat", "waypoint_lon", "shift",
)  # fmt: skip


def write_csv(path: Path, trajectory: dict[str, Any], shift: str = "none") -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for k, step in enumerate(trajectory["positions"]):
            for name, place in step.items():
                series, way = trajectory["agents"][name], trajectory["waypoints"][name]
                own = trajectory["timestamps"][k], name, *place, series["headings"][k], series["speeds"][k]
                writer.writerow([*own, *trajectory["actions"][k][name], way["lat"], way["lon"], shift])
    return path


def metrics(path: Path) -> dict[str, float]:
    (row,) = evaluate_file(path, detector=HallucinationDetector())
    return row["metrics"]


def test_json_messagepack_and_csv_give_the_same(tmp_path):
    expected = HallucinationDetector().compute(TRAJECTORY)
    (tmp_path / "e.json").write_bytes(msgspec.json.encode(TRAJECTORY))
    (tmp_path / "e.msgpack").write_bytes(msgspec.msgpack.encode(TRAJECTORY))
    write_csv(tmp_path / "e.csv", TRAJECTORY)
    for name in ("e.json", "e.msgpack", "e.csv"):
        found = metrics(tmp_path / name)
        assert found == pytest.approx({key: expected[key] for key in found}, nan_ok=True)


def test_one_file_may_hold_many_episodes(tmp_path):
    (tmp_path / "many.json").write_bytes(msgspec.json.encode([TRAJECTORY, TRAJECTORY]))
    assert [name for name, _ in read_episodes(tmp_path / "many.json", 10.0)] == ["many.json#0", "many.json#1"]
    lines = ["episode,t,id,lat,lon", "a,0,A1,0,0", "b,0,A1,0,0", "b,10,A1,0,1"]
    (tmp_path / "many.csv").write_text("\n".join(lines))
    assert [len(episode.t) for _, episode in read_episodes(tmp_path / "many.csv", 10.0)] == [1, 2]


def broken(*path: str | int, value: Any) -> dict[str, Any]:
    trajectory = copy.deepcopy(TRAJECTORY)
    trajectory["positions"] = [{a: list(p) for a, p in step.items()} for step in trajectory["positions"]]
    at: Any = trajectory
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return trajectory


@pytest.mark.parametrize(
    ("trajectory", "message"),
    [
        (broken("positions", value=None), "positions: missing"),
        (broken("positions", value="x"), "positions: expected an array with one object per step, got str"),
        (broken("positions", 7, value=3), r"positions[7]: expected an object from agent to two numbers, got 3"),
        (broken("positions", 7, "A2", value=[1.0]), "positions[7].A2: expected two numbers, got [1.0]"),
        (broken("positions", 7, "A2", 1, value="4.7"), "positions[7].A2[1]: expected a finite number, got '4.7'"),
        (broken("positions", 7, "A2", 0, value=True), "positions[7].A2[0]: expected a finite number, got True"),
        (broken("positions", 7, "A2", 0, value=95.0), "positions[7].A2: latitude is 95, expected -90 to 90"),
        (broken("positions", 7, "A2", 1, value=400), "positions[7].A2: longitude is 400, expected -180 to 360"),
        (broken("actions", 3, "A9", value=[0.0, 0.0]), "actions[3].A9: this agent has no position"),
        (broken("actions", 3, "A1", value=[0.0]), "actions[3].A1: expected two numbers, got [0.0]"),
        (broken("actions", value=TRAJECTORY["actions"] * 2), "actions: 80 steps, but positions has 40"),
        (broken("timestamps", 5, value=40.0), "timestamps[5]: times must increase, got 40, after 40"),
        (broken("timestamps", 5, value="x"), "timestamps[5]: expected a finite number or null, got 'x'"),
        (broken("timestamps", value=[0.0]), "timestamps: 1 values, expected 40, one per step"),
        (broken("agents", "A1", "headings", 8, value="N"), "agents.A1.headings[8]: expected a finite number or null"),
        (broken("agents", "A1", "speeds", value=[1.0]), "agents.A1.speeds: 1 values, expected 40, one per step"),
        (broken("agents", "A1", value=[1]), "agents.A1: expected an object with headings, speeds, altitudes"),
        (broken("agents", "B7", value={"headings": []}), "agents.B7: this agent has no position"),
        (broken("waypoints", "A1", "lat", value=None), "waypoints.A1.lat: missing"),
        (broken("waypoints", "A1", "lon", value="x"), "waypoints.A1.lon: 'x' is no angle in degrees"),
        (broken("waypoint_status", value={"A1": {"x": True}}), "waypoint_status.A1.x: expected a step"),
        (broken("waypoint_status", value={"A1": [True]}), "waypoint_status.A1: expected an object"),
        (broken("rewards", value=[{"A1": "x"}]), "rewards[0].A1: expected a number of a known agent, got 'x'"),
        ({"position": []}, "position: unknown field; did you mean positions?"),
        ([], "trajectory: expected an object, got list"),
    ],
)  # fmt: skip
def test_a_wrong_or_missing_field_is_named_with_file_and_record(tmp_path, trajectory, message):
    path = tmp_path / "broken.json"
    path.write_bytes(msgspec.json.encode([trajectory]))
    with pytest.raises(LogError, match=re.escape(f"{path}: episode 0: {message}")):
        list(read_episodes(path, 10.0))
    with pytest.raises(EpisodeError, match=re.escape(message)):
        HallucinationDetector().compute(trajectory)


JUNK = (None, 3, "x", "7", [], {}, [1, 2], {"A1": 1}, True, math.inf, math.nan, -1e9)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where in the structure something could be wrong."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


SMALL = broken("rewards", value=[{"A1": 1.0}]) | {"waypoint_status": {"A1": {"0": False}}}


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(places(SMALL)[1:]), st.sampled_from(JUNK))
def test_whatever_is_wrong_is_said_and_never_a_traceback(place, junk):
    trajectory = copy.deepcopy(SMALL)
    at: Any = trajectory
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = junk
    try:
        result = HallucinationDetector().compute(trajectory)
    except EpisodeError as error:
        # fields that no longer fit each other may blame another than the one that was changed
        assert re.split(r"[.\[]", error.field)[0] in trajectory  # noqa: PT017
    else:
        assert set(METRICS) <= result.keys()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["agent,lat,lon", "A1,0,0"], "line 1: no column timestamp (or t, time_s, sim_time_s)"),
        (["t,id,lat,lon", "0,A1,,0"], "line 2: lat: missing"),
        (["t,id,lat,lon", "0,A1,0,0", "10,A1,x,0"], "line 3: lat: 'x' is not a number"),
        (["t,id,lat,lon", "0,A1,0,777"], "line 2: lon: 777 is out of range, expected -180 to 360"),
        (["t,id,lat,lon", "0,A1,nan,0"], "line 2: lat: nan is out of range"),
        (["t,id,lat,lon", "inf,A1,0,0"], "line 2: timestamp: inf is out of range"),
        (["t,id,lat,lon", "0,A1,0"], "line 2: 3 values, the header has 4"),
        (["t,id,lat,lon", "0,A1,0,0", "0,A1,0,1"], "line 3: agent: A1 has a row for time 0 already"),
        (["t,id,lat,lon,speed_kt", "0,A1,0,0,-1"], "line 2: speed_kt: -1 is out of range, expected 0 to 5000"),
        (["t,id,lat,lon"], "no rows"),
    ],
)
def test_a_wrong_line_of_a_csv_is_named(tmp_path, lines, message):
    path = tmp_path / "broken.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(LogError, match=re.escape(f"{path}: {message}")):
        list(read_episodes(path, 10.0))


def test_a_csv_may_leave_cells_empty_and_say_true(tmp_path):
    lines = ["t,id,lat,lon,hdg_delta,spd_delta,waypoint_reached,reward", "0,A1,0,0,,,false,", "10,A1,0,1,4,,True,2.5"]
    (tmp_path / "e.csv").write_text("\n".join(lines))
    found = metrics(tmp_path / "e.csv")
    assert (found["num_interventions"], found["waypoint_reached_ratio"], found["reward_total"]) == (1, 1.0, 2.5)


@pytest.mark.parametrize(
    ("name", "raw", "word"),
    [("e.json", b"{", "not a JSON"), ("e.msgpack", b"\xc1", "not a MessagePack"), ("gone.json", None, "No such file")],
)
def test_files_that_cannot_be_read(tmp_path, capsys, name, raw, word):
    if raw is not None:
        (tmp_path / name).write_bytes(raw)
    assert main(["evaluate", "conflicts", str(tmp_path / name)]) == 1
    error = capsys.readouterr().err
    assert word in error
    assert name in error


def test_a_recording_without_commands_is_refused(tmp_path, capsys):
    log = tmp_path / "crossing.wklog"
    assert main(["simulate", "crossing", "--seconds", "20", "--out", str(log)]) == 0
    assert main(["evaluate", "conflicts", str(log)]) == 1
    assert "no action stream" in capsys.readouterr().err


def test_a_damaged_recording_is_used_as_far_as_it_goes_and_said(tmp_path, capsys):
    log = tmp_path / "cut.wklog"
    assert main(["simulate", "controlled", "--seconds", "100", "--out", str(log)]) == 0
    log.write_bytes(log.read_bytes()[:-40])
    assert main(["evaluate", "conflicts", str(log)]) == 0
    assert "cut.wklog: the log was not closed" in capsys.readouterr().err


def test_groups_have_mean_std_min_max(tmp_path, capsys):
    paths = []
    for seed, shift in enumerate(("none", "none", "wind")):
        paths.append(str(write_csv(tmp_path / f"{seed}.csv", random_trajectory(seed, 40, 4), shift)))
    out = tmp_path / "metrics.json"
    assert main(["evaluate", "conflicts", *paths, "--group-by", "shift", "--out", str(out)]) == 0
    written = json.loads(out.read_text())
    assert list(written["groups"]) == ["all", "shift none", "shift wind"]
    rows = [HallucinationDetector().compute(random_trajectory(seed, 40, 4)) for seed in range(3)]
    lengths = [row["total_path_length_nm"] for row in rows]
    none = written["groups"]["shift none"]["total_path_length_nm"]
    mean = (lengths[0] + lengths[1]) / 2
    assert none["mean"] == pytest.approx(mean)
    assert none["std"] == pytest.approx(abs(lengths[0] - lengths[1]) / math.sqrt(2))
    assert (none["min"], none["max"], none["n"]) == (
        pytest.approx(min(lengths[:2])),
        pytest.approx(max(lengths[:2])),
        2,
    )
    assert written["groups"]["shift wind"]["total_path_length_nm"]["std"] is None
    printed = capsys.readouterr().out
    assert "shift none (2)" in printed
    assert set(METRICS) <= set(printed.split())


def test_what_is_no_number_counts_for_nothing_and_becomes_null(tmp_path):
    one = HallucinationDetector().compute({"positions": [{"A1": (0.0, 0.0)}]})
    two = HallucinationDetector().compute({"positions": [{"A1": (0.0, 0.0), "A2": (0.0, 1.0)}]})
    assert math.isnan(one["min_separation_nm"])
    figure = aggregate([one, two])["min_separation_nm"]
    assert (figure["n"], figure["mean"]) == (1, two["min_separation_nm"])
    path = tmp_path / "one.json"
    path.write_bytes(msgspec.json.encode({"positions": [{"A1": (0.0, 0.0)}]}))
    assert main(["evaluate", "conflicts", str(path), "--out", str(tmp_path / "m.json")]) == 0
    written = json.loads((tmp_path / "m.json").read_text())
    assert written["episodes"][0]["metrics"]["min_separation_nm"] is None
    assert written["groups"]["all"]["min_separation_nm"]["mean"] is None


def test_detail_on_standard_output(tmp_path, capsys):
    path = tmp_path / "e.json"
    path.write_bytes(msgspec.json.encode(TRAJECTORY))
    assert main(["evaluate", "conflicts", str(path), "--detail", "--out", "-"]) == 0
    episode = json.loads(capsys.readouterr().out)["episodes"][0]
    assert len(episode["steps"]["conflict"]) == 40
    assert len(episode["windows"]["truth"]) == episode["metrics"]["tp"] + episode["metrics"]["fn"]
    assert set(episode["steps"]["reward"]) >= {"progress", "team"}


def test_the_report_is_one_file_that_needs_no_network(tmp_path):
    log, report = tmp_path / "c.wklog", tmp_path / "c.html"
    assert main(["simulate", "controlled", "--seconds", "300", "--out", str(log)]) == 0
    assert main(["evaluate", "conflicts", str(log), "--report", str(report)]) == 0
    page = report.read_text()
    assert "data:image/svg+xml;base64," in page
    # nothing is loaded from anywhere: the only addresses are names of XML dialects inside the pictures
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!data:)""", page)
    assert "<script" not in page
    first = page
    assert main(["evaluate", "conflicts", str(log), "--report", str(report)]) == 0
    assert report.read_text() == first


def test_usage_errors_exit_with_2(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", "conflicts", "x.json", "--horizon-s", "-3"])
    assert stop.value.code == 2
    assert "expected a number above 0" in capsys.readouterr().err


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_processes_change_nothing(tmp_path, capsys, jobs):
    paths = []
    for seed in range(4):
        path = tmp_path / f"{seed}.msgpack"
        path.write_bytes(msgspec.msgpack.encode(random_trajectory(seed, 20, 3)))
        paths.append(str(path))
    assert main(["evaluate", "conflicts", *paths, "--jobs", jobs, "--out", str(tmp_path / "m.json")]) == 0
    written = json.loads((tmp_path / "m.json").read_text())
    expected = [HallucinationDetector().compute(random_trajectory(seed, 20, 3))["tp"] for seed in range(4)]
    assert [episode["metrics"]["tp"] for episode in written["episodes"]] == expected
    Path(paths[2]).write_bytes(msgspec.msgpack.encode({}))
    assert main(["evaluate", "conflicts", *paths, "--jobs", jobs]) == 1
    assert "2.msgpack: positions: missing" in capsys.readouterr().err
