"""What the broker refuses of us, in sentences, until it takes it again.

A refused subscription means that we are deaf, a refused publication that nobody hears us. MQTT 5 says both with a
reason; MQTT 3.1.1 has a code for refused subscriptions only, and acknowledges a publication that it throws away.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

log = logging.getLogger(__name__)

# A topic counts as taken again when the broker takes something there and has refused nothing for this long: rules may
# differ from one topic to its neighbour.
LASTING_S = 60.0
# Topics that are remembered; further ones are only counted.
MAX_PLACES = 50


@dataclass(slots=True)
class _Refusal:
    reason: str
    last_s: float
    taken: bool = False
    """Whether something was taken there since."""


class Refusals:
    """`counts` by reason over the life of the object; `now` is a monotonic clock.

    `own` are filters for our own topics: without them we are not deaf.
    """

    def __init__(self, now: Callable[[], float], own: frozenset[str] = frozenset()) -> None:
        self._own = own
        self.counts: Counter[str] = Counter()
        self._now = now
        self._filters: dict[str, str] = {}
        self._places: dict[str, _Refusal] = {}

    def subscribed(self, refused: Mapping[str, str]) -> bool:
        """The broker has answered a subscription; whether something that was refused before is granted now."""
        for name, reason in refused.items():
            self._count(reason)
            if name not in self._filters:
                log.error("subscription refused", extra={"fields": {"filter": name, "problem": reason}})
        granted = self._filters.keys() - refused.keys()
        for name in granted:
            log.info("subscription granted", extra={"fields": {"filter": name}})
        self._filters = dict(refused)
        return bool(granted)

    def refused(self, topic: str, reason: str) -> None:
        """The broker has refused a message."""
        self._count(reason)
        place = _place(topic)
        if place not in self._places:
            if len(self._places) >= MAX_PLACES:
                return
            log.error("publication refused", extra={"fields": {"topic": topic, "problem": reason}})
        self._places[place] = _Refusal(reason, self._now())

    def taken(self, topic: str) -> None:
        """The broker has taken a message."""
        if self._places and (refusal := self._places.get(_place(topic))) is not None:
            refusal.taken = True

    def _forget(self) -> None:
        """Places where something was taken and nothing refused for long enough."""
        past_s = self._now() - LASTING_S
        for place in [place for place, r in self._places.items() if r.taken and r.last_s < past_s]:
            del self._places[place]
            log.info("publication taken again", extra={"fields": {"topic": f"{place}/…"}})

    def _count(self, reason: str) -> None:
        """By the code's name: the text behind it, in brackets, is the broker's and may be a new one each time."""
        self.counts[reason.partition(" (")[0]] += 1

    @property
    def deaf(self) -> bool:
        """Whether a subscription to others' topics is refused."""
        return bool(self._filters.keys() - self._own)

    @property
    def half_blind(self) -> bool:
        """Whether a subscription to our own topics is refused."""
        return bool(self._filters.keys() & self._own)

    def sentences(self, *below: str) -> list[str]:
        """What is refused now: subscriptions, and publications on topics that begin with one of `below`.

        Subscriptions to our own topics are among them only where `below` is empty.
        """
        self._forget()
        return [
            *(
                f"the broker does not let us subscribe to {name}: {reason}"
                for name, reason in self._filters.items()
                if not below or name not in self._own
            ),
            *(
                f"the broker refuses what we publish on {place}/…: {refusal.reason}"
                for place, refusal in self._places.items()
                if not below or f"{place}/".startswith(below)
            ),
        ]


def _place(topic: str) -> str:
    """The topic without its last level: alarms of one kind are one place."""
    return topic.rpartition("/")[0] or topic
