"""What the messages on a CAN bus mean to us: a TOML file next to the DBC file of the bus. For can.py.

    dbc = "vehicle.dbc"                 # what the messages are; relative to this file
    id = "car1"                         # what the vehicle is called

    [[samples]]
    kind = "imu"                        # adsb, gps, imu, action, route or link
    on = "Accel"                        # the message that makes a sample
    hold_s = 0.1                        # values of other messages are taken along if they are this old at most
    [samples.fields]
    imu_ax = "Accel.AccX"               # message.signal, in the unit that the DBC file gives it
    imu_wx = {signal = "Gyro.RateX", scale = 0.017453293, offset = 0.0}

    signals = ["Battery.*", "Motor?.Speed"]    # above the first table: patterns of message.signal that are watched as
                                               # named numbers (docs/detectors/signal.md), under these names

cantools reads the DBC file and decodes; `scale` and `offset` come on top.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import Path
from typing import Any

import msgspec

from watchkeeper.streams.foreign.decode import ForeignError, from_toml
from watchkeeper.streams.foreign.files import open_file
from watchkeeper.streams.foreign.library import library
from watchkeeper.streams.logs.base import LogError
from watchkeeper.streams.messages import COLUMN, FIELDS, GPS_POSITIONS, ID_MAX, KIND_OF_WORD, Kind
from watchkeeper.streams.signals import as_name

HOLD_S = 0.1


# J1939 carries up to 1,785 bytes in parts; CAN itself 8, CAN FD 64.
BITS_MAX = 8 * 1785
# Those of whole cars have a few MB.
DBC_MAX_BYTES = 32 << 20
# Where a signal begins and how long it is, and the length of a message.
_BITS = re.compile(rb":\s*(\d+)\s*\|\s*(\d+)|\bBO_\s+\d+\s+\S+\s*:?\s*(\d+)")


class _Signal(msgspec.Struct, forbid_unknown_fields=True):
    signal: str
    scale: float = 1.0
    offset: float = 0.0


class _Sample(msgspec.Struct, forbid_unknown_fields=True):
    kind: str
    on: str
    fields: dict[str, _Signal | str]
    id: str = ""
    hold_s: float = HOLD_S


class _File(msgspec.Struct, forbid_unknown_fields=True):
    dbc: str
    id: str
    samples: list[_Sample] = []
    signals: list[str] = []


@dataclass(frozen=True, slots=True)
class Field:
    """Where a field comes from."""

    message: str
    signal: str
    scale: float
    offset: float


@dataclass(frozen=True, slots=True)
class Sample:
    """How one kind of sample is put together."""

    kind: Kind
    name: str
    on: str
    hold_s: float
    fields: dict[str, Field]
    needs: tuple[tuple[str, ...], ...]
    """A sample has all fields of one of these."""


@dataclass(frozen=True, slots=True)
class CanMap:
    """A mapping that has been checked against its DBC file."""

    database: Any
    samples: list[Sample]
    name: str = ""
    signals: dict[str, dict[str, str]] = field(default_factory=dict)
    """Of each message the names of its signals that are watched as named numbers, and what we call them."""

    @property
    def messages(self) -> set[str]:
        """The messages that are used."""
        return (
            {field.message for sample in self.samples for field in sample.fields.values()}
            | {sample.on for sample in self.samples}
            | set(self.signals)
        )


def load_map(path: Path) -> CanMap:
    """A mapping file. Raises LogError, and ModuleNotFoundError without cantools."""
    import cantools  # noqa: PLC0415  an optional dependency

    try:
        with open_file(path) as file:
            read = from_toml(file.read(), _File)
    except OSError as error:
        raise LogError(path, error.strerror or str(error)) from error
    except ForeignError as error:
        raise LogError(path, f"not a mapping of CAN messages: {error}") from error
    dbc = path.parent / read.dbc
    with library(dbc, "not a DBC file"):
        _check_sizes(dbc)
        database = cantools.database.load_file(dbc, database_format="dbc")
    try:
        samples = [_sample(sample, read.id, database) for sample in read.samples]
        signals = _signals(read.signals, database)
        if not samples and not signals:
            raise ValueError("neither samples nor signals: it says nothing about any message")
        if signals and not 0 < len(read.id) <= ID_MAX:
            raise ValueError(f"id {read.id!r}: 1 to {ID_MAX} characters")
        return CanMap(database, samples, read.id, signals)
    except ValueError as error:
        raise LogError(path, str(error)) from error


def _signals(patterns: list[str], database: Any) -> dict[str, dict[str, str]]:
    """The signals that fit a pattern, by message; a pattern that none fits is a mistake."""
    found: dict[str, dict[str, str]] = {}
    for pattern in patterns:
        fits = re.compile(translate(pattern)).match
        names = [(m.name, s.name) for m in database.messages for s in m.signals if fits(f"{m.name}.{s.name}")]
        if not names:
            raise ValueError(f"signals: the DBC file has no message and signal like {pattern!r}")
        for message, signal in names:
            found.setdefault(message, {})[signal] = as_name(f"{message}.{signal}")
    return found


def _check_sizes(dbc: Path) -> None:
    """Cantools makes a list of all bits of a message: a few digits would fill the memory. Raises LogError."""
    with open_file(dbc) as file:
        text = file.read(DBC_MAX_BYTES + 1)
    if len(text) > DBC_MAX_BYTES:
        raise LogError(dbc, f"more than {DBC_MAX_BYTES >> 20} MB, which is the most that is read")
    for found in _BITS.finditer(text):
        digits = max((part for part in found.groups() if part is not None), key=lambda part: (len(part), part))
        if len(digits) > 9 or int(digits) > BITS_MAX:
            line = text.count(b"\n", 0, found.start()) + 1
            raise LogError(dbc, f"line {line}: a signal or message of {digits[:20].decode()} bits or bytes")


def _sample(read: _Sample, default_id: str, database: Any) -> Sample:
    kind = KIND_OF_WORD.get(read.kind)
    if kind is None:
        raise ValueError(f"kind {read.kind!r}: there are {', '.join(KIND_OF_WORD)}")
    if kind is Kind.SIGNAL:
        raise ValueError('kind "signal": name them with signals = ["Message.Signal", ...] above the tables')
    name = read.id or default_id
    if not 0 < len(name) <= ID_MAX:
        raise ValueError(f"id {name!r}: 1 to {ID_MAX} characters")
    known = {message.name: {signal.name for signal in message.signals} for message in database.messages}
    if read.on not in known:
        raise ValueError(f"on = {read.on!r}: the DBC file has no such message")
    fields: dict[str, Field] = {}
    for column, where in read.fields.items():
        given = _Signal(where) if isinstance(where, str) else where
        message, _, signal = given.signal.partition(".")
        if column not in COLUMN[kind]:
            raise ValueError(f"{column}: {kind.word} has no such field; it has {', '.join(COLUMN[kind])}")
        if signal not in known.get(message, ()):
            raise ValueError(f"{column} = {given.signal!r}: the DBC file has no such message and signal")
        fields[column] = Field(message, signal, given.scale, given.offset)
    required = tuple(f.name for f in FIELDS[kind] if f.required)
    return Sample(kind, name, read.on, read.hold_s, fields, GPS_POSITIONS if kind is Kind.GPS else (required,))
