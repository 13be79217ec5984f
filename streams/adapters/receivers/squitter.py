"""Mode S frames to reports of aircraft, by rs1090 in batches. Used by modes.py, which cuts streams into frames.

    squitters = Squitters(refused, via="roof")
    squitters.add([("8d4840d6…", 12.25), …])      frames of 14 or 28 hexadecimal digits, with their times
    squitters.take()                              the samples since the last take

Extended squitter (formats 17 and 18) carries positions, velocities and what the transponder says of itself. Answers to
radars (5, 20, 21) carry the squawk, the selected altitude (BDS 4,0) and resolution advisories (BDS 3,0). An answer
has its sender's address only mixed with its checksum, so one counts when an extended squitter of the same address was
heard; other formats have nothing that a sample could carry and are not decoded.

Of format 18 (not from a transponder) only messages in the form of ADS-B are read: CF 0, 1, 2, 5 and 6. Addresses that
are not ICAO's (CF 1 and 5) get a leading `~`, as readsb writes them. rs1090 does not check the parity of this format:
we do.

NIC comes from the type code (DO-260B), taking the lower value where a supplement bit that is sent elsewhere decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

from watchkeeper.streams.adapters.receivers.cpr import Half, Track
from watchkeeper.streams.adapters.receivers.reports import Reports, emergency_of, squawk_of
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.messages import Drop

CHECKSUM = "checksum"
Message = dict[str, Any]
_SHORT_HEX, _LONG_HEX = 14, 28
_SQUITTER, _NOT_TRANSPONDER, _SQUAWK = 17, 18, 5
# Formats that carry something for us, with the length that they have.
_LENGTH = {_SQUITTER: _LONG_HEX, _NOT_TRANSPONDER: _LONG_HEX, 20: _LONG_HEX, 21: _LONG_HEX, _SQUAWK: _SHORT_HEX}
_AS_ADSB, _NOT_ICAO = (0, 1, 2, 5, 6), (1, 5)
# Type code to navigation integrity category.
_NIC = {9: 11, 10: 10, 11: 8, 12: 7, 13: 6, 14: 5, 15: 4, 16: 2, 17: 1, 18: 0, 20: 11, 21: 10, 22: 0}
_POLYNOMIAL = 0xFFF409


def _parity_table() -> list[int]:
    table = []
    for byte in range(256):
        rest = byte << 16
        for _ in range(8):
            rest = (rest << 1 ^ (_POLYNOMIAL if rest & 0x800000 else 0)) & 0xFFFFFF
        table.append(rest)
    return table


_PARITY = _parity_table()


def sound(frame: str) -> bool:
    """Whether the last 24 bits of a frame are the parity of those before."""
    rest = 0
    for byte in bytes.fromhex(frame):
        rest = (rest << 8 & 0xFFFFFF) ^ _PARITY[rest >> 16] ^ byte
    return rest == 0


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

    def __init__(self, refused: Counter[str], *, via: str = "") -> None:
        self._refused = refused
        self._reports = Reports(via=via)

    def take(self) -> Batch | None:
        """See Feed."""
        return self._reports.take()

    def add(self, heard: Sequence[tuple[str, float]]) -> None:
        """Frames with their times, in order."""
        wanted = [(frame, t) for frame, t in heard if len(frame) == _LENGTH.get(int(frame[:2], 16) >> 3)]
        if not wanted:
            return
        for (frame, t), message in zip(wanted, decoded([frame for frame, _ in wanted]), strict=True):
            if message is None:
                self._refused[Drop.SYNTAX if sound(frame) else CHECKSUM] += 1
            elif message["df"] == "17":
                self._squitter(message["icao24"], message, frame, t)
            elif message["df"] == "18":
                self._other(message, frame, t)
            elif (name := message.get("icao24") or "") in self._reports:
                self._reports.note(name, t, _answer(message))

    def _other(self, message: Message, frame: str, t: float) -> None:
        form = int(frame[:2], 16) & 7
        if not sound(frame):
            self._refused[CHECKSUM] += 1
        elif form in _AS_ADSB:
            self._squitter(("~" if form in _NOT_ICAO else "") + message["icao24"], message, frame, t)

    def _squitter(self, name: str, message: Message, frame: str, t: float) -> None:
        kind = message.get("bds")
        if kind in ("05", "06"):
            self._position(name, message, t)
        elif kind == "08":
            self._reports.call(name, message.get("callsign") or "")
            # type codes 4 to 1 are the sets A to D, with eight categories each, of which the first says nothing
            code = int(frame[8:10], 16)
            kind_of = (4 - (code >> 3)) * 8 + (code & 7)
            self._reports.note(name, t, {"category": float(kind_of)} if code & 7 else {})
        else:
            self._reports.note(name, t, _said(kind, message, frame))

    def _position(self, name: str, message: Message, t: float) -> None:
        surface, code = message["bds"] == "06", message.get("tc") or 0
        values = {"on_ground": float(surface)}
        if code in _NIC:
            values["nic"] = float(_NIC[code])
        if surface:
            _put(values, gs_kt=message.get("groundspeed"), trk_deg=message.get("track"))
        elif message.get("source") == "barometric":
            _put(values, alt_ft=message.get("altitude"))
        half = Half(t, message["lat_cpr"], message["lon_cpr"], odd=message["parity"] == "odd", surface=surface)
        place = self._reports.track(name, t, Track).place(half)
        if place is not None:
            self._reports.place(name, t, *place, values)
        else:
            self._reports.note(name, t, values)


def _said(kind: str | None, message: Message, frame: str) -> dict[str, float]:
    """Our fields of a squitter without a position."""
    values: dict[str, float] = {}
    if kind == "09":
        _put(values, vs_fpm=message.get("vertical_rate"))
        if message.get("groundspeed") is not None:  # the others are air speed and heading
            _put(values, gs_kt=message["groundspeed"], trk_deg=message.get("track"))
    elif kind == "62":
        _put(values, sel_alt_ft=message.get("selected_altitude"), sel_hdg_deg=message.get("selected_heading"))
        _put(values, nacp=message.get("NACp"))
    elif kind == "65":
        _put(values, nacp=message.get("NACp"))
    elif kind == "61" and message.get("subtype") == "emergency_priority":
        _put(values, squawk=squawk_of(message.get("squawk")))
        _put(values, emergency=emergency_of(message.get("emergency_state")))
    elif kind == "61" and message.get("subtype") == "acas_ra":
        # BDS 3,0 behind the subtype: bit 9 an advisory was issued, 28 several threats, 27 it has ended
        me = int(frame[8:22], 16)
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
