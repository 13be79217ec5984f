"""Packed and large files: what is whole is read, the rest is an error with its place, and memory stays bounded."""

from __future__ import annotations

import gzip
import io
import tracemalloc
from pathlib import Path

import pytest

from watchkeeper.streams.adapters import base
from watchkeeper.streams.foreign import files
from watchkeeper.streams.foreign.files import UnpackError, read_document, read_json, read_msgpack, unpacked
from watchkeeper.streams.logs.base import LogError
from watchkeeper.streams.logs.source import open_log

HEAD = b"t,id,lat,lon,alt_ft\n"
ROWS = b"".join(b"%d,a,50,8,30000\n" % t for t in range(3000))


def content(data: bytes) -> tuple[bytes, str]:
    """What can be read of a file, and what was said at the end."""
    file, whole = unpacked(io.BytesIO(data)), b""
    try:
        while piece := file.read(1000):
            whole += piece
    except UnpackError as error:
        return whole, str(error)
    return whole, ""


def test_files_behind_each_other_and_filled_up_with_zeros_are_one() -> None:
    packed = gzip.compress(HEAD) + gzip.compress(ROWS) + bytes(700)
    assert content(packed) == (HEAD + ROWS, "")
    assert content(HEAD + ROWS) == (HEAD + ROWS, "")


def test_of_a_cut_file_everything_before_the_cut_is_read() -> None:
    packed = gzip.compress(ROWS)
    whole, said = content(packed[: len(packed) // 2])
    assert ROWS.startswith(whole)
    assert len(whole) > len(ROWS) // 3
    assert "cut off at byte" in said
    damaged = bytearray(packed)
    damaged[-6] ^= 1
    whole, said = content(bytes(damaged))
    assert "damaged" in said


def test_a_small_file_that_grows_beyond_measure_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "UNPACK_FREE_BYTES", 1 << 20)
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(HEAD + ROWS + bytes(30 << 20)))
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b"[" + b" " * (30 << 20) + b"]"))
    tracemalloc.start()
    log = open_log(tmp_path / "bomb.csv.gz")
    assert sum(map(len, log.batches())) == 3000
    assert any("more than 100 times its size" in problem for problem in log.info().problems)
    with pytest.raises(LogError, match="more than 100 times its size"):
        open_log(tmp_path / "bomb.json.gz")
    assert tracemalloc.get_traced_memory()[1] < 40 << 20
    tracemalloc.stop()


def test_documents_that_would_not_fit_into_memory_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "DOCUMENT_MEMORY_BYTES", 1 << 20)
    (tmp_path / "a.json").write_bytes(b"[" + b"{}," * 50_000 + b"{}]")
    with pytest.raises(LogError, match=r"a.json: some 0.0 GB in memory"):
        read_json(tmp_path / "a.json")
    (tmp_path / "a.msgpack").write_bytes(b"\xdd" + (50_000).to_bytes(4, "big") + b"\x90" * 50_000)
    with pytest.raises(LogError, match="in memory"):
        read_msgpack(tmp_path / "a.msgpack")
    with pytest.raises(LogError, match="more than 0 MB"):
        read_document(tmp_path / "a.json", limit=1000)


def test_a_wide_table_of_empty_lines_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_bytes(HEAD.strip() + b",x" * 900 + b"\n" + b"\n" * 200_000)
    tracemalloc.start()
    assert sum(map(len, open_log(path).batches())) == 0
    assert tracemalloc.get_traced_memory()[1] < 150 << 20
    tracemalloc.stop()
    path.write_bytes(HEAD.strip() + b",x" * 100_000 + b"\n")
    with pytest.raises(LogError, match="line 1: 100,005 columns, at most 1,000"):
        open_log(path)


def test_a_file_that_is_something_else_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "GIVE_UP_AFTER", 1000)
    path = tmp_path / "x.sbs"
    path.write_bytes(b"nonsense\n" * 1_000_000)
    log = open_log(path)
    with pytest.raises(LogError, match="no sample in it; hardly anything in it is a message: not read further than"):
        list(log.batches())
    assert log.info().bad_rows < 20_000


def test_zeros_in_a_recording_of_mavlink_are_skipped_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.tlog"
    path.write_bytes(bytes(5 << 20))
    with pytest.raises(LogError, match="no sample in it"):
        list(open_log(path).batches())
