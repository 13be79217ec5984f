"""Checked files: whatever one flip or one cut does to them, it is noticed, and what is whole is still read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.daemon.state import checked
from watchkeeper.daemon.state.checked import (
    MARK,
    Damage,
    Good,
    Slots,
    read_chain,
    read_records,
    replace_file,
    same_file,
    seal,
    seal_in_chain,
    seal_record,
    unseal,
)


def chain(numbers: Iterable[int]) -> bytes:
    lines, prev = b"", 0
    for seq in numbers:
        lines += seal_in_chain(b'{"id":"%d","words":"t\xc3\xa4glich"}' % seq, seq, prev)
        prev = seq
    return lines


def read_lines(data: bytes) -> list[Good | Damage]:
    return list(read_chain(BytesIO(data)))


def records(numbers: Iterable[int]) -> bytes:
    # a payload with the mark in it is not taken for a record
    return b"".join(seal_record(b"%d " % seq + MARK * 3, seq) for seq in numbers)


def good(found: Iterable[Good | Damage]) -> list[Good]:
    return [one for one in found if isinstance(one, Good)]


def damage(found: Iterable[Good | Damage]) -> list[Damage]:
    return [one for one in found if isinstance(one, Damage)]


FORMS: list[tuple[bytes, Callable[[bytes], Iterable[Good | Damage]]]] = [
    (chain([3, 7, 8, 9, 12]), read_lines),
    (records(range(5, 10)), read_records),
]


@pytest.mark.parametrize(("whole", "read"), FORMS, ids=["lines", "records"])
def test_every_single_flip_is_noticed_and_costs_two_neighbours_at_most(
    whole: bytes, read: Callable[[bytes], Iterable[Good | Damage]]
) -> None:
    before = good(read(whole))
    assert len(before) == 5
    assert not damage(read(whole))
    bodies = {one.seq: one.body for one in before}
    for i in range(len(whole)):
        for bit in range(8):
            found = list(read(whole[:i] + bytes([whole[i] ^ 1 << bit]) + whole[i + 1 :]))
            assert damage(found), (i, bit)
            assert len(good(found)) >= 3
            assert all(bodies[one.seq] == one.body for one in good(found))


@pytest.mark.parametrize(("whole", "read"), FORMS, ids=["lines", "records"])
def test_every_cut_leaves_what_is_whole_and_says_that_the_end_is_torn(
    whole: bytes, read: Callable[[bytes], Iterable[Good | Damage]]
) -> None:
    before = good(read(whole))
    boundaries = {0, *(one.end for one in before)}
    for cut in range(len(whole) + 1):
        found = list(read(whole[:cut]))
        # a line may lack its newline only
        assert [one.seq for one in good(found)] in (
            [one.seq for one in before if one.end <= cut],
            [one.seq for one in before if one.end <= cut + 1],
        )
        assert bool(damage(found)) == (cut not in boundaries)


@settings(deadline=None)
@given(lost=st.sets(st.integers(1, 9), max_size=8), size=st.just(9))
def test_missing_lines_are_noticed_with_the_numbers_between_which_they_were(lost: set[int], size: int) -> None:
    lines = BytesIO(chain(range(1, size + 1))).readlines()
    found = list(read_chain(line for i, line in enumerate(lines, 1) if i not in lost))
    missing = {n for one in damage(found) for n in range(one.after + 1, one.before + 1)}
    # at the end nothing tells; Slots are for that
    tail = set(range(max(set(range(size + 1)) - lost) + 1, size + 1))
    assert missing == lost - tail


def test_a_line_is_a_json_object_that_others_can_read() -> None:
    assert seal_in_chain(b'{"a":1}', 2, 1).startswith(b'{"a":1,"seq":2,"crc":"')
    assert seal_in_chain(b'{"a":1}', 9, 4).startswith(b'{"a":1,"seq":9,"prev":4,"crc":"')
    assert unseal(seal(b'{"a":1}')) == b'{"a":1}'
    assert unseal(b'{"a":1}\n') is None
    # other letters of the same number are not what was written
    upper = seal(b'{"a":4}')
    assert unseal(upper.upper()) is None


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    path = tmp_path / "numbers"
    path.write_bytes(Slots.fresh(sent=0))
    handle = os.open(path, os.O_RDWR)
    slots = Slots(handle)
    assert slots.read() == ({"turn": 2, "sent": 0}, False)
    for sent in (7, 8, 9):
        slots.write(sent=sent)
    os.close(handle)
    return path


def test_slots_survive_any_flip_with_the_newest_numbers_or_those_before(numbers: Path) -> None:
    whole = numbers.read_bytes()
    assert checked.read_slots(whole)[0]["sent"] == 9
    for i in range(len(whole)):
        found, damaged = checked.read_slots(whole[:i] + bytes([whole[i] ^ 0x20]) + whole[i + 1 :])
        assert damaged
        assert found["sent"] in (8, 9)
        found, damaged = checked.read_slots(whole[:i])
        assert damaged
        assert found.get("sent") in (8, None)


def test_a_file_is_replaced_whole_or_not_at_all_and_leaves_no_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, old = tmp_path / "file", tmp_path / "file.old"
    replace_file(path, [b"one"], keep=old)
    replace_file(path, [b"two", b"!"], keep=old)
    assert (path.read_bytes(), old.read_bytes()) == (b"two!", b"one")
    assert path.stat().st_mode & 0o777 == 0o600

    def full(_handle: int, _data: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, [b"three"], keep=old)
    assert (path.read_bytes(), old.read_bytes()) == (b"two!", b"one")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "file.old"]


def test_a_file_that_was_deleted_or_replaced_is_another_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    with path.open() as file:
        assert same_file(file.fileno(), path)
        path.rename(tmp_path / "moved")
        assert not same_file(file.fileno(), path)
        path.touch()
        assert not same_file(file.fileno(), path)
