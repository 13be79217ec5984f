"""Mutations of bytes: what a bad disk, a cut transfer, a buggy writer or an attacker does to a file.

    mutated(random.Random("seed"), seeds) -> bytes

One of the seeds is chosen and changed by one to four steps: flips, cuts, pieces removed, doubled or moved, a piece of
another seed, length fields set to extreme values, numbers in text replaced by extreme ones. The same random numbers
give the same bytes.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

Step = Callable[[random.Random, bytearray, Sequence[bytes]], bytearray]
# Values that length fields, counts and offsets are fooled with.
_EXTREME = (
    0,
    1,
    2,
    3,
    7,
    127,
    128,
    255,
    256,
    32767,
    65535,
    65536,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**53,
    2**63,
    2**64 - 1,
)
_WORDS = (
    b"", b"0", b"-1", b"1e308", b"-1e308", b"1e999", b"5e-324", b"nan", b"inf", b"null", b"true", b"[]", b"{}", b'""',
    b"65535", b"99999999", b"18446744073709551616", b"9" * 400, b"0.0", b"-0", b"1e-400", b"\xff\xfe", b"\x00",
)  # fmt: skip
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
MOST_BYTES = 1 << 20


def mutated(draw: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One damaged file."""
    data = bytearray(draw.choice(seeds))
    for _ in range(draw.choice((1, 1, 1, 2, 2, 3, 4))):
        data = draw.choice(STEPS)(draw, data, seeds)
    return bytes(data[:MOST_BYTES])


def _flip(draw: random.Random, data: bytearray, _seeds: Sequence[bytes]) -> bytearray:
    for _ in range(draw.choice((1, 1, 2, 8))):
        if data:
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return data


def _byte(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> bytearray:
    if data:
        data[draw.randrange(len(data))] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, 0x0A, 0x22, 0x2C, draw.randrange(256)))
    return data


def _field(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> bytearray:
    """A length, a count or an offset that claims something else."""
    size = draw.choice((1, 2, 4, 8))
    if len(data) < size:
        return data
    # where lengths are: anywhere, but most often near the beginning or the end
    at = draw.choice((draw.randrange(len(data)), draw.randrange(min(len(data), 200)), len(data) - 1 - draw.randrange(
        min(len(data), 200))))  # fmt: skip
    at = min(at, len(data) - size)
    value = draw.choice((*_EXTREME, len(data), len(data) + 1, draw.randrange(2**16))) % (1 << 8 * size)
    data[at : at + size] = value.to_bytes(size, draw.choice(("little", "big")))
    return data


def _cut(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> bytearray:
    return data[: draw.randrange(len(data) + 1)]


def _piece(draw: random.Random, length: int) -> slice:
    at = draw.randrange(length + 1)
    return slice(at, min(length, at + draw.choice((1, 4, 16, 64, 1024, draw.randrange(length + 1)))))


def _remove(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> bytearray:
    del data[_piece(draw, len(data))]
    return data


def _double(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> bytearray:
    piece, times = data[_piece(draw, len(data))], draw.choice((1, 1, 2, 50))
    at = draw.randrange(len(data) + 1)
    return data[:at] + piece * min(times, 1 + MOST_BYTES // max(1, len(piece))) + data[at:]


def _splice(draw: random.Random, data: bytearray, seeds: Sequence[bytes]) -> bytearray:
    other = draw.choice(seeds)
    at = draw.randrange(len(data) + 1)
    return data[:at] + other[_piece(draw, len(other))] + data[at + draw.choice((0, 0, 16)) :]


def _noise(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> bytearray:
    at = draw.randrange(len(data) + 1)
    data[at:at] = draw.randbytes(draw.choice((1, 3, 16, 300)))
    return data


def _number(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> bytearray:
    """A number in text that is an extreme one, or none."""
    found = list(_NUMBER.finditer(data))
    if found:
        start, stop = draw.choice(found).span()
        data[start:stop] = draw.choice(_WORDS)
    return data


def _nest(draw: random.Random, data: bytearray, _: Sequence[bytes]) -> bytearray:
    at = draw.randrange(len(data) + 1)
    data[at:at] = draw.choice((b"[", b"{", b'{"a":', b"\x91", b"\x81\xa1a", b"(", b"<")) * draw.choice((3, 600, 60_000))
    return data


STEPS: tuple[Step, ...] = (
    _flip, _flip, _byte, _byte, _field, _field, _cut, _remove, _double, _splice, _noise, _number, _number, _nest,
)  # fmt: skip
