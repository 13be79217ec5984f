"""A fence around a sink, ours or another package's: what goes wrong in it is counted, logged, said, and stays there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.outputs.base import Confirming, Linked, Sink
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.streams.mqtt.transport import Backoff

log = logging.getLogger(__name__)

RETRY_MIN_S, RETRY_MAX_S = 0.5, 30.0
# A `run` that was started again and goes on for so long is well.
WELL_S = 10.0

T = TypeVar("T")


class Fenced:
    """The sink inside, for callers that it cannot hurt."""

    def __init__(self, sink: Sink) -> None:
        self.name = sink.name
        self._sink = sink
        self._lost = 0
        # what went wrong last, by the method that raised
        self._raised: dict[str, str] = {}

    @property
    def inside(self) -> Sink:
        """The sink itself, for those who know it."""
        return self._sink

    @property
    def delivered(self) -> int:
        """As the sink says."""
        return self._call("delivered", lambda: int(self._sink.delivered), 0)

    @property
    def failures(self) -> int:
        """As the sink says."""
        return self._call("failures", lambda: int(self._sink.failures), 0)

    @property
    def refused(self) -> int:
        """As the sink says."""
        return self._call("refused", lambda: int(self._sink.refused), 0)

    @property
    def dropped(self) -> int:
        """As the sink says, and the events that it raised on."""
        return self._lost + self._call("dropped", lambda: int(self._sink.dropped), 0)

    @property
    def waiting(self) -> int:
        """As the sink says."""
        return self._call("waiting", lambda: int(self._sink.waiting), 0)

    def health(self) -> list[str]:
        """As the sink says, and what it raised."""
        found: list[str] = self._call("health", lambda: [str(reason) for reason in self._sink.health()], [])
        return [*(f"{method} raised {error}" for method, error in sorted(self._raised.items())), *found]

    def put(self, event: AlarmEvent) -> None:
        """Give the event to the sink; one that it raises on is lost to it."""
        try:
            self._sink.put(event)
            self._raised.pop("put", None)
        except Exception as error:
            self._note_lost(error)

    async def run(self) -> None:
        """Task: run the sink; when it fails or returns, again after a pause."""
        backoff = Backoff(RETRY_MIN_S, RETRY_MAX_S)
        while True:
            well = asyncio.get_running_loop().call_later(WELL_S, self._raised.pop, "run", None)
            try:
                await self._sink.run()
                self._note("run", RuntimeError("it ended by itself"))
            except Exception as error:
                self._note("run", error)
            finally:
                well.cancel()
            await asyncio.sleep(backoff.pause_s())

    async def flush(self) -> None:
        """Flush the sink; what it raises is noted."""
        try:
            await self._sink.flush()
        except Exception as error:
            self._note("flush", error)

    def connected(self) -> None:
        """Tell a sink that wants to know."""
        if isinstance(self._sink, Linked):
            self._call("connected", self._sink.connected, None)

    def disconnected(self) -> None:
        """Tell a sink that wants to know."""
        if isinstance(self._sink, Linked):
            self._call("disconnected", self._sink.disconnected, None)

    def _note_lost(self, error: Exception) -> None:
        self._lost += 1
        self._note("put", error)

    def _call(self, method: str, work: Callable[[], T], otherwise: T) -> T:
        try:
            answer = work()
        except Exception as error:
            self._note(method, error)
            return otherwise
        self._raised.pop(method, None)
        return answer

    def _note(self, method: str, error: Exception) -> None:
        """Remember it, and log it unless the last time was the same."""
        words = f"{type(error).__name__}: {error}"
        if self._raised.get(method) != words:
            log.error("sink failed", exc_info=error, extra=kv(sink=self.name, method=method))
        self._raised[method] = words


class FencedConfirming(Fenced):
    """The same for the sink whose confirmations the journal notes."""

    def __init__(self, sink: Confirming) -> None:
        super().__init__(sink)
        self._confirming = sink

    def put_recorded(self, event: AlarmEvent, number: int, arrived_s: float | None) -> None:
        """Give the event to the sink; one that it raises on is lost to it."""
        try:
            self._confirming.put_recorded(event, number, arrived_s)
            self._raised.pop("put", None)
        except Exception as error:
            self._note_lost(error)


def fenced(sink: Sink) -> Fenced:
    """The sink behind a fence of its kind."""
    return FencedConfirming(sink) if isinstance(sink, Confirming) else Fenced(sink)
