"""Why a message is refused, in words: for the log, `run --once` and the reference of the messages.

`in_words` says more than the reason's name where the payload shows it: the place where JSON breaks off, the field that
is missing, of the wrong type or out of its range. It decodes the payload again: for a few messages, not for all.
"""

from __future__ import annotations

import re
from typing import Any

from watchkeeper.streams.foreign.decode import ForeignError, from_json
from watchkeeper.streams.messages import FIELDS, KIND_OF_WORD, Drop, Kind

# `{sample}` is the limit of a sample's size; names in backticks are settings and fields.
REASONS = {
    Drop.TOPIC: "the topic names no stream",
    Drop.SIZE: "a single sample over `limits.max_sample_bytes` ({sample}), or a frame over `limits.max_payload_bytes`",
    Drop.SYNTAX: "neither JSON nor MessagePack",
    Drop.DEPTH: "nested too deeply",
    Drop.TYPE: "a field of the wrong type",
    Drop.ID: "an id that is empty, too long, not printable, or not the topic's",
    Drop.NAME: "a signal without a name, or with one that is too long or has other characters than it may",
    Drop.MISSING: "`t` or a required field is absent",
    Drop.FINITE: "an infinite number",
    Drop.RANGE: "a number outside its field's range",
    Drop.TIME: "`t` is not a number or not between 0 and the year 2100",
    Drop.FRAME: "columns of a frame do not fit its ids, or another version",
    Drop.LATE: "older than a tick that has run already (`time.lateness_s`)",
    Drop.DUPLICATE: "the same vehicle, stream and time again",
    Drop.TIME_JUMP: "its clock is far from everyone else's (`time.max_jump_s`)",
    Drop.CLOCK: "its sender's clock jumps about, so its time means nothing; see [clock](detectors/clock.md)",
    Drop.FLEET_FULL: "more vehicles than `fleet.max_vehicles`",
    Drop.QUEUE_FULL: "input faster than the daemon (`limits.queue_messages`, `limits.pending_samples`)",
}
# What a line has no use for: the page's figure and link, and its marks of code.
_FOR_THE_PAGE = re.compile(r" \(\{sample\}\)|; see \[.*|`")
# Bytes shown from where JSON breaks off, and of a payload that is decoded again at most.
SHOWN_BYTES, DECODED_BYTES = 24, 65_536


def in_words(reason: str, payload: bytes = b"", stream: str = "") -> str:
    """Why this payload of a stream (`adsb`, `gps` …) was refused, for a person.

    >>> in_words("malformed", b'{"t":1,"lon":.01}', "adsb")
    'neither JSON nor MessagePack: JSON is malformed: invalid character (byte 13), at ".01}"'
    >>> in_words("out_of_range", b'{"t":1,"lat":91,"lon":8}', "adsb")
    "a number outside its field's range: lat is 91, allowed is -90 to 90 deg"
    """
    words = _FOR_THE_PAGE.sub("", REASONS.get(reason, reason))
    detail = _detail(reason, payload, KIND_OF_WORD.get(stream))
    return f"{words}: {detail}" if detail else words


def _detail(reason: str, payload: bytes, kind: Kind | None) -> str:
    if payload[:1] != b"{":
        return "a message begins with { (JSON), or is a MessagePack map" if reason == Drop.SYNTAX and payload else ""
    if len(payload) > DECODED_BYTES:
        return ""
    try:
        found = from_json(payload)
    except ForeignError as error:
        place = re.search(r"\(byte (\d+)\)", str(error))
        rest = payload[int(place[1]) :][:SHOWN_BYTES].decode("utf-8", "backslashreplace") if place else ""
        return f'{error}, at "{rest}"' if rest else str(error)
    if kind is None or not isinstance(found, dict) or isinstance(found.get("id"), list):
        return ""
    return next(filter(None, (_blame(reason, found, name) for name in ("t", *(f.name for f in FIELDS[kind])))), "")


def _blame(reason: str, found: dict[str, Any], name: str) -> str:
    value = found.get(name)
    field = next((f for fields in FIELDS.values() for f in fields if f.name == name), None)
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if reason == Drop.MISSING and value is None and (field is None or field.required):
        return f"no {name}"
    if reason == Drop.TYPE and value is not None and number is None:
        return f"{name} is {value!r:.40}, which is no number"
    if reason == Drop.RANGE and field is not None and number is not None and not field.lo <= number <= field.hi:
        return f"{name} is {number:g}, allowed is {field.lo:g} to {field.hi:g} {field.unit}".rstrip()
    return ""
