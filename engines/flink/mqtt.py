"""Alarm events to a broker, from within the job: retained while an alarm is active, as the daemon publishes them.

Each event is published with QoS 1 and confirmed before the next one, and so before any checkpoint that has it. After a
failure the events since the last checkpoint are published once more, in the same bytes: who reads them takes an event
once by its `id`, `state` and `t`. A broker that does not confirm fails the job, which goes on from its checkpoint.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
from pyflink.datastream import ProcessFunction, RuntimeContext

from watchkeeper.config.schema import Broker, Config
from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent
from watchkeeper.detectors.incidents.topic import alarm_topic
from watchkeeper.engines.flink.worker import follow_manager
from watchkeeper.streams.foreign.decode import json_decoder
from watchkeeper.streams.mqtt.transport import Transport, make_transport

# A broker that does not confirm an event within this time has failed.
CONFIRMED_S = 30.0
_event = json_decoder(AlarmEvent)


class MqttFunction(ProcessFunction):  # type: ignore[misc]
    """Publishes each event, a line of JSON, and passes it on."""

    def __init__(self, config: Config, url: str) -> None:
        # not the daemon's name: the broker would close the daemon's connection
        name = f"{config.broker.client_id}-flink"
        self._broker = msgspec.structs.replace(config.broker, url=url, client_id=name, session_expiry_s=0)
        self._output = config.topics.output

    def open(self, runtime_context: RuntimeContext) -> None:
        """Connect; an error ends the attempt, and the job tries again."""
        follow_manager()
        self._published = runtime_context.get_metrics_group().add_group("watchkeeper").counter("published")
        self._line = Line(self._broker)

    def process_element(self, value: str, ctx: ProcessFunction.Context) -> Iterator[str]:  # noqa: ARG002
        """One event."""
        for topic, payload, retain in messages(value.encode(), self._output):
            self._line.publish(topic, payload, retain=retain)
        self._published.inc()
        yield value

    def close(self) -> None:
        """Disconnect."""
        if hasattr(self, "_line"):
            self._line.close()


def messages(line: bytes, output: str) -> Iterator[tuple[str, bytes, bool]]:
    """What is published of one event: topic, payload, retained. An end is heard, and then nothing is shown."""
    event = _event(line)
    topic = alarm_topic(output, event)
    yield topic, line, True
    if event.state == CLEARED:
        yield topic, b"", True


class Line:
    """A connection on a thread of its own, for a caller that waits."""

    def __init__(self, broker: Broker) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="watchkeeper-mqtt", daemon=True)
        self._thread.start()
        self._transport, self._running = self._wait(self._connect(broker))

    async def _connect(self, broker: Broker) -> tuple[Transport, asyncio.Task[None]]:
        up = asyncio.Event()
        transport = make_transport(broker, subscribe=[], on_message=lambda *_: None, on_connect=up.set)
        running = asyncio.create_task(transport.run())
        try:
            async with asyncio.timeout(CONFIRMED_S):
                await up.wait()
        except TimeoutError as error:
            running.cancel()
            raise ConnectionError(f"no broker within {CONFIRMED_S:g} s: {transport.last_error}") from error
        return transport, running

    def publish(self, topic: str, payload: bytes, *, retain: bool) -> None:
        """Returns when the broker has it. ConnectionError: it has not."""
        if not self._wait(self._transport.publish(topic, payload, qos=1, retain=retain)):
            raise ConnectionError("; ".join(self._transport.health()) or "the broker did not take an event")

    def close(self) -> None:
        """Disconnect, and end the thread."""
        self._loop.call_soon_threadsafe(self._running.cancel)
        self._wait(asyncio.wait([self._running], timeout=1.0))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(1.0)

    def _wait(self, work: Any) -> Any:
        done = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return done.result(CONFIRMED_S + 1.0)
        except TimeoutError as error:
            done.cancel()
            raise ConnectionError(f"the broker has not confirmed an event within {CONFIRMED_S:g} s") from error
