"""The state directory: one owner, nobody else may write, and it comes back by itself when it was away."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from watchkeeper.daemon.state.folder import StateError, StateFolder, StateRefusedError

NOBODY = 65534


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateFolder]:
    folder = StateFolder(tmp_path / "state")
    yield folder
    folder.release()


def test_one_owner_at_a_time(state: StateFolder) -> None:
    with pytest.raises(StateError, match=r"state directory .*in use by another daemon \(pid \d+\)"):
        StateFolder(state.path)
    state.release()
    StateFolder(state.path).release()


def test_it_is_made_for_our_user_alone(state: StateFolder) -> None:
    assert state.path.stat().st_mode & 0o777 == 0o700
    assert (state.path / "lock").stat().st_mode & 0o777 == 0o600
    assert (state.trouble, state.warnings()) == ("", [])


def test_a_path_that_is_no_directory_is_a_mistake_in_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "state"):
        with pytest.raises(StateRefusedError, match=r"state directory .*file is not a directory"):
            StateFolder(path)


def test_a_directory_that_others_may_write_to_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.mkdir()
    path.chmod(0o777)
    with pytest.raises(StateRefusedError, match=f"everybody: chmod 700 {path}"):
        StateFolder(path)
    # others may make files there, but not touch ours
    path.chmod(0o1777)
    StateFolder(path).release()
    path.chmod(0o770)
    StateFolder(path).release()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_group_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.mkdir()
    os.chown(path, 0, NOBODY)
    path.chmod(0o770)
    with pytest.raises(StateRefusedError, match="group 65534, which is not ours: chmod 700"):
        StateFolder(path)


def test_a_directory_that_becomes_writable_for_others_is_a_warning(state: StateFolder) -> None:
    state.path.chmod(0o777)
    assert state.check() == ""
    assert state.warnings() == [f"may be written by others: can be written by everybody: chmod 700 {state.path}"]
    state.path.chmod(0o700)
    state.check()
    assert state.warnings() == []


@pytest.mark.parametrize("how", ["deleted", "moved", "lock deleted"])
def test_a_directory_that_vanishes_is_made_again_locked_again_and_written_again(state: StateFolder, how: str) -> None:
    written: list[int] = []
    state.on_return.append(lambda: written.append(state.returns))
    if how == "deleted":
        shutil.rmtree(state.path)
    elif how == "moved":
        state.path.rename(state.path.with_name("elsewhere"))
    else:
        (state.path / "lock").unlink()
    assert state.check() == ""
    assert written == [1]
    with pytest.raises(StateError, match="in use"):
        StateFolder(state.path)
    state.check()
    assert written == [1]


def test_a_directory_that_another_daemon_took_meanwhile_is_left_to_it(state: StateFolder) -> None:
    state.path.rename(state.path.with_name("elsewhere"))
    other = StateFolder(state.path)
    assert "in use by another daemon" in state.check()
    other.release()
    assert state.check() == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_without_permission_it_starts_in_trouble_and_recovers(tmp_path: Path) -> None:
    os.seteuid(NOBODY)
    try:
        state = StateFolder(tmp_path / "state")
        assert state.trouble.endswith("Permission denied")
        assert state.check() == state.trouble
    finally:
        os.seteuid(0)
    assert state.check() == ""
    assert state.returns == 1
    # and while it runs
    os.seteuid(NOBODY)
    try:
        assert state.check().endswith("Permission denied")
    finally:
        os.seteuid(0)
    assert state.check() == ""
    assert state.returns == 1
    state.release()


def test_a_fault_is_said_until_it_is_mended(state: StateFolder) -> None:
    state.fault("snapshot not saved", "No space left on device")
    assert state.warnings() == ["snapshot not saved: No space left on device"]
    state.fault("snapshot not saved", "")
    assert state.warnings() == []
