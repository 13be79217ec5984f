"""Reshaping streams keeps every sample and its place; several logs become one by time."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from watchkeeper.streams.batch import Batch, Columns, columns_of
from watchkeeper.streams.logs.chunks import join, merge_by_time, numbered, rechunk, select_time, timed
from watchkeeper.streams.messages import Kind

Sample = tuple[Kind, str, float]


def batch_of(rows: list[Sample]) -> Batch:
    """A batch from (kind, name, t), in that order."""
    ids = sorted({name for _, name, _ in rows})
    kinds = {}
    for kind in {kind for kind, _, _ in rows}:
        at = [i for i, row in enumerate(rows) if row[0] is kind]
        vid = np.array([ids.index(rows[i][1]) for i in at], np.int32)
        t = np.array([rows[i][2] for i in at])
        kinds[kind] = columns_of(kind, vid, t, {}, seq=np.array(at))
    return Batch(ids, kinds)


def rows_of(batch: Batch) -> list[Sample]:
    rows = [
        (int(cols.seq[i]), kind, batch.ids[cols.vid[i]], float(cols.t[i]))
        for kind, cols in batch.kinds.items()
        for i in range(len(cols))
    ]
    rows.sort(key=lambda row: row[0])
    assert [row[0] for row in rows] == list(range(len(rows)))
    for cols in batch.kinds.values():
        assert (np.diff(cols.seq) > 0).all()
    return [row[1:] for row in rows]


sample = st.tuples(st.sampled_from(list(Kind)), st.sampled_from("abc"), st.floats(0, 100))
streams = st.lists(st.lists(sample, max_size=6), max_size=8)


@given(parts=streams, size=st.integers(1, 20))
def test_rechunking_keeps_every_sample_in_its_place(parts: list[list[Sample]], size: int) -> None:
    chunks = list(rechunk([batch_of(part) for part in parts], size))
    assert all(len(chunk) == size for chunk in chunks[:-1])
    assert [row for chunk in chunks for row in rows_of(chunk)] == [row for part in parts for row in part]


@given(parts=streams)
def test_joining_keeps_every_sample_in_its_place(parts: list[list[Sample]]) -> None:
    assert rows_of(join([batch_of(part) for part in parts])) == [row for part in parts for row in part]


def test_a_callsign_that_comes_with_a_later_piece_is_known_from_its_first_sample_there() -> None:
    """A piece has the callsigns of all that it was cut from, also of those who have no sample in it."""

    def piece(name: int, t: float) -> Batch:
        cols = columns_of(Kind.ADSB, np.array([name], np.int32), np.array([t]), {})
        return Batch(["x", "y"], {Kind.ADSB: cols}, callsigns={"x": "XRAY", "y": "YANKEE"})

    joined = join([piece(0, 1.0), piece(1, 2.0)])
    assert joined.callsigns == {"x": "XRAY", "y": "YANKEE"}
    assert joined.called_t == {}


def test_joining_forgets_names_that_nobody_uses_and_keeps_the_latest_callsign() -> None:
    cols = columns_of(Kind.ADSB, np.array([2, 2], np.int32), np.array([1.0, 2.0]), {})
    first = Batch(["x", "y", "z"], {Kind.ADSB: cols}, callsigns={"x": "OLD", "z": "OLD"})
    second = Batch(["z"], {Kind.ADSB: columns_of(Kind.ADSB, np.zeros(1, np.int32), np.ones(1), {})}, [], {"z": "NEW"})
    joined = join([first, second])
    assert joined.ids == ["z"]
    assert joined.callsigns == {"z": "NEW"}


def test_holes_in_the_numbering_are_closed() -> None:
    def cols(seq: list[int]) -> Columns:
        return columns_of(Kind.GPS, np.zeros(len(seq), np.int32), np.zeros(len(seq)), {}, seq=np.array(seq))

    closed = numbered(Batch(["a"], {Kind.GPS: cols([0, 7]), Kind.IMU: cols([3, 9])}))
    assert closed.kinds[Kind.GPS].seq.tolist() == [0, 2]
    assert closed.kinds[Kind.IMU].seq.tolist() == [1, 3]


@given(rows=st.lists(sample, max_size=10), start=st.floats(0, 100), stop=st.floats(0, 100))
def test_selecting_time_takes_exactly_the_samples_inside(rows: list[Sample], start: float, stop: float) -> None:
    assert rows_of(select_time(batch_of(rows), start, stop)) == [row for row in rows if start <= row[2] < stop]


def cut(rows: list[Sample], sizes: list[int]) -> list[Batch]:
    edges = [0, *itertools.accumulate(sizes), len(rows)]
    return [batch_of(rows[a:b]) for a, b in itertools.pairwise(edges) if b > a]


cuts = st.lists(st.integers(1, 5), max_size=10)


@given(
    logs=st.lists(
        st.lists(st.tuples(sample.map(lambda s: s[0]), st.integers(0, 20)), max_size=15), min_size=1, max_size=4
    ),
    sizes=st.lists(cuts, min_size=4, max_size=4),
)
def test_sorted_logs_merge_into_one_sorted_stream_whatever_their_framing(
    logs: list[list[tuple[Kind, int]]], sizes: list[list[int]]
) -> None:
    named = [
        [(kind, f"log{i}", float(t)) for kind, t in sorted(rows, key=lambda row: row[1])] for i, rows in enumerate(logs)
    ]
    merged = merge_by_time([cut(rows, sizes[i]) for i, rows in enumerate(named)])
    # sorted() is stable: ties come in the order of the logs, and a log's own order is kept
    expected = sorted(itertools.chain.from_iterable(named), key=lambda row: (row[2], row[1]))
    assert [row for batch in merged for row in rows_of(batch)] == expected


@given(
    logs=st.lists(st.lists(sample, max_size=15), min_size=1, max_size=3),
    sizes=st.lists(cuts, min_size=3, max_size=3),
)
def test_merging_never_loses_a_sample_or_turns_a_log_round(logs: list[list[Sample]], sizes: list[list[int]]) -> None:
    named = [[(kind, f"log{i}", t) for kind, _, t in rows] for i, rows in enumerate(logs)]
    merged = [row for b in merge_by_time([cut(rows, sizes[i]) for i, rows in enumerate(named)]) for row in rows_of(b)]
    assert len(merged) == sum(map(len, logs))
    for i, rows in enumerate(named):
        assert [row for row in merged if row[1] == f"log{i}"] == rows


def test_a_wild_timestamp_does_not_hold_its_log_back() -> None:
    good = [(Kind.GPS, "a", float(t)) for t in range(100)]
    wild = [*good[:50], (Kind.GPS, "a", 4e9), (Kind.GPS, "a", 4e9), *good[50:]]
    other = [(Kind.GPS, "b", float(t)) for t in range(100)]
    merged = [row for b in merge_by_time([cut(wild, [10] * 9), cut(other, [7] * 9)]) for row in rows_of(b)]
    sane = np.array([row[2] for row in merged if row[2] < 1e9])
    assert len(sane) == 200
    # two wild values among nine neighbours shift the median by two samples at most, here two seconds
    assert (np.maximum.accumulate(sane) - sane).max() <= 2.0


@given(steps=st.lists(st.floats(0, 1000), min_size=1, max_size=60), sizes=cuts)
def test_a_logs_own_time_is_its_samples_time_where_that_is_sorted(steps: list[float], sizes: list[int]) -> None:
    t = np.cumsum(steps).tolist()
    times = [x for _, log_t in timed(cut([(Kind.GPS, "a", x) for x in t], sizes)) for x in log_t.tolist()]
    assert times == t


@given(offset=st.integers(0, 8), wild=st.sampled_from([0.0, 4e9]), sizes=st.lists(st.integers(5, 20), max_size=6))
def test_a_logs_own_time_does_not_follow_one_wild_sample_in_nine(offset: int, wild: float, sizes: list[int]) -> None:
    rows = [(Kind.GPS, "a", wild if i % 9 == offset else 1000.0 + i) for i in range(100)]
    times = [x for _, log_t in timed(cut(rows, sizes)) for x in log_t.tolist()]
    # the first and last few samples of a log have too few neighbours to be told apart
    assert all(abs(x - (1005.0 + i)) <= 2.0 for i, x in enumerate(times[5:-5]))
