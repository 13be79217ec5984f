"""A model MQTT broker: sessions, QoS 1 with redelivery, retained topics, last wills, and a memory that may be lost.

Like mosquitto it saves its state now and then. Stopped in order it comes back with everything; killed, with what it
saved last (`older`), or with nothing (`empty`). What it acknowledged to a sender and lost that way, no daemon can
get back: `Message.lost` says so, and the oracle leaves it out.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from chaos.timeline import Timeline

if TYPE_CHECKING:
    from watchkeeper.streams.mqtt.wiring import Will

    from chaos.network import Line

Memory = Literal["kept", "older", "empty"]
# Unacknowledged messages on the line: mosquitto's default, and what MQTT 5 allows a client to ask for.
IN_FLIGHT, MANY_IN_FLIGHT = 20, 65_535
AUTOSAVE_S = 12.0


@dataclass(slots=True, eq=False)
class Message:
    """One publication; for telemetry also what became of it on its way to the daemon."""

    topic: str
    payload: bytes
    retain: bool = False
    sender: str = ""
    t: float = 0.0
    delivered: int = 0
    acknowledged: bool = False
    lost: bool = False
    # acknowledged while the daemon said that it could not keep it, and not kept
    unkept: bool = False
    doubtful: bool = False


@dataclass(slots=True, eq=False)
class Session:
    """What the broker knows of one client."""

    client_id: str
    filters: tuple[str, ...] = ()
    queue: deque[Message] = field(default_factory=deque)
    # by packet id, oldest first: delivered and not acknowledged
    in_flight: OrderedDict[int, Message] = field(default_factory=OrderedDict)
    packet_id: int = 0
    line: Line | None = None
    will: Will | None = None
    expiry_s: float = 0.0
    left_s: float = 0.0

    def held(self) -> list[Message]:
        """All that the client has not acknowledged, oldest first."""
        return [*self.in_flight.values(), *self.queue]


@dataclass(frozen=True, slots=True)
class Heard:
    """What a subscriber heard, and when."""

    at_s: float
    topic: str
    payload: bytes
    retain: bool


def matches(filters: tuple[str, ...], topic: str) -> bool:
    """Only the wildcard `#` at the end is used."""
    return any(topic == f or (f.endswith("#") and topic.startswith(f[:-1])) for f in filters)


class Broker:
    """One broker. `note` writes to the trace; `heard` has everything that was published below `watchkeeper/`."""

    def __init__(self, timeline: Timeline, note: Callable[[str, str], None]) -> None:
        self._timeline = timeline
        self._note = note
        self.up = True
        self.retained: dict[str, bytes] = {}
        self.sessions: dict[str, Session] = {}
        self.heard: list[Heard] = []
        self.in_flight = IN_FLIGHT
        # whether the daemon has told everybody that it cannot keep what it hears
        self.unkept: Callable[[], bool] = lambda: False
        self.duplicate: Callable[[], bool] = lambda: False
        # whether the configuration asks for a session that is not kept: then what it loses is lost
        self.may_forget = False
        # from when to when it did not listen for somebody for that reason
        self.unheard: list[tuple[float, float]] = []
        self.denied: tuple[str, ...] = ()
        self._lost_memory_s: list[float] = []
        # it has been away since the daemon last connected: it knows nobody's last will
        self.no_will = False
        self._saved: tuple[dict[str, bytes], dict[str, list[Message]]] = ({}, {})
        self._autosave()

    # -- life -----------------------------------------------------------------------------------------------

    def _autosave(self) -> None:
        if self.up:
            self._save()
        self._timeline.after(AUTOSAVE_S, self._autosave)

    def _save(self) -> None:
        kept = {name: session.held() for name, session in self.sessions.items() if session.expiry_s}
        self._saved = (dict(self.retained), kept)

    def stop(self, memory: Memory) -> None:
        """All lines break. `kept`: it saves everything first."""
        self._note("broker", f"stops, memory {memory}")
        if memory == "kept":
            self._save()
        elif memory == "empty":
            self._saved = ({}, {})
        if memory != "kept":
            self._lost_memory_s.append(self._timeline.now)
        self.up, self.no_will = False, True
        before = [message for session in self.sessions.values() for message in session.held()]
        for session in self.sessions.values():
            if session.line is not None:
                session.line.broken()
        retained, held = self._saved
        filters = {name: (s.filters, s.expiry_s) for name, s in self.sessions.items()}
        self.retained = dict(retained)
        self.sessions = {
            name: Session(name, filters[name][0], deque(messages), expiry_s=filters[name][1], left_s=self._timeline.now)
            for name, messages in held.items()
        }
        still = {id(message) for session in self.sessions.values() for message in session.held()}
        for message in before:
            if id(message) not in still and not message.acknowledged:
                message.lost = True

    def forgot(self, since_s: float, until_s: float) -> bool:
        """Whether it lost memory between these moments."""
        return any(since_s <= at_s <= until_s for at_s in self._lost_memory_s)

    def start(self) -> None:
        """It listens again."""
        self._note("broker", "is back")
        self.up = True
        for session in self.sessions.values():
            session.left_s = self._timeline.now

    # -- clients --------------------------------------------------------------------------------------------

    def connect(self, client_id: str, line: Line, expiry_s: float, will: Will | None) -> Session:
        """CONNECT: the session that is kept, or a new one."""
        session = self.sessions.get(client_id)
        if session is not None and session.line is not None:
            session.line.broken()  # taken over
        if session is not None and self._timeline.now - session.left_s > session.expiry_s:
            self._forget(session)
            session = None
        if session is None:
            session = self.sessions[client_id] = Session(client_id)
        again = session.held()
        session.in_flight.clear()
        session.queue = deque(again)
        session.line, session.will, session.expiry_s = line, will, expiry_s
        self.no_will = False
        self._deliver(session)
        return session

    def _forget(self, session: Session) -> None:
        if self.may_forget:
            self.unheard.append((session.left_s, self._timeline.now))
        for message in session.held():
            message.lost |= self.may_forget and not message.acknowledged
        self.sessions.pop(session.client_id, None)

    def subscribe(self, session: Session, filters: tuple[str, ...]) -> None:
        """SUBSCRIBE: from now on, and what is retained."""
        session.filters = filters
        for topic, payload in self.retained.items():
            if matches(filters, topic):
                session.queue.append(Message(topic, payload, retain=True))
        self._deliver(session)

    def left(self, session: Session, line: Line, *, goodbye: bool) -> None:
        """The line is gone; without a goodbye the last will speaks."""
        if session.line is not line:
            return
        session.line, session.left_s = None, self._timeline.now
        if not goodbye and session.will is not None:
            self._note("broker", f"last will of {session.client_id}")
            self.publish(Message(session.will.topic, session.will.payload, retain=session.will.retain))
        if not session.expiry_s:
            self._forget(session)

    # -- messages -------------------------------------------------------------------------------------------

    def publish(self, message: Message) -> bool:
        """Take over a message; False: it is not allowed."""
        if matches(self.denied, message.topic):
            return False
        if message.retain:
            if message.payload:
                self.retained[message.topic] = message.payload
            else:
                self.retained.pop(message.topic, None)
        if message.topic.startswith("watchkeeper/"):
            self.heard.append(Heard(self._timeline.now, message.topic, message.payload, message.retain))
        taken = False
        for session in self.sessions.values():
            if matches(session.filters, message.topic):
                taken = True
                session.queue.append(message)
                if self.duplicate():
                    session.queue.append(message)
                self._deliver(session)
        message.lost = not taken and not message.acknowledged and (self.may_forget or bool(self._lost_memory_s))
        return True

    def _deliver(self, session: Session) -> None:
        while session.line is not None and session.queue and len(session.in_flight) < self.in_flight:
            message = session.queue.popleft()
            session.packet_id = session.packet_id % 65_535 + 1
            session.in_flight[session.packet_id] = message
            session.line.deliver(message, session.packet_id)

    def acknowledged(self, session: Session, packet_id: int) -> None:
        """PUBACK from the client."""
        message = session.in_flight.pop(packet_id, None)
        if message is not None:
            message.acknowledged = True
            message.unkept = self.unkept()
            self._deliver(session)
