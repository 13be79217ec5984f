"""Snapshots: what is saved comes back, what is broken is refused and nothing worse."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as npst
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.state.snapshot import SnapshotError, fingerprint, previous, read_snapshot, write_snapshot
from watchkeeper.streams.foreign.states import ARRAY, StateEncoder, decode_state
from watchkeeper.streams.messages import FIELDS, Kind

ARRAYS = npst.arrays(
    st.sampled_from([np.float64, np.int64, np.int32, np.uint8, np.bool_]), npst.array_shapes(min_dims=0, min_side=0)
)
PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text()
# names in our own code, none of which is the mark of an array
KEYS = st.text().filter(lambda key: key != ARRAY)
STATES = st.dictionaries(
    KEYS, st.recursive(PLAIN | ARRAYS, lambda kids: st.lists(kids) | st.dictionaries(KEYS, kids), max_leaves=8)
)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (a == b or a != a)


@settings(deadline=None)
@given(state=STATES)
def test_any_state_comes_back_as_it_was(state: dict[str, Any]) -> None:
    assert same(state, decode_state(bytes(StateEncoder().encode(state))))


def test_views_are_saved_as_they_look_and_come_back_writable() -> None:
    table = np.arange(12.0).reshape(3, 4)
    back = decode_state(bytes(StateEncoder().encode({"view": table[:, ::2], "number": np.float64(2.5)})))
    table[:] = 0.0
    assert back["view"].tolist() == [[0.0, 2.0], [4.0, 6.0], [8.0, 10.0]]
    back["view"][0, 0] = 1.0
    assert back["number"] == 2.5


def test_records_with_named_fields_keep_their_names_and_places() -> None:
    record = np.dtype([("phase", "i1"), ("pos", "f8", (3,)), ("bins", "f4", (2, 2))], align=True)
    table = np.zeros(4, record)
    table["pos"][2] = 1.0, 2.0, 3.0
    table["phase"][3] = 7
    back = decode_state(bytes(StateEncoder().encode({"table": table[1:]})))["table"]
    assert back["pos"][1].tolist() == [1.0, 2.0, 3.0]
    table[1:] = back
    assert table["phase"].tolist() == [0, 0, 0, 7]


def test_one_encoder_serves_large_and_small_states() -> None:
    encoder = StateEncoder()
    for n in (10, 100_000, 3):
        state = {"x": np.arange(n), "n": n}
        assert same(state, decode_state(bytes(encoder.encode(state))))


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    path = tmp_path / "snapshot.msgpack"
    write_snapshot(path, StateEncoder().encode({"x": np.arange(5), "alarms": []}), "mark", 12)
    return path


def test_a_snapshot_is_found_whole_and_none_is_none(snapshot: Path, tmp_path: Path) -> None:
    found = read_snapshot(snapshot, "mark")
    assert found is not None
    state, journal = found
    assert (state["x"].tolist(), journal) == ([0, 1, 2, 3, 4], 12)
    assert read_snapshot(tmp_path / "other", "mark") is None
    assert [f.name for f in tmp_path.iterdir()] == ["snapshot.msgpack"]


def test_every_damaged_byte_and_every_cut_is_noticed(snapshot: Path) -> None:
    whole = snapshot.read_bytes()
    for i in range(len(whole)):
        snapshot.write_bytes(whole[:i] + bytes([whole[i] ^ 0x41]) + whole[i + 1 :])
        with pytest.raises(SnapshotError):
            read_snapshot(snapshot, "mark")
        snapshot.write_bytes(whole[:i])
        with pytest.raises(SnapshotError):
            read_snapshot(snapshot, "mark")


def test_the_snapshot_before_the_newest_stays(snapshot: Path) -> None:
    write_snapshot(snapshot, StateEncoder().encode({"x": np.arange(3), "alarms": []}), "mark", 13)
    kept = [read_snapshot(path, "mark") for path in (snapshot, previous(snapshot))]
    assert [found and found[1] for found in kept] == [13, 12]


def test_a_snapshot_of_an_earlier_version_is_named_as_such(snapshot: Path) -> None:
    snapshot.write_bytes(b'{"watchkeeper_snapshot":3,"fingerprint":"mark","bytes":1,"crc32":1}\n\x80')
    with pytest.raises(SnapshotError, match="format 3, this version reads"):
        read_snapshot(snapshot, "mark")


class Trap:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return exec, ("import os; os.environ['WATCHKEEPER_TRAPPED'] = '1'",)


@pytest.mark.parametrize(
    "payload",
    [
        pickle.dumps(Trap()),
        # an array of objects, the way in which NumPy's own files carry a pickle
        msgspec.msgpack.encode({"x": {ARRAY: ["'|O'", [1], [pickle.dumps(Trap())]]}}),
        msgspec.msgpack.encode({"x": {ARRAY: ["__import__('os')", [1], [b"12345678"]]}}),
        b"\x91" * 100_000,
    ],
    ids=["pickle", "array of objects", "code for a type", "nested"],
)
def test_nothing_in_a_snapshot_is_run(snapshot: Path, payload: bytes) -> None:
    write_snapshot(snapshot, payload, "mark")
    with pytest.raises(SnapshotError):
        read_snapshot(snapshot, "mark")
    assert "WATCHKEEPER_TRAPPED" not in os.environ


def test_a_first_line_that_is_nested_too_deeply_is_damage(snapshot: Path) -> None:
    snapshot.write_bytes(b"[" * 3000 + b"\n")
    with pytest.raises(SnapshotError) as found:
        read_snapshot(snapshot, "mark")
    assert found.value.damaged


def test_a_snapshot_of_another_shape_is_refused(snapshot: Path) -> None:
    with pytest.raises(SnapshotError, match="configuration of another shape"):
        read_snapshot(snapshot, "other mark")
    snapshot.unlink()
    snapshot.mkdir()
    with pytest.raises(SnapshotError, match="unreadable"):
        read_snapshot(snapshot, "mark")


def test_a_version_with_other_fields_has_another_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its snapshot fails in the middle of a restore, with a traceback in place of a reason."""
    before = fingerprint(DEFAULT)
    monkeypatch.setitem(FIELDS, Kind.ADSB, FIELDS[Kind.ADSB][:-1])
    assert fingerprint(DEFAULT) != before


def test_the_fingerprint_follows_the_shape_of_the_state_and_not_the_thresholds() -> None:
    conflict = msgspec.structs.replace(DEFAULT.detectors.conflict, horizon_s=60.0)
    tuned = msgspec.structs.replace(DEFAULT, detectors=msgspec.structs.replace(DEFAULT.detectors, conflict=conflict))
    assert fingerprint(tuned) == fingerprint(DEFAULT)
    smaller = msgspec.structs.replace(DEFAULT, fleet=msgspec.structs.replace(DEFAULT.fleet, max_vehicles=10))
    assert fingerprint(smaller) != fingerprint(DEFAULT)
