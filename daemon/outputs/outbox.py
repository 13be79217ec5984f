"""The outbox: alarm events that wait for the broker, in order, and never too many.

While a broker is away for hours, alarms come and go. When the outbox is full, what no longer matters leaves first:
an update that a later event of the same alarm replaces, and a whole alarm that the broker never heard of and that
is over. What remains is one or two events per active alarm and the ends of alarms that the broker still shows as
active, so the limit holds and no retained alarm stays behind. The journal has everything in any case.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable
from dataclasses import dataclass

from watchkeeper.detectors.alarms.events import CLEARED, RAISED, UPDATED, AlarmEvent


@dataclass(frozen=True, slots=True)
class Letter:
    """An event to publish; its number in the journal, and when the message that caused it arrived (monotonic).

    A letter without a number says again what the broker was told before.
    """

    event: AlarmEvent
    number: int | None = None
    arrived_s: float | None = None


class Outbox:
    """First in, first out; `limit` must be several times the number of alarms that can be active."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.dropped = 0
        self._letters: deque[Letter] = deque()

    def __len__(self) -> int:
        return len(self._letters)

    def put(self, letter: Letter, known: Container[str]) -> None:
        """Add at the end. `known` are the ids of alarms that the broker shows as active."""
        if len(self._letters) >= self.limit:
            self._compact(known)
        self._letters.append(letter)

    def repeat(self, letters: Iterable[Letter]) -> None:
        """Put these before all others, in place of earlier repetitions."""
        self._letters = deque((*letters, *(letter for letter in self._letters if letter.number is not None)))

    def raised(self) -> set[str]:
        """The alarms whose raise waits here: not yet to be said in any other words."""
        return {letter.event.id for letter in self._letters if letter.event.state == RAISED}

    def take(self) -> Letter:
        """The next letter."""
        return self._letters.popleft()

    def take_out(self, numbers: Container[int | None]) -> list[Letter]:
        """Take out the letters with these numbers: their receiver has them."""
        out = [letter for letter in self._letters if letter.number in numbers]
        self._letters = deque(letter for letter in self._letters if letter.number not in numbers)
        return out

    def _compact(self, known: Container[str]) -> None:
        before = len(self._letters)
        over = {letter.event.id for letter in self._letters if letter.event.state == CLEARED}
        later: set[str] = set()
        kept: deque[Letter] = deque()
        for letter in reversed(self._letters):
            event = letter.event
            replaced = event.state == UPDATED and event.id in later
            unseen = event.id in over and event.id not in known
            later.add(event.id)
            if not (replaced or unseen):
                kept.appendleft(letter)
        # still full only if more alarms are active than the limit allows for: then the oldest go
        while len(kept) >= self.limit:
            kept.popleft()
        self._letters = kept
        self.dropped += before - len(kept)
