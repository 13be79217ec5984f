"""What is put into the history is what comes out of it, to half a quantum, and damage is an error of its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from watchkeeper.daemon.history.blocks import (
    DamagedError,
    Rows,
    by_vehicle,
    pack_blocks,
    pack_frame,
    unpack_blocks,
    unpack_frame,
    unpack_last,
    unpack_rows,
)
from watchkeeper.daemon.history.layers import LARGEST, UNKNOWN, measured, track, whole

INT4 = st.integers(-(2**31), 2**31 - 1)


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    n, columns = draw(st.integers(1, 40)), draw(st.integers(1, 12))
    vehicle = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 5)))
    t_ms = draw(hnp.arrays(np.int32, n, elements=st.integers(-900_000, 400_000)))
    return Rows(vehicle, t_ms, draw(hnp.arrays(np.int32, (columns, n), elements=INT4)))


@given(rows())
def test_a_frame_comes_back_as_it_was(given_rows: Rows) -> None:
    back = unpack_frame(pack_frame(given_rows), len(given_rows.data))
    assert (back.vehicle == given_rows.vehicle).all()
    assert (back.t_ms == given_rows.t_ms).all()
    assert (back.data == given_rows.data).all()


@given(rows())
def test_blocks_come_back_as_they_were_each_vehicle_by_itself(given_rows: Rows) -> None:
    sorted_rows = by_vehicle(given_rows)
    vehicles, packed = pack_blocks(sorted_rows)
    assert vehicles == sorted(set(given_rows.vehicle.tolist()))
    back = unpack_rows(vehicles, packed, len(given_rows.data))
    assert back is not None
    back = by_vehicle(back)
    assert (back.vehicle == sorted_rows.vehicle).all()
    assert (back.t_ms == sorted_rows.t_ms).all()
    assert (back.data == sorted_rows.data).all()


@given(rows(), st.integers(-950_000, 450_000))
def test_the_last_sample_before_a_moment_is_that_of_the_whole_block(given_rows: Rows, at_ms: int) -> None:
    _, packed = pack_blocks(by_vehicle(given_rows))
    whole_blocks = {
        place: block
        for places, blocks in unpack_blocks(packed, len(given_rows.data))
        for place, block in zip(places.tolist(), blocks, strict=True)
    }
    last = {
        place: sample.tolist()
        for places, samples in unpack_last(packed, len(given_rows.data), at_ms)
        for place, sample in zip(places.tolist(), samples, strict=True)
    }
    before = {place: (block[0] <= at_ms).sum() for place, block in whole_blocks.items()}
    assert last == {place: whole_blocks[place][:, n - 1].tolist() for place, n in before.items() if n}


@given(st.sampled_from(track(()).columns), hnp.arrays(np.float64, 20, elements=st.floats(-1e5, 1e5)))
def test_a_value_is_off_by_half_a_quantum_at_most(column: object, values: np.ndarray) -> None:
    quantum = column.quantum  # type: ignore[attr-defined]
    back = measured(whole(values, quantum), quantum)
    assert np.abs(back - values).max() <= quantum / 2 * (1 + 1e-9)


@given(st.floats(-90.0, 90.0), st.floats(-180.0, 180.0))
def test_every_place_on_earth_comes_back(lat: float, lon: float) -> None:
    """West of 107 degrees west, and east of 107 east, everybody was on one meridian."""
    units = np.array([lat, lon]) * 1e7
    assert np.abs(measured(whole(units, 1.0), 1.0) - units).max() <= 0.5


def test_what_is_not_known_stays_so_and_what_is_too_large_is_the_largest() -> None:
    values = whole(np.array([np.nan, np.inf, -np.inf, 1e300]), 0.1)
    assert values.tolist() == [UNKNOWN, LARGEST, -LARGEST, LARGEST]
    assert np.isnan(measured(values, 0.1)[0])


@given(st.binary(max_size=60), st.integers(1, 5))
def test_damaged_bytes_are_damage(data: bytes, columns: int) -> None:
    with pytest.raises(DamagedError):
        unpack_frame(data, columns)
    with pytest.raises(DamagedError):
        unpack_rows([1], [data], columns)


@given(rows(), st.data())
def test_a_block_that_was_cut_is_damage(given_rows: Rows, data: st.DataObject) -> None:
    vehicles, packed = pack_blocks(by_vehicle(given_rows))
    cut = data.draw(st.integers(0, len(packed[0]) - 1))
    with pytest.raises(DamagedError):
        unpack_rows(vehicles[:1], [packed[0][:cut]], len(given_rows.data))
