"""Messages that the broker has acknowledged and that must come back to us, as they come to everybody.

An acknowledgement does not say that others hear: a broker that speaks MQTT 3.1.1 acknowledges what its rules throw
away. So what is retained on the topic of an alarm is awaited from the moment of its acknowledgement. echo.py asks what
is overdue, and has it published again until it is heard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

# Topics that are awaited at once, and messages of one of them: a few are enough to know that nobody hears us.
MOST_TOPICS = 1000
MOST_MESSAGES = 100


@dataclass(slots=True, eq=False)
class _Sent:
    payload: bytes
    taken_s: float | None = None
    """When the broker acknowledged it."""


class Awaited:
    """The messages of each topic that are not heard yet, oldest first. `now` is a monotonic clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._sent: dict[str, list[_Sent]] = {}

    def posted(self, topic: str, payload: bytes, done: asyncio.Future[bool]) -> None:
        """Await a message that goes to the broker now; `done` says whether it was taken."""
        waiting = self._sent.get(topic)
        if waiting is None:
            if len(self._sent) >= MOST_TOPICS:
                return
            waiting = self._sent[topic] = []
        sent = _Sent(payload)
        waiting[MOST_MESSAGES - 1 :] = [sent]
        done.add_done_callback(partial(self._answered, topic, sent))

    def _answered(self, topic: str, sent: _Sent, done: asyncio.Future[bool]) -> None:
        if sent not in (waiting := self._sent.get(topic, [])):
            return
        if not done.cancelled() and done.result():
            sent.taken_s = self._now()
            return
        # refused with words, or given up: said elsewhere
        waiting.remove(sent)
        if not waiting:
            del self._sent[topic]

    def heard(self, topic: str, payload: bytes) -> None:
        """A message came back, and with it all that was sent on its topic before."""
        waiting = self._sent.get(topic, [])
        for i, sent in enumerate(waiting, 1):
            if sent.payload == payload:
                del waiting[:i]
                break
        if topic in self._sent and not waiting:
            del self._sent[topic]

    def __contains__(self, topic: str) -> bool:
        """Whether something newer of ours is on its way to this topic than what we hear there now."""
        return topic in self._sent

    def clear(self) -> None:
        """Forget all: the connection is gone."""
        self._sent.clear()

    def overdue(self, taken_before_s: float) -> dict[str, bytes]:
        """Topics of which something that was acknowledged before this moment is not heard, with the newest payload."""
        return {
            topic: waiting[-1].payload
            for topic, waiting in self._sent.items()
            if waiting[0].taken_s is not None and waiting[0].taken_s <= taken_before_s
        }
