"""Mode S frames to samples of aircraft. Used by modes.py, which cuts streams into frames.

    squitters = Squitters(refused, via="roof")
    squitters.add([("8d4840d6…", 12.25), …])      frames of 14 or 28 hexadecimal digits, with their times
    squitters.frames(frames, sizes, t)            the same in columns, see frames.py
    squitters.take()                              the samples since the last take

Extended squitter (formats 17 and 18) carries positions, velocities and what the transponder says of itself. Answers to
radars (5, 20, 21) carry the squawk, the selected altitude (BDS 4,0) and resolution advisories (BDS 3,0). An answer
has its sender's address only mixed with its checksum, so one counts when an extended squitter of the same address was
heard; other formats have nothing that a sample could carry and are not decoded.

Positions and velocities are nearly all squitters, and are read in columns (heard.py). All other frames rs1090 decodes,
in batches, each once: a callsign or a status is sent again and again, and what was made of it is kept.

Of format 18 (not from a transponder) only messages in the form of ADS-B are read: CF 0, 1, 2, 5 and 6. Addresses that
are not ICAO's (CF 1 and 5) get a leading `~`, as readsb writes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from watchkeeper.streams.adapters.receivers.frames import (
    ANSWER,
    FRAME_BYTES,
    NOT_ICAO,
    SHORT_BYTES,
    SQUITTER,
    WRONG,
    Bytes,
    Ints,
    sort_out,
)
from watchkeeper.streams.adapters.receivers.heard import WIDTH, Found, Frames, hear, larger, sky_of
from watchkeeper.streams.adapters.receivers.reports import LIMIT, emergency_of, squawk_of
from watchkeeper.streams.batch import F8, Batch, Columns
from watchkeeper.streams.messages import COLUMN, ID_MAX, Drop, Kind

CHECKSUM = "checksum"
Message = dict[str, Any]
# Frames that are looked at together, and how many answers of rs1090 are kept: several pieces' worth.
PIECE, KEPT = 8192, 1 << 15
# Rows of a frame that says nothing to us, and of one that rs1090 cannot read.
NOTHING, UNREAD = -1, -2
FIRST_CAPACITY = 256


def decoded(frames: Sequence[str]) -> list[Message | None]:
    """What rs1090 makes of frames of hexadecimal digits; None for one that it cannot read."""
    import rs1090  # noqa: PLC0415  a tenth of a second, and every reader of a log passes by here

    try:
        return cast(list[Message | None], rs1090.decode(list(frames)))
    except BaseException as error:
        # a panic of the library: no Exception to Python, and one frame must not cost the others
        if type(error).__name__ != "PanicException":
            raise
        return [None] if len(frames) == 1 else [message for frame in frames for message in decoded([frame])]


class Squitters:
    """The aircraft of one receiver. `refused` counts frames that cannot be used, by reason."""

    def __init__(self, refused: Counter[str], *, via: str = "", limit: int = LIMIT) -> None:
        self._refused, self._via, self._limit = refused, via, limit
        self._sky = sky_of(min(FIRST_CAPACITY, limit))
        self._found: list[Found] = []
        self._answers = _Answers()
        self._callsigns: dict[int, str] = {}

    def add(self, heard: Sequence[tuple[str, float]]) -> None:
        """Frames with their times, in order."""
        long, short = 2 * FRAME_BYTES, 2 * SHORT_BYTES
        wanted = [(frame.ljust(long, "0"), len(frame), t) for frame, t in heard if len(frame) in (long, short)]
        if wanted:
            data = np.frombuffer(bytes.fromhex("".join(frame for frame, _, _ in wanted)), np.uint8)
            sizes = np.array([digits // 2 for _, digits, _ in wanted])
            self.frames(data.reshape(-1, FRAME_BYTES), sizes, np.array([t for _, _, t in wanted]))

    def frames(self, data: Bytes, sizes: Ints, t: F8) -> None:
        """Frames with their sizes and times, in order."""
        for at in range(0, len(data), PIECE):
            piece = slice(at, at + PIECE)
            self._piece(np.ascontiguousarray(data[piece]), sizes[piece], t[piece])

    def _piece(self, data: Bytes, sizes: Ints, t: F8) -> None:
        count = len(data)
        key, route, extra = np.zeros(count, np.int64), np.zeros(count, np.int64), np.full(count, NOTHING)
        sort_out(data, sizes, key, route)
        if wrong := int((route == WRONG).sum()):
            self._refused[CHECKSUM] += wrong
        others = np.flatnonzero((route == SQUITTER) | (route == ANSWER))
        if len(others):
            extra[others] = self._answers.rows([data[i, : sizes[i]].tobytes() for i in others])
            self._unread(key, route, extra, others)
        used, room = int(self._sky.counts[0]), len(self._sky.aircraft)
        if used + count > room and room < self._limit:
            self._sky = larger(self._sky, min(self._limit, 2 * (used + count)))
        found = Found(np.empty(count), np.empty(count, np.int64), np.empty((count, WIDTH)))
        made = hear(Frames(data, t, key, route, extra, self._answers.values), self._sky, found)
        if made:
            # a copy: of the rows there are, not of all that there could have been
            self._found.append(Found(found.t[:made].copy(), found.key[:made].copy(), found.data[:made].copy()))

    def _unread(self, key: Ints, route: Ints, extra: Ints, others: Ints) -> None:
        """What rs1090 could not read is counted and passed over; callsigns are noted."""
        for i in others[extra[others] == UNREAD].tolist():
            # an answer has no checksum of its own: it is of the aircraft that its parity names, or damaged
            self._refused[Drop.SYNTAX if route[i] == SQUITTER else CHECKSUM] += 1
            route[i] = WRONG
        for i in others[extra[others] >= 0].tolist():
            if sign := self._answers.callsigns.get(int(extra[i])):
                if len(self._callsigns) >= self._limit:
                    del self._callsigns[next(iter(self._callsigns))]
                self._callsigns[int(key[i])] = sign

    def take(self) -> Batch | None:
        """See Feed."""
        if not self._found:
            return None
        t, key, data = (np.concatenate(columns) for columns in zip(*self._found, strict=True))
        self._found = []
        keys, first, which = np.unique(key, return_index=True, return_inverse=True)
        order = np.argsort(first)
        vid = np.empty(len(keys), np.int32)
        vid[order] = np.arange(len(keys), dtype=np.int32)
        ids = [_name(one) for one in keys[order].tolist()]
        # a callsign may come before the first position
        told = {name: sign for one, name in zip(keys[order].tolist(), ids, strict=True)
                if (sign := self._callsigns.pop(one, None))}  # fmt: skip
        count = len(t)
        via = np.full(count, 0 if self._via else -1, np.int32)
        columns = Columns(np.arange(count), vid[which], via, t, np.ascontiguousarray(data.T))
        return Batch(ids, {Kind.ADSB: columns}, [self._via] if self._via else [], told)


class _Answers:
    """What rs1090 made of frames lately: a row of our fields for each."""

    def __init__(self) -> None:
        self.values = np.full((KEPT, WIDTH), np.nan)
        self.callsigns: dict[int, str] = {}
        self._row: dict[bytes, int] = {}
        self._used = 0

    def rows(self, frames: list[bytes]) -> Ints:
        """The row of each frame, NOTHING or UNREAD."""
        if len(self._row) + len(frames) > KEPT:
            self._row.clear()
            self.callsigns.clear()
            self._used = 0
        new = [frame for frame in dict.fromkeys(frames) if frame not in self._row]
        if new:
            for frame, message in zip(new, decoded([frame.hex() for frame in new]), strict=True):
                self._row[frame] = UNREAD if message is None else self._enter(frame, message)
        return np.array([self._row[frame] for frame in frames], np.int64)

    def _enter(self, frame: bytes, message: Message) -> int:
        sign = ""
        if message["df"] not in ("17", "18"):
            said = _answer(message)
        elif message.get("bds") == "08":
            sign = (message.get("callsign") or "").strip()[:ID_MAX]
            # type codes 4 to 1 are the sets A to D, with eight categories each, of which the first says nothing
            code = frame[4]
            said = {"category": float((4 - (code >> 3)) * 8 + (code & 7))} if code & 7 else {}
        else:
            said = _said(message, frame)
        if not said and not sign:
            return NOTHING
        row, self._used = self._used, self._used + 1
        self.values[row] = np.nan
        for field, value in said.items():
            self.values[row, COLUMN[Kind.ADSB][field]] = value
        if sign:
            self.callsigns[row] = sign
        return row


def _name(key: int) -> str:
    return f"{'~' if key & NOT_ICAO else ''}{key & (NOT_ICAO - 1):06x}"


def _said(message: Message, frame: bytes) -> dict[str, float]:
    """Our fields of a squitter without position and velocity."""
    kind = message.get("bds")
    values: dict[str, float] = {}
    if kind == "62":
        _put(values, sel_alt_ft=message.get("selected_altitude"), sel_hdg_deg=message.get("selected_heading"))
        _put(values, nacp=message.get("NACp"))
    elif kind == "65":
        _put(values, nacp=message.get("NACp"))
    elif kind == "61" and message.get("subtype") == "emergency_priority":
        _put(values, squawk=squawk_of(message.get("squawk")))
        _put(values, emergency=emergency_of(message.get("emergency_state")))
    elif kind == "61" and message.get("subtype") == "acas_ra":
        # BDS 3,0 behind the subtype: bit 9 an advisory was issued, 28 several threats, 27 it has ended
        me = int.from_bytes(frame[4:11], "big")
        issued, ended, several = (me >> 56 - bit & 1 for bit in (9, 27, 28))
        values["tcas_ra"] = float((issued or several) and not ended)
    return values


def _answer(message: Message) -> dict[str, float]:
    """Our fields of an answer to a radar."""
    values: dict[str, float] = {}
    _put(values, squawk=squawk_of(message.get("squawk")))
    # which register an answer holds is not in it: where several fit, none is believed. BDS 2,1 (registration) fits
    # whatever has no bit against it, BDS 4,0 among others, and has nothing for us.
    found = [name for name in message if name.startswith("bds") and name != "bds21" and message[name]]
    if found == ["bds40"]:
        selected = message["bds40"]
        altitude = selected.get("selected_mcp")
        _put(values, sel_alt_ft=selected.get("selected_fms") if altitude is None else altitude)
    elif found == ["bds30"]:
        advisory = message["bds30"]
        issued = advisory.get("issued_ra") or advisory.get("multiple")
        values["tcas_ra"] = float(bool(issued) and not advisory.get("terminated"))
    return values


def _put(values: dict[str, float], **found: float | None) -> None:
    values.update((field, float(value)) for field, value in found.items() if value is not None)
