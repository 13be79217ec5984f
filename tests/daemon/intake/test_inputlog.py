"""The input log by itself: what was written comes back, in order; damage is found and counted; its size is bounded."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.daemon.intake import inputlog
from watchkeeper.daemon.intake.inputlog import ADVANCED, FED, PAUSED, Block, InputLog, Position, Step, pack_waiting
from watchkeeper.daemon.state.checked import Slots
from watchkeeper.daemon.state.folder import StateFolder
from watchkeeper.streams.batch import Batch, columns_of
from watchkeeper.streams.messages import Kind

START = Position()


def opened(path: Path, since: Position = START, max_bytes: int = 1 << 30) -> tuple[InputLog, list[Block]]:
    log = InputLog(path, max_bytes=max_bytes, fsync=False)
    return log, list(log.blocks(since))


def payloads(blocks: list[Block]) -> list[bytes]:
    return [payload for block in blocks for _, payload, _ in block.items]


def message(i: int) -> tuple[str, bytes, float]:
    return f"telemetry/gps/{i % 7}", f"payload {i}".encode() * 5, float(i)


def test_what_was_written_comes_back_in_order_over_several_runs(tmp_path: Path) -> None:
    written: list[bytes] = []
    for run in range(3):
        log, blocks = opened(tmp_path)
        assert payloads(blocks) == written
        assert log.end == Position(len(written), 5 * run)
        for i in range(5):
            items = [message(100 * run + 10 * i + k) for k in range(10)]
            written += [payload for _, payload, _ in items]
            log.append(items, [Step(len(written), FED)], 0.5 + run)
        log.close()
    _, blocks = opened(tmp_path)
    assert {block.wall_s for block in blocks} == {0.5, 1.5, 2.5}
    assert [step.after for block in blocks for step in block.steps] == list(range(10, 151, 10))


def test_batches_of_adapters_come_back_as_they_were(tmp_path: Path) -> None:
    log, _ = opened(tmp_path)
    columns = columns_of(
        Kind.GPS, np.array([0, 1, 0], np.int32), np.array([1.0, 2.0, 3.0]), {"gps_x": np.array([1.5, np.nan, 3.0])}
    )
    log.append([("", Batch(["a", "b"], {Kind.GPS: columns}, callsigns={"a": "ONE"}), 7.0)], [], 0.0)
    log.append([], [Step(1, ADVANCED, 12.5)], 0.0)
    _, [first, second] = opened(tmp_path)
    [(topic, batch, at)] = first.items
    assert (topic, at, batch.ids, batch.callsigns) == ("", 7.0, ["a", "b"], {"a": "ONE"})
    back = batch.kinds[Kind.GPS]
    assert back.data.flags.aligned
    np.testing.assert_array_equal(back.data, columns.data)
    np.testing.assert_array_equal(back.vid, columns.vid)
    assert second.steps == [Step(1, ADVANCED, 12.5)]


def test_a_name_that_cannot_be_written_costs_its_batch_and_nothing_else(tmp_path: Path) -> None:
    log, _ = opened(tmp_path)
    columns = columns_of(Kind.GPS, np.zeros(1, np.int32), np.zeros(1), {"gps_x": np.zeros(1)})
    log.append([message(1), ("", Batch(["\ud800"], {Kind.GPS: columns}), 1.0), message(2)], [], 0.0)
    log, blocks = opened(tmp_path)
    assert payloads(blocks) == [message(1)[1], b"", message(2)[1]]
    assert log.end.items == 3


def test_only_what_a_snapshot_does_not_contain_is_read_and_numbers_go_on_behind_a_lost_log(tmp_path: Path) -> None:
    log, _ = opened(tmp_path)
    for i in range(10):
        log.append([message(i)], [Step(i + 1, FED)], 0.0)
    _, blocks = opened(tmp_path, Position(7, 7))
    assert payloads(blocks) == [message(i)[1] for i in (7, 8, 9)]
    behind, blocks = opened(tmp_path, Position(50, 60))
    assert (blocks, behind.end, behind.missing) == ([], Position(50, 60), 0)


def test_what_a_lost_log_had_comes_from_the_snapshot_once(tmp_path: Path) -> None:
    items = [message(i) for i in range(20)]
    # five were judged and ten wait when the folder is deleted; of those that wait some were never written
    waiting = pack_waiting(Position(5, 3), items[5:15], 0.5, paused=True)
    log = InputLog(tmp_path, max_bytes=1 << 30, fsync=False)
    log.end = Position(12, 3)
    log.append(items[12:18], [Step(18, FED)], 0.5)
    log.append(items[18:], [], 0.5)
    log.close()
    log = InputLog(tmp_path, max_bytes=1 << 30, fsync=False)
    blocks = list(log.blocks(Position(5, 3), waiting))
    assert payloads(blocks) == [payload for _, payload, _ in items[5:]]
    assert [block.first_item for block in blocks] == [6, 16, 19]
    assert [step.what for block in blocks for step in block.steps] == [PAUSED, FED]
    assert (log.missing, log.end) == (0, Position(20, 4))
    assert pack_waiting(Position(5, 3), [], 0.5, paused=False) == b""


def test_segments_before_a_snapshot_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputlog, "SEGMENT_BYTES", 3000)
    log, _ = opened(tmp_path)
    for i in range(200):
        log.append([message(i)], [Step(i + 1, FED)], 0.0)
    before = len(list(tmp_path.iterdir()))
    assert before > 5
    log.trim(Position(100, 100))
    assert 1 < len(list(tmp_path.iterdir())) < before
    _, blocks = opened(tmp_path, Position(100, 100))
    assert payloads(blocks) == [message(i)[1] for i in range(100, 200)]
    # all of an earlier run goes when a snapshot has it, although this run has not written yet
    again, _ = opened(tmp_path)
    again.trim(again.end)
    assert list(tmp_path.iterdir()) == []


def test_a_full_log_gives_up_its_oldest_and_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputlog, "SEGMENT_BYTES", 3000)
    log, _ = opened(tmp_path, max_bytes=10_000)
    for i in range(500):
        log.append([message(i)], [], 0.0)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 10_000 + 3000
    assert log.overwritten > 0
    again, blocks = opened(tmp_path)
    kept = payloads(blocks)
    assert kept == [message(i)[1] for i in range(500 - len(kept), 500)]
    assert again.missing == 500 - len(kept) > 0


def test_a_write_that_fails_leaves_no_half_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, _ = opened(tmp_path)
    log.append([message(0)], [], 0.0)

    def half(file: int, data: bytes, at: int) -> None:
        os.pwrite(file, data[:50], at)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(inputlog, "_write", half)
    with pytest.raises(OSError, match="No space"):
        log.append([message(1)], [], 0.0)
    monkeypatch.undo()
    log.append([message(2)], [], 0.0)
    again, blocks = opened(tmp_path)
    assert payloads(blocks) == [message(0)[1], message(2)[1]]
    # the number of the one that was not written is missing, and that is known
    assert (again.missing, again.damaged, again.end.items) == (1, 0, 3)


def test_in_another_directory_numbers_go_on_above_those_of_its_own_log(tmp_path: Path) -> None:
    place, other = tmp_path / "state", tmp_path / "other"
    folder = StateFolder(place)
    log = InputLog(place, max_bytes=1 << 30, fsync=False, folder=folder)
    list(log.blocks(START))
    log.append([message(0)], [Step(1, FED)], 0.0)
    # a disk is mounted over it, on which an earlier run has left more than this one knows of
    other.mkdir()
    earlier, _ = opened(other)
    earlier.append([message(i) for i in range(50)], [], 0.0)
    earlier.close()
    place.rename(tmp_path / "hidden")
    other.rename(place)
    with pytest.raises(OSError, match="away"):
        log.append([message(1)], [], 0.0)
    assert folder.check() == ""
    with pytest.raises(OSError, match="away"):
        log.append([message(2)], [], 0.0)
    assert log.is_elsewhere
    shift = log.renumber()
    log.append([message(3)], [Step(log.end.items + 1, FED)], 0.0)
    again, blocks = opened(place)
    assert payloads(blocks) == [*(message(i)[1] for i in range(50)), message(3)[1]]
    assert (again.end, again.gaps, again.missing) == (log.end, 1, 0)
    assert again.notes() == ["what was heard while the directory was away is missing"]
    # the first snapshot of this run has nothing to do with the other log
    again, blocks = opened(place, Position(3 + shift, 1 + shift))
    assert (payloads(blocks), again.notes()) == ([message(3)[1]], [])
    log.trim(Position(3 + shift, 1 + shift))
    assert [path.name for path in place.glob("input*")] == ["input-00000002.log"]
    folder.release()


BLOCKS = 20


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    folder = tmp_path_factory.mktemp("log")
    log, _ = opened(folder)
    for i in range(BLOCKS):
        log.append([message(10 * i + k) for k in range(10)], [Step(10 * i + 10, FED)], 0.0)
    log.close()
    [path] = folder.iterdir()
    return path, path.read_bytes()


def test_every_flip_is_found_and_costs_one_block(whole: tuple[Path, bytes]) -> None:
    path, data = whole
    rng = random.Random(1)
    for _ in range(500):
        at = rng.randrange(len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :])
        log, blocks = opened(path.parent)
        assert (log.damaged, log.torn) == (1, 0), at
        # the header is known without the file's
        assert len(blocks) >= BLOCKS - 1, at
        assert log.missing == 10 * (BLOCKS - len(blocks)), at


def test_every_cut_leaves_what_was_whole(whole: tuple[Path, bytes]) -> None:
    path, data = whole
    everything = [message(i)[1] for i in range(10 * BLOCKS)]
    rng = random.Random(2)
    for _ in range(500):
        at = rng.randrange(len(data))
        path.write_bytes(data[:at])
        log, blocks = opened(path.parent)
        found = payloads(blocks)
        assert found == everything[: len(found)]
        # also when the cut is exactly between two blocks; how much it is the slots know, if they are left
        assert log.damaged >= 1, at
        if at >= Slots.BYTES:
            assert log.missing == len(everything) - len(found), at
        # the next run writes behind it, and is found whole
        log.append([message(7)], [], 0.0)
        log.close()
        _, blocks = opened(path.parent)
        assert payloads(blocks) == [*found, message(7)[1]]
        for fresh in set(path.parent.iterdir()) - {path}:
            fresh.unlink()


@settings(deadline=None, max_examples=30)
@given(st.lists(st.lists(st.tuples(st.text(min_size=1), st.binary(), st.floats(allow_nan=False)), max_size=5)))
def test_any_topic_and_payload_comes_back(
    tmp_path_factory: pytest.TempPathFactory, blocks: list[list[tuple[str, bytes, float]]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    log, _ = opened(folder)
    for items in blocks:
        log.append(items, [Step(log.end.items + len(items), FED)], 0.0)
    _, found = opened(folder)
    assert [item for block in found for item in block.items] == [item for items in blocks for item in items]
