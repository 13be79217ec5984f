"""Envelopes lose no peak, whatever the log's length and however it is cut."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.daemon.report.gather.envelope import FEW, Envelope
from watchkeeper.daemon.report.series import line

BINS = 16


def filled(t: np.ndarray, row: np.ndarray, values: np.ndarray, cuts: list[int]) -> Envelope:
    envelope = Envelope(("value",), BINS, points=("x",))
    for part in np.split(np.arange(len(t)), sorted({c % (len(t) + 1) for c in cuts})):
        order = part[np.lexsort((t[part], row[part]))]
        envelope.add(row[order], t[order], values[None, order], values[None, order])
    return envelope


numbers = st.lists(
    st.tuples(st.floats(0.0, 1e6), st.integers(0, 2), st.floats(-1e6, 1e6, width=32)), min_size=1, max_size=80
)


@given(samples=numbers, cuts=st.lists(st.integers(0, 80), max_size=3))
def test_least_and_greatest_value_and_all_samples_are_kept(
    samples: list[tuple[float, int, float]], cuts: list[int]
) -> None:
    samples.sort(key=lambda s: s[0])
    t, row, values = (np.array(column) for column in zip(*samples, strict=True))
    envelope = filled(t, row, values, cuts)
    for r in np.unique(row):
        own = row == r
        assert np.nanmin(envelope.lo[0, r]) == np.float32(values[own].min())
        assert np.nanmax(envelope.hi[0, r]) == np.float32(values[own].max())
        assert envelope.count[r].sum() == own.sum()
        assert envelope.origin_t[r] == t[own][0]
        # the last sample is in the last bin that is filled
        last = np.flatnonzero(envelope.count[r])[-1]
        start = envelope.origin_t[r] + last * envelope.width_s[r]
        assert start <= t[own][-1] <= start + envelope.width_s[r] * (1 + 1e-9) + 1e-6
        assert envelope.first[0, r, 0] == np.float32(values[own][0])


@given(samples=numbers, bins=st.sampled_from([1, 2, 4, 16]))
def test_a_line_of_the_page_has_the_exact_extremes_in_any_number_of_bins(
    samples: list[tuple[float, int, float]], bins: int
) -> None:
    samples.sort(key=lambda s: s[0])
    t, row, values = (np.array(column) for column in zip(*samples, strict=True))
    envelope = filled(t, np.zeros(len(row), np.int64), values, [])
    found = line(envelope, "value", 0, bins)
    assert found is not None
    assert (found["min"], found["max"]) == (np.float32(values.min()), np.float32(values.max()))
    assert line(envelope, "value", 1, bins) is None


def test_a_single_peak_in_a_long_log_is_on_the_page() -> None:
    t = np.arange(0.0, 86_400.0, 0.5)
    values = np.zeros(len(t))
    values[123_457] = 7.25
    found = line(filled(t, np.zeros(len(t), np.int64), values, [60_000]), "value", 0, 8)
    assert found is not None
    assert found["max"] == 7.25


def test_a_value_that_is_absent_is_no_value() -> None:
    values = np.array([np.nan, 3.0, np.nan])
    envelope = filled(np.array([0.0, 1.0, 2.0]), np.zeros(3, np.int64), values, [])
    found = line(envelope, "value", 0, BINS)
    assert found is not None
    assert (found["min"], found["max"]) == (3.0, 3.0)
    assert line(filled(np.zeros(1), np.zeros(1, np.int64), np.array([np.nan]), []), "value", 0, BINS) is None


def test_many_rows_have_fewer_bins_and_lose_no_peak() -> None:
    rows = FEW + 8
    envelope = Envelope(("value",), 64, many=8)
    t = np.arange(0.0, 100.0, 0.5)
    rng = np.random.default_rng(0)
    values = rng.normal(size=(rows, len(t))).astype(np.float32)
    for r in range(rows):
        envelope.add(np.full(len(t), r), t, values[None, r].astype(np.float64))
    assert envelope.bins == 8
    assert envelope.hi.shape == envelope.lo.shape
    assert envelope.hi.shape[2] == envelope.count.shape[1] == 8
    np.testing.assert_array_equal(np.nanmax(envelope.hi[0, :rows], axis=1), values.max(axis=1))
    np.testing.assert_array_equal(np.nanmin(envelope.lo[0, :rows], axis=1), values.min(axis=1))
    assert (envelope.count[:rows].sum(axis=1) == len(t)).all()
