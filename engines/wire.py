"""Turns as bytes: steps on their way to an operator, and its answers on their way to Merge.

    ask     = MessagePack [[samples or nil, moved, [clock]], …]; samples are the payload of a `.wklog` data frame
    answers = MessagePack [[[tick, events, seen, called, gone], …], ended], …]; arrays as in streams/foreign/states.py

Both come from a process of our own, of the same version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import msgspec
import numpy as np

from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.fleet.clocks import ClockNote
from watchkeeper.engines.steps import Answer, Clock, Step, Told
from watchkeeper.streams.batch import CheckedBatch
from watchkeeper.streams.foreign.decode import msgpack_decoder
from watchkeeper.streams.foreign.states import StateEncoder, decode_state
from watchkeeper.streams.logs.chunks import numbered
from watchkeeper.streams.logs.wkframe import decode_data, encode_data
from watchkeeper.streams.messages import FIELDS, Kind

OUR_COLUMNS = {kind.word: list(range(len(FIELDS[kind]))) for kind in Kind}
_events = msgpack_decoder(list[AlarmEvent])
_encode = msgspec.msgpack.Encoder().encode


class _Clock(msgspec.Struct, array_like=True):
    away: tuple[float, float] | None
    notes: list[list[Any]]
    gateways: list[str]
    first: int | None
    tick: int | None
    provisional: bool
    forget: list[str]
    end_t: float | None


class _Step(msgspec.Struct, array_like=True):
    samples: memoryview | None
    moved: bool
    clock: _Clock


_steps = msgpack_decoder(list[_Step])
_clocks = msgpack_decoder(list[_Clock])


def pack_steps(steps: Sequence[Step]) -> bytes:
    """One operator's steps of a turn."""
    return _encode([_Step(_frame(step.samples), step.moved, _plain(step.clock)) for step in steps])


def unpack_steps(ask: bytes | memoryview) -> list[Step]:
    """The inverse of `pack_steps`; samples are views into the bytes."""
    return [Step(_batch(step.samples), step.moved, _clock(step.clock)) for step in _steps(ask)]


def clocks_of(ask: bytes | memoryview) -> bytes:
    """What Merge gets of a turn, from what any operator gets of it."""
    return _encode([step.clock for step in _steps(ask)])


def pack_clocks(clocks: Sequence[Clock]) -> bytes:
    """What Merge gets of a turn."""
    return _encode([_plain(clock) for clock in clocks])


def unpack_clocks(clocks: bytes | memoryview) -> list[Clock]:
    """The inverse of `pack_clocks`."""
    return [_clock(clock) for clock in _clocks(clocks)]


def _frame(batch: CheckedBatch | None) -> memoryview | None:
    return memoryview(encode_data(numbered(batch))) if batch is not None and batch.kinds else None


def _batch(payload: memoryview | None) -> CheckedBatch | None:
    if payload is None:
        return None
    # arrays must be aligned, and they end the payload: see wkframe.py
    lead = -len(payload) % 8
    room = np.empty((lead + len(payload)) // 8, np.float64)
    aligned = memoryview(room.view(np.uint8))[lead:]  # type: ignore[arg-type]
    aligned[:] = payload
    found = decode_data(aligned, OUR_COLUMNS)
    return CheckedBatch(found.ids, found.kinds, found.vias, found.callsigns, found.called_t)


def _plain(clock: Clock) -> _Clock:
    notes = [list(astuple(note)) for note in clock.notes]
    return _Clock(
        clock.away, notes, list(clock.gateways), clock.first, clock.tick, clock.provisional, list(clock.forget),
        clock.end_t,
    )  # fmt: skip


def _clock(plain: _Clock) -> Clock:
    notes = tuple(ClockNote(*note) for note in plain.notes)
    return Clock(
        plain.away, notes, tuple(plain.gateways), plain.first, plain.tick, plain.provisional, tuple(plain.forget),
        plain.end_t,
    )  # fmt: skip


def pack_answers(answers: Sequence[Answer], encoder: StateEncoder) -> bytearray:
    """One operator's answers to a turn; they hold until the encoder is used again."""
    plain = [
        [[[told.tick, _encode(told.events), told.seen, told.called, told.gone] for told in answer.ticks],
         _encode(answer.ended)]
        for answer in answers
    ]  # fmt: skip
    return encoder.encode({"answers": plain})


def unpack_answers(answers: bytes | bytearray) -> list[Answer]:
    """The inverse of `pack_answers`."""
    return [
        Answer([Told(tick, _events(events), seen, called, gone) for tick, events, seen, called, gone in ticks],
               _events(ended))
        for ticks, ended in decode_state(bytes(answers))["answers"]
    ]  # fmt: skip
