"""Telemetry messages on a stream: the maps and frames of MQTT (codec/decode.py), as MessagePack or as JSON lines.

A topic says which stream a message belongs to and of which vehicle it is; here two keys do:

    {"kind": "gps", "id": "uav-1", "t": 1709294400.5, "lat": 51.5, "lon": -0.5, "alt_m": 80}          a sample
    {"kind": "gps", "v": 1, "id": ["uav-1", "uav-2"], "t": 1709294400.5, "lat": <bin>, …}          a frame: ids

Lines of JSON that other programs write are told by their keys and read too:

    {"timestamp": 1720248189.5, "frame": "8d3933225809741ea48a8152bbe7", …}      jet1090 and rs1090: decoded
    {"now": 1709294400.5, "hex": "4ca7b3", "lat": …, …}                          readsb's JSON port: an aircraft a line

Packed streams are unpacked (gzip, zstd), told by their content. See foreign/pieces.py for what happens to bytes that
are no message. A stream whose packing is damaged is closed, and counted.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from watchkeeper.config.adapters.messages import Messages as Settings
from watchkeeper.config.schema import Limits, Topics
from watchkeeper.streams.adapters.base import READ_BYTES, AdapterDeclaration, FeedLog, Sample, Way
from watchkeeper.streams.adapters.receivers.readsb import Readsb
from watchkeeper.streams.adapters.receivers.squitter import Squitters
from watchkeeper.streams.batch import Batch, Columns
from watchkeeper.streams.codec.decode import Decoder
from watchkeeper.streams.codec.encode import frame_topic, sample_topic
from watchkeeper.streams.foreign.decode import ForeignError, json_decoder, msgpack_decoder
from watchkeeper.streams.foreign.files import UnpackError
from watchkeeper.streams.foreign.pieces import Cutter, Unpacking
from watchkeeper.streams.logs.base import Format, LogError
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.messages import FIELDS, KIND_OF_WORD, T_MAX, Drop

_TOPICS, _LIMITS = Topics(), Limits()
_FRAME = re.compile("(?:[0-9a-fA-F]{14}){1,2}")
# Keys that may begin a message.
_KEYS = {"kind", "id", "t", "v", "via", "callsign", "timestamp", "now", "hex"} | {
    field.name for fields in FIELDS.values() for field in fields
}


class _Head(msgspec.Struct, gc=False):
    """What tells one message from another. The rest is read by its own reader."""

    kind: Any = None
    id: Any = None
    frame: Any = None
    timestamp: Any = None
    hex: Any = None
    now: Any = None


_json, _msgpack = json_decoder(_Head), msgpack_decoder(_Head)


class Messages:
    """One stream; see adapters/base.py."""

    def __init__(self, *, via: str = "", kind: str = "") -> None:
        self.refused: Counter[str] = Counter()
        self._via = via
        self._kind = kind
        self._unpacking = Unpacking()
        self._cutter = Cutter(_KEYS, _LIMITS.max_payload_bytes)
        self._decoder = Decoder(_TOPICS, _LIMITS, self._on_bad)
        self._squitters = Squitters(self.refused, via=via)
        self._readsb = Readsb(via=via)
        self._heard: list[tuple[str, float]] = []

    def push(self, data: bytes, now: float) -> None:  # noqa: ARG002  messages have their own time
        """See Feed. Raises UnpackError, an OSError, when the rest of a packed stream is lost."""
        try:
            for piece in self._unpacking.push(data):
                self._cut(piece)
        except UnpackError:
            self.refused[Drop.SYNTAX] += 1
            raise
        finally:
            self._decode_frames()

    def close(self) -> None:
        """See Feed."""
        self._cut(self._unpacking.close())
        for found in self._cutter.close():
            self._message(found)
        self._decode_frames()
        self._unpacking = Unpacking()

    def take(self) -> Batch | None:
        """See Feed."""
        parts = [self._decoder.take(), self._squitters.take(), self._readsb.take()]
        self.refused += self._readsb.refused
        self._readsb.refused.clear()
        there = [self._through(part) for part in parts if part is not None]
        return None if not there else there[0] if len(there) == 1 else join(there)

    def _cut(self, data: bytes) -> None:
        for found in self._cutter.push(data):
            self._message(found)

    def _message(self, found: bytes | str) -> None:
        """One message, or why there is none."""
        if isinstance(found, str):
            self.refused[found] += 1
            return
        text = found[:1] == b"{"
        try:
            head = _json(found) if text else _msgpack(found)
        except ForeignError as error:
            self._wrong(found, error.reason)
            return
        if head.kind is None and text and self._other_program(head, found):
            return
        word = self._kind if head.kind is None else head.kind
        kind = KIND_OF_WORD.get(word) if isinstance(word, str) else None
        if kind is None:
            self._wrong(found, Drop.MISSING if head.kind is None else Drop.TYPE)
        elif isinstance(head.id, list):
            self._decoder.add(frame_topic(_TOPICS, kind), found)
        elif isinstance(head.id, str) and head.id:
            self._decoder.add(sample_topic(_TOPICS, kind, head.id), found)
        else:
            self._wrong(found, Drop.ID)

    def _wrong(self, message: bytes, reason: str) -> None:
        # a line that only looked like one is part of what was counted already
        if self._cutter.wrong(message):
            self.refused[reason] += 1

    def _other_program(self, head: _Head, line: bytes) -> bool:
        """Whether it is a line of a receiver's program; then it is taken."""
        if isinstance(head.frame, str) and isinstance(head.timestamp, (int, float)):
            if _FRAME.fullmatch(head.frame) is None:
                self.refused[Drop.SYNTAX] += 1
            elif not 0.0 <= head.timestamp < T_MAX:
                self.refused[Drop.TIME] += 1
            else:
                self._heard.append((head.frame, float(head.timestamp)))
            return True
        if isinstance(head.hex, str) and isinstance(head.now, (int, float)):
            if not 0.0 <= head.now < T_MAX:
                self.refused[Drop.TIME] += 1
                return True
            try:
                self._readsb.see(line, float(head.now))
            except ForeignError:
                self.refused[Drop.TYPE] += 1
            return True
        return False

    def _decode_frames(self) -> None:
        heard, self._heard = self._heard, []
        self._squitters.add(heard)

    def _through(self, batch: Batch) -> Batch:
        """The same with the gateway of this source, where a message names none."""
        if not self._via or not any((cols.via < 0).any() for cols in batch.kinds.values()):
            return batch
        own = len(batch.vias)
        kinds = {
            kind: Columns(c.seq, c.vid, np.where(c.via < 0, own, c.via).astype(np.int32), c.t, c.data)
            for kind, c in batch.kinds.items()
        }
        return Batch(batch.ids, kinds, [*batch.vias, self._via], batch.callsigns, batch.called_t)

    def _on_bad(self, topic: str, reason: str, payload: bytes) -> None:  # noqa: ARG002
        self.refused[reason] += 1


def open_messages(path: Path) -> FeedLog:
    """A file of messages, one behind the other."""
    return FeedLog(path, "messages", Messages)


class StdinLog(FeedLog):
    """Messages on standard input, which can be read once."""

    def __init__(self) -> None:
        super().__init__("/dev/stdin", "messages", Messages)
        self.path, self._size, self._read = Path("-"), 0, False

    def _pieces(self) -> Iterator[bytes]:
        if self._read:
            raise LogError(self.path, "standard input can be read once, and this asks for it again: write it to a file")
        self._read = True
        while data := os.read(sys.stdin.fileno(), READ_BYTES):
            self._size = self.position = self.position + len(data)
            yield data


_ENDINGS = tuple(f".{name}{packed}" for name in ("jsonl", "ndjson", "msgpack", "mpk") for packed in ("", ".gz", ".zst"))
_EXAMPLE: list[dict[str, Any]] = [
    {"kind": "gps", "id": "uav-1", "t": 1709294400.5, "lat": 51.5, "lon": -0.5, "alt_m": 80.0},
    {"kind": "adsb", "v": 1, "id": ["4ca7b3", "400f01"], "t": 1709294400.5, "lat": [51.5, 51.6], "lon": [-0.5, -0.4]},
]

MESSAGES = AdapterDeclaration(
    name="messages",
    help="MessagePack and JSON lines with the messages of MQTT; lines of readsb, jet1090 and rs1090",
    docs="adapters/messages.md",
    settings=Settings,
    feed=f"{__name__}:Messages",
    takes=("via", "kind"),
    ways=(Way.STREAM,),
    datagrams=True,
    sample=Sample(
        data=b"".join(msgspec.msgpack.encode(message) for message in _EXAMPLE),
        settings={"url": "tcp://192.168.1.30:7000", "via": "mast"},
    ),
    formats=(Format("messages", f"{__name__}:open_messages", _ENDINGS),),
)
