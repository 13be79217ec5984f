"""Files that are no files, and files of nonsense: every command that reads one says so in one line, and ends."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from watchkeeper.daemon.cli import main
from watchkeeper.streams.adapters.catalog import formats
from watchkeeper.streams.foreign.files import open_file

LOGS = (["info"], ["convert"], ["replay"], ["evaluate", "alarms"])
OTHERS = (
    (["evaluate", "controllers"], "x.json"), (["evaluate", "controllers"], "x.csv"), (["evaluate", "tracks"], "x.csv"),
    (["evaluate", "tracks"], "x.geojson"), (["evaluate", "paired"], "x.json"), (["evaluate", "textfile"], "x.json"),
    (["evaluate", "leakage", "--data"], "x.csv"), (["evaluate", "leakage", "--splits"], "x.json"),
    (["evaluate", "protocol", "--splits"], "x.json"),
)  # fmt: skip
MORE = {"convert": ["out.wklog"], "tracks": ["x.csv"], "paired": ["y.json"], "textfile": ["--out", "out.prom"]}
SUFFIXES = sorted({suffix for known in formats() for suffix in known.suffixes})


@pytest.fixture(autouse=True)
def _in_a_folder_and_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    signal.alarm(20)
    yield
    signal.alarm(0)


def told(words: list[str], name: str, capfd: pytest.CaptureFixture[str]) -> str:
    """The one line that a command has to say."""
    code = main([*words, name, *MORE.get(words[-1], [])])
    said = capfd.readouterr().err.splitlines()
    assert (code, len(said)) == (1, 1), said
    assert said[0].startswith(f"watchkeeper: {name}: ")
    return said[0]


@pytest.mark.parametrize("words", LOGS, ids=" ".join)
@pytest.mark.parametrize("name", ["x.wklog", "x.csv", "x.ulg", "x.sbs"])
def test_a_pipe_is_no_log(words: list[str], name: str, capfd: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(name)
    assert "a pipe or a device" in told(words, name, capfd)


@pytest.mark.parametrize(("words", "name"), OTHERS, ids=lambda word: " ".join(word) if isinstance(word, list) else word)
def test_evaluations_take_no_pipe_either(words: list[str], name: str, capfd: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(name)
    assert "a pipe or a device" in told(words, name, capfd)


@pytest.mark.parametrize("name", [f"x{suffix}" for suffix in SUFFIXES if suffix != ".scn"])
def test_nonsense_and_empty_files_are_no_logs(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    for content in (b"", random.Random(1).randbytes(5000), b"hello, world\n" * 50, bytes(3000)):
        Path(name).write_bytes(content)
        for words in (["info"], ["convert"]):
            told(words, name, capfd)


def test_a_configuration_is_a_file(capfd: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("w.toml")
    assert main(["check-config", "w.toml"]) == os.EX_CONFIG
    assert "a pipe, not a file" in capfd.readouterr().out


def test_a_device_is_not_read() -> None:
    with pytest.raises(OSError, match="only files are read"):
        open_file(Path("/dev/zero"))
