"""What the broker shows of us, read back after each connect: retained alarms that are over are removed.

    <output>/alarm/#, <output>/incident/#   our alarms, as somebody who comes now is told
    <output>/watch/#                        who is watched, see coverage.py
    <output>/status                         our own greeting: when it comes back, everything retained has come before it
    <output>/instance/<client id>           retained: who publishes below this prefix

A broker that was restored from an older state shows alarms that ended since; so does one whose disk was full when they
ended, and every broker when our journal was lost. Whatever is retained and not active here is removed: first its end is
published (`ended` is "not_resumed"), unless it was published before, then the empty message that takes it away. An
alarm that our journal does not know has UNKNOWN_S to be raised again before that.

A prefix belongs to one daemon. Should another client id be registered below the same prefix, we remove only what our
own journal knows to have ended: the rest may be the other's, and is not ours to end.

When our greeting or an alarm does not come back, nobody hears us, whatever the broker acknowledges: `health` says so,
and `run` publishes it again until it is heard: a broker gets other rules while it runs. When it lets us do again what
it did not, `run` asks for a new connection, because only that shows everything that is retained.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from prometheus_client.core import Metric

from watchkeeper.config.schema import Topics
from watchkeeper.daemon.families import total
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.outputs.readback.heard import Awaited
from watchkeeper.daemon.outputs.readback.told import TOLD, told_topic
from watchkeeper.daemon.outputs.status import instance_topic, status_topic
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.incidents.declaration import INCIDENT
from watchkeeper.streams.foreign.decode import ForeignError, json_decoder, msgpack_decoder
from watchkeeper.streams.mqtt.transport import Transport

log = logging.getLogger(__name__)

# Our greeting takes a round trip, behind everything that the broker has kept for us: so long after the last message
# that arrived, and at most so long altogether.
HEARD_S = 5.0
HEARD_MOST_S = 60.0
# How often `run` looks, and how often what is not heard is published again.
LOOK_S = 1.0
AGAIN_S = 30.0
# New connections for the sake of what is retained: not more often, whatever a broker does with its rules.
RENEW_S = 300.0
# An alarm that we know nothing of may be one that we are about to raise: what an earlier run could not keep is
# delivered again, and gives the same alarm with the same id.
UNKNOWN_S = 10.0
# Retained topics that are looked at after one connect; the next one sees the others.
SEEN_MAX = 100_000
# Other daemons below our prefix: one is enough to leave what may be theirs alone.
OTHERS_MAX = 100
# Topics that are named in the log.
EXAMPLES = 3


@runtime_checkable
class Showing(Protocol):
    """A part that publishes retained messages."""

    @property
    def places(self) -> tuple[str, ...]:
        """What its topics begin with."""
        ...

    def shown(self) -> dict[str, str]:
        """The topics on which something is to be shown now, with the id of the alarm, if it is one."""
        ...

    def is_over(self, alarm_id: str) -> bool:
        """Whether we have published the end of this alarm."""
        ...

    def remove(self, topic: str, event: AlarmEvent | None) -> None:
        """Take a retained message away if it is not to be shown; `event`: an alarm whose end nobody has heard of."""
        ...


@runtime_checkable
class Noting(Protocol):
    """A part that leaves a note at the broker about what it has published, see told.py."""

    def told(self, note: bytes, retained: Mapping[str, str]) -> None:
        """What the note said when the connection began (empty: there is none); topics of alarms, with their ids."""
        ...

    def resume(self) -> None:
        """Everything that is retained has been looked at: `shows` can be asked, and events may go out."""
        ...


class Echo:
    """One connection's memory of us after the other. `received` is the transport's count of messages.

    `half_blind`: a subscription to our own topics is refused, and may be granted later.
    """

    def __init__(
        self,
        topics: Topics,
        client_id: str,
        received: Callable[[], int],
        now: Callable[[], float] = time.monotonic,
        half_blind: Callable[[], bool] = lambda: False,
    ) -> None:
        output = topics.output
        self.showing: Sequence[Showing] = ()
        self.prefix = f"{output}/"
        # input may come in on topics below the prefix of our output
        self._input = f"{topics.telemetry}/" if f"{topics.telemetry}/".startswith(self.prefix) else "\0"
        self.instance = instance_topic(output, client_id)
        self._told_topic, self._note_found = told_topic(output, client_id), b""
        self.removed = 0
        self._status = status_topic(output)
        self._places = tuple(f"{output}/{place}/" for place in ("alarm", INCIDENT, "watch"))
        self._received = received
        self._now = now
        self._half_blind = half_blind
        self._awaited = Awaited(now)
        self.posted = self._awaited.posted
        # what we greeted with, and what of it we wait for on this connection; empty: nothing yet, or it came back
        self._hello = self._greeting = b""
        # retained messages may come before we know that the connection is up; until the greeting they are collected
        self._open = True
        self._began_s = self._quiet_since_s = 0.0
        self._count = 0
        self._silent = False
        self._seen: dict[str, AlarmEvent | None] = {}
        # ends that are retained: the line broke before they were removed
        self._ends: set[str] = set()
        # alarms that we know nothing of, and when they are to be ended if that stays so
        self._unknown: dict[str, AlarmEvent] = {}
        self._unknown_until_s = 0.0
        self._others: set[str] = set()

    @property
    def filters(self) -> tuple[str, ...]:
        """What to subscribe to."""
        return (self._status, f"{self.prefix}instance/#", *(f"{place}#" for place in self._places))

    def is_ours(self, topic: str) -> bool:
        """Whether a topic is one of ours."""
        return topic.startswith(self.prefix) and not topic.startswith(self._input)

    def connected(self, greeting: bytes) -> None:
        """There is a connection, and this was published on it."""
        self._hello = self._greeting = greeting
        self._open = True
        self._began_s = self._quiet_since_s = self._now()
        self._count = self._received()

    def disconnected(self) -> None:
        """There is none any more."""
        self._greeting, self._open = b"", True
        self._note_found = b""
        self._seen.clear()
        self._ends.clear()
        self._others.clear()
        self._unknown.clear()
        self._awaited.clear()

    def put(self, topic: str, payload: bytes) -> None:
        """One of our own messages, as others hear it."""
        self._awaited.heard(topic, payload)
        if not self._open:
            return
        if topic == self._status:
            if payload == self._greeting:
                # what is retained on a topic that we may not read yet comes when we may
                self._greeting, self._open = b"", self._half_blind()
                self._heard()
        elif topic.startswith(self._places):
            if len(self._seen) + len(self._ends) < SEEN_MAX or topic in self._seen:
                self._note(topic, payload)
        elif topic == self._told_topic:
            self._note_found = payload
        elif payload and topic != self.instance and len(self._others) < OTHERS_MAX:
            self._others.add(topic.removesuffix(f"/{TOLD}").rpartition("/")[2])

    def _note(self, topic: str, payload: bytes) -> None:
        event = _event(payload) if payload else None
        self._ends.discard(topic)
        if not payload:
            self._seen.pop(topic, None)
        elif event is not None and event.t_cleared is not None:
            self._seen.pop(topic, None)
            self._ends.add(topic)
        else:
            self._seen[topic] = event

    def _heard(self) -> None:
        """Everything retained has been seen: remove what is over."""
        if self._others:
            log.warning(
                "others publish below our prefix: only alarms of our own journal are removed",
                extra=kv(prefix=self.prefix, client_ids=",".join(sorted(self._others)[:5])),
            )
        retained = {topic: event.id for topic, event in self._seen.items() if event is not None}
        noting = [showing for showing in self.showing if isinstance(showing, Noting)]
        for part in noting:
            part.told(self._note_found, retained)
        ghosts = [topic for showing in self.showing for topic in self._remove_ghosts(showing)]
        for showing in self.showing:
            for topic in self._ends:
                if topic.startswith(showing.places) and topic not in self._awaited:
                    showing.remove(topic, None)
        self._seen.clear()
        self._ends.clear()
        self._unknown_until_s = self._now() + UNKNOWN_S
        self._count_removed(ghosts)
        for part in noting:
            part.resume()

    def _count_removed(self, ghosts: list[str]) -> None:
        self.removed += len(ghosts)
        if ghosts:
            fields = kv(topics=len(ghosts), such_as=",".join(ghosts[:EXAMPLES]))
            log.warning("retained messages removed that are over", extra=fields)

    def _remove_ghosts(self, showing: Showing) -> list[str]:
        shown = showing.shown()
        ghosts = []
        for topic, event in self._seen.items():
            if not topic.startswith(showing.places):
                continue
            told = event is not None and showing.is_over(event.id)
            if topic in shown or topic in self._awaited:
                if event is not None and not told and shown.get(topic, "") not in ("", event.id) and not self._others:
                    # ours has taken its place: it will not be raised any more
                    showing.remove(topic, event)
            elif told or (event is None and not self._others):
                showing.remove(topic, None)
                ghosts.append(topic)
            elif event is not None and not self._others:
                self._unknown[topic] = event
        return ghosts

    def shows(self, topic: str, alarm_id: str) -> bool:
        """An alarm is about to be published: does the broker show it already, from a run that we know nothing of?

        Another alarm of such a run that has its topic is over.
        """
        event = self._unknown.pop(topic, None)
        if event is None or event.id == alarm_id:
            return event is not None
        for showing in self.showing:
            if topic.startswith(showing.places):
                showing.remove(topic, event)
        return False

    def end_unknown(self) -> None:
        """Alarms that we knew nothing of and have not raised in time are over; `run` calls it."""
        if not self._unknown or self._now() < self._unknown_until_s:
            return
        ended = []
        for showing in self.showing:
            shown = showing.shown()
            for topic, event in self._unknown.items():
                if topic.startswith(showing.places) and shown.get(topic) != event.id:
                    showing.remove(topic, event)
                    ended.append(topic)
        self._unknown.clear()
        self._count_removed(ended)

    def health(self) -> list[str]:
        """Whether others can hear us, as far as we know."""
        now, count = self._now(), self._received()
        if count != self._count:
            self._count, self._quiet_since_s = count, now
        said = []
        if self._greeting and (self._silent or self._late(now, self._began_s)):
            said.append(f"connected, but not heard: what we publish on {self._status} does not come back")
        if unheard := self._unheard():
            said.append(f"connected, but not heard: what we publish on {_named(unheard)} does not come back")
        if bool(said) != self._silent:
            self._silent = bool(said)
            if said:
                log.error("connected, but not heard", extra=kv(detail="; ".join(said)))
            else:
                log.info("heard again by the broker's subscribers")
        return said

    def _late(self, now: float, since_s: float) -> bool:
        return now - max(since_s, self._quiet_since_s) >= HEARD_S or now - since_s >= HEARD_MOST_S

    def _unheard(self) -> dict[str, bytes]:
        """Alarms that should have come back by now."""
        now = self._now()
        # once we are not heard, messages that arrive are no excuse any more
        patience_s = HEARD_S if self._silent or now - self._quiet_since_s >= HEARD_S else HEARD_MOST_S
        return self._awaited.overdue(now - patience_s)

    async def run(self, transport: Transport, alarms: Callable[[], None], others: Callable[[], None]) -> None:
        """Task: publish again what is not heard or not taken. `alarms` publishes active alarms, `others` the rest."""
        again_s, renewed_s, hindered = self._now(), -RENEW_S, False
        while True:
            await asyncio.sleep(LOOK_S)
            now = self._now()
            self.end_unknown()
            if not transport.connected:
                hindered = False
            elif self.health() or transport.health():
                hindered = True
                if now - again_s >= AGAIN_S:
                    again_s = now
                    self._speak(transport, alarms)
                    others()
            elif hindered and now - renewed_s >= RENEW_S:
                renewed_s, hindered = now, False
                log.info("the broker lets us speak and hear again: a new connection shows what it has retained")
                transport.renew()

    def _speak(self, transport: Transport, alarms: Callable[[], None]) -> None:
        """Greet again, and say again what was acknowledged and not heard. A sink repeats what was refused by itself."""
        for topic in (self._status, self.instance):
            transport.post(topic, self._hello, retain=True)
        unheard = self._unheard()
        for topic in (topic for topic, payload in unheard.items() if not payload):
            self.posted(topic, b"", transport.post(topic, b"", retain=True))
        if any(unheard.values()):
            alarms()

    def metrics(self) -> Iterator[Metric]:
        """For Prometheus."""
        yield total("ghosts_removed", "Retained messages that were over, removed after a connect", self.removed)


def _named(topics: Iterable[str]) -> str:
    """One topic, and how many more."""
    first, *more = topics
    return f"{first} and {len(more)} more topics" if more else first


_json = json_decoder(AlarmEvent)
_msgpack = msgpack_decoder(AlarmEvent)


def _event(payload: bytes) -> AlarmEvent | None:
    """The alarm in a payload, if it is one."""
    try:
        return _json(payload) if payload[:1] == b"{" else _msgpack(payload)
    except ForeignError:
        return None
