"""Sets of episodes: the same after a file, known by their content, refused when that was changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.daemon.cli import main
from watchkeeper.evaluation.diagnosis.episodes import Snapshot, draw_set, fingerprint, read_set, write_set
from watchkeeper.evaluation.diagnosis.play import OURS, Task, play
from watchkeeper.evaluation.diagnosis.simulated.draw import draw_network
from watchkeeper.streams.logs.base import LogError

AGENTS = ["--agents", "watchkeeper,random", "--quiet", "--jobs", "1"]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(5, 120), st.booleans(), st.booleans())
def test_a_network_is_the_same_after_a_snapshot(seed: int, size: int, cycles: bool, at_root: bool) -> None:
    network = draw_network(np.random.default_rng(seed), size, cycles=cycles, at_root=at_root)
    snapshot = Snapshot.of(network, seed)
    back = msgspec.json.decode(msgspec.json.encode(snapshot), type=Snapshot)
    assert back == snapshot
    again = back.network()
    assert Snapshot.of(again, seed) == snapshot
    assert (again.fault, again.symptoms) == (network.fault, network.symptoms)
    for device in network.topology.kind:
        # in the same order, for answers draw their noise in it
        assert again.topology.neighbours(device) == network.topology.neighbours(device)
        assert again.way(device) == network.way(device)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.sampled_from(("set.json", "set.json.gz")))
def test_a_set_is_the_same_after_a_file(tmp_path_factory: Any, seed: int, count: int, name: str) -> None:
    path = tmp_path_factory.mktemp("sets") / name
    drawn = draw_set(seed, count, (4, 40), 0.5)
    write_set(path, drawn)
    first = path.read_bytes()
    assert read_set(path) == drawn
    write_set(path, read_set(path))
    assert path.read_bytes() == first
    assert [play(Task(OURS, e)).metrics.steps for e in read_set(path).episodes] == [
        play(Task(OURS, e)).metrics.steps for e in drawn.episodes
    ]


def test_fingerprints_tell_sets_apart() -> None:
    sets = [draw_set(1, 3, (4, 20), 0.5), draw_set(2, 3, (4, 20), 0.5), draw_set(1, 4, (4, 20), 0.5)]
    assert len({s.fingerprint for s in sets}) == 3
    assert draw_set(1, 3, (4, 20), 0.5).fingerprint == sets[0].fingerprint


def test_a_frozen_set_gives_the_same_bytes_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frozen, one, two = tmp_path / "set.json.gz", tmp_path / "1.json", tmp_path / "2.json"
    words = ["--episodes", "12", "--devices", "4", "40", "--seed", "3", "--freeze", str(frozen)]
    assert main(["evaluate", "diagnosis", *words]) == 0
    assert read_set(frozen).fingerprint in capsys.readouterr().out
    for out in (one, two):
        assert main(["evaluate", "diagnosis", "--set", str(frozen), *AGENTS, "--out", str(out)]) == 0
    assert one.read_bytes() == two.read_bytes()
    written = json.loads(one.read_bytes())
    assert written["settings"]["set"] == read_set(frozen).fingerprint
    # played straight from the seed it is the same too, but for the clock
    fresh = tmp_path / "3.json"
    words = ["--episodes", "12", "--devices", "4", "40", "--seed", "3", *AGENTS, "--out", str(fresh)]
    assert main(["evaluate", "diagnosis", *words]) == 0
    agents = json.loads(fresh.read_bytes())["agents"]
    assert {n: {**s, "avg_wall_time_seconds": None} for n, s in agents.items()} == written["agents"]


def changed(tmp_path: Path, key: str, value: Any, *, sign: bool = False) -> Path:
    """A set with another value in its first episode, with a fingerprint that fits if it is to be signed again."""
    path = tmp_path / "set.json"
    drawn = draw_set(5, 2, (6, 12), 1.0)
    first = msgspec.structs.replace(drawn.episodes[0], **{key: value})
    bad = msgspec.structs.replace(drawn, episodes=[first, drawn.episodes[1]])
    write_set(path, msgspec.structs.replace(bad, fingerprint=fingerprint(bad)) if sign else bad)
    return path


def test_a_set_that_was_changed_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = changed(tmp_path, "size", 0.123)
    assert main(["evaluate", "diagnosis", "--set", str(path)]) == 1
    said = capsys.readouterr().err
    assert f"{path}: the fingerprint does not match: the file says sha256:" in said
    assert "It was changed after it was written" in said


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("devices", [("gw-1", "gateway", "nobody")], "device 'gw-1': listed twice"),
        ("devices", [("gw-1", "kettle", "broker")], "of no known kind"),
        ("devices", [("x/y", "sensor", "broker")], "of no known kind"),
        ("devices", [], "standby link"),
        ("standby", [("broker", "gw-1")], "standby link broker~gw-1"),
        ("rtt_s", {}, "rtt_s and lost do not name the links"),
        ("device", "nobody", "not a fault that this device can have"),
        ("form", "rust", "not a fault that this device can have"),
        ("size", -1.0, "out of range"),
        ("symptoms", [], "symptoms: none"),
        ("symptoms", [("broker", "silence", 1.0)], "of a device that is no sensor"),
    ],
)
def test_a_set_that_describes_no_network_is_refused(tmp_path: Path, key: str, value: Any, problem: str) -> None:
    with pytest.raises(LogError, match=problem):
        read_set(changed(tmp_path, key, value, sign=True))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "not a JSON document"), (b"[]", "not a JSON document"), (b"{}", "missing required field"),
        (b"\x1f\x8b\x00", "cut off or damaged"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_set_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "set.json"
    path.write_bytes(content)
    with pytest.raises(LogError, match=problem):
        read_set(path)


def test_a_set_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    write_set(path, msgspec.structs.replace(draw_set(5, 1, (6, 12), 1.0), version=2))
    with pytest.raises(LogError, match="version 2, expected 'watchkeeper diagnosis episodes' version 1"):
        read_set(path)
