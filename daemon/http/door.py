"""Who may come in over HTTP: so many connections in all, so many of one peer, and each must ask for something soon.

A connection that has sent half a request, or none, costs a file handle for as long as it likes; without limits a few
hundred of them keep the daemon from its broker. One that has not sent the head of a request after HEAD_S is closed.
When there is no room for another one, the connection that has asked for nothing for longest is closed, whatever it
waits for: bodies that do not come and answers that nobody takes hold no place against somebody who asks now. Live pages
keep theirs, and may have half of all. Beyond the limits a connection is answered with 503 and a sentence, and closed.
All of it is counted.

    door = Door(settings)
    web.Application(middlewares=[door.asked])
    door.guard(runner.server)        after runner.setup()
"""

from __future__ import annotations

import asyncio
import resource
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

from aiohttp import web
from prometheus_client.core import Metric

from watchkeeper.config.schema import Http
from watchkeeper.daemon.families import gauge, totals_by

# A browser sends the head of a request at once, a person with telnet within seconds.
HEAD_S = 10.0
# A connection that nothing is asked on for this long is closed; Prometheus asks every 15 s or so.
IDLE_S = 75.0
# What we have sent and the other side has not taken for this long: it is not there any more.
TAKEN_S = 60.0
# A quarter of all file handles; the others are for the broker, sources, sinks and the state.
HANDLES_SHARE = 4
# Live pages stay; the other half of the connections is for those who ask, such as Prometheus.
PAGES_SHARE = 2
REASONS = ("all", "peer", "head", "pages")
_BUSY = b"too many connections"
_ANSWER = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Door:
    """The limits of one server."""

    def __init__(self, settings: Http) -> None:
        self._most, self._most_of_peer = settings.max_connections, settings.max_per_peer
        self._open: dict[Any, tuple[str, asyncio.TimerHandle]] = {}
        # those that may be closed for others, the longest without a request first; the others are live pages
        self._yielding: dict[Any, None] = {}
        self._peers: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

        @web.middleware
        async def asked(request: web.Request, handler: Handler) -> web.StreamResponse:
            # the head of a request is here
            line = request.transport
            if (found := self._open.get(line)) is None:
                return await handler(request)
            found[1].cancel()
            self._yielding.pop(line, None)
            if request.headers.get("Upgrade", "").lower() == "websocket":
                if len(self._open) - len(self._yielding) > self._most // PAGES_SHARE:
                    self._rejoin(line)
                    self.refused["pages"] += 1
                    raise web.HTTPServiceUnavailable(text="too many live pages are open; try again later\n")
                try:
                    return await handler(request)
                finally:
                    self._rejoin(line)
            self._yielding[line] = None
            return await handler(request)

        self.asked = asked

    def guard(self, server: web.Server) -> None:
        """Stand before this server from now on."""
        handles, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if handles != resource.RLIM_INFINITY:
            self._most = min(self._most, max(4, handles // HANDLES_SHARE))
        made, lost = server.connection_made, server.connection_lost

        def connection_made(handler: Any, transport: asyncio.Transport) -> None:
            made(handler, transport)
            self._come(transport)

        def connection_lost(handler: Any, exc: BaseException | None = None) -> None:
            self._go(handler.transport)
            lost(handler, exc)

        server.connection_made = connection_made  # type: ignore[method-assign]
        server.connection_lost = connection_lost  # type: ignore[method-assign]

    def metrics(self) -> Iterator[Metric]:
        """For Prometheus."""
        yield gauge("http_connections", "Connections that are open", len(self._open))
        refused = totals_by(["reason"], "http_refused", "Connections refused, or closed before they asked")
        for reason in REASONS:
            refused.add_metric([reason], self.refused[reason])
        yield refused

    # -- one connection -------------------------------------------------------------------------------------

    def _come(self, transport: asyncio.Transport) -> None:
        peer, loop = _peer(transport), asyncio.get_running_loop()
        # a moment later: the server must have begun with a connection before it can end it
        if self._peers[peer] >= self._most_of_peer:
            detail = f"{self._most_of_peer} are open from {peer} (http.max_per_peer)"
            loop.call_soon(self._refuse, transport, "peer", detail)
            return
        if len(self._open) >= self._most:
            if not self._yielding:
                loop.call_soon(self._refuse, transport, "all", f"{self._most} are open (http.max_connections)")
                return
            self._end(next(iter(self._yielding)), "all")
        _limit_sending(transport)
        self._open[transport] = peer, loop.call_later(HEAD_S, self._end, transport, "head")
        self._yielding[transport] = None
        self._peers[peer] += 1

    def _rejoin(self, transport: Any) -> None:
        if transport in self._open:
            self._yielding[transport] = None

    def _refuse(self, transport: asyncio.Transport, reason: str, detail: str) -> None:
        self.refused[reason] += 1
        body = _BUSY + f": {detail}; try again later\n".encode()
        transport.write(_ANSWER % len(body) + body)
        transport.close()

    def _end(self, transport: Any, reason: str) -> None:
        self.refused[reason] += 1
        self._go(transport)
        transport.abort()

    def _go(self, transport: Any) -> None:
        if (found := self._open.pop(transport, None)) is None:
            return
        peer, timer = found
        timer.cancel()
        self._yielding.pop(transport, None)
        self._peers[peer] -= 1
        if not self._peers[peer]:
            del self._peers[peer]


def _peer(transport: asyncio.Transport) -> str:
    name = transport.get_extra_info("peername")
    return str(name[0]) if isinstance(name, tuple) and name else "local"


def _limit_sending(transport: asyncio.Transport) -> None:
    line = transport.get_extra_info("socket")
    if line is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
        with suppress(OSError):
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * TAKEN_S))
