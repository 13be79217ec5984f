"""A daemon that has never heard anything says so: an empty sky and a deaf watch look the same from outside.

A broker may grant a subscription and deliver nothing, because its rules do not let us read (mosquitto's `acl_file`), or
because senders use another prefix. After LEAST_S of connection without one message of telemetry it is a warning in
/readyz. Once anything has come, silence is the detectors' affair.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from watchkeeper.config.schema import Config
from watchkeeper.daemon.logs import kv

log = logging.getLogger(__name__)

LEAST_S = 60.0


class Hearing:
    """`arrived` counts messages of telemetry; receivers next to the broker are other ears, and end the question."""

    def __init__(self, config: Config, arrived: Callable[[], int], now: Callable[[], float] = time.monotonic) -> None:
        self._filter = f"{config.topics.telemetry}/#"
        self._arrived = arrived
        self._now = now
        self._asking = not config.sources
        self._since_s: float | None = None
        self._said = False

    def connected(self) -> None:
        """There is a connection."""
        if self._since_s is None:
            self._since_s = self._now()

    def disconnected(self) -> None:
        """There is none any more."""
        self._since_s = None

    def health(self) -> list[str]:
        """Whether nothing has ever arrived, in words."""
        if not self._asking:
            return []
        if self._arrived():
            self._asking = False
            if self._said:
                log.info("the first telemetry has arrived", extra=kv(filter=self._filter))
            return []
        if self._since_s is None or self._now() - self._since_s < LEAST_S:
            return []
        why = "no sender, another prefix, or rules of the broker that do not let us read it"
        if not self._said:
            self._said = True
            log.warning("no telemetry yet", extra=kv(filter=self._filter, problem=why))
        return [f"input: nothing has arrived on {self._filter} since the start: {why}"]
