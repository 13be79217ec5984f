"""MQTT 5 where the broker speaks it, else MQTT 3.1.1: each connection tries 5 first, which costs one round trip."""

from __future__ import annotations

import logging
from collections.abc import Callable

from watchkeeper.streams.mqtt.mqtt5 import Mqtt5Connection
from watchkeeper.streams.mqtt.wiring import Connection, UnsupportedVersionError, Wiring

log = logging.getLogger(__name__)


class NewestConnection:
    """See wiring.Connection."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._newest = Mqtt5Connection(wiring)
        self._older: Connection | None = None
        self._now: Connection = self._newest
        self._reading = True

    async def hold(self, up: Callable[[], None]) -> None:
        """Through MQTT 5, or through 3.1.1 when the broker says that it has nothing else."""
        try:
            return await self._newest.hold(up)
        except UnsupportedVersionError as error:
            if self._older is None:
                problem = f"{error}: it will not say why it refuses a message, nor keep to our receive maximum"
                log.warning("falling back to MQTT 3.1.1", extra={"fields": {"problem": problem}})
                self._older = self._make_older()
        self._now = self._older
        try:
            await self._older.hold(up)
        finally:
            self._now = self._newest

    def send(self, topic: str, payload: bytes, qos: int, retain: bool) -> int | None:
        """Through the connection that is up."""
        return self._now.send(topic, payload, qos, retain)

    def acknowledge(self, count: int) -> None:
        """On the connection that is up."""
        self._now.acknowledge(count)

    def stop_reading(self) -> None:
        """On both."""
        self._reading = False
        self._newest.stop_reading()
        if self._older is not None:
            self._older.stop_reading()

    def _make_older(self) -> Connection:
        # imported on demand: most brokers speak MQTT 5, and paho costs start-up time
        from watchkeeper.streams.mqtt.aiomqtt import AiomqttConnection  # noqa: PLC0415

        connection = AiomqttConnection(self._wiring)
        if not self._reading:
            connection.stop_reading()
        return connection
