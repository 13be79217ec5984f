"""Columns to payload bytes: samples and frames as decode.py reads them. For replay, simulator and benchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from watchkeeper.config.schema import Topics
from watchkeeper.streams.batch import F8, Batch
from watchkeeper.streams.codec.signals import encode_rows
from watchkeeper.streams.messages import COLUMN, FIELDS, Kind, escape_id

FRAME_VERSION = 1
# Samples that arrived within this time of each other share a frame, one per kind; far below any sensible lateness.
FRAME_SPAN_S = 0.05


def encode_sample(
    kind: Kind,
    t: float,
    values: Mapping[str, float | str],
    *,
    name: str | None = None,
    encoding: Literal["json", "msgpack"] = "json",
) -> bytes:
    """One sample; absent (NaN) fields are left out. `values` may also hold `via` and `callsign`."""
    present = {
        key: value
        for key, value in values.items()
        if isinstance(value, str) or value == value  # noqa: PLR0124
    }
    unknown = present.keys() - COLUMN[kind].keys() - {"via", "callsign"}
    if unknown and kind is not Kind.SIGNAL:
        raise ValueError(f"{kind.word} has no field {sorted(unknown)[0]!r}; it has {', '.join(COLUMN[kind])}")
    message = {"t": t, **({"id": name} if name else {}), **present}
    return msgspec.json.encode(message) if encoding == "json" else msgspec.msgpack.encode(message)


def encode_frame(
    kind: Kind,
    ids: Sequence[str],
    t: F8,
    data: F8,
    *,
    via: Sequence[str] | None = None,
    callsigns: Mapping[str, str] | None = None,
) -> bytes:
    """One columnar MessagePack frame; columns that are absent throughout are left out."""
    if kind is Kind.SIGNAL:
        return encode_rows(ids, t, data, via)
    frame: dict[str, Any] = {"v": FRAME_VERSION, "id": list(ids)}
    frame["t"] = float(t[0]) if (t == t[0]).all() else t.astype("<f8").tobytes()
    for field, column in zip(FIELDS[kind], data, strict=True):
        if not np.isnan(column).all():
            frame[field.name] = column.astype("<f8").tobytes()
    if via is not None and any(via):
        frame["via"] = via[0] if len(set(via)) == 1 else list(via)
    if callsigns and any(name in callsigns for name in ids):
        frame["callsign"] = [callsigns.get(name) for name in ids]
    return msgspec.msgpack.encode(frame)


def encode_batch(batch: Batch, topics: Topics, *, max_rows: int = 1000) -> Iterator[tuple[str, bytes]]:
    """A batch as frames, (topic, payload), in arrival order but for kinds that change places within FRAME_SPAN_S."""
    seq = np.concatenate([cols.seq for cols in batch.kinds.values()])
    order = np.argsort(seq, kind="stable")
    newest = np.maximum.accumulate(np.concatenate([cols.t for cols in batch.kinds.values()])[order])
    start = 0
    while start < len(order):
        stop = int(np.searchsorted(newest, newest[start] + FRAME_SPAN_S, side="right"))
        stop = min(stop, start + max_rows)
        first, last = seq[order[start]], seq[order[stop - 1]]
        for kind, cols in batch.kinds.items():
            rows = cols.take(np.flatnonzero((cols.seq >= first) & (cols.seq <= last)))
            if len(rows):
                ids = [batch.ids[v] for v in rows.vid.tolist()]
                via = [batch.vias[v] if v >= 0 else "" for v in rows.via.tolist()] if batch.vias else None
                callsigns = batch.callsigns if kind is Kind.ADSB else None
                payload = encode_frame(kind, ids, rows.t, rows.data, via=via, callsigns=callsigns)
                yield frame_topic(topics, kind), payload
        start = stop


def sample_topic(topics: Topics, kind: Kind, name: str) -> str:
    """Where a vehicle's samples of this kind are published."""
    return f"{topics.telemetry}/{kind.word}/{escape_id(name)}"


def frame_topic(topics: Topics, kind: Kind) -> str:
    """Where frames of this kind are published."""
    return f"{topics.telemetry}/{kind.word}"
