"""From the pipeline to every way out: the journal first, then each sink in turn.

    Pump ─ submit ─▶ JournalSink ─▶ MQTT, live page, terminal, Home Assistant, webhooks, Alertmanager, guests

An event reaches the other sinks only once it is in the journal (without a state directory there is none, and it reaches
them at once). Each of them is put every event once, in the order of the journal; none of them waits for another.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence

from watchkeeper.daemon.outputs.base import Confirming, Linked, Sink
from watchkeeper.daemon.outputs.fence import fenced
from watchkeeper.daemon.outputs.journal_sink import JournalSink, Recorded
from watchkeeper.detectors.alarms.events import AlarmEvent

# Of the time that a stopping daemon has, this much is for receivers that do not answer.
FLUSH_S = 2.0


class AlarmRouter:
    """Hands events on. `submit` from the event loop; `first` is the journal, `others` all that come after it."""

    def __init__(self, first: JournalSink | None, others: Sequence[Sink]) -> None:
        self.first = first
        self.others = list(others)
        self.events: Counter[tuple[str, str]] = Counter()
        # the journal's own task and words pass a fence as well; events reach it directly, it hands them on
        self._guarded = fenced(first) if first is not None else None
        self._confirming = next((sink for sink in others if isinstance(sink, Confirming)), None)
        self._number = 0
        if first is not None:
            first.hand_on = self._hand_on

    @property
    def sinks(self) -> list[Sink]:
        """All of them, the journal first."""
        return [*([self.first] if self.first is not None else []), *self.others]

    @property
    def tasks(self) -> list[Sink]:
        """What is to be run, the journal first."""
        return [*([self._guarded] if self._guarded is not None else []), *self.others]

    def journal_health(self) -> list[str]:
        """What is wrong with the journal, in words."""
        return [] if self._guarded is None else self._guarded.health()

    def submit(self, events: Sequence[AlarmEvent], arrived_s: float | None) -> None:
        """Take over these events; `arrived_s` is the monotonic time of the message that caused them, if one did."""
        if self.first is not None:
            self.first.submit([(event, arrived_s) for event in events])
        else:
            self._hand_on([(number, event, arrived_s) for number, event in enumerate(events, self._number + 1)])
            self._number += len(events)

    def _hand_on(self, recorded: Sequence[Recorded]) -> None:
        for number, event, arrived_s in recorded:
            self.events[event.kind, event.state] += 1
            for sink in self.others:
                if sink is self._confirming:
                    self._confirming.put_recorded(event, number, arrived_s)
                else:
                    sink.put(event)
        # with nobody to confirm them, nothing has to be sent again
        if self.first is not None and self._confirming is None and recorded:
            self.first.confirm(recorded[-1][0])

    def connected(self) -> None:
        """There is a connection to the broker."""
        for sink in self._linked():
            sink.connected()

    def disconnected(self) -> None:
        """There is none any more."""
        for sink in self._linked():
            sink.disconnected()

    def _linked(self) -> Iterator[Linked]:
        return (sink for sink in self.others if isinstance(sink, Linked))

    def warnings(self) -> list[str]:
        """What is wrong with the sinks after the journal, in words."""
        return [f"{sink.name}: {reason}" for sink in self.others for reason in sink.health()]

    async def flush(self) -> None:
        """Deliver everything: journal and MQTT whatever it takes, so that a restart repeats nothing; others FLUSH_S."""
        if self.first is not None:
            await self.first.flush()
        if self._confirming is not None:
            await self._confirming.flush()
        tasks = [asyncio.create_task(sink.flush()) for sink in self.others if sink is not self._confirming]
        if tasks:
            _, pending = await asyncio.wait(tasks, timeout=FLUSH_S)
            for task in pending:
                task.cancel()
