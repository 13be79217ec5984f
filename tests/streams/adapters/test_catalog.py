"""The catalogue of adapters: which reader a file gets, and what other packages may add."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from watchkeeper.config.installed import GuestError
from watchkeeper.daemon.cli import main
from watchkeeper.streams.adapters.catalog import discover, formats
from watchkeeper.streams.logs import source
from watchkeeper.streams.logs.base import LogError
from watchkeeper.streams.logs.source import open_log

from guest_package import install, look_again

# The table that chose readers before adapters declared their formats: name, endings, first bytes, bytes held. The order
# decides, so this list is what the declarations must agree with.
_JSON, _CSV = (".json", ".json.gz"), (".csv", ".csv.gz")
BEFORE: list[tuple[str, str, tuple[str, ...], bytes, tuple[bytes, ...]]] = [
    ("wklog", "LogReader", (".wklog",), b"WKLOG", ()),
    ("opensky csv", "open_dump", _CSV, b"", (b"icao24", b"lastposupdate")),
    ("csv", "CsvLog", _CSV, b"", ()),
    ("sbs", "open_sbs", (".sbs", ".sbs.gz", ".bst", ".bst.gz"), b"", ()),
    ("beast", "open_beast", (".beast", ".beast.gz", ".bin"), b"", (b"\x1a",)),
    ("avr", "open_avr", (".avr", ".avr.gz"), b"", ()),
    ("readsb", "open_aircraft_json", _JSON, b"", (b'"now"', b'"aircraft"')),
    ("readsb trace", "open_trace", _JSON, b"", (b'"icao"', b'"timestamp"', b'"trace"')),
    ("opensky", "open_states", _JSON, b"", (b'"time"', b'"states"')),
    ("parquet", "open_parquet", (".parquet",), b"PAR1", ()),
    ("tlog", "open_tlog", (".tlog", ".tlog.gz"), b"", ()),
    ("ulog", "open_ulog", (".ulg",), b"ULog\x01\x12\x35", ()),
    ("ros", "open_rosbag", (".bag",), b"#ROSBAG V2.0", ()),
    ("ros", "open_rosbag", (".mcap",), b"\x89MCAP0\r\n", ()),
    ("ros", "open_rosbag", (".db3",), b"", ()),
    ("can", "open_candump", (".log", ".log.gz"), b"", (b"(", b") ", b"#")),
    ("can", "open_can", (".asc", ".blf", ".trc"), b"", ()),
    ("dataflash", "open_dataflash", (), b"\xa3\x95\x80", ()),
    ("bluesky", "open_scenario", (".scn",), b"", ()),
    ("traffic", "TrafficJson", _JSON, b"", ()),
]
GUEST = """
from collections import Counter
from watchkeeper.streams.adapters.base import AdapterDeclaration, FeedLog
from watchkeeper.streams.adapters.receivers.sbs import Sbs
from watchkeeper.streams.logs.base import Format

def open_it(path):
    return FeedLog(path, "%(format)s", Sbs)

mine = AdapterDeclaration(
    name="%(name)s", help="a format of somebody else", docs="https://example.org/mine",
    formats=(Format("%(format)s", __name__ + ":open_it", %(suffixes)r, %(magic)r, %(holds)r),),
)
nothing = 3
"""
NEITHER = """
from watchkeeper.streams.adapters.base import AdapterDeclaration

mine = AdapterDeclaration(name="mine", help="reads nothing", docs="https://example.org/mine")
"""


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    yield
    look_again()


def reader_before(name: str, head: bytes) -> str | None:
    by_magic = [row for row in BEFORE if row[3] and head.startswith(row[3])]
    for _, reader, _, _, holds in by_magic or [row for row in BEFORE if name.endswith(row[2])]:
        if all(part in head for part in holds):
            return reader
    return None


def test_every_file_gets_the_reader_that_it_got_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(source, "resolve", lambda where: lambda _path: opened.append(where.partition(":")[2]))
    endings = sorted({suffix for row in BEFORE for suffix in row[2]} | {".txt", ".bin", ""})
    parts = sorted({row[3] for row in BEFORE} | {b"".join(row[4]) for row in BEFORE})
    # what one format holds, what two of them hold, and either behind the first bytes of a third
    heads = {a + b for a, b in itertools.product(parts, repeat=2)}
    for i, (ending, head) in enumerate(itertools.product(endings, sorted(heads))):
        path = tmp_path / f"{i}{ending}"
        path.write_bytes(head)
        try:
            open_log(path)
        except LogError:
            opened.append("")
        assert opened.pop() == (reader_before(path.name, head) or ""), (ending, head)
        path.unlink()
    assert len(endings) * len(heads) > 3000


def test_the_list_of_endings_names_every_format(tmp_path: Path) -> None:
    path = tmp_path / "x.unknown"
    path.write_bytes(b"?")
    with pytest.raises(LogError) as refused:
        open_log(path)
    for ending in {suffix for known in formats() for suffix in known.suffixes}:
        assert ending in str(refused.value)


def guest(name: str = "mine", format_: str = "mine", suffixes: tuple[str, ...] = (".mine",), magic: bytes = b"",
          holds: tuple[bytes, ...] = ()) -> str:  # fmt: skip
    return GUEST % {"name": name, "format": format_, "suffixes": suffixes, "magic": magic, "holds": holds}


def test_a_format_of_another_package_is_opened_by_its_ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "wk-mine", guest(), "watchkeeper.adapters", mine="mine")
    line = b"MSG,3,1,1,4CA7B3,1,2024/03/01,12:00:00.5,2024/03/01,12:00:00.5,,35000,,,50,-0.5,,,0,0,0,0\n"
    (tmp_path / "flight.mine").write_bytes(line)
    log = open_log(tmp_path / "flight.mine")
    assert [len(batch) for batch in log.batches()] == [1]
    assert log.info().format == "mine"
    assert list(discover())[-1] == "mine"


def test_a_format_that_looks_into_the_file_comes_before_one_that_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(
        tmp_path, monkeypatch, "wk-csv", guest(suffixes=(".csv",), holds=(b"glider",)), "watchkeeper.adapters", a="mine"
    )
    (tmp_path / "a.csv").write_text("glider,t,lat,lon\n")
    (tmp_path / "b.csv").write_text("id,t,lat,lon\n")
    assert [open_log(tmp_path / name).info().format for name in ("a.csv", "b.csv")] == ["mine", "csv"]


@pytest.mark.parametrize(
    ("number", "code", "attribute", "reason"),
    [
        (1, guest(suffixes=(".csv",)), "mine", "its files 'mine' would be read as 'csv'"),
        (2, guest(suffixes=(".sbs.gz",)), "mine", "would be read as 'sbs'"),
        (3, guest(magic=b"PAR1x"), "mine", "would be read as 'parquet'"),
        (4, guest(format_="csv"), "mine", "would be read as 'csv'"),
        (5, guest(name="sbs"), "mine", 'there is another adapter called "sbs"'),
        (6, guest(), "nothing", "expected an AdapterDeclaration, got a int"),
        (7, guest().replace("help=", "helps="), "mine", "TypeError"),
        (8, NEITHER, "mine", "neither a live source nor files"),
    ],
)
def test_a_package_that_cannot_be_used_stops_every_reading_and_is_named(
    number: int, code: str, attribute: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, f"wk-bad-{number}", code, "watchkeeper.adapters", bad=attribute)
    (tmp_path / "x.csv").write_text("id,t,lat,lon\n")
    with pytest.raises(GuestError) as refused:
        open_log(tmp_path / "x.csv")
    assert f"wk-bad-{number} 1.0: its entry point 'bad' of the group watchkeeper.adapters" in str(refused.value)
    assert reason in str(refused.value)


def test_every_command_says_in_one_line_which_package_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(tmp_path, monkeypatch, "wk-torn", "import no_such_thing", "watchkeeper.adapters", torn="mine")
    (tmp_path / "x.csv").write_text("id,t,lat,lon\n")
    for words in (["info", str(tmp_path / "x.csv")], ["adapters", "--help"], ["check-config"], ["run"]):
        assert main(words) == os.EX_CONFIG
        [line] = capsys.readouterr().err.splitlines()
        assert line.startswith("watchkeeper: wk-torn 1.0: its entry point 'torn'")
        assert "No module named 'no_such_thing'" in line
