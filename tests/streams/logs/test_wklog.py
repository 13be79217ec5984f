"""A .wklog gives back what went in, and says so when it cannot."""

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from watchkeeper.streams.batch import Batch, Columns, columns_of
from watchkeeper.streams.logs.source import LogError, open_log
from watchkeeper.streams.logs.wkframe import HEADER, MAGIC, TRAILER, pack_frame
from watchkeeper.streams.logs.wklog import FRAME_SAMPLES, FRAME_SAMPLES_MAX, LogReader, LogWriter
from watchkeeper.streams.messages import FIELDS, Kind

NAMES = ["a", "b/+#~", "ü", "4CA123", "x" * 64]
value = st.one_of(st.just(np.nan), st.floats(allow_nan=False, width=64))


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """Any mix of kinds, gateways, absent values and numbering with holes (refused samples leave holes)."""
    n = draw(st.integers(0, 12))
    order = [draw(st.sampled_from(list(Kind))) for _ in range(n)]
    holes = np.cumsum([draw(st.integers(1, 3)) for _ in range(n)]) - 1 if n else np.empty(0, np.int64)
    vias = draw(st.lists(st.sampled_from(["gw1", "gw2"]), unique=True))
    ids = draw(st.permutations(NAMES))
    kinds = {}
    for kind in sorted(set(order)):
        seq = np.array([holes[i] for i in range(n) if order[i] is kind], np.int64)
        rows = len(seq)
        data = np.array(draw(st.lists(value, min_size=rows, max_size=rows))) * np.ones((len(FIELDS[kind]), 1))
        data[draw(st.integers(0, len(data) - 1))] = np.nan
        vid = np.array(draw(st.lists(st.integers(0, len(ids) - 1), min_size=rows, max_size=rows)), np.int32)
        via = np.array(draw(st.lists(st.integers(-1, len(vias) - 1), min_size=rows, max_size=rows)), np.int32)
        t = np.array(draw(st.lists(st.floats(0, 4e9), min_size=rows, max_size=rows)))
        kinds[kind] = Columns(seq, vid, via, t, data)
    callsigns = draw(st.dictionaries(st.sampled_from(NAMES), st.text(max_size=8)))
    return Batch(ids, kinds, vias, callsigns)


def samples(batch: Batch) -> list[tuple[object, ...]]:
    """Every sample by itself, in arrival order, NaN made comparable."""
    found = []
    for kind, cols in batch.kinds.items():
        for i in range(len(cols)):
            via = batch.vias[cols.via[i]] if cols.via[i] >= 0 else None
            fields = tuple(x.hex() for x in cols.data[:, i].tolist())
            found.append((int(cols.seq[i]), kind, batch.ids[cols.vid[i]], via, float(cols.t[i]), fields))
    return [sample[1:] for sample in sorted(found, key=lambda s: s[0])]


def all_samples(log: LogReader, **span: float) -> list[tuple[object, ...]]:
    return [sample for batch in log.batches(**span) for sample in samples(batch)]


def adsb(t: np.ndarray, **values: np.ndarray) -> Batch:
    n = len(t)
    vid = np.arange(n, dtype=np.int32) % 3
    fields = {"lat": np.linspace(50, 51, n), "lon": np.linspace(8, 9, n), **values}
    return Batch(["a", "b", "c"], {Kind.ADSB: columns_of(Kind.ADSB, vid, t, fields)}, callsigns={"a": "DLH1"})


def written(path: Path, *parts: Batch, frame_samples: int = FRAME_SAMPLES) -> Path:
    with LogWriter(path, frame_samples=frame_samples) as writer:
        for part in parts:
            writer.write(part)
    return path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(batches(), max_size=6), frame_samples=st.integers(1, 20))
def test_what_was_written_is_read_in_order_of_arrival(tmp_path: Path, parts: list[Batch], frame_samples: int) -> None:
    log = LogReader(written(tmp_path / "x.wklog", *parts, frame_samples=frame_samples))
    assert all_samples(log) == [sample for part in parts for sample in samples(part)]
    assert log.truncated is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(batches(), max_size=4))
def test_same_samples_give_same_bytes(tmp_path: Path, parts: list[Batch]) -> None:
    first = written(tmp_path / "1.wklog", *parts).read_bytes()
    assert written(tmp_path / "2.wklog", *parts).read_bytes() == first


def test_absent_values_and_their_bits_survive(tmp_path: Path) -> None:
    odd = np.array([np.nan, -0.0, np.inf])
    log = LogReader(written(tmp_path / "x.wklog", adsb(np.arange(3.0), alt_ft=odd)))
    (batch,) = log.batches()
    back = batch.kinds[Kind.ADSB].data
    assert back[2].tobytes() == odd.tobytes()
    assert np.isnan(back[3:]).all()


def test_callsigns_travel_with_the_vehicles_of_their_frame(tmp_path: Path) -> None:
    (batch,) = LogReader(written(tmp_path / "x.wklog", adsb(np.arange(3.0)))).batches()
    assert batch.callsigns == {"a": "DLH1"}


def test_arrays_are_aligned_and_writable_so_that_no_kernel_is_compiled_twice(tmp_path: Path) -> None:
    for n in range(1, 9):
        for batch in LogReader(written(tmp_path / "x.wklog", adsb(np.arange(float(n))))).batches():
            cols = batch.kinds[Kind.ADSB]
            for array in (cols.t, cols.vid, cols.via, cols.seq, cols.data):
                assert array.flags.aligned
                assert array.flags.writeable
                assert array.flags.c_contiguous


def test_small_batches_become_frames_and_large_ones_are_cut(tmp_path: Path) -> None:
    small = written(tmp_path / "s.wklog", *[adsb(np.arange(100.0))] * 200)
    assert [len(b) for b in LogReader(small).batches()] == [8200, 8200, 3600]
    large = written(tmp_path / "l.wklog", adsb(np.arange(40_000.0)))
    assert [len(b) for b in LogReader(large).batches()] == [FRAME_SAMPLES_MAX, FRAME_SAMPLES_MAX, 7232]


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of three frames, four samples each, small enough to try every byte."""
    path = tmp_path_factory.mktemp("short") / "short.wklog"
    return written(path, *[adsb(10.0 * k + np.arange(4.0)) for k in range(3)], frame_samples=4)


def frames_within(short: Path, length: int) -> int:
    """How many whole frames the first `length` bytes of the short log hold."""
    index_at = TRAILER.unpack(short.read_bytes()[-TRAILER.size :])[0]
    ends = [entry.offset for entry in LogReader(short)._entries[1:]] + [index_at]
    return sum(end <= length for end in ends)


def test_cut_at_any_byte_every_whole_frame_is_readable_and_the_cut_is_told(short: Path, tmp_path: Path) -> None:
    whole = short.read_bytes()
    cut_file = tmp_path / "cut.wklog"
    expected = all_samples(LogReader(short))
    first_data = LogReader(short)._entries[0].offset
    for length in range(len(whole)):
        cut_file.write_bytes(whole[:length])
        if length < first_data:
            with pytest.raises(LogError, match=r"cut\.wklog"):
                LogReader(cut_file)
            continue
        log = LogReader(cut_file)
        frames = frames_within(short, length)
        assert all_samples(log) == expected[: 4 * frames]
        assert log.truncated is not None
        assert log.truncated.offset <= length


def test_a_flipped_bit_anywhere_is_noticed_and_never_gives_wrong_samples(short: Path, tmp_path: Path) -> None:
    whole = short.read_bytes()
    expected = all_samples(LogReader(short))
    flipped_file = tmp_path / "flipped.wklog"
    rng = random.Random(1)
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.randrange(8)
        flipped_file.write_bytes(damaged)
        try:
            log = LogReader(flipped_file)
        except LogError:
            continue
        found = all_samples(log)
        assert log.truncated is not None, f"byte {at}"
        assert found == expected[: len(found)]


def test_a_log_is_readable_while_it_is_being_written(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "x.wklog")
    writer.write(adsb(np.arange(5.0)))
    assert len(all_samples(LogReader(writer.path))) == 0
    writer.flush()
    assert len(all_samples(LogReader(writer.path))) == 5
    writer.close()


@given(start=st.floats(-1, 60), stop=st.floats(-1, 60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_span_of_time_is_selected_sample_by_sample(short: Path, start: float, stop: float) -> None:
    expected = [s for s in all_samples(LogReader(short)) if start <= s[3] < stop]  # type: ignore[operator]
    assert all_samples(LogReader(short), start=start, stop=stop) == expected


def test_selecting_time_reads_only_the_frames_it_needs(short: Path, tmp_path: Path) -> None:
    damaged = bytearray(short.read_bytes())
    damaged[LogReader(short)._entries[0].offset + 60] ^= 1
    path = tmp_path / "x.wklog"
    path.write_bytes(damaged)
    log = LogReader(path)
    assert len(all_samples(log, start=10.0)) == 8
    assert log.truncated is None
    assert all_samples(log) == []
    assert log.truncated is not None


def test_a_newer_version_is_told_apart_from_no_log_at_all(tmp_path: Path) -> None:
    newer = tmp_path / "newer.wklog"
    newer.write_bytes(b"WKLOG2\n" + bytes(50))
    with pytest.raises(LogError, match=r"newer\.wklog: a \.wklog of version 2"):
        open_log(newer)
    newer.write_bytes(MAGIC + pack_frame(HEADER, b"\x81\xa7version\x63"))
    with pytest.raises(LogError, match="version 99"):
        open_log(newer)
    other = tmp_path / "other.wklog"
    other.write_bytes(b"hello, world, this is not a log")
    with pytest.raises(LogError, match=r"other\.wklog: not a \.wklog"):
        open_log(other)
    with pytest.raises(LogError, match=r"none\.wklog: No such file"):
        open_log(tmp_path / "none.wklog")
    (tmp_path / "x.xyz").write_bytes(b"?")
    with pytest.raises(LogError, match=r"known endings: \.wklog, \.csv"):
        open_log(tmp_path / "x.xyz")


def test_an_empty_log_is_whole(tmp_path: Path) -> None:
    log = LogReader(written(tmp_path / "x.wklog"))
    assert list(log.batches()) == []
    assert log.truncated is None


def test_a_full_disk_names_the_file() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    with pytest.raises(LogError, match="/dev/full: No space left"), LogWriter("/dev/full") as writer:
        writer.write(adsb(np.arange(5.0)))


def earlier_samples() -> Batch:
    """What version1.wklog was written from, by the last commit that wrote logs of version 1."""
    imu, gps = np.arange(20), np.arange(4)
    names = ("imu_ax", "imu_ay", "imu_az", "imu_wx", "imu_wy", "imu_wz")
    fields = {name: imu / (i + 3) for i, name in enumerate(names)}
    return Batch(
        ["a", "b"],
        {
            Kind.IMU: columns_of(Kind.IMU, imu.astype(np.int32) % 2, imu / 10, fields, seq=imu),
            Kind.GPS: columns_of(Kind.GPS, np.zeros(4, np.int32), gps / 2, {"gps_x": 3.0 * gps}, seq=20 + gps),
        },
        callsigns={"b": "BRAVO"},
    )


def test_a_log_of_the_first_version_is_read_as_it_was() -> None:
    [found] = LogReader(Path(__file__).with_name("version1.wklog")).batches()
    assert samples(found) == samples(earlier_samples())
    assert found.callsigns == {"b": "BRAVO"}
