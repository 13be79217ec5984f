"""The live page over HTTP: its files, its connection, and the two things that it may change.

    GET  /                          the page
    GET  /page/<file>               its scripts and styles, from the package; nothing comes from anywhere else
    GET  /live                      WebSocket: alarms at once, a picture a second, see view.py
    POST /alarms/<id>/acknowledge   {"by": "name", "on": true}: somebody looks after this alarm
    POST /alarms/<id>/accept        {"by": "name"}: a state that lasts is as it should be; the alarm ends

Pages of other web sites may neither connect nor post, see http/asked.py.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from hashlib import blake2b
from importlib.resources import files
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec
from aiohttp import web

from watchkeeper.config.schema import Http
from watchkeeper.daemon.background import end
from watchkeeper.daemon.http.asked import WISH_MAX, body_of, check_origin
from watchkeeper.daemon.http.gate import PASS
from watchkeeper.daemon.live.desk import BY_MAX
from watchkeeper.daemon.live.view import FullError, Live, RefusedError
from watchkeeper.daemon.live.viewer import Viewer, parse_wish
from watchkeeper.detectors.alarms.events import encode_event

TYPES = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
    "bin": "application/octet-stream",
    "txt": "text/plain",
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
log = logging.getLogger(__name__)
T = TypeVar("T")

# Written and not yet taken by the network, per viewer, before the next message has to wait, in bytes.
WAITING_MAX = 256 * 1024
# A page that takes nothing for so long is not there any more; a living one may be slow for as long as it likes.
STALL_S = 30.0
HEARTBEAT_S = 15.0
GOODBYE_S = 1.0
# What a WebSocket is closed with when there is no room for it (RFC 6455: try again later).
BUSY = 1013


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """The body of an acknowledgement."""

    by: str = ""
    on: bool = True


class Acceptance(msgspec.Struct, forbid_unknown_fields=True):
    """The body of an acceptance."""

    by: str = ""


class Page:
    """Serves one live view. `routes` for the application, `start` and `stop` around its life."""

    def __init__(self, live: Live, settings: Http) -> None:
        self._live = live
        self._public_name = settings.public_name
        self._files = _load()
        self._about = _about(settings)
        self._headers = _headers(settings)
        self._drawing: asyncio.Task[None] | None = None
        self._open: set[web.WebSocketResponse] = set()
        self.routes = [
            web.get("/", self._index),
            web.get("/page/settings.json", self._settings),
            web.get("/page/{name}", self._file),
            web.get("/live", self._connect),
            web.post("/alarms/{id}/acknowledge", self._acknowledge),
            web.post("/alarms/{id}/accept", self._accept),
        ]

    def start(self) -> None:
        """Begin to draw, whenever somebody watches."""
        self._drawing = asyncio.create_task(self._live.draw_often())

    async def stop(self) -> None:
        """Say goodbye to everybody."""
        if self._drawing is not None:
            await end(self._drawing)
        # a page that does not take it is cut off when the server closes
        with suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_S):
                await asyncio.gather(*(line.close(code=aiohttp.WSCloseCode.GOING_AWAY) for line in self._open))

    # -- files ----------------------------------------------------------------------------------------------

    async def _index(self, request: web.Request) -> web.Response:
        return self._answer(request, "index.html")

    async def _file(self, request: web.Request) -> web.Response:
        return self._answer(request, request.match_info["name"])

    async def _settings(self, request: web.Request) -> web.Response:  # noqa: ARG002
        """What the page needs of the configuration, and what its reader may do."""
        who = PASS.get()
        reader = {"may_operate": who is None or who.role == "operate", "token": "" if who is None else who.name}
        return web.json_response(self._about | reader, headers=self._headers)

    def _answer(self, request: web.Request, name: str) -> web.Response:
        found = self._files.get(name)
        if found is None:
            raise web.HTTPNotFound
        body, kind, tag = found
        headers = {**self._headers, "ETag": tag}
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers=headers)
        return web.Response(body=body, content_type=kind, charset="utf-8", headers=headers)

    # -- the connection -------------------------------------------------------------------------------------

    async def _connect(self, request: web.Request) -> web.WebSocketResponse:
        check_origin(request, self._public_name)
        line = web.WebSocketResponse(
            heartbeat=HEARTBEAT_S, compress=False, max_msg_size=WISH_MAX, writer_limit=WAITING_MAX
        )
        await line.prepare(request)
        try:
            viewer = self._live.join()
        except FullError:
            await line.close(code=BUSY, message=b"too many are watching")
            return line
        self._open.add(line)
        sending = asyncio.create_task(self._send(line, viewer, request.transport))
        try:
            async for message in line:
                if message.type == aiohttp.WSMsgType.TEXT:
                    viewer.ask(parse_wish(message.data))
        finally:
            self._live.leave(viewer)
            self._open.discard(line)
            await end(sending)
        return line

    async def _send(self, line: web.WebSocketResponse, viewer: Viewer, transport: asyncio.Transport | None) -> None:
        """Send whatever is due whenever the line can take it; an end of the line ends this quietly."""
        try:
            while not line.closed:
                await viewer.wake.wait()
                viewer.wake.clear()
                while (message := viewer.next()) is not None:
                    async with asyncio.timeout(STALL_S):
                        binary = not message.startswith(b"{")
                        await (line.send_bytes(message) if binary else line.send_str(message.decode()))
        except (ConnectionError, aiohttp.ClientError):
            return
        except TimeoutError:
            self._live.slow += 1
        except Exception:  # nobody awaits this task: what went wrong must be said here
            log.exception("live page")
        # not close(): it would wait behind what is not being taken
        if transport is not None:
            transport.abort()

    # -- acknowledge, accept ----------------------------------------------------------------------------------

    async def _acknowledge(self, request: web.Request) -> web.Response:
        wish = await self._body(request, Request)
        try:
            answer = self._live.acknowledge(request.match_info["id"], printable(wish.by), on=wish.on)
        except KeyError as error:
            raise web.HTTPNotFound(text="no such alarm: it may have ended long ago\n") from error
        await self._live.kept()
        return web.Response(body=msgspec.json.encode(answer) + b"\n", content_type="application/json")

    async def _accept(self, request: web.Request) -> web.Response:
        wish = await self._body(request, Acceptance)
        try:
            ended = await self._live.accept(request.match_info["id"], printable(wish.by))
        except KeyError as error:
            raise web.HTTPNotFound(text="no such alarm is active\n") from error
        except RefusedError as error:
            raise web.HTTPConflict(text=f"{error}\n") from error
        return web.Response(body=encode_event(ended) + b"\n", content_type="application/json")

    async def _body(self, request: web.Request, what: type[T]) -> T:
        check_origin(request, self._public_name)
        return await body_of(request, what)


def printable(by: str) -> str:
    """A name as it may be shown and logged.

    >>> printable("tower" + chr(10))
    'tower'
    """
    return "".join(c for c in by if c.isprintable())[:BY_MAX]


def _headers(settings: Http) -> dict[str, str]:
    """Those of every file; images may come from the map server that the configuration names, and from nowhere else."""
    policy = HEADERS["Content-Security-Policy"]
    if settings.tiles:
        found = urlsplit(settings.tiles)
        policy = policy.replace("img-src 'self'", f"img-src 'self' {found.scheme}://{found.netloc}")
    return {**HEADERS, "Content-Security-Policy": policy}


def _about(settings: Http) -> dict[str, Any]:
    """What the configuration says about the map."""
    site = [float(part) for part in settings.site.split(",")] if settings.site else None
    return {"tiles": settings.tiles, "credit": settings.tiles_credit, "site": site}


def _tag(body: bytes) -> str:
    return f'"{blake2b(body, digest_size=8).hexdigest()}"'


def _load() -> dict[str, tuple[bytes, str, str]]:
    """The page's files by name: body, type and tag. All of them are in memory: no request ever names a path."""
    found = {}
    for file in files("watchkeeper.daemon.live").joinpath("page").iterdir():
        kind = TYPES.get(file.name.rpartition(".")[2])
        if kind is not None:
            body = file.read_bytes()
            found[file.name] = body, kind, _tag(body)
    return found
