"""The line between daemon and broker, and the daemon's end of it: a `Connection` as streams/mqtt/wiring.py has it.

A line carries whole packets in order, each after a delay. It may be reset (both ends notice at once, what is on the
way is lost) or go silent (packets vanish, and each end notices only by its keep-alive).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from watchkeeper.streams.mqtt.wiring import ANSWER_TIMEOUT_S, Wiring

from chaos.broker import Message, Session

if TYPE_CHECKING:
    from chaos.world import World

# Keep-alive of the configuration that the simulation uses, and when each end gives a silent line up.
KEEPALIVE_S = 5
NOTICED_S = 1.5 * KEEPALIVE_S


class Line:
    """One connection. `lost` is called at the daemon's end when it breaks."""

    def __init__(self, world: World, end: Connection, lost: Callable[[], None]) -> None:
        self._world = world
        self._end = end
        self._lost = lost
        self._loop = world.daemon.loop
        self._owner = world.daemon.process
        self._up_s = self._down_s = 0.0
        self.open = True
        self.silent = self.leaving = False
        self.session: Session | None = None

    def to_broker(self, run: Callable[..., Any], *args: Any) -> None:
        """A packet from the daemon."""
        if self.silent:
            return
        self._up_s = max(self._up_s, self._world.timeline.now + self._world.latency_s())
        self._world.timeline.at(self._up_s, self._arrive, run, args)

    def to_daemon(self, run: Callable[..., Any], *args: Any) -> None:
        """A packet from the broker."""
        if self.silent:
            return
        self._down_s = max(self._down_s, self._world.timeline.now + self._world.latency_s())
        self._loop.call_at(self._down_s, self._arrive, run, args)

    def _arrive(self, run: Callable[..., Any], args: tuple[Any, ...]) -> None:
        if self.open and not self.silent:
            run(*args)

    def deliver(self, message: Message, packet_id: int) -> None:
        """PUBLISH to the daemon."""
        self.to_daemon(self._end.receive, self, message, packet_id)

    def broken(self) -> None:
        """A reset: what is on the way is lost, both ends know."""
        if not self.open or (self.leaving and not self.silent):
            return
        self.open = False
        if self._owner.alive:
            self._loop.call_soon(self._lost)
        if self.session is not None and self._world.broker.up:
            self._world.broker.left(self.session, self, goodbye=False)

    def goodbye(self) -> None:
        """DISCONNECT, and closed: packets before it arrive."""
        if self.open:
            self.leaving = True
            self.to_broker(self._said_goodbye)

    def _said_goodbye(self) -> None:
        self.open = False
        if self.session is not None:
            self._world.broker.left(self.session, self, goodbye=True)

    def fall_silent(self) -> None:
        """Nothing passes any more; the ends notice later."""
        self.silent = True
        self._world.timeline.after(NOTICED_S, self.broken)


class Connection:
    """See wiring.Connection: the daemon's client library, in the model."""

    # whether the broker is asked to forget the session
    clean = False

    def __init__(self, world: World, wiring: Wiring) -> None:
        self._world = world
        self._wiring = wiring
        self._line: Line | None = None
        self._up = False
        self._reading = True
        self._packet_id = 0
        # packet ids of delivered messages, oldest first
        self._delivered: deque[tuple[int, Message]] = deque()

    async def hold(self, up: Callable[[], None]) -> None:
        """Connect, subscribe, call `up`, and stay until the line breaks."""
        world, wiring = self._world, self._wiring
        await asyncio.sleep(world.latency_s())
        if world.cut == "silent":
            await asyncio.sleep(ANSWER_TIMEOUT_S)
            raise TimeoutError("the broker does not answer")
        if world.cut or not world.broker.up:
            raise ConnectionRefusedError("connection refused")
        lost = asyncio.get_running_loop().create_future()
        answered = asyncio.get_running_loop().create_future()
        line = Line(world, self, lambda: lost.done() or lost.set_result(None))
        world.lines.append(line)
        self._line = line
        self._delivered.clear()
        kept = wiring.broker.client_id in world.broker.sessions
        expiry_s = 0.0 if self.clean else float(wiring.broker.session_expiry_s)
        line.session = world.broker.connect(wiring.broker.client_id, line, expiry_s, wiring.will)
        line.to_broker(world.broker.subscribe, line.session, wiring.filters)
        line.to_broker(line.to_daemon, lambda: answered.done() or answered.set_result(None))
        try:
            await asyncio.wait([lost, answered], return_when=asyncio.FIRST_COMPLETED)
            if answered.done():
                self._up = True
                world.note("daemon", "connected")
                wiring.on_session(kept and line.session.expiry_s > 0)
                wiring.on_subscribed({})
                up()
                await lost
            raise ConnectionResetError("connection reset")
        except asyncio.CancelledError:
            line.goodbye()
            raise
        finally:
            self._line, self._up = None, False

    def send(self, topic: str, payload: bytes, qos: int, retain: bool) -> int | None:
        """PUBLISH to the broker."""
        if self._line is None or not self._up:
            return None
        self._packet_id = self._packet_id % 65_535 + 1
        self._line.to_broker(self._publish, self._line, Message(topic, payload, retain=retain), self._packet_id)
        return self._packet_id

    def _publish(self, line: Line, message: Message, packet_id: int) -> None:
        taken = self._world.broker.publish(message)
        if taken:
            self._world.published(message)
        line.to_daemon(self._sent, line, packet_id, message, "" if taken else "Not authorized")

    def _sent(self, line: Line, packet_id: int, message: Message, refusal: str) -> None:
        if line is self._line:
            self._world.confirmed(message)
            self._wiring.on_sent(packet_id, refusal)

    def receive(self, line: Line, message: Message, packet_id: int) -> None:
        """A message from the broker."""
        if line is not self._line or not self._reading:
            return
        message.delivered += 1
        self._delivered.append((packet_id, message))
        self._wiring.on_message(message.topic, message.payload)
        if not self._wiring.manual_ack:
            self.acknowledge(1)

    def acknowledge(self, count: int) -> None:
        """PUBACK for the oldest of the delivered messages."""
        for _ in range(min(count, len(self._delivered))):
            packet_id, _message = self._delivered.popleft()
            if self._line is not None and self._line.session is not None:
                self._line.to_broker(self._world.broker.acknowledged, self._line.session, packet_id)

    def stop_reading(self) -> None:
        """What arrives from now on is thrown away unacknowledged."""
        self._reading = False
