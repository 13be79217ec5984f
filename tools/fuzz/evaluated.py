"""Small whole files of everything that evaluations read: episodes, trajectories, tables, splits, results."""

from __future__ import annotations

import json
import math
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from tools.fuzz.corpus import Files
from tools.fuzz.trees import edited_json, edited_msgpack
from watchkeeper.benchmarks.conflict_metrics import random_trajectory
from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.simulate import simulate


def episode(name: str) -> Files:
    """An episode of a controller."""
    whole: dict[str, Any] = random_trajectory(4, 12, 3)
    if name.endswith(".msgpack"):
        return Files(name, [msgspec.msgpack.encode(whole), msgspec.msgpack.encode([whole, whole])], edit=edited_msgpack)
    if name.endswith(".json"):
        return Files(name, [msgspec.json.encode(whole), msgspec.json.encode([whole, whole])], edit=edited_json)
    lines = ["timestamp,agent,lat,lon,heading_deg,speed_kt,heading_delta_deg,speed_delta_kt,waypoint_lat,waypoint_lon"]
    for k, step in enumerate(whole["positions"]):
        for who, place in step.items():
            series, way = whole["agents"][who], whole["waypoints"][who]
            cells = [whole["timestamps"][k], who, *place, series["headings"][k], series["speeds"][k]]
            lines.append(",".join(map(str, [*cells, *whole["actions"][k][who], way["lat"], way["lon"]])))
    return Files(name, ["\n".join(lines).encode()])


def geojson() -> Files:
    """Two trajectories."""
    line = {"type": "LineString", "coordinates": [[8.0 + k / 100, 50.0] for k in range(9)]}
    many = {"type": "MultiLineString", "coordinates": [line["coordinates"], [[9.0, 51.0], [9.1, 51.0]]]}
    features = [{"type": "Feature", "id": k, "properties": {}, "geometry": g} for k, g in enumerate((line, many))]
    return Files(
        "x.geojson", [json.dumps({"type": "FeatureCollection", "features": features}).encode()], edit=edited_json
    )


def tracks_csv() -> Files:
    """Two trajectories as a table."""
    rows = [f"{k % 2},{1000 + k},{50 + k / 100},{8 + k / 100}" for k in range(12)]
    return Files("x.csv", ["\n".join(["traj_id,t,lat,lon", *rows]).encode()])


def road_network() -> Files:
    """Three roads."""
    rows = [f'{k},LineString,"[[8.{k}, 50.0], [8.{k}, 50.{k}], [8.5, 50.1]]",primary' for k in range(3)]
    return Files("roadmap.geo", ["\n".join(["geo_id,type,coordinates,highway", *rows]).encode()])


def road_tracks() -> Files:
    """Trajectories as lists of roads, next to their network."""
    real = 'traj_id,rid_list,time_list\n7,"0,1,2","2020-01-01T00:00:00Z,2020-01-01T00:01:00Z,2020-01-01T00:02:00Z"\n'
    gen = "gene_trace_road_id,gene_trace_datetime\n\"[0, 1]\",\"['2020-01-01T00:00:00Z', '2020-01-01T00:01:00Z']\"\n"
    network = road_network()
    return Files("x.csv", [real.encode(), gen.encode()], {network.name: network.seeds[0]})


def paired() -> Files:
    """A model's records."""
    records = [{"od_pair": [k % 7, k % 3], "real_traj_idx": k, "dtw_km": math.sin(k)} for k in range(9)]
    metadata = {"generated_file": "gen.csv", "real_data_file": "real.csv", "od_source": "test",
                "evaluation_timestamp": "2025-01-01T00:00:00+00:00", "num_trajectory_comparisons": 9,
                "grid_size": 0.001, "edr_eps": 100.0,
                "grid_bounds": {"south": 50.0, "west": 8.0, "north": 51.0, "east": 9.0}}  # fmt: skip
    return Files(
        "m.json", [json.dumps({"metadata": metadata, "trajectory_metrics": records}).encode()], edit=edited_json
    )


def features() -> Files:
    """A table with a label."""
    rows = [f"{k},{math.sin(k)},{k % 2}" for k in range(12)]
    return Files("f.csv", ["\n".join(["t,x,label", *rows]).encode()])


def outcomes(name: str) -> Files:
    """Episodes of models that were trained and judged somewhere: a result of `evaluate conflicts`, or a table."""
    rows = [(trained, judged, seed, math.sin(seed)) for trained in "ab" for judged in "ab" for seed in range(3)]
    if name.endswith(".csv"):
        lines = ["trained_on,judged_on,seed,f1_score", *(",".join(map(str, row)) for row in rows)]
        return Files(name, ["\n".join(lines).encode()])
    episodes = [
        {"meta": {"trained_on": trained, "judged_on": judged, "seed": seed}, "metrics": {"f1_score": f1, "tp": None}}
        for trained, judged, seed, f1 in rows
    ]
    return Files(name, [json.dumps({"episodes": episodes}).encode()], edit=edited_json)


def splits() -> Files:
    """The splits that are shipped."""
    return Files(
        "splits.json", [resources.files("watchkeeper.config").joinpath("splits.json").read_bytes()], edit=edited_json
    )


def truth() -> Files:
    """What a simulation says about itself, next to its recording."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.wklog"
        with LogWriter(path) as writer:
            for batch in simulate("controlled", seconds=20.0, seed=1, vehicles=7).batches():
                writer.write(batch)
        log = path.read_bytes()
    said = json.dumps({"scenario": "controlled", "seed": 1, "faults": [{"id": "a", "t": 3.0}]}).encode()
    return Files("x.wklog.truth.json", [said], {"x.wklog": log}, edit=edited_json, opens="x.wklog")


def result() -> Files:
    """Results of evaluations, as `evaluate textfile` takes them."""
    alarms = {"alarm_list": [], "flight_hours": 2.0, "losses": 4, "losses_eligible": 3, "alarms": 5,
              "missed_eligible_share": 0.25, "late_eligible_share": None, "nuisance_share": 0.4,
              "warning_median_s": 31.0, "warning_p10_s": 9.0}  # fmt: skip
    controllers = {"groups": {"all": {name: {"mean": 0.5} for name in ("precision", "recall", "f1_score")}}}
    return Files("r.json", [json.dumps(alarms).encode(), json.dumps(controllers).encode()], edit=edited_json)
