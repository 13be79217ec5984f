"""The one check: every way in leads through it, once, and what passes does not depend on how the input is cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams import check
from watchkeeper.streams.batch import Batch, CheckedBatch, columns_of, slice_batch
from watchkeeper.streams.check import checked
from watchkeeper.streams.logs.chunks import join, numbered, rechunk, select_time
from watchkeeper.streams.messages import COLUMN, Drop, Kind

LON, TRK = COLUMN[Kind.ADSB]["lon"], COLUMN[Kind.ADSB]["trk_deg"]


def flights(lon: list[float], trk_deg: list[float] | None = None, lat: float = 50.0) -> Batch:
    n = len(lon)
    values = {"lat": np.full(n, lat), "lon": np.array(lon), "trk_deg": np.array(trk_deg or [0.0] * n)}
    return Batch(["a"], {Kind.ADSB: columns_of(Kind.ADSB, np.zeros(n, np.int32), 100.0 + np.arange(n), values)})


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How many samples the check looks at, by kind."""
    seen: Counter[str] = Counter()
    real = check.sound

    def counting(kind: Kind, cols: object, refuse: object) -> object:
        seen[kind.word] += len(cols)  # type: ignore[arg-type]
        return real(kind, cols, refuse)  # type: ignore[arg-type]

    monkeypatch.setattr(check, "sound", counting)
    return seen


def test_samples_that_were_never_checked_cannot_reach_a_detector() -> None:
    pipeline = Pipeline(DEFAULT)
    seen: list[float] = []
    pipeline.on_evidence = lambda window, _: seen.extend(
        lat for rows in window.samples.values() for lat in rows.data[COLUMN[Kind.ADSB]["lat"]].tolist()
    )
    pipeline.feed(flights([8.0] * 5, lat=91.0))
    pipeline.feed(flights([8.0] * 3))
    pipeline.finish()
    assert seen == [50.0] * 3
    assert pipeline.drops == {("adsb", Drop.RANGE): 5}


def test_a_sample_is_checked_once_however_its_batch_is_reshaped(calls: Counter[str]) -> None:
    batch = checked(flights([8.0] * 10))
    pieces = [select_time(piece, 0.0, 1e9) for piece in rechunk([numbered(batch)], 3)]
    whole = join(pieces)
    halves = [slice_batch(whole, 0, 5), slice_batch(whole, 5, 10)]
    pipeline = Pipeline(DEFAULT)
    for half in halves:
        assert isinstance(half, CheckedBatch)
        pipeline.feed(half)
    assert pipeline.samples["adsb"] == 10
    assert calls == {"adsb": 10}


def test_a_batch_joined_to_an_unchecked_one_is_unchecked() -> None:
    assert not isinstance(join([checked(flights([8.0])), flights([8.0])]), CheckedBatch)


@given(
    lon=st.lists(st.floats(-180.0, 360.0), min_size=2, max_size=20),
    trk_deg=st.floats(-360.0, 360.0),
    cut=st.integers(1, 19),
)
def test_angles_come_in_one_convention_to_the_same_bits_however_a_log_is_cut(
    lon: list[float], trk_deg: float, cut: int
) -> None:
    batch = flights(lon, [trk_deg] * len(lon))
    whole = checked(batch).kinds[Kind.ADSB].data
    parts = [slice_batch(batch, a, b) for a, b in ((0, cut), (cut, len(lon))) if a < b]
    pieces = np.concatenate([checked(part).kinds[Kind.ADSB].data for part in parts if part.kinds], axis=1)
    np.testing.assert_array_equal(whole, pieces)
    assert ((whole[LON] >= -180.0) & (whole[LON] < 180.0)).all()
    assert ((whole[TRK] >= 0.0) & (whole[TRK] < 360.0)).all()
    # once more changes nothing: a recording of a live run replays as it ran
    again = checked(Batch(["a"], checked(batch).kinds)).kinds[Kind.ADSB].data
    np.testing.assert_array_equal(again, whole)
