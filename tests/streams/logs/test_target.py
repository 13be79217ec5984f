"""A log that is written has the format that its name says, is whole or not there, and is the same in every table."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from watchkeeper.daemon.cli import main
from watchkeeper.streams.adapters.base import resolve
from watchkeeper.streams.adapters.catalog import targets
from watchkeeper.streams.adapters.exports import mcap, tracks
from watchkeeper.streams.adapters.tables import parquet_write
from watchkeeper.streams.batch import Batch, Columns
from watchkeeper.streams.check import checked
from watchkeeper.streams.logs.base import LogError, Target
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.logs.target import target_of, write_log
from watchkeeper.streams.logs.whole import whole
from watchkeeper.streams.logs.wklog import LogReader, LogWriter
from watchkeeper.streams.messages import FIELDS, GPS_POSITIONS, Kind

from plain_samples import converted, filled, log_rows, odd_log, rows_of, simulated

ENDINGS = [suffix for target in targets() for suffix in target.suffixes]
TABLES = (".csv", ".csv.gz", ".parquet")
REAL = ("flights/plane_search.csv.gz", "adsb/watsonville.csv.gz", "px4/pyulog_sample_log_small.ulg")
# The CSV reader takes blanks around a name away, as spreadsheets and people put them there.
names = st.text(min_size=1, max_size=64).filter(lambda text: text.isprintable() and text == text.strip())


@st.composite
def sound_batches(draw: st.DrawFn) -> Batch:
    """Any samples that pass the check, with names, gateways and callsigns of any printable characters."""
    ids = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    vias = draw(st.lists(names, max_size=2, unique=True))
    order = draw(st.lists(st.sampled_from([kind for kind in Kind if kind is not Kind.SIGNAL]), max_size=12))
    kinds = {}
    for kind in sorted(set(order)):
        seq = np.flatnonzero([k is kind for k in order])
        n = len(seq)
        needed = {f.name for f in FIELDS[kind] if f.required} | (set(GPS_POSITIONS[0]) if kind is Kind.GPS else set())
        data = np.empty((len(FIELDS[kind]), n))
        for c, field in enumerate(FIELDS[kind]):
            value = st.floats(field.lo, field.hi, width=64).filter(lambda x, f=field: not 0 < abs(x) < f.least)
            data[c] = draw(st.lists(value if field.name in needed else st.just(np.nan) | value, min_size=n, max_size=n))
        vid = np.array(draw(st.lists(st.integers(0, len(ids) - 1), min_size=n, max_size=n)), np.int32)
        via = np.array(draw(st.lists(st.integers(-1, len(vias) - 1), min_size=n, max_size=n)), np.int32)
        t = np.array(draw(st.lists(st.floats(0, 4e9), min_size=n, max_size=n)))
        kinds[kind] = Columns(seq, vid, via, t, data)
    callsigns = draw(st.dictionaries(st.sampled_from(ids), names))
    return checked(Batch(ids, kinds, vias, callsigns))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(parts=st.lists(sound_batches(), max_size=4), ending=st.sampled_from(TABLES))
def test_a_table_and_back_is_the_same_log(tmp_path: Path, parts: list[Batch], ending: str) -> None:
    log, table, back = tmp_path / "x.wklog", tmp_path / f"x{ending}", tmp_path / "back.wklog"
    with LogWriter(log) as writer:
        for part in parts:
            writer.write(part)
    write_log(table, lambda _: LogReader(log).batches())
    write_log(back, lambda _: open_log(table).batches())
    assert log_rows(back) == log_rows(log)


@pytest.mark.filterwarnings("ignore:The .float_precision. argument is deprecated")
def test_pandas_reads_the_same_values_from_both_tables(tmp_path: Path) -> None:
    for log in (simulated(tmp_path / "mixed.wklog"), odd_log(tmp_path / "odd.wklog")):
        expected = log_rows(log)
        from_csv = pd.read_csv(converted(log, tmp_path / "x.csv"), float_precision="round_trip")
        from_parquet = pd.read_parquet(converted(log, tmp_path / "x.parquet"))
        assert list(from_csv.columns) == list(from_parquet.columns)
        for frame in (from_csv, from_parquet):
            assert [filled(row) for row in frame.to_dict("records")] == expected


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("ending", TABLES)
def test_a_real_log_is_the_same_in_every_table(recordings: Path, tmp_path: Path, name: str, ending: str) -> None:
    log = converted(recordings / name, tmp_path / "x.wklog")
    first = next(iter(open_log(log).batches()))
    stop = str(float(np.median(np.concatenate([cols.t for cols in first.kinds.values()]))))
    table = converted(log, tmp_path / f"x{ending}", "--stop", stop)
    expected = rows_of(open_log(log).batches(stop=float(stop)))
    assert len(expected) > 100
    assert log_rows(table) == expected


def test_a_parquet_file_says_its_units_and_has_nulls(tmp_path: Path) -> None:
    from pyarrow import parquet  # noqa: PLC0415

    file = parquet.ParquetFile(converted(odd_log(tmp_path / "x.wklog"), tmp_path / "x.parquet"))
    assert file.schema_arrow.field("alt_ft").metadata[b"unit"] == b"ft"
    table = file.read()
    assert table.column("alt_ft").null_count == 10
    assert table.column("gs_kt").null_count == 0
    assert set(table.column("gs_kt").to_pylist()) == {0.0}


def test_an_ending_that_is_not_known_is_a_usage_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = simulated(tmp_path / "x.wklog", "crossing", vehicles=2, seconds=5)
    flight = simulated(tmp_path / "d.wklog", "drones", vehicles=1, seconds=5)
    out = str(tmp_path / "out.txt")
    for words in (
        ["convert", str(log), out],
        ["convert", str(log), str(tmp_path / "wklog")],
        ["convert", str(log), str(tmp_path / "out.csv"), "--to", "xlsx"],
        ["convert", str(log), str(tmp_path / "out.csv"), "--alarms", "alarms.jsonl"],
        ["convert", str(log), str(tmp_path / "out.kml"), "--points"],
        ["simulate", "crossing", "--out", out],
        ["inject", "gps_freeze", str(flight), out],
    ):
        capfd.readouterr()
        assert main(words) == 2, words
        said = capfd.readouterr().err
        assert "Traceback" not in said
        assert "kml" in said
    assert main(["record", str(tmp_path / "out.csv")]) == 2
    assert "known endings are .wklog\n" in capfd.readouterr().err
    assert sorted(path.name for path in tmp_path.glob("*out*")) == []


def test_every_command_that_writes_a_log_writes_what_the_name_says(tmp_path: Path) -> None:
    flight = simulated(tmp_path / "x.csv", "drones", vehicles=1, seconds=130)
    assert flight.read_text().startswith("t,id,kind,")
    assert main(["inject", "gps_freeze", str(flight), str(tmp_path / "y.parquet")]) == 0
    assert (tmp_path / "y.parquet").read_bytes().startswith(b"PAR1")
    assert len(log_rows(tmp_path / "y.parquet")) == len(log_rows(flight))
    named = converted(flight, tmp_path / "data.bin", "--to", "csv")
    assert named.read_bytes() == flight.read_bytes()


@pytest.mark.parametrize("ending", ENDINGS)
def test_after_an_error_the_old_file_is_there_and_nothing_else(tmp_path: Path, ending: str) -> None:
    log = odd_log(tmp_path / "log.wklog")
    out = tmp_path / "out" / f"x{ending}"
    out.parent.mkdir()

    def breaks_off(_what: str) -> object:
        yield from LogReader(log).batches()
        if _what == "writing":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_log(out, breaks_off)
    assert list(out.parent.iterdir()) == []
    out.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write_log(out, breaks_off)
    assert [path.read_text() for path in out.parent.iterdir()] == ["old"]
    write_log(out, lambda _: LogReader(log).batches())
    assert [path.name for path in out.parent.iterdir()] == [out.name]
    assert out.read_bytes() != b"old"


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_samples_give_the_same_bytes(tmp_path: Path, ending: str) -> None:
    log = odd_log(tmp_path / "log.wklog")
    first = converted(log, tmp_path / f"1{ending}").read_bytes()
    assert converted(log, tmp_path / f"2{ending}").read_bytes() == first


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_full_disk_is_said_with_the_name_that_was_asked_for(tmp_path: Path, ending: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    log = odd_log(tmp_path / "log.wklog")
    out = tmp_path / f"x{ending}"
    out.symlink_to("/dev/full")
    with pytest.raises(LogError, match=f"x{ending}: No space left"):
        write_log(out, lambda _: LogReader(log).batches())


def test_a_link_is_followed_and_rights_are_kept(tmp_path: Path) -> None:
    real = tmp_path / "real.csv"
    real.write_text("old")
    real.chmod(0o640)
    link = tmp_path / "link.csv"
    link.symlink_to(real)
    converted(odd_log(tmp_path / "x.wklog"), link)
    assert link.is_symlink()
    assert real.read_text().startswith("t,id")
    assert real.stat().st_mode & 0o777 == 0o640
    with pytest.raises(LogError, match="No such file"), whole(tmp_path / "nowhere" / "x.csv"):
        pass


@pytest.mark.parametrize("target", [t for t in targets() if t.needs], ids=lambda target: target.name)
def test_a_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], target: Target
) -> None:
    log = odd_log(tmp_path / "x.wklog")
    for module in target.needs:
        monkeypatch.setitem(sys.modules, module, None)
    out = tmp_path / f"y{target.suffixes[0]}"
    assert main(["convert", str(log), str(out)]) == 1
    assert f'pip install "watchkeeper[{target.name}]"' in capfd.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("target", targets(), ids=lambda target: target.name)
def test_every_target_has_a_writer_and_a_line_in_the_help(target: Target, capsys: pytest.CaptureFixture[str]) -> None:
    assert callable(resolve(target.writer))
    with pytest.raises(SystemExit):
        main(["convert", "--help"])
    assert f"  {target.name} (" in capsys.readouterr().out
    for suffix in target.suffixes:
        assert target_of(Path(f"X{suffix.upper()}")) is target


@pytest.mark.long
@pytest.mark.parametrize("ending", [target.suffixes[0] for target in targets()])
def test_memory_does_not_grow_with_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    """Eight times the samples, with limits that both logs exceed: what is held at once stays the same."""
    monkeypatch.setattr(parquet_write, "GROUP_ROWS", 2048)
    monkeypatch.setattr(mcap, "CHUNK_BYTES", 1 << 16)
    monkeypatch.setattr(tracks, "HELD_BYTES", 1 << 16)
    batch = next(iter(LogReader(simulated(tmp_path / "x.wklog", "random", vehicles=40, seconds=60)).batches()))
    peaks = []
    for times in (1, 4, 32):  # the first one imports and compiles
        tracemalloc.start()
        write_log(tmp_path / f"y{ending}", lambda _, n=times: (batch for _ in range(n)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    if ending in (".geojson", ".kml"):
        # one track is held at a time, with its text; all positions would be 32 bytes each and their text
        assert peaks[2] - peaks[1] < 28 * len(batch) * 32 / 2
    else:
        assert peaks[2] < 2.5 * peaks[1]
