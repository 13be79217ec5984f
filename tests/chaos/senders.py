"""Those who publish telemetry: each vehicle with a line of its own, QoS 1, and a queue while it is cut off."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from chaos.broker import Message

if TYPE_CHECKING:
    from chaos.world import World

# Between two messages of a backlog.
SPACING_S = 0.002


@dataclass(slots=True)
class Sent:
    """A message on its way, and when its acknowledgement is here."""

    message: Message
    confirmed_s: float = inf


class Sender:
    """One vehicle. `messages` with the times at which they are sent, in order."""

    def __init__(self, world: World, name: str, messages: Sequence[tuple[float, Message]]) -> None:
        self._world = world
        self.name = name
        self._due = deque(messages)
        self._backlog: deque[Message] = deque()
        # sent, and when the broker's acknowledgement will be here; None: it has not reached the broker
        self._unconfirmed: deque[Sent] = deque()
        self._epoch = 0
        self.online = True
        self._next()

    def _next(self) -> None:
        if self._due:
            self._world.timeline.at(self._due[0][0], self._send_due)

    def _send_due(self) -> None:
        now = self._world.timeline.now
        while self._due and self._due[0][0] <= now:
            self._backlog.append(self._due.popleft()[1])
        self._flush()
        self._next()

    def _flush(self) -> None:
        if not self.online:
            return
        at = self._world.timeline.now + self._world.latency_s()
        while self._backlog:
            sent = Sent(self._backlog.popleft())
            self._unconfirmed.append(sent)
            self._world.timeline.at(at, self._arrive, sent, self._epoch)
            at += SPACING_S

    def _arrive(self, sent: Sent, epoch: int) -> None:
        if epoch != self._epoch:
            return
        self._world.broker.publish(sent.message)
        sent.confirmed_s = self._world.timeline.now + self._world.latency_s()
        while self._unconfirmed and self._unconfirmed[0].confirmed_s <= self._world.timeline.now:
            self._unconfirmed.popleft()

    def cut(self) -> None:
        """The line breaks: what the broker has not acknowledged is sent again later."""
        now = self._world.timeline.now
        again = [sent.message for sent in self._unconfirmed if sent.confirmed_s > now]
        self._unconfirmed.clear()
        self._backlog.extendleft(reversed(again))
        self._epoch += 1
        self.online = False

    def reconnect(self) -> None:
        """The line is back."""
        if not self.online and self._world.broker.up and self.name not in self._world.cut_off:
            self.online = True
            self._flush()
