"""What every way out for alarm events has in common, and how one declares itself.

    AlarmRouter ─ put(event) ─▶ Sink ─▶ a broker, a receiver, a terminal, a page, a file

A sink is put an event once the journal has it: in the order of the journal, each event once. Its life: `make`, then
`run` as a task, `put` for each event while that runs (and perhaps before it begins), `flush` at the orderly end; then
`run` is cancelled. All of it happens on the event loop's thread. docs/outputs/writing-a-sink.md has an example.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

from watchkeeper.config.section import Section

if TYPE_CHECKING:
    from watchkeeper.config.schema import Config
    from watchkeeper.daemon.live.view import Watched
    from watchkeeper.daemon.outputs.journal_past import Past
    from watchkeeper.daemon.state.folder import StateFolder
    from watchkeeper.detectors.alarms.events import AlarmEvent
    from watchkeeper.streams.mqtt.transport import Transport


# What a way out that goes through the broker says while there is none. /readyz says that by itself, once for all.
NO_BROKER = "not connected to the broker"


class Sink(Protocol):
    """A way out. The counters only grow, except `waiting`; they may be read at any time and cost nothing."""

    @property
    def name(self) -> str:
        """The label in metrics, logs and /readyz; no two sinks of a daemon share one."""
        ...

    @property
    def delivered(self) -> int:
        """Events that the receiver has taken."""
        ...

    @property
    def failures(self) -> int:
        """Attempts that failed and are repeated."""
        ...

    @property
    def refused(self) -> int:
        """Events that the receiver will never take, given up."""
        ...

    @property
    def dropped(self) -> int:
        """Events that left a full queue."""
        ...

    @property
    def waiting(self) -> int:
        """Events that the receiver has not taken yet."""
        ...

    def put(self, event: AlarmEvent) -> None:
        """Take over one event. Returns at once, and never raises."""
        ...

    async def run(self) -> None:
        """Task: deliver, until cancelled."""
        ...

    async def flush(self) -> None:
        """Return when nothing waits; the caller says how long that may take."""
        ...

    def health(self) -> list[str]:
        """Why this way out cannot be relied on now, in words for a person; empty when it can."""
        ...


@runtime_checkable
class Linked(Protocol):
    """A sink that publishes by MQTT may have these as well: they follow the connection to the broker."""

    def connected(self) -> None:
        """There is a connection, perhaps to a broker without memory."""
        ...

    def disconnected(self) -> None:
        """There is none until `connected`."""
        ...


@runtime_checkable
class Confirming(Sink, Protocol):
    """The sink whose confirmations the journal notes: what it has not confirmed goes out again after a crash."""

    def put_recorded(self, event: AlarmEvent, number: int, arrived_s: float | None) -> None:
        """Like `put`, with the event's number in the journal and when its message arrived (monotonic), if one did."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a sink may need besides its settings."""

    version: str
    client_id: str
    """Our name at the broker; two daemons of one network have two."""
    output: str
    """Topic prefix of all that we publish."""
    state_dir: Path | None
    """Where to keep what must survive a restart; None: nothing may be kept."""
    past: Past
    """What the journal of the earlier run says: active alarms, and those that ended."""
    transport: Transport
    """The connection to the broker, to publish by."""
    max_active: int
    """Alarms that can be active at once."""
    vehicles: Callable[[], int]
    """How many are in the fleet table now."""
    callsigns: Callable[[], Mapping[str, str]]
    """What vehicles call themselves, by id."""
    watched: Watched
    """What the live page draws."""
    confirm: Callable[[int], None] = lambda _number: None
    """For the confirming sink: every event up to this number has been taken."""
    state: StateFolder | None = None
    """The state directory as a whole: what to call when it comes back, where to say that a file cannot be written."""
    on_latency: Callable[[float], None] = lambda _seconds: None
    """For the confirming sink: seconds from the arrival of a message to the confirmation of the event it caused."""
    posted: Callable[[str, bytes, asyncio.Future[bool]], None] = lambda _topic, _payload, _done: None
    """For the sink that publishes alarms: this is retained from now on, and must be heard back; see readback/."""
    link: Callable[[AlarmEvent], str] = lambda _event: ""
    """The alarm of an event on the live page, as a web address; empty when there is no page."""
    shelved: Callable[[AlarmEvent], bool] = lambda _event: False
    """Whether somebody has shelved this alarm: it is hidden and muted until a time."""
    shows: Callable[[str, str], bool] = lambda _topic, _alarm_id: False
    """For the same sink: whether the broker shows this alarm on this topic from an earlier run; see readback/."""


S = TypeVar("S", bound=Section)
S_co = TypeVar("S_co", bound=Section, covariant=True)


class Counterpart(Protocol[S_co]):
    """The receiver of a sink in the conformance tests: a real one, that can be away and come back."""

    @property
    def settings(self) -> S_co:
        """Settings of a sink that delivers here."""
        ...

    async def start(self) -> None:
        """Be there."""
        ...

    async def stop(self) -> None:
        """Be away: attempts to deliver fail."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration(Generic[S]):
    """All that the others know of a kind of sink before it is made."""

    name: str
    help: str
    settings: type[S]
    make: Callable[[S, Context], Sink]
    """Raises OSError or ValueError, in words for a person, when the settings cannot be used."""
    asked: Callable[[Config], Iterable[S]] | None = None
    """The settings of each such sink that a configuration asks for; None: `[sinks.NAME]`, while `enabled` is true."""
    counterpart: Callable[[Path], Counterpart[S]] | None = None
    """For the conformance tests: a receiver that may keep its files in this folder."""


class SinkError(Exception):
    """A sink cannot be had; the message names it and says why."""


AnyDeclaration = Declaration[Any]


async def idle() -> None:
    """The `run` of a sink that has nothing to do there."""
    await asyncio.get_running_loop().create_future()


async def settled(sink: Sink) -> None:
    """The `flush` of a sink whose `waiting` says it all."""
    while sink.waiting:
        await asyncio.sleep(0.005)
