"""What is not installed is said with what to install: for a file when it is opened, for a live source at the start."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from watchkeeper.config.adapters.bluesky import BlueSky
from watchkeeper.config.adapters.can import Can
from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.intake.sources import LiveSource
from watchkeeper.streams.adapters import catalog
from watchkeeper.streams.adapters.bluesky import adapter as bluesky
from watchkeeper.streams.logs.source import LogError, open_log


@pytest.mark.parametrize(
    ("name", "start", "module", "extra"),
    [
        ("flights.parquet", b"PAR1", "pyarrow", "parquet"),
        ("flight.bag", b"#ROSBAG V2.0\n", "rosbags.highlevel", "ros"),
        ("flight.mcap", b"\x89MCAP0\r\n", "rosbags.highlevel", "ros"),
        ("flight.bin", b"\xa3\x95\x80", "pymavlink.DFReader", "mavlink"),
        ("drive.asc", b"date", "can", "can"),
        ("drive.log", b"(1.0) can0 100#00\n", "cantools", "can"),
    ],
)
def test_a_file_says_what_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, start: bytes, module: str, extra: str
) -> None:
    (tmp_path / name).write_bytes(start)
    (tmp_path / "can.toml").write_text('dbc = "x.dbc"\nid = "x"\nsamples = []\n')
    monkeypatch.setitem(sys.modules, module, None)  # an import of it fails as if it were not there
    with pytest.raises(LogError) as refused:
        open_log(tmp_path / name)
    assert f"{name}: a" in str(refused.value)
    assert f'pip install "watchkeeper[{extra}]"' in str(refused.value)


def test_a_scenario_and_a_live_source_say_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.scn").write_text("00:00:00.00>CRE A A320 1 2 3 FL300 280\n")
    for module in (bluesky, catalog):
        monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(LogError, match=r"watchkeeper\[bluesky\]"):
        open_log(tmp_path / "x.scn")
    with pytest.raises(ModuleNotFoundError, match=r"watchkeeper\[bluesky\]"):
        LiveSource(BlueSky(url="bluesky:///"), DEFAULT, lambda *_: None)
    with pytest.raises(ModuleNotFoundError, match=r"python-can.*watchkeeper\[can\]"):
        LiveSource(Can(url="can://virtual/x"), DEFAULT, lambda *_: None)
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "cantools", None)
    with pytest.raises(ModuleNotFoundError, match=r"watchkeeper\[can\]"):
        LiveSource(Can(url="can://virtual/x"), DEFAULT, lambda *_: None)
