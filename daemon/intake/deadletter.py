"""Dead letters: payloads that were refused, the reason and their first bytes, to find the sender.

`refused` is called for every bad payload, possibly a hundred thousand times a second, so it only counts; a few per
second are kept to be published on `<output>/deadletter` as JSON:
`{"topic", "reason", "size", "payload", "encoding": "text" | "base64"}`, the payload cut to its first 256 bytes.
"""

from __future__ import annotations

import base64
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator

import msgspec
from prometheus_client.core import Metric

from watchkeeper.config.schema import Topics
from watchkeeper.daemon.families import total
from watchkeeper.streams.messages import KIND_OF_WORD

PER_SECOND = 100
PAYLOAD_BYTES = 256
TOPIC_CHARS = 256
# The stream label of payloads whose topic names none of ours.
NO_STREAM = "unknown"


class DeadLetters:
    """Counts bad input by (stream, reason), and holds a bounded number of examples for `take`."""

    def __init__(
        self,
        topics: Topics,
        now: Callable[[], float] = time.monotonic,
        also: Callable[[str, str, bytes], None] = lambda _topic, _reason, _payload: None,
    ) -> None:
        # told of each as well, see refusals.py
        self.also = also
        self.counts: Counter[tuple[str, str]] = Counter()
        self.suppressed = 0
        self._prefix = topics.telemetry + "/"
        self._now = now
        self._second = -1
        self._left = 0
        # two seconds' worth: what nobody fetched by then makes room
        self._kept: deque[bytes] = deque(maxlen=2 * PER_SECOND)

    def refused(self, topic: str, reason: str, payload: bytes) -> None:
        """Count one bad payload; keep it if this second's allowance is not used up."""
        self.counts[self._stream(topic), reason] += 1
        self.also(topic, reason, payload)
        second = int(self._now())
        if second != self._second:
            self._second, self._left = second, PER_SECOND
        if self._left == 0:
            self.suppressed += 1
            return
        self._left -= 1
        if len(self._kept) == self._kept.maxlen:
            self.suppressed += 1
        self._kept.append(encode(topic, reason, payload))

    def _stream(self, topic: str) -> str:
        word = topic.removeprefix(self._prefix).partition("/")[0]
        return word if word in KIND_OF_WORD and topic.startswith(self._prefix) else NO_STREAM

    def take(self) -> list[bytes]:
        """The letters kept since the last take."""
        letters = list(self._kept)
        self._kept.clear()
        return letters

    def metrics(self) -> Iterator[Metric]:
        """For Prometheus; `counts` are added to what others refuse."""
        yield total("deadletters_suppressed", "Bad payloads counted but not shown", self.suppressed)


def encode(topic: str, reason: str, payload: bytes) -> bytes:
    """One dead letter as JSON."""
    text = _text(payload)
    shown = base64.b64encode(payload[:PAYLOAD_BYTES]).decode() if text is None else text
    letter = {"topic": topic[:TOPIC_CHARS], "reason": reason, "size": len(payload), "payload": shown}
    return msgspec.json.encode({**letter, "encoding": "base64" if text is None else "text"})


def _text(payload: bytes) -> str | None:
    """The start of the payload if people can read it; None if it is binary."""
    start = payload[:PAYLOAD_BYTES]
    # where the payload was cut, the cut may have gone through a character of up to four bytes
    for end in range(len(start), max(len(start) - 4, 0) if len(payload) > len(start) else len(start) - 1, -1):
        try:
            text = start[:end].decode()
        except UnicodeDecodeError:
            continue
        return text if all(c.isprintable() or c in "\n\r\t" for c in text) else None
    return None if start else ""
