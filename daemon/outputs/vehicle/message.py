"""MAVLink 2's GNSS_INTEGRITY (441, development.xml) as bytes: what is thought of one receiver's signals.

    header   FD, length, 0, 0, sequence, system, component, message id (3 bytes)
    payload  system_errors u32, raim_hfom u16 cm, raim_vfom u16 cm, id u8, authentication_state u8, jamming_state u8,
             spoofing_state u8, raim_state u8, and four qualities u8; zeros at its end are left out
    check    CRC-16/MCRF4XX of all but the first byte and of the message's own number, 169

Little-endian. What nobody here knows is told as unknown. Used by the sink; no dialect of pymavlink is needed.
"""

from __future__ import annotations

import struct
from enum import IntEnum

START, MESSAGE_ID, CRC_EXTRA = 0xFD, 441, 169
_PAYLOAD = struct.Struct("<IHHBBBBBBBBB")
_UNKNOWN_CM, _UNKNOWN_QUALITY = 0xFFFF, 0xFF


class State(IntEnum):
    """GPS_SPOOFING_STATE and GPS_JAMMING_STATE; 2 is for receivers that mitigate it themselves."""

    UNKNOWN = 0
    NONE = 1
    DETECTED = 3


def payload(receiver: int, spoofing: State, jamming: State) -> bytes:
    """What is said of a receiver, without the zeros at its end."""
    whole = _PAYLOAD.pack(
        0, _UNKNOWN_CM, _UNKNOWN_CM, receiver, 0, jamming, spoofing, 0,
        _UNKNOWN_QUALITY, _UNKNOWN_QUALITY, _UNKNOWN_QUALITY, _UNKNOWN_QUALITY,
    )  # fmt: skip
    return whole.rstrip(b"\0")


def framed(body: bytes, system: int, component: int, sequence: int) -> bytes:
    """A message of this payload, ready to be sent."""
    header = bytes((len(body), 0, 0, sequence & 0xFF, system, component)) + MESSAGE_ID.to_bytes(3, "little")
    return bytes((START,)) + header + body + crc(header + body + bytes((CRC_EXTRA,))).to_bytes(2, "little")


def crc(data: bytes) -> int:
    """MAVLink's checksum.

    >>> hex(crc(b"123456789"))
    '0x6f91'
    """
    found = 0xFFFF
    for byte in data:
        low = byte ^ found & 0xFF
        low ^= low << 4 & 0xFF
        found = found >> 8 ^ low << 8 ^ low << 3 ^ low >> 4
    return found & 0xFFFF
