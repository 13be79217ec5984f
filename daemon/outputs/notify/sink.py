"""Messages about alarms to a phone, a chat or a mailbox: few, in time, and none lost unsaid.

    put ─▶ chosen? ─▶ outbox ─▶ budget ─▶ message ─▶ Apprise ─▶ ntfy, Telegram, e-mail, …

Chosen are alarms of the asked kinds from the asked severity on, when they are raised, rise or end, unless somebody has
shelved them. After `burst_messages` at once there is one each `pause_s`, and what waited meanwhile is in it as a
summary; so is everything that waited while the service was away. A message that is not taken is tried again for ever,
each time with what has come since. An event counts as delivered when the message that tells of it was taken.

At least once, while the daemon lives; over a crash as for webhooks (delivered.py). An alarm that has risen may say so
again after a restart.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress

from watchkeeper.config.outputs import Notify
from watchkeeper.config.schema import Config
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.outputs.base import Context, Declaration, settled
from watchkeeper.daemon.outputs.delivered import Delivered
from watchkeeper.daemon.outputs.notify.budget import Budget
from watchkeeper.daemon.outputs.notify.message import message
from watchkeeper.daemon.outputs.notify.service import Service
from watchkeeper.daemon.outputs.outbox import Letter, Outbox
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, AlarmEvent
from watchkeeper.detectors.base import SEVERITIES
from watchkeeper.detectors.catalog import kinds
from watchkeeper.streams.mqtt.transport import Backoff

log = logging.getLogger(__name__)

# A failure that lasts is one line in the log, and another each time this much has passed.
REMIND_S = 300.0


class NotifySink:
    """One receiver. `put` from the event loop; `run` is a task there; the counters may be read at any time."""

    refused = 0

    def __init__(self, settings: Notify, context: Context, service: Service) -> None:
        self.name = settings.name
        self.delivered = self.failures = self._sending = self._number = 0
        self._settings = settings
        self._context = context
        self._service = service
        self._least = SEVERITIES.index(settings.severity)
        path = context.state_dir / f"notify-{settings.name}.told" if context.state_dir else None
        self._known = Delivered(path, context.state)
        # alarms that the person knows or is about to: how severe they were said to be
        self._shown = {event.id: event.severity for event in self._known.known.values() if event is not None}
        self._outbox = Outbox(settings.queue_events)
        self._budget = Budget(settings.burst_messages, settings.pause_s)
        self._arrived, self._hurry = asyncio.Event(), asyncio.Event()
        self._trouble, self._reported_s = "", 0.0
        self._caught_up = False

    @property
    def waiting(self) -> int:
        """Events that no message has told yet."""
        return len(self._outbox) + self._sending

    @property
    def dropped(self) -> int:
        """Events that left the full queue because later ones replaced them."""
        return self._outbox.dropped

    def put(self, event: AlarmEvent) -> None:
        """Take over one event; returns at once."""
        if self._wanted(event):
            self._number += 1
            self._outbox.put(Letter(event, self._number), self._known)
            self._arrived.set()
        elif event.state == CLEARED:
            self._known.note(event)

    def _wanted(self, event: AlarmEvent) -> bool:
        settings, before = self._settings, self._shown.get(event.id)
        if event.state == CLEARED:
            return self._shown.pop(event.id, None) is not None and CLEARED in settings.states
        severity = SEVERITIES.index(event.severity)
        if severity < self._least or (settings.kinds and event.kind not in settings.kinds):
            return False
        risen = before is not None and severity > SEVERITIES.index(before)
        if (before is not None and not risen) or self._context.shelved(event):
            return False
        self._shown[event.id] = event.severity
        if before is None and RAISED in settings.states:
            return True
        return "risen" in settings.states and event.state != RAISED

    async def run(self) -> None:
        """Task: send what waits, for ever."""
        # not before: only now is it known what is shelved
        if not self._caught_up:
            self._catch_up()
        backoff = Backoff(self._settings.retry_min_s, self._settings.retry_max_s)
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._outbox:
                if wait_s := self._budget.wait_s:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._hurry.wait(), wait_s)
                if await self._send():
                    backoff.reset()
                else:
                    await asyncio.sleep(backoff.pause_s())

    def _catch_up(self) -> None:
        """After a restart: what the person has missed, before everything else."""
        past, states = self._context.past, self._settings.states
        missed = self._known.missed(past.active, past.ended, raises=RAISED in states, ends=CLEARED in states)
        self._caught_up = True
        later = [self._outbox.take() for _ in range(len(self._outbox))]
        put = {letter.event.id for letter in later}
        for event in missed:
            # what was put since the start is newer
            if event.id not in put:
                self.put(event)
        for letter in later:
            self._outbox.put(letter, self._known)

    async def flush(self) -> None:
        """Send what waits in one message now, whatever the budget says, and wait until it was taken."""
        self._hurry.set()
        try:
            await settled(self)
        finally:
            self._hurry.clear()

    def health(self) -> list[str]:
        """Why the last message was not taken."""
        return [f"messages are not taken: {self._trouble}"] if self._trouble else []

    async def _send(self) -> bool:
        # the last message for a while, the first after trouble and the last of all tell everything that waits
        everything = self._budget.left <= 1 or self._trouble or self._hurry.is_set()
        letters = [self._outbox.take() for _ in range(len(self._outbox) if everything else 1)]
        self._sending, problem = len(letters), "cut off"
        try:
            told = message((letter.event for letter in letters), self._context.link, self._context.callsigns())
            async with asyncio.timeout(self._settings.timeout_s):
                problem = await self._service.send(told)
        except TimeoutError:
            problem = f"no answer within {self._settings.timeout_s:g} s"
        finally:
            self._sending = 0
            if problem:
                self._outbox.repeat(letters)
        if problem:
            self._failed(problem)
            return False
        self._budget.spend()
        self.delivered += len(letters)
        await asyncio.to_thread(self._note, letters)
        if self._trouble:
            log.info("messages are taken again", extra=kv(notify=self.name, waiting=self.waiting))
            self._trouble = ""
        return True

    def _note(self, letters: list[Letter]) -> None:
        for letter in letters:
            self._known.note(letter.event)

    def _failed(self, problem: str) -> None:
        self.failures += 1
        now_s = time.monotonic()
        if problem != self._trouble or now_s - self._reported_s > REMIND_S:
            self._reported_s = now_s
            log.warning("messages are not taken", extra=kv(notify=self.name, problem=problem, waiting=self.waiting))
        self._trouble = problem


def make(settings: Notify, context: Context) -> NotifySink:
    """One receiver. ModuleNotFoundError, OSError, ValueError: no Apprise, no address, or no such kind of alarm."""
    if unknown := sorted(set(settings.kinds) - set(kinds())):
        raise ValueError(f"notify {settings.name}: no such kind of alarm: {', '.join(unknown)}")
    return NotifySink(settings, context, Service(settings))


def _asked(config: Config) -> tuple[Notify, ...]:
    return config.notify


NOTIFY = Declaration(
    name="notify",
    help="alarms as messages to phones, chats and mailboxes, through Apprise",
    settings=Notify,
    make=make,
    asked=_asked,
)
