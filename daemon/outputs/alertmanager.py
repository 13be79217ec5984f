"""Every active alarm as an alert in Prometheus' Alertmanager, which groups, routes, silences and pages.

    POST <url>/api/v2/alerts   [{"labels", "annotations", "startsAt", "endsAt", "generatorURL"}, …]

    labels       alertname Watchkeeper, kind, severity, subject, watchkeeper (our client id)
    annotations  summary, alarm_id, score, the evidence as JSON, and link
    generatorURL the same link: the alarm on the live page, if there is one
    endsAt       active: expire_s from now, moved on every resend_s; over: now

An alert is its labels: alarms of one kind about one subject are one alert that comes and goes, so a silence holds for
the next one too. The severity is a label because routes need it; when it changes, the alert with the old one is ended
and another begins. Alertmanager forgets by itself what is not sent again, so after a crash of ours nothing stays.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import aiohttp
import msgspec

from watchkeeper.config.outputs import Alertmanager
from watchkeeper.config.schema import Config
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.outputs.base import Context, Declaration, settled
from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent
from watchkeeper.detectors.sentence import said
from watchkeeper.streams.mqtt.transport import Backoff

log = logging.getLogger(__name__)

RETRY_MIN_S, RETRY_MAX_S = 0.5, 30.0
# Alerts in one request, and ends that wait while Alertmanager is away: it forgets these by itself.
CHUNK = 500
ENDED_MAX = 10_000

# What makes an alert this alert: kind, subject, severity.
Key = tuple[str, str, str]


class AlertmanagerSink:
    """One Alertmanager. `put` from the event loop; `run` is a task there; the counters may be read at any time."""

    name = "alertmanager"

    def __init__(
        self,
        settings: Alertmanager,
        instance: str,
        active: Iterable[AlarmEvent] = (),
        link: Callable[[AlarmEvent], str] = lambda _event: "",
    ) -> None:
        self.delivered = 0
        self.failures = 0
        self.refused = 0
        self.dropped = 0
        self._settings = settings
        self._instance = instance
        self._link = link
        self._active: dict[str, AlarmEvent] = {event.id: event for event in active}
        # changes that Alertmanager has not been told, the latest of each alert: the event, and is it over?
        self._news: dict[Key, tuple[AlarmEvent, bool]] = {}
        self._changed = asyncio.Event()
        self._trouble = ""

    @property
    def waiting(self) -> int:
        """Changes that Alertmanager has not taken."""
        return len(self._news)

    def put(self, event: AlarmEvent) -> None:
        """Take over one event; returns at once."""
        before = self._active.pop(event.id, None)
        over = event.state == CLEARED
        if not over:
            self._active[event.id] = event
        if before is None or over or before.severity != event.severity:
            if before is not None and before.severity != event.severity:
                self._news[_key(before)] = (before, True)
            self._news[_key(event)] = (event, over)
            while len(self._news) > ENDED_MAX + len(self._active):
                self._news.pop(next(iter(self._news)))
                self.dropped += 1
            self._changed.set()

    async def run(self) -> None:
        """Task: tell every change at once, and everything that is active every resend_s."""
        timeout = aiohttp.ClientTimeout(total=self._settings.timeout_s)
        backoff = Backoff(RETRY_MIN_S, RETRY_MAX_S)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            everything = True
            while True:
                if everything:
                    self._news = {_key(event): (event, False) for event in self._active.values()} | self._news
                if not await self._tell(session):
                    await asyncio.sleep(backoff.pause_s())
                    continue
                backoff.reset()
                everything = False
                try:
                    async with asyncio.timeout(self._settings.resend_s):
                        await self._changed.wait()
                except TimeoutError:
                    everything = True

    async def flush(self) -> None:
        """Wait until every change has been taken; the caller says how long."""
        await settled(self)

    def health(self) -> list[str]:
        """What Alertmanager last answered, if it did not take the alerts."""
        return [f"does not take alerts: {self._trouble}"] if self._trouble else []

    async def _tell(self, session: aiohttp.ClientSession) -> bool:
        self._changed.clear()
        while self._news:
            part = dict(list(self._news.items())[:CHUNK])
            body = msgspec.json.encode([self._alert(event, over) for event, over in part.values()])
            headers = {"Content-Type": "application/json"}
            url = self._settings.url.rstrip("/") + "/api/v2/alerts"
            try:
                async with session.post(url, data=body, headers=headers) as answer:
                    status, words = answer.status, await answer.text()
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                return self._failed(str(error) or type(error).__name__)
            if status >= 500:
                return self._failed(f"status {status}")
            if status == 200:
                self.delivered += len(part)
                self._trouble = ""
            else:
                self.refused += len(part)
                self._trouble = f"status {status}"
                log.error("Alertmanager refused alerts", extra=kv(status=status, problem=words[:200]))
            for key, told in part.items():
                # unless it has changed meanwhile
                if self._news.get(key) is told:
                    del self._news[key]
        return True

    def _failed(self, problem: str) -> bool:
        self.failures += 1
        if problem != self._trouble:
            self._trouble = problem
            log.warning("Alertmanager does not answer", extra=kv(problem=problem, waiting=len(self._news)))
        return False

    def _alert(self, event: AlarmEvent, over: bool) -> dict[str, Any]:
        now_s = time.time()
        kind, subject, severity = _key(event)
        evidence = msgspec.json.encode(event.evidence).decode()
        annotations = {
            "summary": said(event),
            "alarm_id": event.id,
            "score": f"{event.score:g} (threshold {event.threshold:g})",
            "evidence": evidence,
        }
        if event.diagnosis:
            annotations["diagnosis"] = msgspec.json.encode(event.diagnosis).decode()
        source = {}
        if link := self._link(event):
            annotations["link"] = source["generatorURL"] = link
        return {
            **source,
            "labels": {
                "alertname": "Watchkeeper", "kind": kind, "subject": subject, "severity": severity,
                "watchkeeper": self._instance,
            },
            "annotations": annotations,
            # event time is the senders': their clocks may be ahead of ours
            "startsAt": _rfc3339(min(event.t_raised, now_s)),
            "endsAt": _rfc3339(now_s if over else now_s + self._settings.expire_s),
        }  # fmt: skip


def _key(event: AlarmEvent) -> Key:
    return event.kind, "~".join(event.subjects) or event.id, event.severity


def _rfc3339(t: float) -> str:
    with suppress(OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(t, UTC).isoformat(timespec="milliseconds")
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def make(settings: Alertmanager, context: Context) -> AlertmanagerSink:
    """An Alertmanager that is told at once what the journal says is active."""
    return AlertmanagerSink(settings, context.client_id, context.past.active, context.link)


def _asked(config: Config) -> list[Alertmanager]:
    return [config.alertmanager] if config.alertmanager.url else []


ALERTMANAGER = Declaration(
    name="alertmanager",
    help="every active alarm as an alert in Prometheus' Alertmanager",
    settings=Alertmanager,
    make=make,
    asked=_asked,
)
