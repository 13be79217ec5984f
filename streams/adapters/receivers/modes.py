"""Raw Mode S: Beast binary (TCP port 30005) and AVR text (port 30002), cut into frames that squitter.py decodes.

Beast: 0x1a, a type byte ('1' Mode A/C, '2' short, '3' long frame, others ignored), six bytes of a counter at 12 MHz,
one of signal strength, then the frame of 2, 7 or 14 bytes. A 0x1a inside is doubled.
AVR: a frame a line in hexadecimal, `*8D4840D6…;`, or with the same counter before it, `@0123456789AB8D4840D6…;`.

Time: live it is the arrival of the bytes, the counter spreading messages of one piece. A Beast recording has only the
counter: its samples begin at 0 s. An AVR recording without counters has no time at all and is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import isnan
from pathlib import Path

from watchkeeper.config.adapters.avr import Avr as AvrSettings
from watchkeeper.config.adapters.beast import Beast as BeastSettings
from watchkeeper.streams.adapters.base import AdapterDeclaration, FeedLog, LineFeed, Sample, Way
from watchkeeper.streams.adapters.receivers.squitter import Squitters
from watchkeeper.streams.adapters.senderclock import SenderClock
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.base import Format
from watchkeeper.streams.messages import Drop

TICKS_PER_S = 12e6
ESCAPE = 0x1A
# Longer than any message, those included that are not ours: status messages have up to 255 bytes.
STRANGE_BYTES = 300
# Type byte to the length of what follows the escape and the type: counter, signal, frame.
_LENGTH = {0x31: 9, 0x32: 14, 0x33: 21}
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
        self._strange = 0

    def push(self, data: bytes, now: float) -> None:
        """See Feed."""
        time = self._clock.time
        bodies = self._bodies(self._rest + data)
        self._squitters.add(
            [(body[7:].hex(), time(int.from_bytes(body[:6], "big") / TICKS_PER_S, now)) for body in bodies]
        )

    def close(self) -> None:
        """See Feed."""
        if len(self._rest) > 1:
            self.refused[Drop.SYNTAX] += 1
        self._rest = b""

    def _bodies(self, data: bytes) -> Iterator[bytes]:
        """Counter, signal and frame of every whole message; the rest is kept for the next piece."""
        at, end = 0, len(data)
        while True:
            start = data.find(ESCAPE, at)
            self._skip((end if start < 0 else start) - at, found=start >= 0)
            if start < 0:
                self._rest = b""
                return
            if start + 2 > end:
                break
            length = _LENGTH.get(data[start + 1])
            if length is None:
                # an escaped byte of a message that we joined late, or a type that is not ours
                at = start + 2
                continue
            body, at, whole = _unescaped(data, start + 2, length)
            if whole:
                yield body
            elif at < end:
                self.refused[Drop.SYNTAX] += 1  # cut short by the next message, which begins here
            else:
                break
        self._rest = data[start:]

    def _skip(self, count: int, *, found: bool) -> None:
        """Bytes that no message of ours has: so many without any escape are another protocol, and counted once."""
        before, self._strange = self._strange, self._strange + count
        if before <= STRANGE_BYTES < self._strange:
            self.refused[Drop.SYNTAX] += 1
        if found:
            self._strange = 0


def _unescaped(data: bytes, at: int, length: int) -> tuple[bytes, int, bool]:
    """`length` bytes from `at` with doubled escapes made single, where they end, and whether they are all there."""
    body = bytearray()
    while len(body) < length:
        stop = data.find(ESCAPE, at, at + length - len(body))
        if stop < 0:
            piece = data[at : at + length - len(body)]
            body += piece
            return bytes(body), at + len(piece), len(body) == length
        body += data[at:stop]
        if stop + 1 >= len(data):
            return bytes(body), len(data), False
        if data[stop + 1] != ESCAPE:
            return bytes(body), stop, False
        body.append(ESCAPE)
        at = stop + 2
    return bytes(body), at, True


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
