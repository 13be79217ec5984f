"""Named records: annotations are the layout, class values the blank record."""

from __future__ import annotations

import math
from types import GenericAlias
from typing import Annotated

import numpy as np
import pytest

from watchkeeper.detectors.kernels.records import blank, layout, take_over
from watchkeeper.streams.batch import F8
from watchkeeper.streams.foreign.states import StateEncoder, decode_state
from watchkeeper.streams.kernels import njit


class Track:
    t: float = math.nan
    agree: int = 7
    trusted: bool
    place: Annotated[F8, (3,)]


class Other:
    t: float
    agree: int
    believed: bool
    place: Annotated[F8, (3,)]


@njit
def _follow(tracks, slot):
    track = tracks[slot]
    track.agree += 1
    track.trusted = math.isnan(track.t)
    track.t = 5.0
    track.place[1] = 2.5


def test_a_blank_record_has_the_values_of_its_class_and_else_zeros():
    (row,) = blank(Track, 1)
    assert math.isnan(row["t"])
    assert (row["agree"], row["trusted"], row["place"].tolist()) == (7, False, [0.0, 0.0, 0.0])
    assert blank(Track, (2, 3)).shape == (2, 3)


def test_a_kernel_reads_and_writes_fields_by_name():
    tracks = blank(Track, 3)
    _follow(tracks, 1)
    assert [tracks[name][1].tolist() for name in tracks.dtype.names] == [5.0, 8, True, [0.0, 2.5, 0.0]]
    assert math.isnan(tracks["t"][0])


def test_saved_records_come_back_and_those_of_another_layout_do_not():
    tracks = blank(Track, 3)
    _follow(tracks, 1)
    saved = decode_state(bytes(StateEncoder().encode({"rows": tracks[:2]})))["rows"]
    fresh = blank(Track, 3)
    take_over(fresh, saved)
    assert fresh.tobytes() == tracks.tobytes()
    for other in (blank(Other, 3), blank(Track, 1), blank(Track, (3, 2))):
        with pytest.raises(ValueError, match="another layout"):
            take_over(other, saved)


def test_a_field_that_plain_python_could_not_reach_is_refused():
    with pytest.raises(TypeError, match=r"Shadow\.size"):
        layout(type("Shadow", (), {"__annotations__": {"size": float}}))


def test_the_layout_is_that_of_the_annotations():
    assert layout(Track) == np.dtype([("t", "f8"), ("agree", "i8"), ("trusted", "?"), ("place", "f8", 3)], align=True)


@pytest.mark.parametrize(
    "array", [np.ndarray[tuple[int, ...], np.dtype[np.float32]], GenericAlias(list, (np.float32,))]
)
def test_an_array_has_the_same_layout_however_numpy_spells_its_type(array):
    """`NDArray[X]` is `ndarray[shape, dtype[X]]`, and from NumPy 2.5 on an alias whose one argument is X."""
    record = type("Record", (), {"__annotations__": {"place": Annotated[array, (3,)]}})
    assert layout(record) == np.dtype([("place", np.float32, (3,))], align=True)
