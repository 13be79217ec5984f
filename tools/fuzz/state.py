"""Targets: what the daemon finds in its state directory at a start, damaged, and with the right checksums all the same.

Everything must be read in part or set aside with a word; nothing there may keep a daemon from starting. Not even what
carries the right checksum, as a file of another version might.
"""

from __future__ import annotations

import functools
import logging
import random
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from tools.fuzz.corpus import Files
from tools.fuzz.readers import damaged
from tools.fuzz.run import Case, Target
from tools.fuzz.trees import edited_msgpack
from watchkeeper.config.loader import load
from watchkeeper.config.schema import Config
from watchkeeper.daemon.intake.inputlog import InputLog, Position
from watchkeeper.daemon.outputs.delivered import Delivered
from watchkeeper.daemon.outputs.journal_past import read_past
from watchkeeper.daemon.state.checked import seal, seal_in_chain
from watchkeeper.daemon.state.snapshot import (
    FORMAT,
    Header,
    SnapshotError,
    fingerprint,
    read_snapshot,
    write_snapshot,
)
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, AlarmEvent, alarm_id
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.foreign.states import StateEncoder
from watchkeeper.streams.simulate import simulate

Load = Callable[[Path], str]


@functools.cache
def _config() -> Config:
    return load(None, env={}, overrides={"fleet": {"max_vehicles": 20}})


def events() -> list[AlarmEvent]:
    """A few events of alarms that come and go."""
    return [
        AlarmEvent(
            id=alarm_id("silence", (name,), 1.0), kind="silence", state=state, severity="caution", subjects=(name,),
            t=5.0 + t, t_onset=1.0, t_raised=2.0, t_cleared=9.0 if state == CLEARED else None, score=2.0, threshold=1.0,
            evidence={"silence_s": 4.0}, ended="cause_gone" if state == CLEARED else None,
        )
        for t, (name, state) in enumerate([("a", RAISED), ("b", RAISED), ("a", CLEARED), ("c", RAISED)])
    ]  # fmt: skip


def _lines(bodies: list[bytes]) -> bytes:
    return b"".join(seal_in_chain(body, k + 1, k) for k, body in enumerate(bodies))


def _journal() -> Files:
    return Files("journal.jsonl", [_lines([msgspec.json.encode(event) for event in events()])])


def _journal_sealed() -> Files:
    """Lines that are damaged and have the right checksum."""
    body = b"\n".join(msgspec.json.encode(event) for event in events())
    return Files("journal.jsonl", [body], seal=lambda content: _lines(content.split(b"\n")))


def _read_journal(path: Path) -> str:
    past = read_past(path, path.with_name("journal.sent"))
    return "part" if past.damaged or past.torn else "read"


def _told() -> Files:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "webhook-x.told"
        kept = Delivered(path)
        for event in events():
            kept.note(event)
        kept.close()
        return Files(path.name, [path.read_bytes()])


def _read_told(path: Path) -> str:
    kept = Delivered(path)
    kept.close()
    return "read" if kept.ids else "part"


def _snapshot_bytes() -> tuple[bytes, str]:
    pipeline = Pipeline(_config())
    for batch in simulate("drones", seconds=2.0, seed=1, vehicles=2).batches():
        pipeline.feed(batch)
    return bytes(StateEncoder().encode(pipeline.snapshot())), fingerprint(pipeline.config)


def _snapshot() -> Files:
    payload, mark = _snapshot_bytes()
    with tempfile.TemporaryDirectory() as folder:
        write_snapshot(Path(folder) / "snapshot.msgpack", payload, mark)
        return Files("snapshot.msgpack", [(Path(folder) / "snapshot.msgpack").read_bytes()])


def _snapshot_sealed() -> Files:
    """A state that says something else, under the right checksum."""
    payload, mark = _snapshot_bytes()

    def close(content: bytes) -> bytes:
        head = Header(FORMAT, mark, len(content), zlib.crc32(content), 0)
        return seal(msgspec.json.encode(head)) + content

    return Files("snapshot.msgpack", [payload], seal=close, edit=edited_msgpack)


def _read_snapshot(path: Path) -> str:
    try:
        found = read_snapshot(path, fingerprint(_config()))
    except SnapshotError:
        return "refused"
    assert found is not None
    try:
        Pipeline(_config()).restore(found[0])
    except Exception:  # as daemon/state/recovery.py takes it: a state from another world
        return "part"
    return "read"


def _input() -> Files:
    with tempfile.TemporaryDirectory() as folder:
        log = InputLog(Path(folder), max_bytes=1 << 20, fsync=False)
        batches = list(simulate("drones", seconds=1.0, seed=1, vehicles=2).batches())
        for k in range(4):
            log.append([("telemetry/adsb/a", b'{"t":1}', 1.0), ("", batches[0], 2.0)], [], 5.0 + k)
        log.close()
        return Files("input-00000001.log", [(Path(folder) / "input-00000001.log").read_bytes()])


def _read_input(path: Path) -> str:
    log = InputLog(path.parent, max_bytes=1 << 20, fsync=False)
    blocks = list(log.blocks(Position()))
    log.close()
    return "part" if log.notes() or log.torn else "read" if blocks else "refused"


def _state_target(make: Callable[[], Files], load: Load) -> Case:
    logging.disable(logging.ERROR)
    files, path = make(), Path(tempfile.mkdtemp()) / make().name
    for data in files.seeds:
        path.write_bytes(files.seal(data))
        assert load(path) == "read"

    def case(draw: random.Random) -> str:
        path.write_bytes(files.seal(damaged(draw, files)))
        return load(path)

    return case


STATE: dict[str, tuple[Callable[[], Files], Load]] = {
    "journal": (_journal, _read_journal),
    "journal sealed": (_journal_sealed, _read_journal),
    "told": (_told, _read_told),
    "snapshot": (_snapshot, _read_snapshot),
    "snapshot sealed": (_snapshot_sealed, _read_snapshot),
    "input": (_input, _read_input),
}
TARGETS: dict[str, Target] = {
    f"state {name}": functools.partial(_state_target, make, load) for name, (make, load) in STATE.items()
}
