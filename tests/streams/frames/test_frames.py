"""Frames of every library become the same samples, and what cannot become one is named."""

import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.streams.batch import Batch
from watchkeeper.streams.frames.cells import FrameError
from watchkeeper.streams.frames.read import FrameLog
from watchkeeper.streams.frames.sources import sources_of
from watchkeeper.streams.frames.write import BACKENDS, choose, frame_of, samples_frame
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.messages import COLUMN, Kind
from watchkeeper.streams.simulate import simulate

LIBRARIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "dict": dict,
    "pandas": pd.DataFrame,
    "pandas nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "polars": pl.DataFrame,
    "polars lazy": lambda columns: pl.DataFrame(columns).lazy(),
    "pyarrow": pa.table,
}
AIRCRAFT = {"t": [2.0, 1.0], "id": ["b", "a"], "lat": [50.0, 51.0], "lon": [8.0, 9.0], "alt_ft": [30000.0, None]}


def batch_of(frame: Any) -> Batch:
    return join(list(FrameLog(frame).batches()))


def same(a: Batch, b: Batch) -> bool:
    return (
        (a.ids, a.vias, a.callsigns, a.kinds.keys()) == (b.ids, b.vias, b.callsigns, b.kinds.keys())
        and all(np.array_equal(a.kinds[k].data, b.kinds[k].data, equal_nan=True) for k in a.kinds)
        and all(np.array_equal(a.kinds[k].t, b.kinds[k].t) for k in a.kinds)
        and all(np.array_equal(a.kinds[k].seq, b.kinds[k].seq) for k in a.kinds)
    )


@pytest.mark.parametrize("make", LIBRARIES.values(), ids=LIBRARIES)
def test_every_library_gives_the_same_samples_in_order_of_time(make: Callable[[dict[str, Any]], Any]) -> None:
    batch = batch_of(make(AIRCRAFT))
    cols = batch.kinds[Kind.ADSB]
    assert [batch.ids[v] for v in cols.vid] == ["a", "b"]
    assert cols.t.tolist() == [1.0, 2.0]
    assert np.array_equal(cols.data[COLUMN[Kind.ADSB]["alt_ft"]], [np.nan, 30000.0], equal_nan=True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_simulation_survives_the_way_through_a_frame(backend: str) -> None:
    sim = simulate("demo", seconds=20, seed=3)
    frame = samples_frame(sim.batches(), backend)
    whole = join(list(sim.batches()))
    again = batch_of(frame)
    assert len(again) == len(whole)
    for kind, cols in whole.kinds.items():
        order = np.argsort(cols.t, kind="stable")
        assert np.array_equal(again.kinds[kind].t, cols.t[order])
        assert np.array_equal(again.kinds[kind].data, cols.data[:, order], equal_nan=True)


@pytest.mark.parametrize("make", LIBRARIES.values(), ids=LIBRARIES)
@pytest.mark.parametrize(
    ("zone", "clock"), [(None, "naive"), (UTC, "utc"), (timezone(timedelta(hours=2)), "utc")], ids=["none", "utc", "+2"]
)
def test_dates_are_unix_seconds_and_without_a_zone_they_are_utc(
    make: Callable[[dict[str, Any]], Any], zone: Any, clock: str
) -> None:
    began = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=zone)
    try:
        frame = make({**AIRCRAFT, "t": [began + timedelta(seconds=1), began]})
    except TypeError:  # a library that has no fixed offsets
        pytest.skip("not a type of this library")
    log = FrameLog(frame)
    offset_s = 7200.0 if zone is not None and zone is not UTC else 0.0
    expected = 1_772_366_400.25 - offset_s
    assert log.clock == clock
    assert join(list(log.batches())).kinds[Kind.ADSB].t.tolist() == [expected, expected + 1.0]


def test_without_a_kind_the_filled_fields_tell_what_a_row_is() -> None:
    imu = {f"imu_{axis}": [None, 0.0] for axis in ("ax", "ay", "az", "wx", "wy", "wz")}
    batch = batch_of(pl.DataFrame({"t": [1.0, 1.0], "id": ["q", "q"], "gps_x": [1.0, 2.0], "gps_y": [3.0, 4.0], **imu}))
    assert {kind: len(cols) for kind, cols in batch.kinds.items()} == {Kind.GPS: 2, Kind.IMU: 1}


def test_names_may_be_numbers_and_gateways_and_callsigns_are_kept() -> None:
    batch = batch_of(pd.DataFrame({**AIRCRAFT, "id": [7, 8], "via": ["gw", None], "callsign": ["DLH1", None]}))
    assert batch.ids == ["7", "8"]
    assert batch.vias == ["gw"]
    assert batch.callsigns == {"7": "DLH1"}


def test_rows_without_a_name_or_a_time_are_counted_by_reason() -> None:
    log = FrameLog({**AIRCRAFT, "t": [None, 1.0], "id": ["a", ""]})
    assert log.drops == {("adsb", "missing_field"): 1, ("adsb", "bad_id"): 1}
    assert log.info().bad_rows == 2


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({}, "no columns"),
        ({"t": [], "id": []}, "no rows"),
        ({"id": ["a"], "lat": [1.0], "lon": [1.0]}, "no column 't'; the frame has: id, lat, lon"),
        ({"t": [1], "lat": [1.0], "lon": [1.0]}, "no column 'id'"),
        ({"t": [1], "id": ["a"]}, "no column says what the rows are"),
        ({"t": [1], "id": ["a"], "alt_ft": [1.0]}, "no column 'lat', 'lon': adsb samples need it; optional: alt_ft"),
        ({"t": [1], "id": ["a"], "gps_x": [1.0]}, "gps samples need a position"),
        ({"t": [1], "id": ["a"], "lat": ["north"], "lon": [1.0]}, "'lat': 'north' in row 0 is not .* allowed: -90"),
        ({"t": ["noon"], "id": ["a"], "lat": [1.0], "lon": [1.0]}, "'t': 'noon' in row 0 .* seconds as numbers"),
        ({"t": [1], "id": ["a"], "kind": ["adbs"]}, "'kind': 'adbs' is no kind of stream; allowed: adsb, gps, imu"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame])
def test_a_frame_that_cannot_be_used_says_which_column_and_what_is_allowed(
    make: Callable[[dict[str, Any]], Any], columns: dict[str, Any], problem: str
) -> None:
    with pytest.raises(FrameError, match=problem):
        FrameLog(make(columns))


def test_unknown_columns_are_a_warning_at_the_callers_line_with_the_name_that_was_meant() -> None:
    with pytest.warns(UserWarning, match=r"ignored: altft \(did you mean alt_ft\?\), wind") as caught:
        FrameLog({**AIRCRAFT, "altft": [1, 2], "wind": [3, 4]})
    assert caught[0].filename == __file__


def test_what_is_no_data_is_refused_with_the_things_that_are() -> None:
    with pytest.raises(TypeError, match="int cannot be watched; allowed: a frame"):
        sources_of(3)


def test_a_backend_that_is_unknown_or_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="allowed are pandas, polars, pyarrow"):
        choose("excel")
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(ImportError, match="pip install polars"):
        choose("polars")


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_empty_frame_still_has_types(backend: str) -> None:
    made = nw.from_native(frame_of({"a": [], "b": []}, {"a": nw.Float64(), "b": nw.Int64()}, backend))
    assert made.schema == {"a": nw.Float64(), "b": nw.Int64()}


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0, 1e9), st.sampled_from("abc"), st.floats(-90, 90), st.none() | st.floats(0, 4e4)),
        min_size=1,
    )
)
def test_any_table_reads_the_same_from_every_library(rows: list[tuple[float, str, float, float | None]]) -> None:
    t, names, lat, alt = map(list, zip(*rows, strict=True))
    columns = {"t": t, "id": names, "lat": lat, "lon": lat, "alt_ft": alt}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, *others = (batch_of(make(columns)) for make in LIBRARIES.values())
    assert all(same(first, other) for other in others)
