"""What we watch on a tablet in the cockpit: GDL 90 traffic reports over UDP, with the alert bit on subjects of alarms.

Once a second: a heartbeat, and a traffic report of each aircraft with a fresh position, those with an alarm first, at
most `max_reports`. The alert bit is on while an alarm of kind `conflict` or `los` is active about the aircraft. With
`own` the aircraft of that id is the ownship report, as tablets expect it.

How rounds go out, is in daemon/outputs/udp/rounds.py. The messages are those of streams/adapters/receivers/gdl90.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from math import isfinite, nan

from watchkeeper.config.outputs import Gdl90Out
from watchkeeper.daemon.live.view import Watched
from watchkeeper.daemon.outputs.base import Context, Declaration
from watchkeeper.daemon.outputs.udp.rounds import Rounds
from watchkeeper.streams.adapters.receivers.gdl90 import (
    AIRBORNE,
    CATEGORIES,
    CHANGED,
    DEG,
    ESCAPE,
    FLAG,
    HEARTBEAT,
    NO_ALTITUDE,
    NO_CLIMB,
    NO_SPEED,
    OWNSHIP,
    TRAFFIC,
    TRUE_TRACK,
    crc,
)  # fmt: skip
from watchkeeper.streams.messages import ADSB, Kind

# A position older than this is not traffic any more.
FRESH_S = 30.0
ALERTS = ("conflict", "los")
# Status of the heartbeat: position valid, initialised; UTC is right.
_STATUS, _UTC_OK = 0x81, 0x01
_DAY_S = 86_400
_OTHER_ADDRESS = 3


class Gdl90Sink(Rounds):
    """One address."""

    name = "gdl90"

    def __init__(self, settings: Gdl90Out, watched: Watched, now: Callable[[], float] = time.time) -> None:
        super().__init__(settings.url)
        self._settings = settings
        self._watched = watched
        self._now = now

    def messages(self) -> Iterator[bytes]:
        """One round."""
        yield framed(_heartbeat(self._now()))
        pipeline, own = self._watched.pipeline, self._settings.own
        fleet, t = pipeline.fleet, pipeline.watermark
        alert = {name for event in self._watched.active() if event.kind in ALERTS for name in event.subjects}
        last_t = fleet.value_t[Kind.ADSB][ADSB.lat, : fleet.high]
        slots = [slot for slot, at in enumerate(last_t.tolist()) if fleet.ids[slot] and t - at <= FRESH_S]
        # a stable order, so that a sky of more than max_reports does not flicker
        slots.sort(key=lambda slot: (fleet.ids[slot] != own, fleet.ids[slot] not in alert, fleet.ids[slot]))
        for slot in slots[: self._settings.max_reports]:
            name, oldest = fleet.ids[slot], t - FRESH_S
            value = fleet.value[Kind.ADSB][:, slot].tolist()
            fresh = fleet.value_t[Kind.ADSB][:, slot].tolist()
            values = [v if isfinite(v) and at >= oldest else nan for v, at in zip(value, fresh, strict=True)]
            kind = OWNSHIP if name == own else TRAFFIC
            yield framed(report(kind, name, fleet.callsigns.get(name, ""), values, alert=name in alert))


def _heartbeat(now: float) -> bytes:
    seconds = int(now) % _DAY_S
    status = (seconds >> 16) << 7 | _UTC_OK
    return bytes((HEARTBEAT, _STATUS, status, seconds & 0xFF, seconds >> 8 & 0xFF, 0, 0))


def report(kind: int, name: str, callsign: str, values: list[float], *, alert: bool) -> bytes:
    """A traffic or ownship report of the newest values of kind `adsb`; NaN for what is not known."""
    address, other = _address(name)
    altitude = _or(values[ADSB.alt_ft], lambda ft: min(max(round((ft + 1000.0) / 25.0), 0), 0xFFE), NO_ALTITUDE)
    speed = _or(values[ADSB.gs_kt], lambda kt: min(max(round(kt), 0), 0xFFE), NO_SPEED)
    climb = _or(values[ADSB.vs_fpm], lambda fpm: min(max(round(fpm / 64.0), -510), 510) & 0xFFF, NO_CLIMB)
    track = _or(values[ADSB.trk_deg], lambda deg: round(deg % 360.0 * 256.0 / 360.0) & 0xFF, 0)
    misc = (0 if values[ADSB.on_ground] == 1.0 else AIRBORNE) | (TRUE_TRACK if isfinite(values[ADSB.trk_deg]) else 0)
    quality = _or(values[ADSB.nic], lambda v: int(v) & 15, 0) << 4 | _or(values[ADSB.nacp], lambda v: int(v) & 15, 0)
    text = "".join(c if c.isascii() and c.isalnum() else " " for c in (callsign or name).upper())[:8].ljust(8)
    return b"".join((
        bytes((kind, alert << 4 | other)), address, _degrees(values[ADSB.lat]), _degrees(values[ADSB.lon]),
        bytes((altitude >> 4, (altitude & 15) << 4 | misc, quality, speed >> 4, (speed & 15) << 4 | climb >> 8,
               climb & 0xFF, track, _or(values[ADSB.category], int, 0) % CATEGORIES)),
        text.encode("ascii"), b"\0",
    ))  # fmt: skip


def _or(value: float, as_number: Callable[[float], int], unknown: int) -> int:
    return as_number(value) if isfinite(value) else unknown


def _address(name: str) -> tuple[bytes, int]:
    """24 bits and their kind: ICAO's address, or for another id one that stands for it."""
    try:
        if len(name) == 6:
            return bytes.fromhex(name), 0
        if len(name) == 7 and name[0] == "~":
            return bytes.fromhex(name[1:]), _OTHER_ADDRESS
    except ValueError:
        pass
    high = low = 0
    for byte in name.encode():
        high, low = low, (low * 31 + byte + high) & 0xFFFFFF
    return low.to_bytes(3, "big"), _OTHER_ADDRESS


def _degrees(deg: float) -> bytes:
    wrapped = (deg + 180.0) % 360.0 - 180.0
    return (min(max(round(wrapped / DEG), -(1 << 23)), (1 << 23) - 1) & 0xFFFFFF).to_bytes(3, "big")


def framed(message: bytes) -> bytes:
    """A message with checksum, escapes and flags."""
    whole = message + crc(message).to_bytes(2, "little")
    body = b"".join(bytes((ESCAPE, byte ^ CHANGED)) if byte in (ESCAPE, FLAG[0]) else bytes((byte,)) for byte in whole)
    return FLAG + body + FLAG


def _make(settings: Gdl90Out, context: Context) -> Gdl90Sink:
    return Gdl90Sink(settings, context.watched)


GDL90_OUT = Declaration(
    name="gdl90",
    help="GDL 90 traffic reports with the alert bit, for tablets in the cockpit",
    settings=Gdl90Out,
    make=_make,
    asked=lambda config: [config.gdl90] if config.gdl90.url else [],
)
