"""Several logs: a page each, an index, and no log that stops the others."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from watchkeeper.daemon.cli import main
from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.simulate import simulate


@pytest.fixture(scope="module")
def head_on(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "head-on.wklog"
    with LogWriter(path) as writer:
        for batch in simulate("head-on", seconds=120, seed=1).batches():
            writer.write(batch)
    return path


def test_a_broken_log_is_named_in_the_index_and_stops_nobody(
    head_on: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "a<b>.ulg"
    broken.write_bytes(b"ULog\x01\x12\x35 and then nothing")
    twin = tmp_path / "head-on.wklog"
    shutil.copy(head_on, twin)
    out = tmp_path / "reports"
    assert main(["report", str(broken), str(head_on), str(twin), "--out", str(out)]) == 1
    assert sorted(path.name for path in out.iterdir()) == ["head-on-2.html", "head-on.html", "index.html"]
    said = capsys.readouterr()
    assert "a<b>.ulg" in said.err
    index = (out / "index.html").read_text()
    assert "a&lt;b&gt;.ulg" in index
    assert "could not be read" in index
    assert "<b>.ulg" not in index
    assert re.findall(r'<a href="([^"#]+)"', index) == ["head-on.html", "head-on-2.html"]
    assert "1 log could not be read" in index


def test_one_log_goes_into_the_file_that_is_named(head_on: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "page.html"
    assert main(["report", str(head_on), "--out", str(out)]) == 0
    assert [path.name for path in out.parent.iterdir()] == ["page.html"]
    assert "head-on.wklog" in out.read_text()


def test_the_same_log_gives_the_same_bytes(head_on: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert main(["report", str(head_on), "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / "one" / "head-on.html").read_bytes() == (tmp_path / "two" / "head-on.html").read_bytes()


def test_several_logs_do_not_go_into_one_file(head_on: Path, tmp_path: Path) -> None:
    assert main(["report", str(head_on), str(head_on), "--out", str(tmp_path / "page.html")]) == 2


def test_a_log_that_is_not_there_is_an_error_of_its_own(tmp_path: Path) -> None:
    assert main(["report", str(tmp_path / "gone.csv"), "--out", str(tmp_path / "x.html")]) == 1
    assert not (tmp_path / "x.html").exists()
