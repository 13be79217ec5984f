"""Mode S frames in columns: cut from Beast binary, their parity, what each is. Used by modes.py and squitter.py.

A frame is a row of FRAME_BYTES bytes, with its size next to it: 14, 7 (short) or 2 (Mode A/C).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from watchkeeper.streams.batch import F8
from watchkeeper.streams.kernels import njit

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
FRAME_BYTES, SHORT_BYTES = 14, 7
TICKS_PER_S = 12e6
ESCAPE = 0x1A
# Longer than any message, those included that are not ours: status messages have up to 255 bytes.
STRANGE_BYTES = 300
# A message of Beast behind its type: counter of six bytes, one of signal strength, frame.
_HEAD_BYTES = 7
BODY_BYTES = _HEAD_BYTES + FRAME_BYTES
SHORTEST_BODY = _HEAD_BYTES + 2
# What is kept between the pieces of a stream: bytes since the last escape, and messages that could not be read.
STRANGE, REFUSED = 0, 1
# What to do with a frame: nothing, refuse it, read it in columns, ask rs1090 (a squitter, an answer to a radar).
SKIP, WRONG, COLUMNS, SQUITTER, ANSWER = 0, 1, 2, 3, 4
# An address that is not ICAO's has this bit in its key.
NOT_ICAO = 1 << 24
_POLYNOMIAL = 0xFFF409
# Of format 18 (not from a transponder) those in the form of ADS-B, and those of them with another kind of address.
_AS_ADSB = np.array([1, 1, 1, 0, 0, 1, 1, 0], np.bool_)
_OTHER_ADDRESS = np.array([0, 1, 0, 0, 0, 1, 0, 0], np.bool_)


def _parity_table() -> Ints:
    table = np.zeros(256, np.int64)
    for byte in range(256):
        rest = byte << 16
        for _ in range(8):
            rest = (rest << 1 ^ (_POLYNOMIAL if rest & 0x800000 else 0)) & 0xFFFFFF
        table[byte] = rest
    return table


_PARITY = _parity_table()


@njit(cache=True)
def parity(frame: Bytes, size: int) -> int:
    """What is left of a frame by the generator: 0 of a squitter, the sender's address of an answer."""
    rest = 0
    for i in range(size):
        rest = ((rest << 8) & 0xFFFFFF) ^ int(_PARITY[rest >> 16]) ^ int(frame[i])
    return rest


@njit(cache=True)
def cut(data: Bytes, bodies: Bytes, sizes: Ints, kept: Ints) -> tuple[int, int]:
    """Counter, signal and frame of every whole message of Beast; how many, and where what is not whole begins."""
    at, end, found = 0, len(data), 0
    while True:
        start = at
        while start < end and data[start] != ESCAPE:
            start += 1
        # bytes that no message of ours has: so many without any escape are another protocol, and counted once
        before = kept[STRANGE]
        kept[STRANGE] += start - at
        if before <= STRANGE_BYTES < kept[STRANGE]:
            kept[REFUSED] += 1
        if start == end:
            return found, end
        kept[STRANGE] = 0
        if start + 2 > end:
            return found, start
        size = _size_of(data[start + 1])
        if size == 0:
            # an escaped byte of a message that we joined late, or a type that is not ours
            at = start + 2
            continue
        at, count = _unescape(data, start + 2, bodies[found], _HEAD_BYTES + size)
        if count == _HEAD_BYTES + size:
            sizes[found] = size
            found += 1
        elif at < end:
            kept[REFUSED] += 1  # cut short by the next message, which begins here
        else:
            return found, start


@njit(cache=True)
def _size_of(kind: int) -> int:
    """Bytes of the frame in a message of this type; 0: not ours."""
    if kind == 0x33:
        return FRAME_BYTES
    return SHORT_BYTES if kind == 0x32 else 2 if kind == 0x31 else 0


@njit(cache=True)
def _unescape(data: Bytes, at: int, body: Bytes, wanted: int) -> tuple[int, int]:
    """Doubled escapes made single; where it ends, and how many bytes there are."""
    count, end = 0, len(data)
    while count < wanted and at < end:
        if data[at] == ESCAPE:
            if at + 1 >= end:
                return end, count
            if data[at + 1] != ESCAPE:
                return at, count
            at += 1
        body[count] = data[at]
        count += 1
        at += 1
    return at, count


@njit(cache=True)
def heads(bodies: Bytes, frames: Bytes, seconds: F8) -> None:
    """The frames of messages of Beast, and their counters in seconds."""
    for i in range(len(bodies)):
        ticks = np.int64(0)
        for k in range(6):
            ticks = ticks << 8 | np.int64(bodies[i, k])
        seconds[i] = ticks / TICKS_PER_S
        frames[i] = bodies[i, _HEAD_BYTES:]


@njit(cache=True)
def sort_out(frames: Bytes, sizes: Ints, keys: Ints, routes: Ints) -> None:
    """Of each frame whose it is and what to do with it."""
    for i in range(len(frames)):
        frame, form = frames[i], frames[i, 0] >> 3
        routes[i] = SKIP
        if form in (17, 18) and sizes[i] == FRAME_BYTES:
            sub = frame[0] & 7
            if parity(frame, FRAME_BYTES) != 0:
                routes[i] = WRONG
            elif form == 17 or _AS_ADSB[sub]:
                routes[i] = COLUMNS if 5 <= frame[4] >> 3 <= 22 else SQUITTER
                keys[i] = np.int64(frame[1]) << 16 | np.int64(frame[2]) << 8 | np.int64(frame[3])
                if form == 18 and _OTHER_ADDRESS[sub]:
                    keys[i] |= NOT_ICAO
        elif (form in (20, 21) and sizes[i] == FRAME_BYTES) or (form == 5 and sizes[i] == SHORT_BYTES):
            routes[i] = ANSWER
            keys[i] = parity(frame, sizes[i])
