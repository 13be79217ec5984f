"""Splitting a batch: the parts are the whole, in order, with no name too many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.streams.batch import Batch, CheckedBatch, Columns
from watchkeeper.streams.messages import FIELDS, Kind
from watchkeeper.streams.split import bucket_of, split

Sample = tuple[Kind, int, int, float]


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    vehicles, gateways = draw(st.integers(1, 6)), draw(st.integers(0, 3))
    sample = st.tuples(
        st.sampled_from([Kind.ADSB, Kind.GPS, Kind.IMU]),
        st.integers(0, vehicles - 1),
        st.integers(-1, gateways - 1),
        st.floats(0.0, 100.0),
    )
    rows: list[Sample] = draw(st.lists(sample, max_size=40))
    kinds = {}
    for kind in {row[0] for row in rows}:
        own = [(i, *row[1:]) for i, row in enumerate(rows) if row[0] is kind]
        seq, vid, via, t = (np.array(column) for column in zip(*own, strict=True))
        data = np.arange(len(FIELDS[kind]) * len(own), dtype=float).reshape(len(FIELDS[kind]), len(own))
        kinds[kind] = Columns(seq.astype(np.int64), vid.astype(np.int32), via.astype(np.int32), t.astype(float), data)
    ids = [f"v{i}" for i in range(vehicles)]
    calls = {name: f"CALL{name}" for name in draw(st.lists(st.sampled_from(ids), unique=True))}
    make = draw(st.sampled_from([Batch, CheckedBatch]))
    return make(ids, kinds, [f"g{i}" for i in range(gateways)], calls, dict.fromkeys(list(calls)[:1], 5.0))


def rows(batch: Batch) -> list[tuple[int, Kind, str, str, float, tuple[float, ...]]]:
    """Every sample with its place in the order, by names."""
    return sorted(
        (
            int(cols.seq[i]), kind, batch.ids[cols.vid[i]], batch.vias[cols.via[i]] if cols.via[i] >= 0 else "",
            float(cols.t[i]), tuple(cols.data[:, i].tolist()),
        )
        for kind, cols in batch.kinds.items()
        for i in range(len(cols))
    )  # fmt: skip


@given(batches(), st.integers(1, 5), st.data())
@settings(max_examples=200, deadline=None)
def test_the_parts_together_are_the_whole(batch: Batch, n: int, data: st.DataObject) -> None:
    part = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=len(batch.ids), max_size=len(batch.ids))))
    parts = split(batch, part.astype(np.int32), n)
    assert sorted(row for one in parts for row in rows(one)) == rows(batch)
    of_name = dict(zip(batch.ids, part.tolist(), strict=True))
    heard = {row[2] for row in rows(batch)}
    for p, one in enumerate(parts):
        assert type(one) is type(batch)
        assert all(of_name[row[2]] == p for row in rows(one))
        # each kind in the order of arrival
        assert all((np.diff(cols.seq) > 0).all() for cols in one.kinds.values())
        assert all(cols.data.flags.c_contiguous for cols in one.kinds.values())
        # no name that no sample uses
        assert one.ids == [name for name in batch.ids if of_name[name] == p and name in heard]
        assert set(one.vias) == {row[3] for row in rows(one)} - {""}
        assert one.callsigns == {name: sign for name, sign in batch.callsigns.items() if name in one.ids}
        assert one.called_t == {name: t for name, t in batch.called_t.items() if name in one.ids}


@pytest.mark.parametrize("parts", [2, 4, 16])
def test_vehicles_are_spread_evenly(parts: int) -> None:
    counts = np.bincount([bucket_of(f"uav-{i}") % parts for i in range(10_000)], minlength=parts)
    assert counts.min() > 0.8 * 10_000 / parts
    assert counts.max() < 1.2 * 10_000 / parts
