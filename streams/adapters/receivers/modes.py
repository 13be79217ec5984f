"""Raw Mode S: Beast binary (TCP port 30005) and AVR text (port 30002), cut into frames that squitter.py decodes.

Beast: 0x1a, a type byte ('1' Mode A/C, '2' short, '3' long frame, others ignored), six bytes of a counter at 12 MHz,
one of signal strength, then the frame of 2, 7 or 14 bytes. A 0x1a inside is doubled.
AVR: a frame a line in hexadecimal, `*8D4840D6…;`, or with the same counter before it, `@0123456789AB8D4840D6…;`.

Time: live it is the arrival of the bytes, the counter spreading messages of one piece. A Beast recording has only the
counter: its samples begin at 0 s. An AVR recording without counters has no time at all and is refused.
"""

from __future__ import annotations

from collections import Counter
from math import isnan
from pathlib import Path

import numpy as np

from watchkeeper.config.adapters.avr import Avr as AvrSettings
from watchkeeper.config.adapters.beast import Beast as BeastSettings
from watchkeeper.streams.adapters.base import AdapterDeclaration, FeedLog, LineFeed, Sample, Way
from watchkeeper.streams.adapters.receivers.frames import (
    BODY_BYTES,
    ESCAPE,
    FRAME_BYTES,
    REFUSED,
    SHORTEST_BODY,
    TICKS_PER_S,
    cut,
    heads,
)
from watchkeeper.streams.adapters.receivers.squitter import Squitters
from watchkeeper.streams.adapters.senderclock import SenderClock
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.base import Format
from watchkeeper.streams.messages import Drop

_LINE_MAX = 64


class _Modes:
    """What Beast and AVR share: the frames of each piece with their times are decoded together."""

    def __init__(self, *, via: str = "") -> None:
        self.refused: Counter[str] = Counter()
        self._squitters = Squitters(self.refused, via=via)
        self._clock = SenderClock()

    def take(self) -> Batch | None:
        """See Feed."""
        return self._squitters.take()


class Beast(_Modes):
    """One Beast feed; see adapters/base.py."""

    def __init__(self, *, via: str = "") -> None:
        super().__init__(via=via)
        self._rest = b""
        self._kept = np.zeros(2, np.int64)

    def push(self, data: bytes, now: float) -> None:
        """See Feed."""
        data = self._rest + data
        most = len(data) // SHORTEST_BODY + 1
        bodies, sizes = np.zeros((most, BODY_BYTES), np.uint8), np.empty(most, np.int64)
        count, end = cut(np.frombuffer(data, np.uint8), bodies, sizes, self._kept)
        self._rest = data[end:]
        if self._kept[REFUSED]:
            self.refused[Drop.SYNTAX] += int(self._kept[REFUSED])
            self._kept[REFUSED] = 0
        if count:
            frames, seconds = np.empty((count, FRAME_BYTES), np.uint8), np.empty(count)
            heads(bodies[:count], frames, seconds)
            self._squitters.frames(frames, sizes[:count], self._clock.times(seconds, now))

    def close(self) -> None:
        """See Feed."""
        if len(self._rest) > 1:
            self.refused[Drop.SYNTAX] += 1
        self._rest = b""


class Avr(LineFeed, _Modes):
    """One AVR feed; see adapters/base.py."""

    def __init__(self, *, via: str = "") -> None:
        LineFeed.__init__(self, _LINE_MAX)
        _Modes.__init__(self, via=via)
        self._heard: list[tuple[str, float]] = []

    def push(self, data: bytes, now: float) -> None:
        """See Feed."""
        super().push(data, now)
        self._decode()

    def close(self) -> None:
        """See Feed."""
        super().close()
        self._decode()

    def _decode(self) -> None:
        heard, self._heard = self._heard, []
        self._squitters.add(heard)

    def _line(self, line: bytes | None, now: float) -> None:
        text = (line or b"").strip().decode("ascii", "replace")
        if line is not None and not text:
            return
        counter, frame = _avr(text)
        if frame is None:
            self.refused[Drop.SYNTAX] += 1
        elif counter is None and isnan(now):
            self.refused[Drop.TIME] += 1
        else:
            self._heard.append((frame, now if counter is None else self._clock.time(counter / TICKS_PER_S, now)))


def _avr(text: str) -> tuple[int | None, str | None]:
    """Counter (None: none) and frame (None: not a message) of a line."""
    digits = text[1:-1]
    if (
        len(text) < 2
        or text[0] not in "*@"
        or text[-1] != ";"
        or not all(c in "0123456789abcdefABCDEF" for c in digits)
    ):
        return None, None
    if text[0] == "*":
        return None, digits
    return (int(digits[:12], 16), digits[12:]) if len(digits) > 12 else (None, None)


def open_beast(path: Path) -> FeedLog:
    """A recording of Beast binary."""
    return FeedLog(path, "beast", Beast)


def open_avr(path: Path) -> FeedLog:
    """A recording of AVR text."""
    return FeedLog(path, "avr", Avr)


# Both halves of a position, from "The 1090 MHz Riddle", twice a second: two pairs must agree.
_RIDDLE = ("8D40621D58C382D690C8AC2863A7", "8D40621D58C386435CC412692AD6")
_HEARD = [(_RIDDLE[k % 2], k * int(TICKS_PER_S / 2)) for k in range(8)]

BEAST = AdapterDeclaration(
    name="beast",
    help="Beast binary of ADS-B receivers: raw Mode S frames with a counter",
    docs="adapters/receivers.md",
    settings=BeastSettings,
    feed=f"{__name__}:Beast",
    ways=(Way.STREAM,),
    sample=Sample(
        data=b"".join(b"\x1a3" + ticks.to_bytes(6, "big") + b"\x20" + bytes.fromhex(frame) for frame, ticks in _HEARD),
        settings={"url": "tcp://192.168.1.20:30005", "via": "roof"},
    ),
    formats=(Format("beast", f"{__name__}:open_beast", (".beast", ".beast.gz", ".bin"), holds=(bytes((ESCAPE,)),)),),
)
AVR = AdapterDeclaration(
    name="avr",
    help="AVR text of ADS-B receivers: raw Mode S frames",
    docs="adapters/receivers.md",
    settings=AvrSettings,
    feed=f"{__name__}:Avr",
    ways=(Way.STREAM,),
    sample=Sample(
        data=b"".join(b"@%012X%s;\n" % (ticks, frame.encode()) for frame, ticks in _HEARD),
        settings={"url": "tcp://192.168.1.20:30002"},
    ),
    formats=(Format("avr", f"{__name__}:open_avr", (".avr", ".avr.gz")),),
)
