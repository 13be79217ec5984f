"""What /readyz says, as alarms: a full disk or a refused topic is heard where alarms are heard.

    not_ready(), warnings() ─ once a second ─▶ Troubles ─ events of the kind `watch` ─▶ AlarmRouter ─▶ every sink

The subjects are `watchkeeper` and the part that is in trouble: the first word of the sentence (`journal …`, `mqtt: …`).
An alarm is raised when a part has been in trouble for SETTLE_S and ends when it has been well for CALM_S. Times are the
wall clock's: no replay has these alarms. What detectors and incidents say is left out, because the pipeline raises
alarms about those itself.

An event goes through the journal like any other; a journal that cannot take it hands it on all the same.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterable, Sequence

from watchkeeper.config.schema import Config
from watchkeeper.daemon.logs import kv
from watchkeeper.detectors.alarms.events import CLEARED, AlarmBook, AlarmEvent, Finding
from watchkeeper.detectors.coverage.declaration import DAEMON, PART_TROUBLE, WATCH
from watchkeeper.detectors.sentence import spoken

log = logging.getLogger(__name__)

LOOK_S = 1.0
# A restart of the broker, or a slow answer, is no trouble yet; and one good second is no end.
SETTLE_S = 10.0
CALM_S = 5.0
# More parts than a daemon has; further ones are in /readyz only.
MOST_PARTS = 50
# States, not troubles: sentences that begin so.
WARMING, STOPPING = "warming up", "stopping"
WORKERS = f"{WARMING}: workers start"
# Sentences that do not begin with the name of their part.
PARTS = {"not connected": "broker", "connected, but": "broker"}
_NAMED = re.compile(r"(?:the |an? )?([A-Za-z0-9_./-]{1,40})")


def part_of(sentence: str) -> str:
    """The part that a sentence of /readyz is about.

    >>> part_of("journal no space left"), part_of("mqtt: no answer"), part_of("the fleet is full")
    ('journal', 'mqtt', 'fleet')
    """
    for start, part in PARTS.items():
        if sentence.startswith(start):
            return part
    named = _NAMED.match(sentence)
    return named.group(1).lower().rstrip(".") if named else "daemon"


def about_daemon(event: AlarmEvent) -> bool:
    """Whether an alarm is one of these."""
    return event.kind == WATCH and len(event.subjects) == 2 and event.subjects[0] == DAEMON


class Troubles:
    """The alarms about one daemon. `step` is pure but for what it asks; `run` is the task that calls it."""

    def __init__(
        self,
        config: Callable[[], Config],
        not_ready: Callable[[], Sequence[str]],
        warnings: Callable[[], Sequence[str]],
        submit: Callable[[list[AlarmEvent], float | None], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._config = config
        self._not_ready, self._warnings = not_ready, warnings
        self._submit = submit
        self._now = now
        self._book = AlarmBook(config().alarms, spoken)
        self._since: dict[str, float] = {}
        self._well: dict[str, float] = {}

    @property
    def active(self) -> list[AlarmEvent]:
        """Those that are active now."""
        return list(self._book.active.values())

    def adopt(self, events: Iterable[AlarmEvent]) -> None:
        """Go on with alarms that were active before a restart."""
        for event in events:
            if about_daemon(event) and event.state != CLEARED:
                self._book.adopt(event)
                self._since[event.subjects[1]] = event.t_onset

    async def run(self) -> None:
        """Task: look, until cancelled."""
        while True:
            if events := self.step(self._now()):
                self._submit(events, None)
            await asyncio.sleep(LOOK_S)

    def step(self, t: float) -> list[AlarmEvent]:
        """What begins, changes and ends at this moment."""
        reasons = self._not_ready() if self._config().detectors.watch.enabled else []
        if "stopping" in reasons:
            return []
        warnings = self._warnings() if self._config().detectors.watch.enabled else []
        found: dict[str, tuple[str, list[str]]] = {}
        for severity, sentences in (("warning", reasons), ("caution", warnings)):
            for sentence in sentences:
                if not sentence.startswith((WARMING, STOPPING)) and len(found) < MOST_PARTS:
                    found.setdefault(part_of(sentence), (severity, []))[1].append(sentence)
        events = [self._bad(part, severity, "; ".join(said), t) for part, (severity, said) in found.items()]
        events += [self._good(part, t) for part in sorted(self._since.keys() - found.keys())]
        return [event for event in events if event is not None]

    def _bad(self, part: str, severity: str, detail: str, t: float) -> AlarmEvent | None:
        since_t = self._since.setdefault(part, t)
        self._well.pop(part, None)
        evidence = {"causes": [PART_TROUBLE], "since_t": round(since_t, 3), "detail": detail}
        finding = Finding(WATCH, (DAEMON, part), t, 1.0, 1.0, severity, evidence)
        if (WATCH, (DAEMON, part)) in self._book.active:
            return self._book.still(finding)
        if t - since_t < SETTLE_S:
            return None
        log.warning("in trouble", extra=kv(part=part, detail=detail))
        return self._book.raised(finding, since_t)

    def _good(self, part: str, t: float) -> AlarmEvent | None:
        known = (WATCH, (DAEMON, part)) in self._book.active
        if known and t - self._well.setdefault(part, t) < CALM_S:
            return None
        self._since.pop(part, None)
        self._well.pop(part, None)
        if not known:
            return None
        log.info("well again", extra=kv(part=part))
        return self._book.end(WATCH, (DAEMON, part), t, "cause_gone")
