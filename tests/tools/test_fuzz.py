"""A small fixed part of `make fuzz`: every target takes a few damaged inputs well, and planted bugs are found."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tools.fuzz import corpus, planted, readers, run
from tools.fuzz.mutate import mutated
from tools.fuzz.run import draw_of
from tools.fuzz.targets import EVERY
from watchkeeper.streams.adapters.base import resolve
from watchkeeper.streams.adapters.catalog import BUILT_IN
from watchkeeper.streams.logs.base import LogError
from watchkeeper.streams.logs.source import format_of

CASES = 6


@pytest.mark.parametrize("name", EVERY)
def test_damaged_input_is_read_or_refused_in_words(name: str) -> None:
    case = EVERY[name]()
    for number in range(CASES):
        assert case(draw_of(name, 1, number)) in ("read", "part", "refused")


def test_whole_files_of_the_corpus_are_read(tmp_path: Path) -> None:
    for name in corpus.LOGS:
        files = corpus.LOGS[name]()
        for beside, data in files.beside.items():
            (tmp_path / beside).write_bytes(data)
        for seed in files.seeds:
            (tmp_path / files.name).write_bytes(files.seal(seed))
            assert readers.read_log(tmp_path / (files.opens or files.name)) in ("read", "part"), name


def test_every_format_of_our_own_adapters_has_a_corpus(tmp_path: Path) -> None:
    """A format that nobody damages is one whose reader nobody has tried."""
    told = set()
    for number, make in enumerate(corpus.LOGS.values()):
        files, folder = make(), tmp_path / str(number)
        folder.mkdir()
        for beside, data in {**files.beside, files.name: files.seal(files.seeds[0])}.items():
            (folder / beside).write_bytes(data)
        told.add(format_of(folder / (files.opens or files.name)))
    ours = [resolve(where) for where in BUILT_IN]
    missing = {known.name for adapter in ours for known in adapter.formats if known not in told}
    assert missing == set(corpus.ELSEWHERE), "add a corpus to tools/fuzz/corpus.py"
    assert set(corpus.ELSEWHERE.values()) <= set(EVERY)


def test_every_feed_of_our_own_adapters_is_fuzzed() -> None:
    ours = [resolve(where) for where in BUILT_IN]
    assert {f"feed {adapter.name}" for adapter in ours if adapter.feed} <= set(EVERY)


# What campaigns found: a format without a length that is read for ever, a header that names a column twice.
FOUND = [("log dataflash", 18013), ("log opensky csv", 2626)]


@pytest.mark.parametrize(("name", "number"), FOUND)
def test_what_was_found_stays_fixed(name: str, number: int) -> None:
    assert EVERY[name]()(draw_of(name, 1, number)) in ("part", "refused")


def test_the_same_case_is_the_same_bytes() -> None:
    seeds = [corpus.table()]
    assert [mutated(draw_of("x", 1, k), seeds) for k in range(50)] == [
        mutated(draw_of("x", 1, k), seeds) for k in range(50)
    ]
    assert len({mutated(draw_of("x", 1, k), seeds) for k in range(50)}) > 40


def test_planted_bugs_are_found() -> None:
    found = run.run_target("raises", planted.raises, 1, range(20))
    assert 0 < len(found.failures) < 20
    assert "IndexError" in found.failures[0][1]
    again = run.run_target("raises", planted.raises, 1, range(found.failures[0][0], found.failures[0][0] + 1))
    assert again.failures == found.failures[:1]


@pytest.mark.long
def test_time_and_memory_are_bounded() -> None:
    began_s = time.monotonic()
    found = run.run_target("loops", planted.loops, 1, range(2), most_failures=1)
    assert "processor time" in found.failures[0][1]
    assert time.monotonic() - began_s < 60.0
    assert "MemoryError" in run.run_target("hoards", planted.hoards, 1, range(1)).failures[0][1]


def test_a_claim_of_a_few_bytes_takes_no_time(tmp_path: Path) -> None:
    """PX4: 33 kB whose formats claim a billion fields."""
    whole = corpus.LOGS["ulog"]().seeds[0]
    nested = b"".join(_format(f"f{k}:uint64_t timestamp;" + f"f{k + 1}[60000] x;" * 8) for k in range(6)) + _format(
        "f6:uint8_t[65535] x;" * 1
    )
    at = whole.index(b"sensor_combined:") - 3
    hostile = whole[:at] + nested + whole[at:].replace(b"float[3] gyro_rad", b"f0[60000] gyro_rad")
    (tmp_path / "x.ulg").write_bytes(hostile)
    began_s = time.process_time()
    with pytest.raises(LogError, match=r"x\.ulg"):
        readers.read_log(tmp_path / "x.ulg")
    assert time.process_time() - began_s < 5.0


def _format(text: str) -> bytes:
    return len(text).to_bytes(2, "little") + b"F" + text.encode()
