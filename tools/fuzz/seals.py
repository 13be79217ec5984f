"""Closes damaged content as its format does: checksums, parity, packing. So would an attacker, to get further.

sealed(content) -> content      the same with the checksums of what it now holds
"""

from __future__ import annotations

import gzip
import re

from watchkeeper.streams.logs import wkframe

# 1a, its type, six bytes of time and one of signal strength, then a message of 14 bytes; AVR has it as text.
_BEAST = re.compile(rb"\x1a\x33(.{7})(.{11})(.{3})", re.S)
_AVR = re.compile(rb"([*@](?:[0-9A-F]{12})?)([0-9A-F]{22})[0-9A-F]{6};", re.I)
_PARITY = 0x1FFF409


def packed(content: bytes) -> bytes:
    """Content in a gzip file."""
    return gzip.compress(content, 1, mtime=0)


def parity(message: bytes) -> bytes:
    """The three bytes that close a Mode S extended squitter of 11 bytes."""
    rest = int.from_bytes(message + bytes(3), "big")
    for bit in range(len(message) * 8 + 23, 23, -1):
        if rest >> bit & 1:
            rest ^= _PARITY << bit - 24
    return rest.to_bytes(3, "big")


def sealed_beast(content: bytes) -> bytes:
    """A Beast recording whose long messages have the right parity; none with an escaped byte in it is touched."""
    return _BEAST.sub(lambda found: b"\x1a\x33" + found[1] + found[2] + parity(found[2]), content)


def sealed_avr(content: bytes) -> bytes:
    """An AVR recording whose long messages have the right parity."""
    return _AVR.sub(
        lambda found: found[1] + found[2] + parity(bytes.fromhex(found[2].decode())).hex().encode() + b";", content
    )


def sealed_tlog(content: bytes) -> bytes:
    """A recording of MAVLink 2 whose messages have the right checksum."""
    from pymavlink.dialects.v20 import ardupilotmega as mav  # noqa: PLC0415

    data = bytearray(content)
    at = data.find(0xFD)
    while 0 <= at <= len(data) - 12:
        size, number = data[at + 1], int.from_bytes(data[at + 7 : at + 10], "little")
        end, known = at + 10 + size, mav.mavlink_map.get(number)
        if known is not None and end + 2 <= len(data):
            crc = mav.x25crc(data[at + 1 : end])
            crc.accumulate(bytes([known.crc_extra]))
            data[end : end + 2] = crc.crc.to_bytes(2, "little")
            at = end + 1
        at = data.find(0xFD, at + 1)
    return bytes(data)


def sealed_wklog(content: bytes) -> bytes:
    """A recording with the checksums of what it now holds: what an attacker would write."""
    at, parts = len(wkframe.MAGIC), [wkframe.MAGIC]
    while at + wkframe.HEAD_BYTES <= len(content):
        tag, length, samples, t_min, t_max, _ = wkframe._HEAD.unpack_from(content, at)
        at += wkframe.HEAD_BYTES
        if tag not in (wkframe.HEADER, wkframe.DATA, wkframe.INDEX):
            break
        payload = content[at : at + length]
        frame = wkframe.pack_frame(tag, payload, samples, t_min, t_max)
        at += length
        parts.append(frame)
    return b"".join(parts) + content[at:]
