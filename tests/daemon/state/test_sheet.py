"""A small file that is replaced as a whole: what it says outlives everything but its own damage, which is said."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from watchkeeper.daemon.state.folder import StateFolder
from watchkeeper.daemon.state.sheet import Sheet

NAME = "made.json"
LOST = "nobody knows any more"


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateFolder]:
    folder = StateFolder(tmp_path / "state")
    yield folder
    folder.release()


def sheet(folder: StateFolder | None) -> Sheet:
    return Sheet(folder, NAME, LOST)


def written(made: Sheet) -> None:
    asyncio.run(made.written())


def test_the_last_value_is_found_again(state: StateFolder) -> None:
    first = sheet(state)
    assert first.read(dict[str, int]) is None
    for n in range(5):
        first.put({"n": n})
    written(first)
    assert sheet(state).read(dict[str, int]) == {"n": 4}
    assert state.warnings() == []


def test_without_a_folder_nothing_is_kept_and_nothing_fails() -> None:
    made = sheet(None)
    made.put({"n": 1})
    written(made)
    assert made.read(dict[str, int]) is None


@pytest.mark.parametrize("how", ["cut", "flipped", "empty", "other"])
def test_damage_is_said_and_the_next_value_mends_it(state: StateFolder, how: str) -> None:
    made = sheet(state)
    made.put({"n": 1})
    written(made)
    path = state.path / NAME
    body = path.read_bytes()
    path.write_bytes({"cut": body[:-3], "flipped": body.replace(b"1", b"7"), "empty": b"", "other": b"{}\n"}[how])
    again = sheet(state)
    assert again.read(dict[str, int]) is None
    assert state.warnings() == [f"{NAME} is damaged: {LOST}"]
    assert again.spoilt
    again.put({"n": 2})
    written(again)
    assert sheet(state).read(dict[str, int]) == {"n": 2}


def test_no_flipped_bit_is_taken_for_another_value(state: StateFolder) -> None:
    made = sheet(state)
    made.put({"first": 1, "second": 2})
    written(made)
    path = state.path / NAME
    body = path.read_bytes()
    for bit in range(8 * len(body)):
        flipped = bytearray(body)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        assert sheet(state).read(dict[str, int]) is None, bit


def test_a_value_of_another_form_is_said(state: StateFolder) -> None:
    made = sheet(state)
    made.put({"n": "many"})
    written(made)
    assert sheet(state).read(dict[str, int]) is None
    assert state.warnings() == [f"{NAME} is damaged, or of another version: {LOST}"]


def test_what_the_disk_refuses_is_said_and_tried_again(state: StateFolder) -> None:
    # a folder in its place: no file can take the name
    (state.path / NAME).mkdir()
    made = sheet(state)
    made.put({"n": 1})
    written(made)
    assert state.warnings() == [f"{NAME} not written: Is a directory"]
    (state.path / NAME).rmdir()
    state.check()
    assert state.warnings() == []
    assert sheet(state).read(dict[str, int]) == {"n": 1}


def test_a_folder_that_was_deleted_has_it_again_though_nothing_changed(state: StateFolder) -> None:
    made = sheet(state)
    made.put({"n": 1})
    written(made)
    again = sheet(state)
    assert again.read(dict[str, int]) == {"n": 1}
    shutil.rmtree(state.path)
    state.check()
    assert sheet(state).read(dict[str, int]) == {"n": 1}
