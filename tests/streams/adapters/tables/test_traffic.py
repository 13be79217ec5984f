"""Recordings of the traffic library: both shapes give the same samples, by time; other JSON files are refused."""

import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from watchkeeper.daemon.cli import main
from watchkeeper.streams.adapters.tables.traffic import NAMED_ROWS, TrafficJson
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.foreign.library import Fenced
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.logs.source import LogError, open_log
from watchkeeper.streams.messages import COLUMN, Drop, Kind

from where import WHOLE_SAMPLES

T0 = 1633608773
# the library's column, ours, and what must happen to the value: nothing
SAME = {
    "latitude": "lat", "longitude": "lon", "altitude": "alt_ft", "groundspeed": "gs_kt", "track": "trk_deg",
    "vertical_rate": "vs_fpm", "selected_mcp": "sel_alt_ft", "onground": "on_ground",
}  # fmt: skip


def record(**changed: Any) -> dict[str, Any]:
    plain = {
        "timestamp": T0 * 1000, "icao24": "4ca7b3", "callsign": "EIN12", "latitude": 50.0, "longitude": 8.0,
        "altitude": 35000.0, "groundspeed": 450.0, "track": 90.0, "vertical_rate": -64.0, "onground": False,
    }  # fmt: skip
    return {**plain, **changed}


def log_of(tmp_path: Path, what: Any, name: str = "x.json") -> TrafficJson:
    text = what if isinstance(what, bytes) else json.dumps(what).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    fenced = open_log(tmp_path / name)
    assert isinstance(fenced, Fenced)
    log = fenced.source
    assert isinstance(log, TrafficJson)
    return log


def by_columns(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The shape that pandas writes by default."""
    return {name: {str(i): r.get(name) for i, r in enumerate(records)} for name in records[0]}


def read(log: TrafficJson, **options: float) -> Batch:
    return join(list(log.batches(**options)))  # type: ignore[arg-type]


def column(batch: Batch, name: str) -> list[float | None]:
    values = batch.kinds[Kind.ADSB].data[COLUMN[Kind.ADSB][name]]
    return [None if math.isnan(x) else x for x in values.tolist()]


@pytest.mark.parametrize("name", ["x.json", "x.json.gz"])
@pytest.mark.parametrize("shape", [list, by_columns])
def test_both_shapes_packed_or_not_give_the_same_samples(tmp_path: Path, shape: Any, name: str) -> None:
    records = [record(), record(timestamp=(T0 + 1) * 1000, altitude=None, onground=True, track=-47)]
    log = log_of(tmp_path, shape(records), name)
    batch = read(log)
    cols = batch.kinds[Kind.ADSB]
    assert [batch.ids[v] for v in cols.vid] == ["4ca7b3", "4ca7b3"]
    assert cols.t.tolist() == [T0, T0 + 1]
    assert column(batch, "lat") == [50.0, 50.0]
    assert column(batch, "lon") == [8.0, 8.0]
    assert column(batch, "alt_ft") == [35000.0, None]
    assert column(batch, "gs_kt") == [450.0, 450.0]
    assert column(batch, "trk_deg") == [90.0, 313.0]
    assert column(batch, "vs_fpm") == [-64.0, -64.0]
    assert column(batch, "on_ground") == [0.0, 1.0]
    assert column(batch, "nacp") == [None, None]
    assert batch.callsigns == {"4ca7b3": "EIN12"}
    assert log.info().problems == ()
    assert log.position == log.info().size_bytes


def test_columns_that_list_their_rows_in_another_order_are_put_together_by_row(tmp_path: Path) -> None:
    table = by_columns([record(latitude=1.0), record(timestamp=(T0 + 1) * 1000, latitude=2.0)])
    table["latitude"] = {"1": 2.0, "0": 1.0}
    table["altitude"] = {"1": 777.0}
    batch = read(log_of(tmp_path, table))
    assert column(batch, "lat") == [1.0, 2.0]
    assert column(batch, "alt_ft") == [None, 777.0]


@pytest.mark.parametrize(
    "stamp",
    [
        T0 * 1000, float(T0 * 1000), T0, T0 * 10**6, T0 * 10**9, "2021-10-07T12:12:53Z", "2021-10-07T12:12:53.000Z",
        "2021-10-07 12:12:53+00:00", "2021-10-07T12:12:53", "2021-10-07T14:12:53+02:00",
    ],
)  # fmt: skip
def test_time_is_a_number_since_1970_or_a_text(tmp_path: Path, stamp: Any) -> None:
    assert read(log_of(tmp_path, [record(timestamp=stamp)])).kinds[Kind.ADSB].t.tolist() == [T0]


def test_fractions_of_a_second_survive(tmp_path: Path) -> None:
    batch = read(log_of(tmp_path, [record(timestamp=T0 * 1000 + 125)]))
    assert batch.kinds[Kind.ADSB].t.tolist() == [T0 + 0.125]
    batch = read(log_of(tmp_path, [record(timestamp="2021-10-07T12:12:53.125Z")]))
    assert batch.kinds[Kind.ADSB].t.tolist() == [T0 + 0.125]


def test_accuracy_and_selected_altitude_are_read_where_they_are(tmp_path: Path) -> None:
    records = [
        record(NACp=9, NIC=8, selected_mcp=37008, selected_fms=38000),
        record(NACp=None, NIC=None, selected_mcp=None, selected_fms=38000),
    ]
    batch = read(log_of(tmp_path, records))
    assert column(batch, "nacp") == [9.0, None]
    assert column(batch, "nic") == [8.0, None]
    assert column(batch, "sel_alt_ft") == [37008.0, 38000.0]
    batch = read(log_of(tmp_path, [record(nacp=7, nic=6, selected_altitude=5000, selected_mcp=1)]))
    assert (column(batch, "nacp"), column(batch, "nic"), column(batch, "sel_alt_ft")) == ([7.0], [6.0], [5000.0])


def test_a_squawk_is_four_octal_digits_or_nothing(tmp_path: Path) -> None:
    log = log_of(tmp_path, [record(squawk=code) for code in ("7700", "0021", 21, 7600.0, "7800", "none", None)])
    assert column(read(log), "squawk") == [7700.0, 21.0, 21.0, 7600.0, None, None, None]
    assert not log.bad


@given(st.lists(st.integers(0, 20), min_size=1, max_size=40), st.integers(1, 50))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_come_by_time_and_in_the_order_of_the_file_where_times_are_equal(
    tmp_path: Path, seconds: list[int], chunk: int
) -> None:
    records = [record(timestamp=(T0 + s) * 1000, altitude=float(i)) for i, s in enumerate(seconds)]
    log = log_of(tmp_path, records)
    batches = list(log.batches(chunk))
    assert all(len(b) == chunk for b in batches[:-1])
    whole = join(batches)
    wanted = sorted(range(len(seconds)), key=lambda i: (seconds[i], i))
    assert column(whole, "alt_ft") == [float(i) for i in wanted]
    assert whole.kinds[Kind.ADSB].seq.tolist() == list(range(len(seconds)))
    part = read(log, start=T0 + 5, stop=T0 + 11)
    inside = [float(i) for i in wanted if 5 <= seconds[i] < 11]
    assert len(part) == len(inside)
    if inside:  # a batch without rows has no columns
        assert column(part, "alt_ft") == inside


def test_bad_rows_are_counted_by_reason_and_the_first_are_named(tmp_path: Path) -> None:
    bad = [
        (record(timestamp=None), Drop.MISSING, "no timestamp"),
        (record(timestamp="yesterday"), Drop.TIME, "timestamp 'yesterday'"),
        (record(icao24=None), Drop.MISSING, "no icao24"),
        (record(icao24=123456), Drop.ID, "icao24 123456"),
        (record(latitude=None), Drop.MISSING, "no latitude"),
        (record(latitude=91.0), Drop.RANGE, "latitude 91"),
        (record(altitude="high"), Drop.TYPE, "altitude 'high'"),
        (record(track=[1, 2]), Drop.TYPE, "track [1, 2]"),
        (record(timestamp=-1000), Drop.TIME, "t -1"),
    ]
    for row, reason, why in bad:
        log = log_of(tmp_path, [record(), row, record(timestamp=(T0 + 1) * 1000)])
        assert len(read(log)) == 2
        assert log.bad == {reason: 1}
        assert log.info().problems == (f"1 bad rows (1 {reason}); first: row 1 {reason} ({why})",)
    log = log_of(tmp_path, [record(), *[row for row, _, _ in bad]])
    assert len(read(log)) == 1
    assert log.info().bad_rows == len(bad)
    assert log.info().problems[0].count("row ") == NAMED_ROWS


def test_repeated_values_are_left_as_they_are(tmp_path: Path) -> None:
    records = [record(timestamp=(T0 + i) * 1000) for i in range(5)]
    assert column(read(log_of(tmp_path, records)), "lat") == [50.0] * 5


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (b"", "not a JSON document"),
        (b"\x1f\x8bnonsense", "cut off or damaged"),
        (gzip.compress(json.dumps([record()] * 1000).encode())[:-20], "cut off or damaged"),
        (b'[{"timestamp": 1}', "not a JSON document"),
        (b'{"timestamp": 1}\n{"timestamp": 2}\n', "not a JSON document"),
        (b'[{"timestamp": ' + b"[" * 100_000, "not a JSON document"),
        (b"[]", "an empty list"),
        (b"[1, 2]", "not a table"),
        (b"7", "not a table"),
        (b'{"result": {"request": {}}, "_api": {}}', "a Flightradar24 playback"),
        (b'{"columns": ["timestamp"], "index": [0], "data": [[1]]}', "orient='records'"),
        (b'{"name": "TMA", "type": "SIV", "shapes": []}', "no timestamp, icao24, latitude, longitude"),
        (b'{"timestamp": 1, "icao24": 2, "latitude": 3, "longitude": 4}', "not a table"),
        (b'[{"timestamp": 1633608773000, "altitude": 3, "fuelflow": 2}]', "no icao24, latitude, longitude"),
    ],
)  # fmt: skip
def test_what_is_not_such_a_table_is_refused_by_name_and_reason(tmp_path: Path, what: bytes, why: str) -> None:
    with pytest.raises(LogError) as refused:
        log_of(tmp_path, what)
    assert str(tmp_path / "x.json") in str(refused.value)
    assert why in str(refused.value)


def test_info_and_convert_take_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = log_of(tmp_path, [record(timestamp=(T0 + i) * 1000) for i in range(20)], "flight.json.gz")
    assert main(["info", str(log.path)]) == 0
    assert "traffic" in capsys.readouterr().out
    assert main(["convert", str(log.path), str(tmp_path / "flight.wklog")]) == 0
    again = join(list(open_log(tmp_path / "flight.wklog").batches()))
    assert again.kinds[Kind.ADSB].t.tolist() == read(log).kinds[Kind.ADSB].t.tolist()
    np.testing.assert_array_equal(again.kinds[Kind.ADSB].data, read(log).kinds[Kind.ADSB].data)


def real_files() -> list[Path]:
    return sorted(WHOLE_SAMPLES.rglob("*.json.gz")) + sorted(WHOLE_SAMPLES.rglob("*.json"))


@pytest.mark.skipif(not WHOLE_SAMPLES.is_dir(), reason=f"no recordings in {WHOLE_SAMPLES}: run `make data`")
def test_every_real_recording_is_read_as_json_has_it_and_nothing_else_is_read() -> None:
    """Python's json module is the reference, row by row."""
    read_files, refused = 0, []
    for path in real_files():
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        found = json.loads(text)
        if isinstance(found, dict) and isinstance(found.get("timestamp"), dict):
            index = list(found["timestamp"])
            found = [{name: cells[i] for name, cells in found.items()} for i in index]
        if not (isinstance(found, list) and {"timestamp", "icao24", "latitude", "longitude"} <= found[0].keys()):
            refused.append(path.name)
            with pytest.raises(LogError):
                TrafficJson(path)
            continue
        rows = [r for r in found if r["latitude"] is not None and r["longitude"] is not None]
        rows.sort(key=lambda r: r["timestamp"])
        log = open_log(path)
        batch = join(list(log.batches()))
        cols = batch.kinds[Kind.ADSB]
        assert log.info().bad_rows == len(found) - len(rows), path
        assert cols.t.tolist() == [r["timestamp"] / 1000 for r in rows], path
        assert [batch.ids[v] for v in cols.vid.tolist()] == [r["icao24"] for r in rows], path
        for theirs, ours in SAME.items():
            wanted = np.array([r.get(theirs) for r in rows], float)
            if ours == "trk_deg":
                wanted %= 360.0  # one recording counts from -180 to 180, and batches have one convention
            np.testing.assert_array_equal(cols.data[COLUMN[Kind.ADSB][ours]], wanted, err_msg=f"{path} {theirs}")
        read_files += 1
    assert read_files >= 70
    assert {"fuelflow_a320.json.gz", "trace_full_ac671b.json", "LFBOTMA.json"} <= set(refused)
    assert len(refused) == 7
