"""Steps as bytes and back: nothing is lost but the order of arrival across kinds, whatever is absent or odd."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.detectors.fleet.clocks import ClockNote
from watchkeeper.engines.steps import Clock, Step
from watchkeeper.engines.wire import clocks_of, laid_out_steps, pack_steps, unpack_clocks, unpack_steps
from watchkeeper.streams.batch import CheckedBatch, Columns
from watchkeeper.streams.messages import FIELDS, Kind

VALUES = st.one_of(st.just(np.nan), st.floats(allow_nan=False, width=64))


@st.composite
def columns(draw: st.DrawFn, kind: Kind, ids: int, vias: int) -> Columns:
    n = draw(st.integers(1, 5))
    present = draw(st.sets(st.integers(0, len(FIELDS[kind]) - 1)))
    data = np.full((len(FIELDS[kind]), n), np.nan)
    for column in present:
        data[column] = draw(st.lists(VALUES, min_size=n, max_size=n))
    vid = draw(st.lists(st.integers(0, ids - 1), min_size=n, max_size=n))
    via = draw(st.lists(st.integers(-1, vias - 1), min_size=n, max_size=n))
    t = draw(st.lists(st.floats(0, 1e9), min_size=n, max_size=n))
    return Columns(np.arange(n), np.array(vid, np.int32), np.array(via, np.int32), np.array(t), data)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    if draw(st.booleans()):
        return Step(None, False, Clock(tick=draw(st.integers(-(2**63), 2**63 - 1)), accept=draw(st.text(max_size=3))))
    ids = draw(st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=4, unique=True))
    vias = draw(st.lists(st.text(min_size=1, max_size=5), max_size=2, unique=True))
    kinds = {
        kind: draw(columns(kind, len(ids), len(vias))) for kind in draw(st.sets(st.sampled_from(Kind), min_size=1))
    }
    note = ClockNote(*([0.0] * len(ClockNote.__dataclass_fields__)))
    batch = CheckedBatch(ids, kinds, vias, {ids[0]: "DLH"}, {ids[0]: 4.5})
    return Step(batch, draw(st.booleans()), Clock((1.0, 2.0), (note,), ("g",), 3, 4, True, ("x",), 5.0))


@given(st.lists(steps(), max_size=4))
def test_there_and_back(given: list[Step]) -> None:
    ask = pack_steps(given)
    assert ask == b"".join(bytes(piece) for piece in laid_out_steps(given))
    assert unpack_clocks(clocks_of(ask)) == [step.clock for step in given]
    # wherever in memory it is
    found = unpack_steps(memoryview(b"odd" + ask)[3:])
    for before, after in zip(given, found, strict=True):
        assert_same(before, after)


def assert_same(before: Step, after: Step) -> None:
    """Whether two steps have the same in them, apart from the order of arrival across kinds."""
    assert (before.moved, before.clock, before.samples is None) == (after.moved, after.clock, after.samples is None)
    if before.samples is None or after.samples is None:
        return
    assert (before.samples.ids, before.samples.vias) == (after.samples.ids, after.samples.vias)
    assert (before.samples.callsigns, before.samples.called_t) == (after.samples.callsigns, after.samples.called_t)
    assert after.samples.kinds.keys() == before.samples.kinds.keys()
    for kind, cols in before.samples.kinds.items():
        same = after.samples.kinds[kind]
        for name in ("vid", "via", "t", "data"):
            assert np.array_equal(getattr(cols, name), getattr(same, name), equal_nan=name == "data")
            assert getattr(same, name).dtype == getattr(cols, name).dtype
            assert getattr(same, name).flags.aligned
            assert getattr(same, name).flags.c_contiguous
