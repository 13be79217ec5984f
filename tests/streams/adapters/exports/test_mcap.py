"""MCAP: the `mcap` reader gives every sample back, and Foxglove's panels find positions and alarms."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from mcap.reader import make_reader

from watchkeeper.daemon.cli import main
from watchkeeper.streams.adapters.exports import mcap
from watchkeeper.streams.logs.base import LogError
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.messages import unescape_id
from watchkeeper.streams.signals import names_in

from plain_samples import converted, log_rows, odd_log, simulated
from where import CUTS


def messages(path: Path) -> dict[str, list[tuple[Any, int, dict[str, Any]]]]:
    """For each schema its messages, each with its channel and its time in nanoseconds."""
    found = defaultdict(list)
    validators: dict[str, jsonschema.Draft202012Validator] = {}
    with path.open("rb") as file:
        for schema, channel, message in make_reader(file, validate_crcs=True).iter_messages(log_time_order=False):
            assert schema is not None
            assert (schema.encoding, channel.message_encoding) == ("jsonschema", "json")
            said = json.loads(message.data)
            if schema.name not in validators:
                validators[schema.name] = jsonschema.Draft202012Validator(json.loads(schema.data))
            assert validators[schema.name].is_valid(said)
            found[schema.name].append((channel, message.log_time, said))
    return found


def samples(path: Path) -> list[dict[str, Any]]:
    found = []
    for name, parts in messages(path).items():
        kind = name.removeprefix("watchkeeper.")
        if name.startswith("watchkeeper.") and kind != "alarm":
            for channel, ns, said in parts:
                top, _, word = channel.topic[1:].rpartition("/")
                assert (unescape_id(top), word) == (said["id"], kind)
                assert channel.metadata["id"] == said["id"]
                assert abs(ns - said["t"] * 1e9) < 500.0
                if said["t"] > 5.0:
                    assert ns / 10**9 == said["t"]
                found.append({**said, "kind": kind})
    return in_order(found)


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["t"], row["id"], row["kind"], row.get("signal", "")))


def log_samples(log: Path) -> list[dict[str, Any]]:
    """The samples of a log, those of signals with the name that their columns hold."""
    found = []
    for row in log_rows(log):
        if row["kind"] == "signal":
            packed = [float(row.pop(key)) for key in sorted(row) if key.startswith("name_")]
            row["signal"] = names_in(np.array(packed)[:, None])[0]
        found.append(row)
    return in_order(found)


@pytest.mark.parametrize("make", [odd_log, simulated], ids=["odd", "mixed"])
def test_the_reader_gives_every_sample_back(tmp_path: Path, make: Any) -> None:
    log = make(tmp_path / "x.wklog")
    assert samples(converted(log, tmp_path / "x.mcap")) == log_samples(log)


@pytest.mark.parametrize("name", ["car_comma.csv.gz", "pyulog_sample_log_small.ulg"])
def test_a_real_log_too(px4_logs: Path, tmp_path: Path, name: str) -> None:
    path = (px4_logs if name.endswith(".ulg") else CUTS / "flights") / name
    first = next(iter(open_log(path).batches()))
    log = converted(path, tmp_path / "x.wklog", "--stop", str(first.t_max))
    assert samples(converted(log, tmp_path / "x.mcap")) == log_samples(log)


def test_reading_our_own_says_why_not(tmp_path: Path) -> None:
    """An MCAP file of `convert` is no ROS bag; the words of the ROS library said only that."""
    ours = converted(simulated(tmp_path / "x.wklog"), tmp_path / "x.mcap")
    with pytest.raises(LogError, match="Watchkeeper wrote it for other programs; read the log that it was made from"):
        open_log(ours)


def test_positions_are_location_fixes_and_an_absent_altitude_is_absent(tmp_path: Path) -> None:
    log = odd_log(tmp_path / "x.wklog")
    fixes = messages(converted(log, tmp_path / "x.mcap"))["foxglove.LocationFix"]
    expected = log_rows(log)
    assert len(fixes) == len(expected)
    for (channel, ns, fix), row in zip(fixes, expected, strict=True):
        assert channel.topic.endswith("/adsb/location")
        assert (fix["frame_id"], fix["latitude"], fix["longitude"]) == (row["id"], row["lat"], row["lon"])
        assert fix["timestamp"]["sec"] * 10**9 + fix["timestamp"]["nsec"] == ns
        assert ("altitude" in fix) == ("alt_ft" in row)
        if "alt_ft" in row:
            assert fix["altitude"] == pytest.approx(row["alt_ft"] * 0.3048, abs=1e-4)


def test_a_local_frame_is_placed_by_its_origin(tmp_path: Path) -> None:
    log = simulated(tmp_path / "x.wklog", "drones", vehicles=2, seconds=5)
    assert "foxglove.LocationFix" not in messages(converted(log, tmp_path / "x.mcap"))
    fixes = messages(converted(log, tmp_path / "x.mcap", "--origin=-33.9,151.2,20"))["foxglove.LocationFix"]
    rows = [row for row in log_rows(log) if row["kind"] == "gps"]
    assert len(fixes) == len(rows)
    for (_, _, fix), row in zip(fixes, rows, strict=True):
        # a metre is 9.0e-6 degrees of latitude there, and 10.8e-6 of longitude
        assert fix["latitude"] == pytest.approx(-33.9 + row["gps_x"] / 110_922.0, abs=2e-6)
        assert fix["longitude"] == pytest.approx(151.2 + row["gps_y"] / 92_528.0, abs=1e-5)
        assert fix["altitude"] == pytest.approx(20.0 - row["gps_z"])


def test_alarms_are_kept_as_they_are_and_as_lines_of_a_log(tmp_path: Path) -> None:
    log, alarms = simulated(tmp_path / "x.wklog", "head-on", vehicles=2, seconds=120), tmp_path / "alarms.jsonl"
    assert main(["replay", str(log), "--alarms", str(alarms)]) == 0
    events = [json.loads(line) for line in alarms.read_text().splitlines()]
    assert events
    found = messages(converted(log, tmp_path / "x.mcap", "--alarms", str(alarms)))
    assert [said for _, _, said in found["watchkeeper.alarm"]] == events
    for (channel, ns, said), event in zip(found["foxglove.Log"], events, strict=True):
        assert channel.topic == "/alarms/log"
        assert ns == round(event["t"] * 1e3) * 10**6
        assert said["level"] == {"advisory": 2, "caution": 3, "warning": 4}[event["severity"]]
        assert said["name"] == event["kind"]
        assert event["state"] in said["message"]


def test_more_vehicles_than_channels_share_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mcap, "CHANNELS_MAX", 4)
    log = odd_log(tmp_path / "x.wklog")
    found = messages(converted(log, tmp_path / "x.mcap"))["watchkeeper.adsb"]
    said = sorted((row | {"kind": "adsb"} for _, _, row in found), key=lambda row: row["t"])
    assert said == sorted(log_rows(log), key=lambda row: row["t"])
    assert {channel.topic for channel, _, _ in found} > {"/others/adsb"}
    assert "share /others" in capfd.readouterr().err
