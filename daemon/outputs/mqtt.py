"""Alarms to the broker, in order whatever it does. Also the dead letters.

    <output>/alarm/<kind>/<subject>  QoS 1, retained while the alarm is active
    <output>/incident/<id>           the same for incidents, see detectors/incidents/incidents.py
    <output>/deadletter              QoS 0, see intake/deadletter.py
    <output>/instance/<client>/told  the last raises and ends, see readback/told.py

The end of an alarm takes the place of its retained message, so that everybody listening sees it, and is then removed
(an empty retained payload), so that nobody who comes later sees the alarm. Should the line break between the two, the
end is what is retained: the next connection knows from it that the end was heard, and removes it (readback/echo.py).

After each connect the active alarms are published again, as `updated`: a broker that lost its memory has them
back, and nobody sees one `raised` twice. What the broker shows beyond those is found and removed in readback/. While
there is no connection events wait in the outbox. After a start they also wait until the broker has shown how far it
was told before (readback/told.py), NOTE_MOST_S at most: a crash may have come before the broker's confirmation was on
our disk, and a slow disk may have lost what the broker was told.

An event that the broker refuses (its rules, a quota) is published again every RETRY_S until the broker takes it or a
later one of the same alarm. Until then nothing is confirmed to the journal, so that the next start knows of it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Mapping
from functools import partial
from math import inf

import msgspec

from watchkeeper.config.schema import Config, Sinks
from watchkeeper.daemon.intake.deadletter import DeadLetters
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.outputs.base import NO_BROKER, Context, Declaration
from watchkeeper.daemon.outputs.journal_past import Past
from watchkeeper.daemon.outputs.outbox import Letter, Outbox
from watchkeeper.daemon.outputs.readback.told import Notes, arrived, lost_ends, noted_ends, told_topic
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, UPDATED, AlarmEvent, encode_event
from watchkeeper.detectors.incidents.declaration import INCIDENT
from watchkeeper.detectors.incidents.topic import alarm_topic
from watchkeeper.detectors.sentence import ended_as
from watchkeeper.streams.mqtt.transport import MAX_IN_FLIGHT, Transport

log = logging.getLogger(__name__)

DEADLETTER_PERIOD_S = 0.1
# What the broker refused is offered again this often.
RETRY_S = 30.0
# So long after the first connect for the broker's note to come. It takes a round trip, behind all that the broker has
# kept for us: the time counts from the last message that arrived or that a slow disk keeps us from acknowledging, and
# events wait so long at most.
NOTE_S = 2.5
NOTE_MOST_S = 10.0
# Ended alarms that are remembered, to tell ours from another daemon's.
OVER_MAX = 20_000


class MqttSink:
    """Publishes events, and confirms to the journal what the broker has. All in callbacks; `run` only repeats."""

    name = "mqtt"
    refused = 0

    def __init__(self, settings: Sinks, context: Context) -> None:
        self._context = context
        self._encode = msgspec.msgpack.encode if settings.encoding == "msgpack" else encode_event
        # a few waiting events per alarm that can be active at once; see outbox.py
        self._outbox = Outbox(max(50_000, 4 * context.max_active))
        # on the line, in order, with the future that says whether the broker has taken it
        self._in_flight: deque[tuple[Letter, asyncio.Future[bool]]] = deque()
        self._connected = False
        # the newest event of each alarm that the broker refused, and the newest number that it has answered
        self._owed: dict[str, Letter] = {}
        self._answered: int | None = None
        self._number = 0
        self.delivered = 0
        self.failures = 0
        # ends that were published, of the earlier run and of this one
        self._over = {event.id: None for event in context.past.ended}
        # alarms of runs that we know nothing of, whose end we have published; the journal may find them later
        self._removed: set[str] = set()
        # what an earlier run left: alarms that the broker shows as active; raises and ends that it has not confirmed
        self._retained = {event.id: event for event in context.past.active}
        for number, event in _untold(context.past):
            self._retained.setdefault(event.id, event)
            self._outbox.put(Letter(event, number), self._retained)
        # the broker may have them all the same, and more than our disk has: nothing goes out before it has said so
        self._asking = context.state_dir is not None
        self._patience: asyncio.TimerHandle | None = None
        self._note_topic, self._notes = told_topic(context.output, context.client_id), Notes()
        # alarms whose end the broker was told before this run, and when they ended; those that our journal has lost
        self._noted_ends: dict[str, float] = {}
        self._lost_ends: dict[str, float] = {}

    @property
    def waiting(self) -> int:
        """Events that the broker has not confirmed."""
        return len(self._outbox) + len(self._in_flight) + len(self._owed)

    @property
    def dropped(self) -> int:
        """Events that left the full outbox because later ones replaced them."""
        return self._outbox.dropped

    def health(self) -> list[str]:
        """Is there a broker, and does it take what we publish?"""
        transport = self._context.transport
        if not transport.connected:
            return [f"{NO_BROKER}: {transport.last_error}".rstrip(": ")]
        return [f"the broker refuses events of {len(self._owed)} alarms"] if self._owed else []

    def put(self, event: AlarmEvent) -> None:
        """One event of which there is no journal."""
        self.put_recorded(event, self._number + 1, None)

    def put_recorded(self, event: AlarmEvent, number: int, arrived_s: float | None) -> None:
        """Take over one event; returns at once."""
        self._number = number
        self._outbox.put(Letter(event, number, arrived_s), self._retained)
        self._send()

    def connected(self) -> None:
        """There is a connection, perhaps to a broker without memory."""
        self._connected = True
        if self._asking:
            self._wait_for_note(0.0)
            return
        self._repeat()

    def _wait_for_note(self, waited_s: float, received: int = -1) -> None:
        transport = self._context.transport
        comes = transport.received != received or transport.unacknowledged > 0
        if comes and waited_s < NOTE_MOST_S and not transport.half_blind:
            again = partial(self._wait_for_note, waited_s + NOTE_S, transport.received)
            self._patience = asyncio.get_running_loop().call_later(NOTE_S, again)
            return
        log.warning(
            "the broker has not shown what it retains of us: what it was told before this start may be told again",
            extra=kv(waited_s=waited_s, waiting=len(self._outbox)),
        )
        self.resume()

    def told(self, note: bytes, retained: Mapping[str, str]) -> None:
        """How far the broker was told before this run, once per run: that need not be sent again."""
        if not self._asking or not self._connected:
            return
        past, output = self._context.past, self._context.output
        known = arrived(past, note, lambda event: retained.get(alarm_topic(output, event)) == event.id)
        # with a raise that has arrived goes the newest event of its alarm: every active alarm is published again
        ids = {event.id for number, event in past.unsent if number in known}
        known |= {number for alarm_id, number in past.numbers.items() if alarm_id in ids}
        for letter in self._outbox.take_out(known):
            if letter.event.state == CLEARED:
                self._ended(letter.event)
        if known:
            log.info("the broker has what a crash left unconfirmed", extra=kv(events=len(known)))
        if known and all(number in known for number, _ in past.unsent):
            self._context.confirm(max(known))
        self._notes.follow(note)
        self._noted_ends = noted_ends(note, set(retained.values()))
        self._lost_ends = lost_ends(past, note, self._noted_ends)
        for alarm_id in self._lost_ends:
            self._retained.pop(alarm_id, None)
            self._over[alarm_id] = None
        if self._lost_ends:
            log.warning("the broker was told of ends that our journal has lost", extra=kv(alarms=len(self._lost_ends)))

    def resume(self) -> None:
        """What the broker shows of us is known, or will not be: send what has waited for it."""
        if not self._asking or not self._connected:
            return
        self._asking = False
        self._stop_waiting()
        self._repeat()

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()

    def _repeat(self) -> None:
        """Publish the active alarms again, and what waits."""
        raised = self._outbox.raised()
        active = [e for e in self._retained.values() if e.state != CLEARED and e.id not in raised]
        self._outbox.repeat(Letter(msgspec.structs.replace(event, state=UPDATED)) for event in active)
        if active:
            log.info("active alarms published again", extra=kv(alarms=len(active)))
        self._send()

    @property
    def places(self) -> tuple[str, ...]:
        """What our topics begin with."""
        return f"{self._context.output}/alarm/", f"{self._context.output}/{INCIDENT}/"

    def shown(self) -> dict[str, str]:
        """The topics on which an alarm is active now, with its id."""
        output = self._context.output
        return {alarm_topic(output, event): event.id for event in self._retained.values()}

    def is_over(self, alarm_id: str) -> bool:
        """Whether the end of this alarm was published."""
        return alarm_id in self._over

    def remove(self, topic: str, event: AlarmEvent | None) -> None:
        """Take a retained message away if it is not ours to show; `event`: an alarm whose end nobody has heard of."""
        transport = self._context.transport
        if event is not None:
            done = transport.post(topic, self._encode(ended_as(event, "not_resumed")), retain=topic not in self.shown())
            # a broker that comes back with an older state shows it again, and everybody has heard the end by then
            done.add_done_callback(partial(self._removal_told, event.id))
            self._removed.add(event.id)
        if topic not in self.shown():
            transport.post(topic, b"", retain=True)

    def _removal_told(self, alarm_id: str, done: asyncio.Future[bool]) -> None:
        if not done.cancelled() and done.exception() is None and done.result():
            self._note_over(alarm_id)

    def disconnected(self) -> None:
        """Events wait until `connected`."""
        self._connected = False
        self._stop_waiting()

    async def run(self) -> None:
        """Task: offer again what the broker refused; the transport calls back for everything else."""
        while True:
            await asyncio.sleep(RETRY_S)
            # not behind a later event of the same alarm
            if self._owed and not self._outbox and not self._in_flight:
                for letter in self._owed.values():
                    self._outbox.put(Letter(letter.event), self._retained)
                self._send()

    async def flush(self) -> None:
        """Wait until everything is delivered, unless there is no connection."""
        while self._connected and (self._outbox or self._in_flight):
            await asyncio.sleep(0.005)

    def _send(self) -> None:
        """From the outbox to the broker. The transport keeps the order, so nothing waits for a round trip."""
        if self._asking:
            return
        noted = False
        while self._connected and self._outbox and len(self._in_flight) < MAX_IN_FLIGHT:
            letter = self._outbox.take()
            self._in_flight.append((letter, self._post(letter)))
            if letter.number is not None and letter.event.state != UPDATED:
                self._notes.add(letter.number, letter.event)
                noted = True
        if noted and not self._owed:
            self._leave_note(self._notes.payload())

    def _leave_note(self, note: bytes) -> None:
        if self._context.state_dir is not None:
            self._context.transport.post(self._note_topic, note, retain=True)

    def _post(self, letter: Letter) -> asyncio.Future[bool]:
        event, transport = letter.event, self._context.transport
        over = event.state == CLEARED
        if self._is_told(event):
            return self._told_before()
        topic = alarm_topic(self._context.output, event)
        told = over and event.id in self._removed
        self._removed.discard(event.id)
        again = self._context.shows(topic, event.id) and event.state == RAISED
        payload = self._encode(msgspec.structs.replace(event, state=UPDATED) if again else event)
        if not told:
            done = transport.post(topic, payload, retain=True)
            if letter.arrived_s is not None:
                done.add_done_callback(partial(self._measure, letter.arrived_s))
        if over:
            self._ended(event)
            payload = b""
            done = transport.post(topic, payload, retain=True)
        elif letter.number is not None:
            self._retained[event.id] = event
            self._over.pop(event.id, None)
        self._context.posted(topic, payload, done)
        done.add_done_callback(self._settle)
        return done

    def _is_told(self, event: AlarmEvent) -> bool:
        """Whether the broker has this event from an earlier run."""
        if event.state == CLEARED and event.id in self._noted_ends and event.id not in self._retained:
            return True
        return event.t <= self._lost_ends.get(event.id, -inf)

    def _told_before(self) -> asyncio.Future[bool]:
        done = asyncio.get_running_loop().create_future()
        done.set_result(True)
        done.add_done_callback(self._settle)
        return done

    def _ended(self, event: AlarmEvent) -> None:
        self._retained.pop(event.id, None)
        self._note_over(event.id)

    def _note_over(self, alarm_id: str) -> None:
        self._over[alarm_id] = None
        while len(self._over) > OVER_MAX:
            del self._over[next(iter(self._over))]

    def _measure(self, arrived_s: float, done: asyncio.Future[bool]) -> None:
        if not done.cancelled() and done.result():
            self._context.on_latency(time.monotonic() - arrived_s)

    def _settle(self, _done: asyncio.Future[bool]) -> None:
        """Note in the journal what the broker has confirmed, in order, and make room for more."""
        owing = bool(self._owed)
        while self._in_flight and self._in_flight[0][1].done():
            letter, done = self._in_flight.popleft()
            taken = not done.cancelled() and done.result()
            if taken:
                self._owed.pop(letter.event.id, None)
            else:
                if not self._owed:
                    self._leave_note(b"")
                self._owed[letter.event.id] = letter
                if len(self._owed) > self._outbox.limit:
                    del self._owed[next(iter(self._owed))]
            if letter.number is not None:
                self._answered = letter.number
            self.delivered += taken and letter.number is not None
            self.failures += not taken
        if owing and not self._owed:
            # it has taken everything after all
            self._leave_note(self._notes.payload())
        # what is refused, or was dropped because the transport ends, and all that follows is kept by the journal
        if self._answered is not None and not self._owed:
            self._context.confirm(self._answered)
            self._answered = None
        self._send()


def _untold(past: Past) -> list[tuple[int, AlarmEvent]]:
    """Raises and ends that the broker has not confirmed, and what is newest of alarms whose raise is among them."""
    raised = {event.id for _, event in past.unsent if event.state == RAISED}
    newest = [(past.numbers[e.id], e) for e in past.active if e.id in raised and e.state == UPDATED]
    return sorted([*past.unsent, *newest], key=lambda numbered: numbered[0])


def _asked(config: Config) -> list[Sinks]:
    return [config.sinks] if config.sinks.mqtt else []


MQTT = Declaration(
    name="mqtt",
    help="every event on a topic of its own at the broker, retained while the alarm is active",
    settings=Sinks,
    make=MqttSink,
    asked=_asked,
)


async def deliver_dead_letters(letters: DeadLetters, transport: Transport, config: Config) -> None:
    """Task: publish what `letters` keeps. They are examples, not records: without a connection they are dropped."""
    while True:
        await asyncio.sleep(DEADLETTER_PERIOD_S)
        for letter in letters.take():
            transport.post(f"{config.topics.output}/deadletter", letter, qos=0)
