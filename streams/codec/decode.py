"""Payload bytes to columns. The way back is encode.py.

Two payloads exist, each as MessagePack or, when the first byte is `{`, as JSON:
- a **sample** on `<prefix>/<kind>/<id>`: a map with `t` and the fields of the kind, and optionally `id` (which
  must agree with the topic), `via`, `callsign`;
- a **frame** on `<prefix>/<kind>`: `{"v":1, "id":[…], "t":<number or column>, "<field>":<column>, …}`. A column
  is little-endian f8 or f4 as MessagePack bin, or a list of numbers; one value per id, NaN or null for absent.
  `via` is one name or a list of names, `callsign` a list.
Samples and frames of the stream `signal` have names of their own in place of fields: signals.py.

Messages that come many at a time are read by a kernel where they are plain samples in MessagePack (plain.py).

Messages that come many at a time are read by a kernel where they are plain samples in MessagePack (plain.py).

The decoder never raises: what it cannot use goes to `on_bad` with a reason and the payload. Samples are decoded
by msgspec into tuples and become columns in `take()`, once for many messages. There they are checked, the only time.

An adapter's batch, which was never a payload, joins the messages by `add_batch`: names, gateways and samples pass
the same checks, and a sample that is refused is reported as the message that would have carried it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import nan
from typing import Any

import msgspec
import numpy as np

from watchkeeper.config.schema import Limits, Topics
from watchkeeper.streams.batch import F8, I4, U1, Batch, CheckedBatch, Columns, concat, later_calls
from watchkeeper.streams.check import REASONS, sound
from watchkeeper.streams.codec.encode import FRAME_VERSION, encode_sample, frame_topic, sample_topic
from watchkeeper.streams.codec.plain import CALLSIGN, ID, VIA, WORDS, PlainReader
from watchkeeper.streams.codec.signals import Sample, SignalError, frame_rows, sample_rows, spoken, text_of
from watchkeeper.streams.foreign.decode import ForeignError, json_decoder, msgpack_decoder
from watchkeeper.streams.messages import COLUMN, FIELDS, ID_MAX, KIND_OF_WORD, Drop, Kind, unescape_id
from watchkeeper.streams.signals import name_in

OnBad = Callable[[str, str, bytes], None]
# Topics are repeated for ever, so their parse is kept; the table starts afresh when an attacker fills it.
TOPICS_REMEMBERED = 100_000
# Fewer messages than this are decoded faster one by one; and so are so many groups after one that is not plain.
PLAIN_LEAST = 8
WARY_GROUPS = 16
# Fewer samples of a kind than this are read faster one by one; and after some that are not plain, so many groups are.
PLAIN_LEAST = 8
WARY_GROUPS = 16


def _sample_type(kind: Kind) -> type[msgspec.Struct]:
    # `on_ground` and `reached` are naturally true/false in JSON
    number = {f.name: (bool | float | None if f.unit == "" and f.hi == 1.0 else float | None) for f in FIELDS[kind]}
    fields: list[Any] = [("t", float), ("id", str | None, None), ("via", str | None, None)]
    fields += [("callsign", str | None, None)] + [(name, kind_of, nan) for name, kind_of in number.items()]
    return msgspec.defstruct(f"{kind.name.title()}Sample", fields)


def _frame_type(kind: Kind) -> type[msgspec.Struct]:
    column = bytes | list[float | None] | None
    fields: list[Any] = [("id", list[str]), ("t", float | bytes | list[float]), ("v", int, FRAME_VERSION)]
    fields += [("via", str | list[str] | None, None), ("callsign", list[str | None] | None, None)]
    fields += [(f.name, column, None) for f in FIELDS[kind]]
    return msgspec.defstruct(f"{kind.name.title()}Frame", fields)


class _RefusedError(Exception):
    """A frame that cannot be used, with its reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Names:
    """Names seen since the last take, in order of appearance, checked once each."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {}

    def get(self, name: str) -> int:
        """The name's number; -1 when it cannot be a name."""
        at = self.index.get(name)
        if at is None:
            if not (0 < len(name) <= ID_MAX and name.isprintable()):
                return -1
            at = self.index[name] = len(self.index)
        return at


class _Part:
    """What one kind has gathered since the last take: rows of single samples, and blocks that came as frames."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        # topic and payload, and whatever comes behind them; None stands for rows that came as columns
        self.origins: list[tuple[Any, ...] | None] = []
        self.seq: list[int] = []
        self.vid: list[int] = []
        self.via: list[int] = []
        # each block: its columns, and for each row its index into origins
        self.blocks: list[Columns] = []
        self.block_origins: list[I4] = []

    def add(self, block: Columns, origin: tuple[str, bytes] | None) -> None:
        """Take columns that came as one."""
        self.close_rows()
        self.origins.append(origin)
        self.blocks.append(block)
        self.block_origins.append(np.full(len(block), len(self.origins) - 1, np.int32))

    def add_each(self, block: Columns, origins: Sequence[tuple[Any, ...]]) -> None:
        """Take columns of which each row was a message."""
        self.close_rows()
        first = len(self.origins)
        self.origins += origins
        self.blocks.append(block)
        self.block_origins.append(np.arange(first, len(self.origins), dtype=np.int32))

    def close_rows(self) -> None:
        """Turn the gathered rows into a block, so that frames and samples keep their order."""
        if not self.rows:
            return
        # a tuple is (t, field, field …); None becomes NaN and True 1.0 on the way into float64
        table = np.array(self.rows, dtype=np.float64).T
        n = len(self.rows)
        self.blocks.append(
            Columns(
                np.array(self.seq, np.int64),
                np.array(self.vid, np.int32),
                np.array(self.via, np.int32),
                table[0].copy(),
                table[1:].copy(),
            )
        )
        self.block_origins.append(np.arange(len(self.origins) - n, len(self.origins), dtype=np.int32))
        self.rows, self.seq, self.vid, self.via = [], [], [], []


class Decoder:
    """From (topic, payload) to batches. One per source; call `add` for each message and `take` when convenient."""

    def __init__(self, topics: Topics, limits: Limits, on_bad: OnBad) -> None:
        self._tree = topics
        self._prefix = topics.telemetry + "/"
        self._limits = limits
        self._on_bad = on_bad
        fixed: list[Kind] = [kind for kind in Kind if kind is not Kind.SIGNAL]
        self._sample = {k: self._decoders(_sample_type(k)) for k in fixed}
        self._frame = {k: self._decoders(_frame_type(k)) for k in fixed}
        self._signals = self._decoders(Sample)
        self._signal_frame = self._decoders(dict[str, Any])
        self._plain = {k: PlainReader(k) for k in fixed}
        # so many groups are decoded one by one before the next attempt to read one at once
        self._wary = 0
        self._plain = {k: PlainReader(k) for k in fixed}
        self._wary = 0
        self._topics: dict[str, tuple[Kind, str] | None] = {}
        self._reset()

    @staticmethod
    def _decoders(shape: Any) -> tuple[Callable[[bytes], Any], Callable[[bytes], Any]]:
        return json_decoder(shape), msgpack_decoder(shape)

    def _reset(self) -> None:
        self._names = _Names()
        self._vias = _Names()
        self._parts: dict[Kind, _Part] = {}
        self._callsigns: dict[str, str] = {}
        self._called_t: dict[str, float] = {}
        self._seq = 0

    @property
    def pending(self) -> int:
        """Samples waiting for take()."""
        return self._seq

    def add(self, topic: str, payload: bytes) -> None:
        """Decode one message. Bad input is reported to `on_bad`, never raised."""
        where = self._where(topic)
        if where is None:
            self._on_bad(topic, Drop.TOPIC, payload)
            return
        kind, name = where
        limit = self._limits.max_sample_bytes if name else self._limits.max_payload_bytes
        if len(payload) > limit:
            self._on_bad(topic, Drop.SIZE, payload)
            return
        try:
            if kind is Kind.SIGNAL:
                if name:
                    self._add_signals(name, topic, payload)
                else:
                    self._add_signal_frame(topic, payload)
            elif name:
                self._add_sample(kind, name, topic, payload)
            else:
                self._add_frame(kind, topic, payload)
        except (ForeignError, SignalError, _RefusedError) as refused:
            self._on_bad(topic, refused.reason, payload)

    def add_all(self, messages: Sequence[tuple[Any, ...]]) -> None:
        """Decode messages, (topic, payload, …), as `add` would one after the other."""
        if self._wary:
            self._wary -= 1
        elif len(messages) >= PLAIN_LEAST:
            if self._add_plain(messages):
                return
            self._wary = WARY_GROUPS
        for topic, payload, *_ in messages:
            self.add(topic, payload)

    def _add_plain(self, messages: Sequence[tuple[Any, ...]]) -> bool:
        """The same at once if all of them are plain samples; otherwise nothing."""
        limit = self._limits.max_sample_bytes
        names: list[str] = []
        rows: dict[Kind, list[int]] = {}
        for i, message in enumerate(messages):
            where = self._where(message[0])
            if where is None or not where[1] or where[0] is Kind.SIGNAL or len(message[1]) > limit:
                return False
            names.append(where[1])
            rows.setdefault(where[0], []).append(i)
        n = len(names)
        t = np.empty(n)
        found: dict[Kind, F8] = {}
        words: list[list[tuple[int, str]]] = [[] for _ in WORDS]
        for kind, at in rows.items():
            plain = self._plain[kind].read([messages[i][1] for i in at])
            if plain is None:
                return False
            t[at], found[kind] = plain.t, plain.data
            for place, (texts, of) in enumerate(plain.texts):
                words[place] += [(at[k], text) for k, text in zip(of.tolist(), texts, strict=True)]
        get = self._names.get
        vid = np.array([get(name) for name in names], np.int32)
        if any(text != names[i] for i, text in words[ID]) or (vid < 0).any():
            return False
        via = np.full(n, -1, np.int32)
        for i, text in sorted(words[VIA]):
            via[i] = self._vias.get(text)
        for i, text in sorted(words[CALLSIGN]):
            self._call(names[i], text, float(t[i]))
        for kind, at in rows.items():
            block = Columns(self._seq + np.array(at), vid[at], via[at], t[at], found[kind])
            self._part(kind).add_each(block, [messages[i] for i in at])
        self._seq += n
        return True

    def _where(self, topic: str) -> tuple[Kind, str] | None:
        try:
            return self._topics[topic]
        except KeyError:
            pass
        where = None
        if topic.startswith(self._prefix):
            word, _, level = topic[len(self._prefix) :].partition("/")
            kind = KIND_OF_WORD.get(word)
            if kind is not None and "/" not in level:
                where = (kind, unescape_id(level))
        if len(self._topics) >= TOPICS_REMEMBERED:
            self._topics.clear()
        self._topics[topic] = where
        return where

    def _add_sample(self, kind: Kind, name: str, topic: str, payload: bytes) -> None:
        from_json, from_msgpack = self._sample[kind]
        sample = from_json(payload) if payload[:1] == b"{" else from_msgpack(payload)
        t, own_id, via, callsign, *fields = msgspec.structs.astuple(sample)
        vid = self._names.get(name)
        if vid < 0 or (own_id is not None and own_id != name):
            raise _RefusedError(Drop.ID)
        if callsign:
            self._call(name, callsign, t)
        part = self._part(kind)
        part.rows.append((t, *fields))
        part.origins.append((topic, payload))
        part.seq.append(self._seq)
        part.vid.append(vid)
        part.via.append(self._vias.get(via) if via else -1)
        self._seq += 1

    def _add_frame(self, kind: Kind, topic: str, payload: bytes) -> None:
        from_json, from_msgpack = self._frame[kind]
        frame = from_json(payload) if payload[:1] == b"{" else from_msgpack(payload)
        n = len(frame.id)
        callsigns_fit = frame.callsign is None or len(frame.callsign) == n
        if frame.v != FRAME_VERSION or not 0 < n <= self._limits.max_frame_rows or not callsigns_fit:
            raise _RefusedError(Drop.FRAME)
        t = np.full(n, frame.t) if isinstance(frame.t, float) else _column(frame.t, n)
        data = np.full((len(FIELDS[kind]), n), nan)
        for c, field in enumerate(FIELDS[kind]):
            values = getattr(frame, field.name)
            if values is not None:
                data[c] = _column(values, n)
        get = self._names.get
        vid = np.array([get(name) for name in frame.id], np.int32)
        if (vid < 0).any():
            raise _RefusedError(Drop.ID)
        via = self._frame_vias(frame.via, n)
        self._part(kind).add(Columns(np.arange(self._seq, self._seq + n), vid, via, t, data), (topic, payload))
        if frame.callsign is not None:
            known = self._callsigns
            for name, callsign, at in zip(frame.id, frame.callsign, t.tolist(), strict=True):
                if callsign and known.get(name) != callsign:
                    self._call(name, callsign, at)
        self._seq += n

    def _add_signals(self, name: str, topic: str, payload: bytes) -> None:
        from_json, from_msgpack = self._signals
        found = from_json(payload) if payload[:1] == b"{" else from_msgpack(payload)
        rows, own_id, via = sample_rows(found), text_of(found, "id"), text_of(found, "via")
        vid = self._names.get(name)
        if vid < 0 or (own_id is not None and own_id != name):
            raise _RefusedError(Drop.ID)
        part, n = self._part(Kind.SIGNAL), len(rows)
        part.rows += rows
        part.origins += [(topic, payload)] * n
        part.seq += range(self._seq, self._seq + n)
        part.vid += [vid] * n
        part.via += [self._vias.get(via) if via else -1] * n
        self._seq += n

    def _add_signal_frame(self, topic: str, payload: bytes) -> None:
        from_json, from_msgpack = self._signal_frame
        found = from_json(payload) if payload[:1] == b"{" else from_msgpack(payload)
        rows, t, data = frame_rows(found, self._limits.max_frame_rows)
        vid = np.array([self._names.get(name) for name in found["id"]], np.int32)
        if (vid < 0).any():
            raise _RefusedError(Drop.ID)
        via = found.get("via")
        if not (via is None or isinstance(via, str) or _are_texts(via)):
            raise _RefusedError(Drop.TYPE)
        vias, n = self._frame_vias(via, len(vid)), len(rows)
        if n:
            seq = np.arange(self._seq, self._seq + n)
            self._part(Kind.SIGNAL).add(Columns(seq, vid[rows], vias[rows], t, data), (topic, payload))
        self._seq += n

    def _call(self, name: str, callsign: str | None, t: float) -> None:
        """A sample of this time names its vehicle."""
        if callsign and self._callsigns.get(name) != callsign[:ID_MAX]:
            self._callsigns[name], self._called_t[name] = callsign[:ID_MAX], t

    def add_batch(self, batch: Batch) -> None:
        """Take samples that are columns already. Like `add` it reports bad ones to `on_bad` and never raises."""
        vid_of = np.array([self._names.get(name) for name in batch.ids], np.int32)
        via_of = np.array([*(self._vias.get(name) for name in batch.vias), -1], np.int32)
        last = -1
        for kind, cols in batch.kinds.items():
            vid = vid_of[cols.vid]
            for row in np.flatnonzero(vid < 0).tolist():
                # a name that is none may hold anything, halves of characters too
                name = batch.ids[cols.vid[row]].encode("utf-8", "replace").decode()
                self._on_bad(frame_topic(self._tree, kind), Drop.ID, _message(kind, cols, row, name))
            # -1, no gateway, picks the last entry
            moved = Columns(self._seq + cols.seq, vid, via_of[cols.via], cols.t, cols.data)
            moved = moved if (vid >= 0).all() else moved.take(vid >= 0)
            if len(moved):
                self._part(kind).add(moved, None)
                last = max(last, int(cols.seq[-1]))
        # an adapter may know the callsigns of many more than it has heard just now
        if batch.callsigns:
            for name, first_t in zip(batch.ids, batch.first_t().tolist(), strict=True):
                self._call(name, batch.callsigns.get(name), batch.called_t.get(name, first_t))
        self._seq += last + 1

    def _frame_vias(self, via: str | list[str] | None, n: int) -> I4:
        if via is None or isinstance(via, str):
            return np.full(n, self._vias.get(via) if via else -1, np.int32)
        if len(via) != n:
            raise _RefusedError(Drop.FRAME)
        return np.array([self._vias.get(name) if name else -1 for name in via], np.int32)

    def _part(self, kind: Kind) -> _Part:
        part = self._parts.get(kind)
        if part is None:
            part = self._parts[kind] = _Part()
        return part

    def take(self) -> CheckedBatch | None:
        """Everything decoded since the last take, checked; None when there is nothing."""
        if not self._seq:
            return None
        ids = list(self._names.index)
        kinds: dict[Kind, Columns] = {}
        for kind, part in self._parts.items():
            part.close_rows()
            cols = part.blocks[0] if len(part.blocks) == 1 else concat(part.blocks)
            cols = sound(kind, cols, partial(self._refuse, kind, part, ids, cols))
            if len(cols):
                kinds[kind] = cols
        called_t = later_calls(ids, kinds, self._called_t)
        batch = CheckedBatch(ids, kinds, list(self._vias.index), self._callsigns, called_t)
        self._reset()
        return batch if kinds else None

    def _refuse(self, kind: Kind, part: _Part, ids: list[str], cols: Columns, codes: U1) -> None:
        origins = np.concatenate(part.block_origins)
        for row in np.flatnonzero(codes).tolist():
            origin, reason = part.origins[origins[row]], REASONS[codes[row]]
            if origin is None:
                origin = sample_topic(self._tree, kind, ids[cols.vid[row]]), _message(kind, cols, row)
            self._on_bad(origin[0], reason, origin[1])


def warm_up() -> None:
    """Compile what decoding needs."""
    decoder = Decoder(Topics(), Limits(), lambda _topic, _reason, _payload: None)
    payload = encode_sample(Kind.ADSB, 1.0, {"lat": 1.0, "lon": 1.0}, encoding="msgpack")
    decoder.add_all([(sample_topic(Topics(), Kind.ADSB, "warm"), payload)] * PLAIN_LEAST)
    decoder.take()


def _message(kind: Kind, cols: Columns, row: int, name: str | None = None) -> bytes:
    """A row of columns as the payload that would have carried it."""
    if kind is Kind.SIGNAL:
        said = spoken(name_in(cols.data, row), float(cols.data[0, row]))
        return encode_sample(kind, float(cols.t[row]), said, name=name)
    values = zip(COLUMN[kind], cols.data[:, row].tolist(), strict=True)
    return encode_sample(kind, float(cols.t[row]), dict(values), name=name)


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _column(values: bytes | list[float | None], n: int) -> F8:
    if isinstance(values, bytes):
        if len(values) == 8 * n:
            # a copy: kernels would be compiled once more for arrays that cannot be written
            return np.frombuffer(values, "<f8").copy()
        if len(values) == 4 * n:
            return np.frombuffer(values, "<f4").astype(np.float64)
        raise _RefusedError(Drop.FRAME)
    if len(values) != n:
        raise _RefusedError(Drop.FRAME)
    return np.array(values, dtype=np.float64)
