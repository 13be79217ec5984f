"""Posts alarm events to a web address: in order, again and again until they are taken, without holding anybody up.

    POST <url>
    Content-Type: application/json            the event, exactly the bytes that MQTT subscribers and the journal see;
                                              or in CloudEvents' form, see posting/cloud_events.py
    Link: <address>; rel="alternate"          the alarm on the live page, if there is one
    Idempotency-Key: <id>-<state>-<t>         the same for every repetition of an event
    Watchkeeper-Signature: t=<unix>,v1=<hex>  with a key: HMAC-SHA256 of "<unix>." and the body; or the three headers
                                              of Standard Webhooks, see posting/signature.py

Taken is 2xx. 408, 429, 5xx, a broken line or no answer in time: the same event again after a pause. Any other answer
will not get better: the event is given up, counted and logged. One event is on the line at a time, so the order holds
for each alarm and over all. A full queue sheds what later events replace, as outbox.py does for the broker.

At least once, while the daemon lives. Over a crash, the receiver's picture of what is active is made right at the next
start (`catch_up`): ends that it has not heard, and active alarms that it does not know. Only alarms that came and went
while neither could be told are lost to it; the journal has them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import aiohttp

from watchkeeper.config.outputs import Webhook
from watchkeeper.config.schema import Config
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.outputs.base import Context, Declaration, settled
from watchkeeper.daemon.outputs.delivered import Delivered
from watchkeeper.daemon.outputs.outbox import Letter, Outbox
from watchkeeper.daemon.outputs.posting.cloud_events import attributes, binary, structured
from watchkeeper.daemon.outputs.posting.signature import signer
from watchkeeper.daemon.state.folder import StateFolder
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, AlarmEvent, encode_event
from watchkeeper.streams.mqtt.transport import Backoff

log = logging.getLogger(__name__)

AGAIN = (408, 429)
SERVER_ERROR = 500
# A failure that lasts is one line in the log, and another each time this much has passed.
REMIND_S = 300.0


class WebhookSink:
    """One webhook. `put` from the event loop; `run` is a task there; the counters may be read at any time."""

    def __init__(
        self,
        settings: Webhook,
        state_dir: Path | None,
        now: Callable[[], float] = time.time,
        state: StateFolder | None = None,
        link: Callable[[AlarmEvent], str] = lambda _event: "",
        client_id: str = "watchkeeper",
    ) -> None:
        self.name = settings.name
        self.delivered = 0
        self.failures = 0
        self.refused = 0
        self._settings = settings
        self._sign = signer(settings)
        self._now = now
        self._link = link
        self._client_id = client_id
        self._known = Delivered(state_dir / f"webhook-{settings.name}.told" if state_dir else None, state)
        self._outbox = Outbox(settings.queue_events)
        self._arrived = asyncio.Event()
        self._posting = False
        self._trouble = ""
        self._reported_s = 0.0

    @property
    def waiting(self) -> int:
        """Events that the receiver has not taken."""
        return len(self._outbox) + self._posting

    @property
    def dropped(self) -> int:
        """Events that left the full queue because later ones replaced them."""
        return self._outbox.dropped

    def put(self, event: AlarmEvent) -> None:
        """Take over one event; returns at once."""
        if event.state in self._settings.states:
            self._outbox.put(Letter(event), self._known)
            self._arrived.set()
        elif event.state == CLEARED:
            self._known.note(event)

    def catch_up(self, active: Sequence[AlarmEvent], ended: Iterable[AlarmEvent]) -> None:
        """After a restart, with what the journal knows: tell what the receiver has missed."""
        states = self._settings.states
        missed = self._known.missed(active, ended, raises=RAISED in states, ends=CLEARED in states)
        for event in missed:
            self._outbox.put(Letter(event), self._known)
            self._arrived.set()

    async def run(self) -> None:
        """Task: post what waits, for ever."""
        timeout = aiohttp.ClientTimeout(total=self._settings.timeout_s)
        backoff = Backoff(self._settings.retry_min_s, self._settings.retry_max_s)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                await self._arrived.wait()
                while self._outbox:
                    event = self._outbox.take().event
                    self._posting = True
                    try:
                        while not await self._post(session, event):
                            await asyncio.sleep(backoff.pause_s())
                    finally:
                        self._posting = False
                    backoff.reset()
                self._arrived.clear()

    async def flush(self) -> None:
        """Wait until everything has been taken; the caller says how long."""
        await settled(self)

    def health(self) -> list[str]:
        """What the receiver last answered, if it did not take the event."""
        return [f"does not take events: {self._trouble}"] if self._trouble else []

    async def _post(self, session: aiohttp.ClientSession, event: AlarmEvent) -> bool:
        """True when this event is dealt with: taken, or refused for good."""
        try:
            headers, body = self._request(event)
            # a redirect would lose the body or the signature's meaning: the address must be right
            async with session.post(self._settings.url, data=body, headers=headers, allow_redirects=False) as answer:
                status = answer.status
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return self._failed(str(error) or type(error).__name__)
        if status in AGAIN or status >= SERVER_ERROR:
            return self._failed(f"status {status}")
        if status // 100 == 2:
            self.delivered += 1
            await asyncio.to_thread(self._known.note, event)
            if self._trouble:
                log.info("webhook takes events again", extra=kv(webhook=self.name, waiting=len(self._outbox)))
                self._trouble = ""
        else:
            self.refused += 1
            self._trouble = f"status {status}"
            fields = kv(webhook=self.name, status=status, alarm=event.id, state=event.state)
            log.error("webhook refused an event", extra=fields)
        return True

    def _failed(self, problem: str) -> bool:
        self.failures += 1
        now_s = time.monotonic()
        if problem != self._trouble or now_s - self._reported_s > REMIND_S:
            self._trouble, self._reported_s = problem, now_s
            fields = kv(webhook=self.name, problem=problem, waiting=len(self._outbox) + 1)
            log.warning("webhook does not take events", extra=fields)
        return False

    def _request(self, event: AlarmEvent) -> tuple[dict[str, str], bytes]:
        """Headers and body; of a repetition the same, but for the time of the signature."""
        message_id, body, link = f"{event.id}-{event.state}-{event.t}", encode_event(event), self._link(event)
        headers = {"Content-Type": "application/json"}
        if self._settings.form != "event":
            envelope = attributes(event, message_id, self._client_id, link)
            headers, body = (structured if self._settings.form == "cloudevents" else binary)(envelope, body)
        headers["Idempotency-Key"] = message_id
        if link:
            headers["Link"] = f'<{link}>; rel="alternate"'
        return headers | self._sign(message_id, int(self._now()), body), body


def make(settings: Webhook, context: Context) -> WebhookSink:
    """One webhook, which tells its receiver what it missed. OSError: the key to sign with cannot be used."""
    sink = WebhookSink(settings, context.state_dir, state=context.state, link=context.link, client_id=context.client_id)
    sink.catch_up(context.past.active, context.past.ended)
    return sink


def _asked(config: Config) -> tuple[Webhook, ...]:
    return config.webhooks


WEBHOOK = Declaration(
    name="webhook", help="every event posted to a web address, signed", settings=Webhook, make=make, asked=_asked
)
