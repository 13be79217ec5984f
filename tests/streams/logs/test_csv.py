"""CSV logs: columns become samples, bad rows are counted and named, and nothing stops the reading."""

import csv
import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from watchkeeper.streams.batch import Batch
from watchkeeper.streams.foreign.library import Fenced
from watchkeeper.streams.logs import csv as csvlog
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.logs.csv import CsvLog
from watchkeeper.streams.logs.csv_scan import Table
from watchkeeper.streams.logs.source import LogError, open_log
from watchkeeper.streams.messages import COLUMN, Drop, Kind

from where import CUTS


def log_of(tmp_path: Path, text: str, name: str = "x.csv") -> CsvLog:
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    fenced = open_log(path)
    assert isinstance(fenced, Fenced)
    log = fenced.source
    assert isinstance(log, CsvLog)
    return log


def read(log: CsvLog, **options: float) -> Batch:
    return join(list(log.batches(**options)))  # type: ignore[arg-type]


def column(batch: Batch, kind: Kind, name: str) -> list[float | None]:
    values = batch.kinds[kind].data[COLUMN[kind][name]]
    return [None if np.isnan(x) else x for x in values.tolist()]


def test_kind_column_and_empty_cells(tmp_path: Path) -> None:
    rows = "kind,id,t,gps_x,gps_y,imu_ax,imu_ay,imu_az,imu_wx,imu_wy,imu_wz,yaw\n"
    rows += "gps,q1,0.5,1,2,,,,,,,\nimu,q1,0.6,,,1,2,-9.8,0,0,0,\nIMU , q2 ,0.7,,,1,2,-9.8,0,0,0,1.5\n"
    for name in ("x.csv", "x.csv.gz"):
        log = log_of(tmp_path, rows, name)
        batch = read(log)
        assert column(batch, Kind.GPS, "gps_x") == [1.0]
        assert column(batch, Kind.GPS, "gps_z") == [None]
        assert column(batch, Kind.IMU, "yaw") == [None, 1.5]
        assert [batch.ids[v] for v in batch.kinds[Kind.IMU].vid] == ["q1", "q2"]
        assert batch.kinds[Kind.IMU].seq.tolist() == [1, 2]
        assert log.info().problems == ()


@pytest.mark.parametrize(
    ("header", "row", "kinds"),
    [
        ("id,t,lat,lon,alt_ft", "a,1,50,8,30000", [Kind.ADSB]),
        ("id,t,lat,lon", "a,1,50,8", [Kind.ADSB]),
        ("id,t,lat,lon,alt_m", "a,1,50,8,300", [Kind.GPS]),
        ("id,t,lat,lon,reached", "a,1,50,8,1", [Kind.ROUTE]),
        ("id,t,heading_delta_deg,speed_delta_kt", "a,1,5,0", [Kind.ACTION]),
        (
            "id,t,gps_x,gps_y,imu_ax,imu_ay,imu_az,imu_wx,imu_wy,imu_wz",
            "a,1,1,2,0,0,-9.8,0,0,0",
            [Kind.GPS, Kind.IMU],
        ),
        ("id,t,gps_x,gps_y,imu_ax,imu_ay,imu_az,imu_wx,imu_wy,imu_wz", "a,1,,,0,0,-9.8,0,0,0", [Kind.IMU]),
    ],
)
def test_without_a_kind_column_the_fields_tell(tmp_path: Path, header: str, row: str, kinds: list[Kind]) -> None:
    batch = read(log_of(tmp_path, f"{header}\n{row}\n"))
    assert list(batch.kinds) == kinds
    assert sorted(seq for cols in batch.kinds.values() for seq in cols.seq.tolist()) == list(range(len(kinds)))


def test_text_columns_flags_and_quotes(tmp_path: Path) -> None:
    rows = "id,t,lat,lon,alt_ft,on_ground,callsign,via\n"
    rows += 'a,1,50,8,,true,"DLH 1",gw\nb,2,50,8,,False,,\n"c, d",3,50,8,,0,X,gw2\n'
    batch = read(log_of(tmp_path, rows))
    assert column(batch, Kind.ADSB, "on_ground") == [1.0, 0.0, 0.0]
    assert batch.callsigns == {"a": "DLH 1", "c, d": "X"}
    assert [batch.vias[v] if v >= 0 else None for v in batch.kinds[Kind.ADSB].via] == ["gw", None, "gw2"]


def test_bad_rows_are_counted_by_reason_and_the_first_are_named_by_line(tmp_path: Path) -> None:
    rows = [
        "kind,id,t,lat,lon,alt_ft,colour",  # line 1
        "adsb,a,1,50,8,30000,red",
        "adsb,b,one,50,8,,",  # 3 time
        "adsb,c,1,91,8,,",  # 4 range
        "adsb,d,1,,8,,",  # 5 missing
        "adsb,,1,50,8,,",  # 6 id
        "ship,e,1,50,8,,",  # 7 kind
        "adsb,f,1,50",  # 8 short
        "",
        "adsb,g,1,50,8,high,",  # 10 type
        "adsb,h,,50,8,,",  # 11 no t
        "adsb,i,1,50,inf,,",  # 12 not finite
        "adsb,j,-5,50,8,,",  # 13 time
        "adsb,k,2,50,8,nan,",
    ]
    log = log_of(tmp_path, "\r\n".join(rows) + "\r\n")
    batch = read(log)
    assert [batch.ids[v] for v in batch.kinds[Kind.ADSB].vid] == ["a", "k"]
    assert log.bad == {
        Drop.TIME: 2, Drop.RANGE: 1, Drop.MISSING: 2, Drop.ID: 1, Drop.TYPE: 2, Drop.SYNTAX: 1, Drop.FINITE: 1
    }  # fmt: skip
    unknown, bad = log.info().problems
    assert "colour" in unknown
    assert log.info().bad_rows == 10
    assert "line 8 malformed (4 cells, the header has 7)" in bad
    assert "line 3 bad_time (t 'one')" in bad


def test_reading_twice_counts_once(tmp_path: Path) -> None:
    log = log_of(tmp_path, "id,t,lat,lon\na,1,50,8\nb,2,99,8\n")
    assert len(read(log)) == len(read(log)) == 1
    assert log.bad.total() == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("id,lat,lon\n", "no column 't'; the header has: id, lat, lon"),
        ("t,lat,lon\n", "no column 'id'"),
        ("id,t,colour\n", "no column says what the rows are"),
    ],
)
def test_a_header_that_cannot_work_is_refused_with_the_file_name(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(LogError, match=rf"x\.csv: {problem}"):
        log_of(tmp_path, text)


def test_byte_order_mark_missing_last_newline_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"\xef\xbb\xbfid,t,lat,lon\na,1,50,8\n\xff\xfe,2,50,8\nc,3,5\x000,8\nd,4,50,8")
    log = CsvLog(path)
    batch = read(log)
    names = [batch.ids[v] for v in batch.kinds[Kind.ADSB].vid]
    assert names[0] == "a"
    assert names[-1] == "d"
    assert log.bad[Drop.TYPE] == 1


def test_a_cut_off_gz_gives_what_is_whole_and_says_so(tmp_path: Path) -> None:
    rows = "id,t,lat,lon\n" + "".join(f"a{i % 7},{i},{50 + (i * 7919 % 1000) / 1e4},8\n" for i in range(300_000))
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(rows.encode())[:-1000])
    log = CsvLog(path)
    assert 0 < len(read(log)) < 300_000
    assert log.info().truncated_at is not None
    assert "cut off or damaged" in log.info().problems[-1]


@settings(max_examples=300)
@given(st.one_of(st.floats(allow_nan=False), st.decimals(allow_nan=False, allow_infinity=False, places=6)))
def test_every_number_is_read_exactly_as_python_reads_it(number: float) -> None:
    for text in (repr(float(number)), str(number), f" {number} "):
        values, odd = Table(text.encode() + b",\n", b",", 2, 1).numbers(0, np.arange(1))
        if not len(odd):
            assert values[0].hex() == float(text).hex()


@pytest.mark.parametrize("text", ["", "-", ".", "1e", "1.2.3", "1-2", "e5", "--1", "0x10", "1 2", "+", "1_0"])
def test_what_is_not_plainly_a_number_is_not_read_as_one(text: str) -> None:
    values, odd = Table(text.encode() + b",\n", b",", 2, 1).numbers(0, np.arange(1))
    assert np.isnan(values[0])
    assert len(odd) == (text != "")


cell = st.text(st.sampled_from('ab ,"\n1.'), max_size=4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(cell, st.integers(0, 99)), max_size=12))
@example(rows=[("1  1", 0), ("a  ,", 1)])
def test_quoted_names_come_out_as_the_csv_module_says(tmp_path: Path, rows: list[tuple[str, int]]) -> None:
    path = tmp_path / "x.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("id", "t", "lat", "lon"), *((name, t, 50, 8) for name, t in rows)])
    batch = read(CsvLog(path))
    found = [(batch.ids[v], t) for cols in batch.kinds.values() for v, t in zip(cols.vid, cols.t, strict=True)]
    assert found == [(" ".join(name.splitlines()).strip(), t) for name, t in rows if name.strip()]


def test_chunks_and_block_borders_do_not_change_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f"v{i % 5},{i},{50 + i / 100},8\n" for i in range(500))
    log = log_of(tmp_path, "id,t,lat,lon\n" + rows)
    whole = read(log)
    monkeypatch.setattr(csvlog, "BLOCK_BYTES", 37)
    small = read(log, chunk=3)
    assert small.kinds[Kind.ADSB].t.tolist() == whole.kinds[Kind.ADSB].t.tolist() == list(range(500))
    assert small.kinds[Kind.ADSB].data.tobytes() == whole.kinds[Kind.ADSB].data.tobytes()


def test_a_span_of_time(tmp_path: Path) -> None:
    log = log_of(tmp_path, "id,t,lat,lon\n" + "".join(f"a,{t},50,8\n" for t in range(10)))
    assert read(log, start=3, stop=6).kinds[Kind.ADSB].t.tolist() == [3, 4, 5]


def test_memory_does_not_grow_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csvlog, "BLOCK_BYTES", 1 << 16)

    def peak(rows: int) -> int:
        log = log_of(tmp_path, "id,t,lat,lon\n" + "".join(f"a{i % 9},{i},50,8\n" for i in range(rows)))
        tracemalloc.start()
        for _ in log.batches():
            pass
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(1000)
    assert peak(100_000) < 1.2 * peak(25_000)


def test_real_flights_are_read_to_the_last_row() -> None:
    files = sorted((CUTS / "flights").glob("*.csv.gz"))
    assert files
    for path in files:
        with gzip.open(path, "rt") as file:
            rows = sum(1 for _ in file) - 1
        log = CsvLog(path)
        batch = read(log)
        assert len(batch) + log.bad.total() == rows
        assert batch.ids == [path.name.split(".")[0]]
        assert set(batch.kinds) == {Kind.GPS, Kind.IMU}
