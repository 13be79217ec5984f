"""Turns as bytes: steps on their way to an operator, and its answers on their way to Merge.

    ask     = length of the head, head, arrays of samples (columns.py); each begins at a multiple of eight bytes
    head    = MessagePack [[head of samples or nil, moved, [clock]], …]
    answers = MessagePack [[[tick, events, seen, called, gone], …], ended], …]; arrays as in streams/foreign/states.py

Both come from a process of our own, of the same version.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import msgspec

from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.fleet.clocks import ClockNote
from watchkeeper.engines.columns import Buffer, Head, laid_out, read
from watchkeeper.engines.steps import Answer, Clock, Step, Told
from watchkeeper.streams.foreign.decode import msgpack_decoder
from watchkeeper.streams.foreign.states import StateEncoder, decode_state

_events = msgpack_decoder(list[AlarmEvent])
_encode = msgspec.msgpack.Encoder().encode
_LENGTH = struct.Struct("<Q")


class PlainClock(msgspec.Struct, array_like=True):
    """A Clock on its way."""

    away: tuple[float, float] | None
    notes: list[list[Any]]
    gateways: list[str]
    first: int | None
    tick: int | None
    provisional: bool
    forget: list[str]
    end_t: float | None
    accept: str


class _Step(msgspec.Struct, array_like=True):
    samples: Head | None
    moved: bool
    clock: PlainClock


_steps = msgpack_decoder(list[_Step])
_clocks = msgpack_decoder(list[PlainClock])


def laid_out_steps(steps: Sequence[Step]) -> list[Buffer]:
    """One operator's steps of a turn, in pieces that follow each other: columns are not copied."""
    heads: list[_Step] = []
    arrays: list[Buffer] = []
    for step in steps:
        head = None
        if step.samples is not None and step.samples.kinds:
            head, own = laid_out(step.samples)
            arrays += own
        heads.append(_Step(head, step.moved, plain_clock(step.clock)))
    words = _encode(heads)
    return [_LENGTH.pack(len(words)), words, bytes(-len(words) % 8), *arrays]


def pack_steps(steps: Sequence[Step]) -> bytes:
    """One operator's steps of a turn."""
    return b"".join(laid_out_steps(steps))


def unpack_steps(ask: Buffer) -> list[Step]:
    """The inverse of both. Samples are copied: the memory may be another's by the time that they are judged."""
    heads, at = _heads(ask)
    found = []
    for step in heads:
        samples = None
        if step.samples is not None:
            samples, at = read(step.samples, ask, at)
        found.append(Step(samples, step.moved, clock_of(step.clock)))
    return found


def clocks_of(ask: Buffer) -> bytes:
    """What Merge gets of a turn, from what any operator gets of it."""
    return _encode([step.clock for step in _heads(ask)[0]])


def _heads(ask: Buffer) -> tuple[list[_Step], int]:
    (length,) = _LENGTH.unpack_from(ask)
    stop = _LENGTH.size + length
    return _steps(memoryview(ask)[_LENGTH.size : stop]), stop + -length % 8


def pack_clocks(clocks: Sequence[Clock]) -> bytes:
    """What Merge gets of a turn."""
    return _encode([plain_clock(clock) for clock in clocks])


def unpack_clocks(clocks: bytes | memoryview) -> list[Clock]:
    """The inverse of `pack_clocks`."""
    return [clock_of(clock) for clock in _clocks(clocks)]


def plain_clock(clock: Clock) -> PlainClock:
    """A Clock on its way."""
    notes = [list(astuple(note)) for note in clock.notes]
    return PlainClock(
        clock.away, notes, list(clock.gateways), clock.first, clock.tick, clock.provisional, list(clock.forget),
        clock.end_t, clock.accept,
    )  # fmt: skip


def clock_of(plain: PlainClock) -> Clock:
    """The inverse of `plain_clock`."""
    notes = tuple(ClockNote(*note) for note in plain.notes)
    return Clock(
        plain.away, notes, tuple(plain.gateways), plain.first, plain.tick, plain.provisional, tuple(plain.forget),
        plain.end_t, plain.accept,
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
