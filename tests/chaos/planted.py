"""Bugs put in on purpose: `make chaos ARGS="--planted"` must find each of them within a thousand seeds.

A bug is found by a seed that breaks the bug's invariant with it and none without it. Each names the faults of the
worlds in which it shows; the rest of a world is the seed's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from watchkeeper.daemon import app as app_module
from watchkeeper.daemon.condition import Condition
from watchkeeper.daemon.intake.inputlog import InputLog, Position
from watchkeeper.daemon.intake.kept import Keeper
from watchkeeper.daemon.intake.pump import Pump
from watchkeeper.daemon.intake.queue import Intake
from watchkeeper.daemon.outputs import mqtt as mqtt_module
from watchkeeper.daemon.outputs.journal import Journal
from watchkeeper.daemon.outputs.journal_sink import JournalSink
from watchkeeper.daemon.outputs.mqtt import MqttSink
from watchkeeper.daemon.outputs.outbox import Letter, Outbox
from watchkeeper.daemon.outputs.readback.echo import Echo
from watchkeeper.daemon.state import memory
from watchkeeper.daemon.state.recovery import Snapshots
from watchkeeper.detectors.alarms import events
from watchkeeper.detectors.alarms.events import RAISED
from watchkeeper.detectors.engine.fence import Fence
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.streams.mqtt.transport import Transport

from chaos import interpose
from chaos.campaign import play_one
from chaos.network import Connection

Plant = Callable[[interpose.Patches], None]


@dataclass(frozen=True, slots=True)
class Bug:
    """One bug: how it is put in, the faults that bring it out, and the invariants of which it breaks one."""

    put_in: Plant
    faults: tuple[str, ...]
    breaks: frozenset[str]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """While this lasts, the daemon has it; the model is in place already."""
        patches = interpose.Patches()
        self.put_in(patches)
        try:
            yield
        finally:
            patches.undo()

    def hunt(self, at_most: int) -> tuple[int | None, int, str]:
        """The first seed that shows it, how many were tried, and what was broken there."""
        with interpose.interposed():
            for seed in range(at_most):
                with self.planted():
                    problems = play_one(seed, self.faults).problems
                shown = [f"{invariant}: {words}" for invariant, words in problems if invariant in self.breaks]
                if shown and not play_one(seed, self.faults).problems:
                    return seed, seed + 1, shown[0]
        return None, at_most, ""


PLANTED: dict[str, Bug] = {}


def _bug(*faults: str, breaks: str) -> Callable[[Plant], Plant]:
    def add(put_in: Plant) -> Plant:
        PLANTED[put_in.__name__] = Bug(put_in, faults, frozenset(breaks.split()))
        return put_in

    return add


def _restarted() -> bool:
    """Whether a process runs now that is not the first; the oracle runs in none."""
    world = interpose.on_stage()
    return world is not None and world.timeline.current is not None and world.daemon.starts > 1


# -- what is kept -------------------------------------------------------------------------------------------


@_bug("disk_slow", "kill", breaks="unused")
def acknowledge_before_keeping(patches: interpose.Patches) -> None:
    """A message is acknowledged as soon as it is received; the input log is written later, or never."""
    real = Connection.receive

    def receive(self: Connection, *args: Any) -> None:
        real(self, *args)
        self.acknowledge(1)

    patches.set(Connection, "receive", receive)


@_bug("term", breaks="unused")
def stop_with_unread_messages(patches: interpose.Patches) -> None:
    """An orderly stop goes on reading and acknowledging, and judges none of it."""

    def throw_away(self: Connection, line: Any, message: Any, packet_id: int) -> None:
        if line is self._line:
            self._delivered.append((packet_id, message))
            self.acknowledge(len(self._delivered))

    def stop_reading(self: Connection) -> None:
        self.receive = partial(throw_away, self)  # type: ignore[method-assign]

    patches.set(Connection, "stop_reading", stop_reading)


@_bug("kill", breaks="unused")
def forget_the_input_log(patches: interpose.Patches) -> None:
    """A start does not read the input log."""

    def blocks(self: InputLog, since: Position) -> Iterator[Any]:
        list(real(self, since))
        return iter(())

    real = InputLog.blocks
    patches.set(InputLog, "blocks", blocks)


@_bug("kill", breaks="unused")
def snapshot_claims_too_much(patches: interpose.Patches) -> None:
    """A snapshot says that it contains messages which it does not."""
    real = Snapshots._state

    def state(self: Snapshots, position: Position) -> dict[str, Any]:
        return {**real(self, position), "input": [position.items + 3, position.steps]}

    patches.set(Snapshots, "_state", state)


@_bug("power", breaks="unused")
def acknowledge_before_the_sync(patches: interpose.Patches) -> None:
    """What is acknowledged has been written, but is not synced."""
    real = InputLog.append

    def append(self: InputLog, *args: Any) -> None:
        self.fsync = False
        real(self, *args)

    patches.set(InputLog, "append", append)


@_bug("flood", breaks="unused")
def drop_the_oldest(patches: interpose.Patches) -> None:
    """A full queue lets its oldest message go, which may be acknowledged."""
    real = Intake.put

    def put(self: Intake, topic: str, payload: bytes) -> None:
        real(self, topic, payload)
        if self.full:
            self.take(1)

    patches.set(Intake, "put", put)


@_bug("duplicates", breaks="unused")
def forget_both_of_a_pair(patches: interpose.Patches) -> None:
    """A message that comes twice is thrown away twice."""
    real = Intake.put

    def put(self: Intake, topic: str, payload: bytes) -> None:
        if self._queue and self._queue[-1][1] == payload:
            self._queue.pop()
        else:
            real(self, topic, payload)

    patches.set(Intake, "put", put)


@_bug("net_reset", breaks="unused")
def ask_for_a_clean_session(patches: interpose.Patches) -> None:
    """The broker is not asked to keep anything."""
    patches.set(Connection, "clean", True)


# -- the life of an alarm -----------------------------------------------------------------------------------


@_bug("disk_slow", "kill", breaks="doubled")
def publish_before_the_journal(patches: interpose.Patches) -> None:
    """An event is handed on first and written afterwards, and no note at the broker makes up for it."""

    def write(self: JournalSink) -> None:
        if self._failure is None or self._busy or not self._inbox:
            return
        fresh = list(self._inbox)
        self._inbox.clear()
        self._busy = True
        self.hand_on(fresh)
        loop = asyncio.get_running_loop()
        written = loop.run_in_executor(self._disk, self.journal.write, [(number, event) for number, event, _ in fresh])
        written.add_done_callback(lambda _done: finish(self))

    def finish(self: JournalSink) -> None:
        self._busy = False
        self._write()

    patches.set(JournalSink, "_write", write)
    patches.set(MqttSink, "_leave_note", lambda _self, _note: None)


@_bug("kill", breaks="doubled")
def forget_what_was_told(patches: interpose.Patches) -> None:
    """After a restart nothing looks whether the journal has an event already."""
    patches.set(Journal, "is_repeat", lambda _self, _event: False)
    patches.set(memory, "settle", lambda _pipeline, _journal, _relived: [])


@_bug("kill", breaks="other_id")
def other_ids_after_a_restart(patches: interpose.Patches) -> None:
    """The id of an alarm depends on the process that raises it."""
    real = events.alarm_id

    def alarm_id(kind: str, subjects: tuple[str, ...], t_onset: float) -> str:
        return real(kind, subjects, t_onset + (0.001 if _restarted() else 0.0))

    patches.set(events, "alarm_id", alarm_id)


@_bug("kill", "kill_at_disk", breaks="lost uncleared ghost hidden")
def lose_one_event_on_reconnect(patches: interpose.Patches) -> None:
    """The first event that waited for the broker is forgotten."""
    real = MqttSink.connected

    def connected(self: MqttSink) -> None:
        if self._outbox:
            self._outbox.take()
        real(self)

    patches.set(MqttSink, "connected", connected)


@_bug("net_reset", breaks="doubled")
def raise_again_on_reconnect(patches: interpose.Patches) -> None:
    """Active alarms are published again as raised, not as updated."""

    def repeat(self: Outbox, letters: Any) -> None:
        real(self, (Letter(msgspec.structs.replace(letter.event, state=RAISED)) for letter in letters))

    real = Outbox.repeat
    patches.set(Outbox, "repeat", repeat)


@_bug("net_slow", breaks="doubled")
def send_again_too_soon(patches: interpose.Patches) -> None:
    """A message that is not confirmed within a tenth of a second is sent again."""
    real = Transport._send

    def send(self: Transport, message: Any) -> bool:
        sent = real(self, message)
        again = partial(self._connection.send, message.topic, message.payload, message.qos, message.retain)
        asyncio.get_running_loop().call_later(0.1, lambda: message.done.done() or again())
        return sent

    patches.set(Transport, "_send", send)


@_bug("kill", breaks="doubled")
def never_note_what_is_confirmed(patches: interpose.Patches) -> None:
    """The journal does not write down how far the broker has confirmed it, and the broker is not asked."""
    patches.set(Journal, "confirm", lambda _self, _number: None)
    patches.set(mqtt_module, "arrived", lambda _past, _note, _is_shown: set())


@_bug("kill", "kill_at_disk", breaks="doubled")
def send_again_what_has_arrived(patches: interpose.Patches) -> None:
    """After a crash everything that is not confirmed on disk is published, without asking the broker."""
    patches.set(mqtt_module, "arrived", lambda _past, _note, _is_shown: set())


@_bug("kill_at_disk", "disk_slow", breaks="lost uncleared ghost")
def believe_any_note(patches: interpose.Patches) -> None:
    """All that a crash left unconfirmed counts as arrived."""
    patches.set(mqtt_module, "arrived", lambda past, _note, _is_shown: {number for number, _ in past.unsent})


@_bug("broker_kept", breaks="unused")
def judge_a_backlog_as_it_comes(patches: interpose.Patches) -> None:
    """The first sender that is back after an outage closes the ticks of all others."""
    patches.set(Pump, "left", lambda _self: None)


@_bug("disk_slow", breaks="false other_id lost")
def blame_links_for_our_disk(patches: interpose.Patches) -> None:
    """What the broker kept back while it waited for us counts as late and as silence."""
    patches.set(Pump, "stalled", lambda _self: None)
    patches.set(Keeper, "stalled", property(lambda _self: False))


@_bug("hup", breaks="lost other_id")
def start_afresh_on_reload(patches: interpose.Patches) -> None:
    """A reload builds the pipeline's state again, empty."""
    real = Pipeline.retune

    def retune(self: Pipeline, config: Any) -> None:
        real(self, config)
        self._begin()

    patches.set(Pipeline, "retune", retune)


# -- what the broker shows ----------------------------------------------------------------------------------


@_bug("broker_empty", breaks="hidden")
def no_repetition_on_reconnect(patches: interpose.Patches) -> None:
    """A broker that lost its memory does not get the active alarms back."""
    patches.set(Outbox, "repeat", lambda _self, _letters: None)


@_bug("none", breaks="ghost")
def leave_the_retained_message(patches: interpose.Patches) -> None:
    """The retained message of a cleared alarm is not removed."""
    real = Transport.post

    def post(self: Transport, topic: str, payload: bytes, **named: Any) -> Any:
        if payload:
            return real(self, topic, payload, **named)
        done = asyncio.get_running_loop().create_future()
        done.set_result(True)
        return done

    patches.set(Transport, "post", post)


@_bug("disk_deleted", "kill", breaks="uncleared ghost")
def forget_alarms_of_a_lost_journal(patches: interpose.Patches) -> None:
    """Retained alarms that the journal does not know are left alone."""
    patches.set(Echo, "end_unknown", lambda _self: None)
    patches.set(Echo, "shows", lambda _self, _topic, _alarm_id: False)


@_bug("kill", breaks="status")
def no_last_will(patches: interpose.Patches) -> None:
    """The broker has no last will to publish."""
    patches.set(app_module, "Will", lambda *_args: None)


@_bug("none", breaks="status")
def no_goodbye(patches: interpose.Patches) -> None:
    """An orderly stop does not say offline."""

    async def silence(*_args: Any) -> None:
        pass

    patches.set(app_module, "say_goodbye", silence)


# -- what is said -------------------------------------------------------------------------------------------


@_bug("net_reset", breaks="unready")
def ready_without_a_broker(patches: interpose.Patches) -> None:
    """/readyz does not look at the connection."""
    patches.set(Condition, "not_ready", lambda _self: [])
    patches.set(Condition, "warnings", lambda _self: [])


@_bug("disk_full", breaks="unready")
def ready_with_a_full_disk(patches: interpose.Patches) -> None:
    """/readyz does not look at the journal and the input log."""
    for part in (JournalSink, Keeper):
        patches.set(part, "health", lambda _self: [])


@_bug("detector_raises", breaks="unready")
def ready_with_a_failing_detector(patches: interpose.Patches) -> None:
    """/readyz does not say that a detector fails."""
    patches.set(Fence, "trouble", lambda _self: "")


# -- what ends the daemon -----------------------------------------------------------------------------------


@_bug("disk_full", breaks="crash")
def a_full_disk_is_the_end(patches: interpose.Patches) -> None:
    """A snapshot that cannot be written raises. (A journal that does is fenced.)"""

    def failed(_self: Snapshots, problem: str) -> None:
        if problem:
            raise OSError(28, problem)

    patches.set(Snapshots, "_failed", failed)


@_bug("detector_raises", breaks="crash")
def no_fence(patches: interpose.Patches) -> None:
    """What a detector raises goes through."""

    def fail(_self: Fence, error: Exception, _window: Any) -> None:
        raise error

    patches.set(Fence, "_fail", fail)


@_bug("host_clock", breaks="false other_id")
def idle_by_the_wall_clock(patches: interpose.Patches) -> None:
    """The pump measures silence with a clock that somebody may set."""
    real = Pump.__init__

    def init(self: Pump, *args: Any, **named: Any) -> None:
        real(self, *args, **named)
        self._now = interpose.wall_clock

    patches.set(Pump, "__init__", init)
