"""MCAP, `.mcap` (extra `mcap`): a log for Foxglove and PlotJuggler. Every message is JSON with a JSON Schema.

    /<vehicle>/<kind>             watchkeeper.<kind>      all that a sample says: t, id, via, callsign and its fields
    /<vehicle>/<kind>/location    foxglove.LocationFix    its position, for the Map panel
    /alarms                       watchkeeper.alarm       every alarm event, as `replay --alarms` wrote it
    /alarms/log                   foxglove.Log            the same as one line each, for the Log panel

A vehicle's name is escaped as in MQTT topics; the message has it as it is. Fields that are absent are left out. A
message's time is the sample's in nanoseconds, and `t` has it bit by bit. Channels are numbered with 16 bits: vehicles
beyond CHANNELS_MAX channels share `/others/<kind>`.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.streams.adapters.base import AdapterDeclaration
from watchkeeper.streams.adapters.exports.alarms import Event, events
from watchkeeper.streams.adapters.exports.mcap_schemas import ALARM, LOCATION_FIX, LOG, kind_schema
from watchkeeper.streams.adapters.exports.positions import positions
from watchkeeper.streams.adapters.exports.times import SECOND_NS, datable, nanoseconds
from watchkeeper.streams.batch import Batch, Columns
from watchkeeper.streams.logs.base import ALARMS, ORIGIN, Origin, Target
from watchkeeper.streams.logs.chunks import numbered
from watchkeeper.streams.logs.flat import hear
from watchkeeper.streams.messages import FIELDS, SIGNAL, Kind, escape_id
from watchkeeper.streams.signals import names_in

# Of 65,535 some are kept for the channels that all others share.
CHANNELS_MAX = 60_000
# Large enough that the index, which has a row for each channel in each chunk, stays small with thousands of vehicles.
CHUNK_BYTES = 4 << 20
# foxglove.Log: 2 information, 3 warning, 4 error
_LEVELS = {"advisory": 2, "caution": 3, "warning": 4}
_encode = msgspec.json.Encoder().encode
# Place in the order of arrival, channel, time in nanoseconds, content.
Message = tuple[int, int, int, bytes]


class McapWriter:
    """One file. `alarms` is a file of alarm events that are put among the samples by their time."""

    def __init__(self, path: Path, *, alarms: Path | None = None, origin: Origin | None = None) -> None:
        from mcap.writer import Writer  # noqa: PLC0415

        self.samples = 0
        self._origin = origin
        self._undated = 0
        self._sharing = 0
        self._file = path.open("wb")
        self._mcap: Any = Writer(self._file, chunk_size=CHUNK_BYTES)
        # no version in it: the same samples give the same bytes
        self._mcap.start(profile="", library="watchkeeper")
        self._schemas: dict[str, int] = {}
        self._channels: dict[tuple[str, Kind, bool], int] = {}
        self._shared: dict[tuple[Kind, bool], int] = {}
        self._callsigns: dict[str, str] = {}
        self._alarms: Iterator[tuple[Event, bytes]] = iter(()) if alarms is None else events(alarms)
        self._next = next(self._alarms, None)
        if self._next is not None:
            self._alarm_channel = self._channel("/alarms", "watchkeeper.alarm", ALARM)
            self._log_channel = self._channel("/alarms/log", "foxglove.Log", LOG)

    @property
    def notes(self) -> tuple[str, ...]:
        """See Writer."""
        found = []
        if self._undated:
            found.append(f"{self._undated:,} samples whose time is none, left out")
        if self._sharing:
            found.append(f"{self._sharing:,} channels are too many for MCAP: those vehicles share /others/<kind>")
        return tuple(found)

    def write(self, batch: Batch) -> None:
        """See Writer."""
        batch = numbered(batch)
        hear(batch, self._callsigns)
        messages: list[Message] = []
        for kind, whole in batch.kinds.items():
            there = datable(whole)
            cols = whole if there.all() else whole.take(there)
            self._undated += len(whole) - len(cols)
            self.samples += len(cols)
            messages += self._samples(kind, cols, batch)
            messages += self._locations(kind, cols, batch)
        messages.sort(key=lambda message: message[0])
        for _, channel, ns, data in messages:
            self._mcap.add_message(channel, ns, data, ns)
        self._write_alarms(batch.t_max)

    def close(self) -> None:
        """See Writer."""
        self._write_alarms(float("inf"))
        self._mcap.finish()
        self._file.close()

    def _samples(self, kind: Kind, cols: Columns, batch: Batch) -> Iterator[Message]:
        channels = {vid: self._channel_of(batch.ids[vid], kind) for vid in set(cols.vid.tolist())}
        texts = {vid: self._texts(batch.ids[vid]) for vid in channels}
        columns: list[tuple[str, list[Any]]]
        columns = [(field.name, column.tolist()) for field, column in zip(FIELDS[kind], cols.data, strict=True)]
        if kind is Kind.SIGNAL:
            columns = [("signal", names_in(cols.data[SIGNAL.name_0 :])), columns[SIGNAL.value]]
        rows = zip(cols.seq.tolist(), cols.vid.tolist(), cols.via.tolist(), cols.t.tolist(), strict=True)
        for i, (ns, (seq, vid, via, t)) in enumerate(zip(nanoseconds(cols.t).tolist(), rows, strict=True)):
            said: dict[str, Any] = {"t": t, **texts[vid]}
            if via >= 0:
                said["via"] = batch.vias[via]
            said |= {name: column[i] for name, column in columns if column[i] == column[i]}
            yield seq, channels[vid], ns, _encode(said)

    def _locations(self, kind: Kind, cols: Columns, batch: Batch) -> Iterator[Message]:
        found = positions(kind, cols, self._origin)
        # a waypoint is no place where the vehicle is
        if found is None or kind is Kind.ROUTE:
            return
        times = nanoseconds(found.where[:, 0]).tolist()
        seqs = cols.seq[found.rows].tolist()
        for seq, vid, ns, (_, lon, lat, alt_m) in zip(
            seqs, found.vid.tolist(), times, found.where.tolist(), strict=True
        ):
            name = batch.ids[vid]
            fix: dict[str, Any] = {"timestamp": _stamp(ns), "frame_id": name, "latitude": lat, "longitude": lon}
            if not isnan(alt_m):
                fix["altitude"] = alt_m
            yield seq, self._channel_of(name, kind, location=True), ns, _encode(fix | {"position_covariance_type": 0})

    def _texts(self, name: str) -> dict[str, str]:
        return {"id": name, **({"callsign": self._callsigns[name]} if name in self._callsigns else {})}

    def _write_alarms(self, until: float) -> None:
        while self._next is not None and self._next[0].t <= until:
            event, line = self._next
            ns = round(event.t * 1e6) * 1000
            self._mcap.add_message(self._alarm_channel, ns, line, ns)
            text = {
                "timestamp": _stamp(ns), "level": _LEVELS.get(event.severity, 0),
                "message": f"{event.state}: {event.words}", "name": event.kind, "file": "", "line": 0,
            }  # fmt: skip
            self._mcap.add_message(self._log_channel, ns, _encode(text), ns)
            self._next = next(self._alarms, None)

    def _channel_of(self, name: str, kind: Kind, *, location: bool = False) -> int:
        """The channel of a vehicle's samples, or of its positions."""
        channel = self._channels.get((name, kind, location))
        if channel is None:
            if len(self._channels) < CHANNELS_MAX:
                channel = self._vehicle_channel(f"/{escape_id(name)}", kind, location=location, about={"id": name})
            else:
                self._sharing += 1
                channel = self._shared.get((kind, location)) or self._vehicle_channel(
                    "/others", kind, location=location
                )
                self._shared[kind, location] = channel
            self._channels[name, kind, location] = channel
        return channel

    def _vehicle_channel(self, top: str, kind: Kind, *, location: bool, about: dict[str, str] | None = None) -> int:
        if location:
            return self._channel(f"{top}/{kind.word}/location", "foxglove.LocationFix", LOCATION_FIX, about)
        return self._channel(f"{top}/{kind.word}", f"watchkeeper.{kind.word}", kind_schema(kind), about)

    def _channel(self, topic: str, name: str, schema: dict[str, Any], about: dict[str, str] | None = None) -> int:
        if name not in self._schemas:
            self._schemas[name] = self._mcap.register_schema(name, "jsonschema", _encode({"title": name, **schema}))
        channel: int = self._mcap.register_channel(topic, "json", self._schemas[name], about or {})
        return channel


def _stamp(ns: int) -> dict[str, int]:
    """A time as Foxglove's schemas have it."""
    return {"sec": ns // SECOND_NS, "nsec": ns % SECOND_NS}


MCAP = AdapterDeclaration(
    name="mcap",
    help="samples and alarms for Foxglove and PlotJuggler",
    docs="export.md",
    extra="watchkeeper[mcap]",
    targets=(
        Target(
            name="mcap",
            help="plots, map and log panels of Foxglove; PlotJuggler",
            writer=f"{__name__}:McapWriter",
            suffixes=(".mcap",),
            takes=(ALARMS, ORIGIN),
            needs={"mcap": "mcap"},
            extra="watchkeeper[mcap]",
        ),
    ),
)
