"""`bench small`: a daemon on one core, with little memory, judges every sample of a small fleet."""

from __future__ import annotations

import pytest

from watchkeeper.benchmarks import small


@pytest.mark.long
def test_a_small_fleet_is_held(capfd):
    assert small.main(["--aircraft", "20", "--drones", "1", "--seconds", "10"]) == 0
    said = capfd.readouterr().out
    assert "first start" in said
    assert " 0 dropped" in said


def test_without_the_right_to_make_one_there_is_no_group(monkeypatch, tmp_path):
    monkeypatch.setattr(small, "GROUPS", ((tmp_path / "none", "limit", "peak"),))
    with small.group(512) as made:
        assert made is None


def test_a_group_is_removed_afterwards(monkeypatch, tmp_path):
    monkeypatch.setattr(small, "GROUPS", ((tmp_path, "limit", "limit"),))
    with small.group(512) as made:
        assert made is not None
        assert (made / "limit").read_text() == str(512 * 2**20)
        # what a real group has is no file that must be deleted first
        (made / "limit").unlink()
    assert list(tmp_path.iterdir()) == []
