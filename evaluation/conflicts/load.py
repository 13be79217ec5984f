"""Reads episodes: the documented trajectory structure as JSON or MessagePack, CSV, and recordings (`.wklog`).

A JSON or MessagePack file holds one trajectory or an array of them. A CSV has one row per (timestamp, agent); the names
of its columns are in CSV_COLUMNS, and columns it does not know become the episode's metadata when they hold one value.
What is wrong is a LogError that names the file, the record (step and agent, or line) and the field.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from watchkeeper.evaluation.conflicts.episode import Episode, from_trajectory
from watchkeeper.evaluation.conflicts.fields import EpisodeError
from watchkeeper.evaluation.conflicts.log import read_log, read_source
from watchkeeper.streams.foreign.files import UnpackError, open_file, read_json, read_msgpack, text_file
from watchkeeper.streams.frames.cells import Cells, FrameError, texts, times
from watchkeeper.streams.frames.read import NAME as FRAME
from watchkeeper.streams.frames.read import columns_in, is_frame
from watchkeeper.streams.frames.sources import sources_of
from watchkeeper.streams.logs.source import LogError

# Our name to the other names that are understood, the first found counts; and the range of the numbers.
CSV_COLUMNS: dict[str, tuple[tuple[str, ...], float, float]] = {
    "timestamp": (("t", "time_s", "sim_time_s"), -math.inf, math.inf),
    "agent": (("id", "agent_id"), math.nan, math.nan),
    "lat": (("lat_deg", "latitude"), -90.0, 90.0),
    "lon": (("lon_deg", "longitude"), -180.0, 360.0),
    "heading_deg": (("heading", "hdg_deg", "trk_deg"), -360.0, 360.0),
    "speed_kt": (("speed", "gs_kt", "tas_kt"), 0.0, 5000.0),
    "alt_ft": (("altitude_ft",), -5000.0, 200_000.0),
    "heading_delta_deg": (("hdg_delta", "action_hdg_delta_deg"), -360.0, 360.0),
    "speed_delta_kt": (("spd_delta", "action_spd_delta_kt"), -5000.0, 5000.0),
    "waypoint_lat": (("wp_lat",), -90.0, 90.0),
    "waypoint_lon": (("wp_lon",), -180.0, 360.0),
    "waypoint_reached": (("reached",), 0.0, 1.0),
    "reward": (("reward_total",), -math.inf, math.inf),
    "episode": (("episode_id",), math.nan, math.nan),
}
REQUIRED = ("timestamp", "agent", "lat", "lon")
MSGPACK = (".msgpack", ".mpk", ".mp")
Row = dict[str, Any]


def read_episodes(path: Path, step_s: float) -> Iterator[tuple[str, Episode]]:
    """All episodes of a file, each with a name; `step_s` is the step where a file has no times of its own."""
    try:
        with open_file(path) as file:
            head = file.read(5)
    except OSError as error:
        raise LogError(path, error.strerror or str(error)) from error
    if head == b"WKLOG":
        yield path.name, read_log(path, step_s)
        return
    found = _csv_trajectories(path) if path.suffix.lower() == ".csv" else list(_decoded(path))
    for number, (record, trajectory) in enumerate(found):
        try:
            episode = from_trajectory(trajectory, step_s)
        except EpisodeError as error:
            raise LogError(path, f"{record}{error}") from error
        yield path.name if len(found) == 1 else f"{path.name}#{number}", episode


def episodes_in(data: object, step_s: float) -> Iterator[tuple[Path, str, Episode]]:
    """All episodes of a file, a frame, a trajectory, an open log or a simulation, each with its place and a name."""
    if isinstance(data, (str, PathLike)):
        for name, episode in read_episodes(Path(data), step_s):
            yield Path(data), name, episode
    elif isinstance(data, Mapping) and "positions" in data:
        yield Path("<trajectory>"), "trajectory", from_trajectory(data, step_s)
    elif is_frame(data) and "kind" not in (columns := columns_in(data)):
        found = _table_trajectories(
            FRAME, list(columns), enumerate(zip(*map(_words, columns.values(), columns), strict=True))
        )
        for number, (record, trajectory) in enumerate(found):
            try:
                episode = from_trajectory(trajectory, step_s)
            except EpisodeError as error:
                raise FrameError(f"{record}{error}") from error
            yield FRAME, FRAME.name if len(found) == 1 else f"{FRAME.name}#{number}", episode
    else:
        for source in sources_of(data):
            path = source.info().path
            yield path, path.name, read_source(source, step_s)


def _words(cells: Cells, name: str) -> list[str]:
    """A column as the words of a CSV: numbers keep every bit, and dates become seconds."""
    if name in ("timestamp", *CSV_COLUMNS["timestamp"][0]):
        cells = times(cells, name)[0]
    return texts(cells)


def _decoded(path: Path) -> Iterator[tuple[str, Any]]:
    content = read_msgpack(path) if path.suffix.lower() in MSGPACK else read_json(path)
    if not isinstance(content, list):
        yield "", content
        return
    for number, trajectory in enumerate(content):
        yield f"episode {number}: ", trajectory


def _csv_trajectories(path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    with text_file(path) as file:
        reader = csv.reader(file)
        try:
            header = [name.strip() for name in next(reader, [])]
            return _table_trajectories(path, header, ((reader.line_num, cells) for cells in reader))
        except (csv.Error, UnpackError) as error:
            raise LogError(path, f"line {reader.line_num}: {error}") from error


def _table_trajectories(
    path: Path, header: Sequence[str], rows: Iterable[tuple[int, Sequence[str]]]
) -> list[tuple[str, Mapping[str, Any]]]:
    """The trajectories in a table of words; each row with its number."""
    where, others = _columns(path, header)
    by_episode: dict[str, list[tuple[int, Row, list[str]]]] = {}
    for line, cells in rows:
        if not any(cells):
            continue
        if len(cells) != len(header):
            raise _wrong(path, line, "", f"{len(cells)} values, the header has {len(header)}")
        row = _row(path, line, where, cells)
        by_episode.setdefault(str(row["episode"]), []).append((line, row, [cells[i] for i in others.values()]))
    if not by_episode:
        raise LogError(path, "no rows")
    return [
        (f"episode {name}: " if name else "", _trajectory(path, rows, tuple(others)))
        for name, rows in by_episode.items()
    ]


def _columns(path: Path, header: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Where each of our columns is, and where those are that we do not know."""
    where: dict[str, int] = {}
    for name, (aliases, _, _) in CSV_COLUMNS.items():
        found = next((word for word in (name, *aliases) if word in header), None)
        if found is not None:
            where[name] = header.index(found)
        elif name in REQUIRED:
            raise LogError(path, f"line 1: no column {name} (or {', '.join(aliases)})")
    return where, {name: i for i, name in enumerate(header) if i not in where.values()}


def _row(path: Path, line: int, where: Mapping[str, int], cells: Sequence[str]) -> Row:
    row: Row = {"episode": ""}
    for name, at in where.items():
        cell, (_, low, high) = cells[at].strip(), CSV_COLUMNS[name]
        if not cell and name in REQUIRED:
            raise _wrong(path, line, name, "missing")
        if math.isnan(low) or not cell:
            row[name] = cell if math.isnan(low) else None
            continue
        try:
            value = {"true": 1.0, "false": 0.0}.get(cell.lower()) if name == "waypoint_reached" else None
            row[name] = float(cell) if value is None else value
        except ValueError:
            raise _wrong(path, line, name, f"{cell!r:.40} is not a number") from None
        if math.isnan(row[name]) and name not in REQUIRED:
            row[name] = None
        elif not low <= row[name] <= high or math.isinf(row[name]):
            raise _wrong(path, line, name, f"{cell} is out of range, expected {low:g} to {high:g}")
    return row


def _trajectory(path: Path, rows: Sequence[tuple[int, Row, list[str]]], others: tuple[str, ...]) -> dict[str, Any]:
    times = sorted({row["timestamp"] for _, row, _ in rows})
    step_of = {t: k for k, t in enumerate(times)}
    positions: list[dict[str, tuple[float, float]]] = [{} for _ in times]
    actions: list[dict[str, tuple[float, float]]] = [{} for _ in times]
    rewards: list[dict[str, float]] = [{} for _ in times]
    agents: dict[str, dict[str, list[float | None]]] = {}
    waypoints: dict[str, dict[str, float]] = {}
    status: dict[str, dict[int, bool]] = {}
    for line, row, _ in rows:
        k, agent = step_of[row["timestamp"]], row["agent"]
        if agent in positions[k]:
            raise _wrong(path, line, "agent", f"{agent} has a row for time {row['timestamp']:g} already")
        positions[k][agent] = row["lat"], row["lon"]
        if row.get("heading_delta_deg") is not None or row.get("speed_delta_kt") is not None:
            actions[k][agent] = row.get("heading_delta_deg") or 0.0, row.get("speed_delta_kt") or 0.0
        if row.get("reward") is not None:
            rewards[k][agent] = row["reward"]
        for name, column in (("headings", "heading_deg"), ("speeds", "speed_kt"), ("altitudes", "alt_ft")):
            if row.get(column) is not None:
                agents.setdefault(agent, {}).setdefault(name, [None] * len(times))[k] = row[column]
        if row.get("waypoint_lat") is not None and row.get("waypoint_lon") is not None:
            waypoints[agent] = {"lat": row["waypoint_lat"], "lon": row["waypoint_lon"]}
        if row.get("waypoint_reached") is not None:
            status.setdefault(agent, {})[k] = row["waypoint_reached"] > 0.0
    meta = {name: {extra[i] for _, _, extra in rows} for i, name in enumerate(others)}
    return {
        "positions": positions,
        "actions": actions,
        "timestamps": times,
        "agents": agents,
        "waypoints": waypoints,
        "waypoint_status": status,
        "rewards": rewards,
        "scenario_metadata": {name: values.pop() for name, values in meta.items() if len(values) == 1},
    }


def _wrong(path: Path, line: int, column: str, problem: str) -> LogError:
    return LogError(path, f"line {line}: {column}: {problem}" if column else f"line {line}: {problem}")
