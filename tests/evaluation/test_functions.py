"""Every evaluation is a function: frames give what files give, and a result is a frame and a dictionary."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import polars as pl
import pytest

import watchkeeper as wk
from watchkeeper.daemon.cli import main
from watchkeeper.evaluation.shared.errors import EvaluationError
from watchkeeper.streams.frames.cells import FrameError
from watchkeeper.streams.logs.wklog import LogWriter

LIBRARIES: list[Callable[[dict[str, Any]], Any]] = [dict, pd.DataFrame, pl.DataFrame]
LANES = {
    "traj_id": [i // 4 for i in range(40)],
    "lat": [50.0, 50.1, 50.2, 50.3] * 10,
    "lon": [8.0 + (i // 4) / 10 for i in range(40)],
}


def shaken(by: float) -> dict[str, Any]:
    inner = [lon + by * ((i * 7) % 5 + 1) * (i % 4 in (1, 2)) for i, lon in enumerate(LANES["lon"])]
    return {**LANES, "lon": inner}


def recorded(tmp_path: Path, sim: Any) -> Path:
    path = tmp_path / "made.wklog"
    with LogWriter(path) as writer:
        for batch in sim.batches():
            writer.write(batch)
    return path


def plain(content: Any) -> Any:
    return json.loads(msgspec.json.encode(content))


def test_alarms_of_a_frame_a_log_and_the_command_agree(tmp_path: Path) -> None:
    sim = wk.simulate("head-on", seed=1, seconds=300)
    log, out = recorded(tmp_path, sim), tmp_path / "out.json"
    assert main(["evaluate", "alarms", str(log), "--quiet", "--out", str(out)]) == 0
    expected = json.loads(out.read_text())
    for data in (log, sim, sim.to_frame("pandas"), sim.to_frame("polars")):
        result = wk.evaluate.alarms(data)
        assert plain(result.to_dict()) == expected
    assert result.to_frame("polars")["verdict"].to_list() == [row["verdict"] for row in expected["alarm_list"]]
    losses = result.to_frame("polars", table="losses")
    assert losses["warning_s"].to_list() == [row["warning_s"] for row in expected["loss_list"]]


def test_alarms_without_aircraft_or_without_the_detector_cannot_be_judged() -> None:
    drones = wk.simulate("drones", seconds=5, vehicles=1)
    with pytest.raises(EvaluationError, match="no ADS-B samples"):
        wk.evaluate.alarms(drones)
    with pytest.raises(EvaluationError, match=r"detectors.conflict.enabled is false"):
        wk.evaluate.alarms(drones, config=wk.config(detectors__conflict__enabled=False))


def test_a_controllers_frame_gives_what_its_csv_gives(tmp_path: Path) -> None:
    frame = pd.DataFrame({
        "t": [0, 0, 10, 10, 20, 20, 30, 30], "id": ["a", "b"] * 4, "lat": [50.0] * 8,
        "lon": [8.0, 8.5, 8.05, 8.45, 8.1, 8.4, 8.15, 8.35], "heading_delta_deg": [None, None, 20.0] + [None] * 5,
        "shift": ["north"] * 8,
    })  # fmt: skip
    frame.to_csv(tmp_path / "episode.csv", index=False)
    (expected,) = wk.evaluate.conflicts(tmp_path / "episode.csv").episodes
    for data in (frame, pl.from_pandas(frame), frame.to_dict("list")):
        result = wk.evaluate.conflicts(data, group_by="shift")
        (found,) = result.episodes
        assert plain([found["metrics"], found["meta"]]) == plain([expected["metrics"], expected["meta"]])
        assert list(result.groups) == ["all", "shift north"]
    assert result.to_frame("polars").height == 1


def test_a_controllers_messages_as_a_frame_give_what_the_recording_gives(tmp_path: Path) -> None:
    sim = wk.simulate("controlled", seed=3, seconds=200)
    log = recorded(tmp_path, sim)
    metrics = [plain(wk.evaluate.conflicts(data).episodes[0]["metrics"]) for data in (log, sim, sim.to_frame("polars"))]
    assert metrics[0] == metrics[1] == metrics[2]


@pytest.mark.parametrize("make", LIBRARIES)
def test_trajectories_of_a_frame_give_what_their_csv_gives(make: Callable[[Any], Any], tmp_path: Path) -> None:
    for name, table in (("real", LANES), ("gen", shaken(0.002))):
        pd.DataFrame(table).to_csv(tmp_path / f"{name}.csv", index=False)
    expected = wk.evaluate.tracks(tmp_path / "real.csv", tmp_path / "gen.csv")
    result = wk.evaluate.tracks(make(LANES), make(shaken(0.002)))
    assert result.summary == expected.summary
    assert result.to_frame("polars").equals(expected.to_frame("polars"))
    assert result.to_dict()["comparisons"] == result.to_frame("polars").height == 10


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"lat": [None] * 40}, "'lat': row 0 is missing"),
        ({"lat": [91.0] * 40}, "'lat': row 0 is 91; allowed: -90 to 90 deg"),
        ({"lat": ["x"] * 40}, "'lat': 'x' in row 0 is not a number"),
        ({"traj_id": [""] * 40}, "'traj_id': a name is missing"),
    ],
)
def test_a_comparison_needs_every_point(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(FrameError, match=problem):
        wk.evaluate.tracks({**LANES, **change}, LANES)
    with pytest.raises(FrameError, match="no column lat"):
        wk.evaluate.tracks({"traj_id": [1], "lon": [1.0]}, LANES)


def test_models_compare_as_results_as_frames_and_as_folders(tmp_path: Path) -> None:
    results = {name: wk.evaluate.tracks(LANES, shaken(by)) for name, by in (("near", 0.001), ("far", 0.004))}
    for name, by in (("near", 0.001), ("far", 0.004)):
        pd.DataFrame(shaken(by)).to_csv(tmp_path / f"{name}.csv", index=False)
        pd.DataFrame(LANES).to_csv(tmp_path / "real.csv", index=False)
        words = [str(tmp_path / "real.csv"), str(tmp_path / f"{name}.csv"), "--out", str(tmp_path / name), "--quiet"]
        assert main(["evaluate", "tracks", *words]) == 0
    expected = wk.evaluate.paired({name: tmp_path / name for name in results})
    frames = {name: result.to_frame("pandas") for name, result in results.items()}
    nowhere = [msgspec.structs.replace(result, model1_folder="", model2_folder="") for result in expected.results]
    for models in (results, frames):
        assert wk.evaluate.paired(models).results == nowhere
    (tmp_path / "notes").mkdir()
    found = wk.evaluate.paired(tmp_path)
    assert list(found.to_dict()) == ["far_vs_near"]
    assert found.notes == [f"{tmp_path / 'notes'}: no trajectory_metrics.json in this folder, left out"]
    frame = expected.to_frame("polars")
    assert frame["metric_name"].to_list() == ["hausdorff_norm", "dtw_norm", "edr"]
    assert frame["mean_difference"].max() < 0.0
    assert list(expected.to_dict()) == ["near_vs_far"]


def test_leaks_of_a_frame_are_those_of_its_csv(tmp_path: Path) -> None:
    table = pd.DataFrame({"label": [0, 0, 1, 1, 0, 1], "speed": [3, 5, 4, 3.5, 4.5, 4], "flag": [0, 0, 1, 1, 0, 1]})
    table.to_csv(tmp_path / "features.csv", index=False)
    found = wk.evaluate.leakage(data=table)
    assert found.to_dict() == wk.evaluate.leakage(data=tmp_path / "features.csv").to_dict()
    assert found.to_frame("polars").rows() == [("features", found.checks["features"][0])]
    assert len(found) == 1


def test_the_diagnosis_of_the_command_is_that_of_the_function(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    words = ["--episodes", "4", "--devices", "4", "12", "--agents", "watchkeeper,random", "--quiet", "--out", str(out)]
    assert main(["evaluate", "diagnosis", *words]) == 0
    result = wk.evaluate.diagnosis(episodes=4, devices=(4, 12), agents=["watchkeeper", "random"])
    written = json.loads(out.read_text())
    assert written["settings"] == plain(result.to_dict())["settings"]
    frame = result.to_frame("polars")
    assert frame["agent"].to_list() == ["watchkeeper"] * 4 + ["random"] * 4
    truths = [episode["metrics"]["ground_truth_location"] for episode in written["episodes"]]
    assert frame["ground_truth_location"].to_list() == truths
    with pytest.raises(EvaluationError, match="'me' is none of watchkeeper"):
        wk.evaluate.diagnosis(agents=["me"])


def test_the_protocol_takes_a_frame_of_vehicles_and_frames_by_name() -> None:
    drones = wk.simulate("drones", seconds=120, seed=5, vehicles=2, faults=False).to_frame("polars")
    settings: dict[str, Any] = {"attacks": ["gps_bias"], "repeats": 1, "search": False}
    whole = wk.evaluate.protocol(drones, **settings)
    by_name = {name: drones.filter(pl.col("id") == name) for name in sorted(set(drones["id"]))}
    apart = wk.evaluate.protocol(by_name, **settings)
    assert plain(whole.to_dict()) == plain(apart.to_dict())
    frame = whole.to_frame("polars")
    assert set(frame["family"]) == {"gps_bias"}
    assert frame["cases"].sum() > 0
    assert whole.settings["flights"] == "frames, leave-one-flight-out"
