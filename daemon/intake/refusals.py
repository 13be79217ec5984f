"""Input that is refused: the first message of each reason is logged at once, in words and with its beginning.

The same reason is logged again after AGAIN_S at the earliest, with how many there were since. Input of which most is
refused is also said in /readyz, with one example, and logged when it begins and when it ends.

Dead letters are counted by stream and reason; here they are counted by topic as well, over windows of WINDOW_S, and
compared with what the pipeline took from the same vehicle and stream, or from the whole stream for frames. At most
MOST_TOPICS are counted in a window.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from watchkeeper.config.schema import Topics
from watchkeeper.daemon.logs import kv
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.codec.reasons import in_words
from watchkeeper.streams.messages import KIND_OF_WORD, unescape_id

log = logging.getLogger(__name__)

WINDOW_S = 10.0
MOST_TOPICS = 1000
# Fewer than this in a window are an accident; a topic is bad when more than this share of it is refused.
LEAST = 5
SHARE = 0.5
# A reason has one line in the log per this time, whatever comes.
AGAIN_S = 60.0
# Topics that are named, and bytes of the example.
NAMED, SHOWN_BYTES = 3, 80


@dataclass(slots=True)
class _Topic:
    """One topic in one window: refused so far, an example, and how many samples had been taken when it began."""

    refused: int
    reason: str
    payload: bytes
    taken: int


class Refusals:
    """Counts refused payloads by topic. `refused` may be called a hundred thousand times a second."""

    def __init__(self, topics: Topics, pipeline: Pipeline, now: Callable[[], float] = time.monotonic) -> None:
        self._prefix = topics.telemetry + "/"
        self._pipeline = pipeline
        self._now = now
        self._ends = now() + WINDOW_S
        self._window: dict[str, _Topic] = {}
        self._bad: dict[str, str] = {}
        # by reason: when it may be logged again, and how many were not
        self._again_s: dict[str, float] = {}
        self._unsaid: Counter[str] = Counter()

    def refused(self, topic: str, reason: str, payload: bytes) -> None:
        """Count one; say it if its reason has not been said lately."""
        if self._now() >= self._again_s.get(reason, -math.inf):
            self._say(topic, reason, payload)
        else:
            self._unsaid[reason] += 1
        seen = self._window.get(topic)
        if seen is not None:
            seen.refused += 1
        elif len(self._window) < MOST_TOPICS:
            self._window[topic] = _Topic(1, reason, payload[:SHOWN_BYTES], self._taken(topic))

    def _say(self, topic: str, reason: str, payload: bytes) -> None:
        self._again_s[reason] = self._now() + AGAIN_S
        stream = topic.removeprefix(self._prefix).partition("/")[0]
        said = {"topic": topic, "reason": reason, "problem": in_words(reason, payload, stream)}
        if unsaid := self._unsaid.pop(reason, 0):
            said["others_since"] = str(unsaid)
        start = payload[:SHOWN_BYTES].decode("utf-8", "backslashreplace")
        log.warning("a message was refused", extra=kv(**said, payload=start))

    def health(self) -> list[str]:
        """What is refused, in words; looks at the window when it is over."""
        if self._now() >= self._ends:
            self._look()
        if not self._bad:
            return []
        more = f", and {len(self._bad) - NAMED} more topics" if len(self._bad) > NAMED else ""
        return [f"input: {'; '.join(list(self._bad.values())[:NAMED])}{more}"]

    def _look(self) -> None:
        worst: dict[str, tuple[int, str]] = {}
        for topic, seen in self._window.items():
            taken = max(self._taken(topic) - seen.taken, 0)
            share = seen.refused / (seen.refused + taken)
            if seen.refused >= LEAST and share > SHARE:
                example = seen.payload.decode("utf-8", "backslashreplace")
                words = f"{share:.0%} of {topic} is refused ({seen.reason}), such as {example!r}"
                worst[topic] = (seen.refused, words)
        bad = {topic: words for topic, (_, words) in sorted(worst.items(), key=lambda item: -item[1][0])}
        for topic in list(bad.keys() - self._bad.keys())[:NAMED]:
            log.warning("most input of a topic is refused", extra=kv(topic=topic, detail=bad[topic]))
        if self._bad and not bad:
            log.info("input is taken again", extra=kv(topics=len(self._bad)))
        self._bad, self._window = bad, {}
        self._ends = self._now() + WINDOW_S

    def _taken(self, topic: str) -> int:
        """Samples that the pipeline has taken of a topic's vehicle, or of its stream where the topic names none."""
        word, _, name = topic.removeprefix(self._prefix).partition("/")
        kind = KIND_OF_WORD.get(word)
        if kind is None:
            return 0
        if not name:
            return self._pipeline.samples[word]
        fleet = self._pipeline.fleet
        slot = fleet.slot_of.get(unescape_id(name), -1)
        return int(fleet.count[kind, slot]) if slot >= 0 else 0
