"""Serves the table of routes: checks what is asked, calls the handler, answers with JSON, an ETag, and gzip.

Each GET has an ETag made from its bytes; who sends it back (`If-None-Match`) gets 304 without a body. Answers of more
than GZIP_FROM bytes are compressed for those who accept it. What a handler raises unforeseen is logged and answered
with 500, in the same form as any refusal.
"""

from __future__ import annotations

import logging
import math
import zlib
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from hashlib import blake2b
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
from aiohttp import web

from watchkeeper.daemon.history.reader import NoHistoryError
from watchkeeper.daemon.http.api.table import Bytes, Call, Problem, Refusal, Route
from watchkeeper.daemon.http.asked import body_of, check_origin
from watchkeeper.daemon.http.gate import PASS

log = logging.getLogger(__name__)

GZIP_FROM = 1024
# The quickest: four milliseconds for the table of 2,000 vehicles. The window with a gzip header.
GZIP_LEVEL, GZIP = 1, 31
HEADERS = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Vary": "Accept, Accept-Encoding",
}
# The word for a refusal of the server itself, by status.
WORDS = {400: "bad_request", 401: "no_token", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
         408: "timeout", 413: "too_large", 415: "not_json"}  # fmt: skip
NO_PATH = "no such path: /api/v1/openapi.json lists all"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def web_routes(routes: Iterable[Route], public_name: str) -> list[web.RouteDef]:
    """For aiohttp."""
    return [web.route(route.method, route.url, partial(serve, route, public_name)) for route in routes]


@web.middleware
async def problems_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Below /api every refusal is JSON, those of the server itself too."""
    if not request.path.startswith("/api/"):
        return await handler(request)
    try:
        return await handler(request)
    except Refusal as refusal:
        return refused(refusal.status, refusal.problem)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        words = (error.text or error.reason).strip() if error.status != 404 else NO_PATH
        headers = {name: error.headers[name] for name in ("Allow", "WWW-Authenticate") if name in error.headers}
        return refused(error.status, Problem(WORDS.get(error.status, "refused"), words), headers)


async def serve(route: Route, public_name: str, request: web.Request) -> web.StreamResponse:
    """Answer one request."""
    check_origin(request, public_name)
    query = parsed(route.query, dict(request.query.items()))
    body = await body_of(request, route.body) if route.body is not None else None
    call = Call(request, dict(request.match_info), query, body, who.name if (who := PASS.get()) is not None else "")
    try:
        answer = await route.handle(call)
    except NoHistoryError as error:
        raise Refusal(503, "no_history", str(error)) from error
    except (Refusal, web.HTTPException):
        raise
    except Exception as error:
        log.exception("api: %s %s", route.method, route.path)
        raise Refusal(500, "failed", f"this went wrong here, see the log: {type(error).__name__}") from error
    return _response(route, request, answer)


def parsed(shape: type[msgspec.Struct], given: dict[str, str]) -> msgspec.Struct:
    """A query as its type. Raises Refusal, which names the parameter."""
    hints = get_type_hints(shape)
    names = dict(zip(shape.__struct_encode_fields__, shape.__struct_fields__, strict=True))
    plain: dict[str, Any] = {}
    for name, value in given.items():
        if name not in names:
            raise Refusal(400, "unknown_parameter", f"there is no parameter {name!r} here", name)
        hint = hints[names[name]]
        plain[name] = [part for part in value.split(",") if part] if _is_list(hint) else value
    for name, value in plain.items():
        try:
            if msgspec.convert({name: value}, _one(shape, names[name], name), strict=False) is None:
                raise ValueError("missing")
        except (msgspec.ValidationError, ValueError, OverflowError) as error:
            words = str(error).partition(" - at ")[0]
            raise Refusal(400, "bad_parameter", f"{name}: {words}", name) from error
    found = msgspec.convert(plain, shape, strict=False)
    for name, own in names.items():
        value = getattr(found, own)
        if isinstance(value, float) and not math.isfinite(value):
            raise Refusal(400, "bad_parameter", f"{name}: not a finite number", name)
    return found


_single: dict[tuple[type, str], type[msgspec.Struct]] = {}


def _one(shape: type[msgspec.Struct], own: str, name: str) -> type[msgspec.Struct]:
    """The same type with one field, so that an error names it."""
    key = shape, own
    if key not in _single:
        hint = get_type_hints(shape, include_extras=True)[own]
        _single[key] = msgspec.defstruct(shape.__name__, [(own, hint)], rename={own: name})
    return _single[key]


def _is_list(hint: Any) -> bool:
    return any(get_origin(part) in (list, tuple) for part in (hint, *get_args(hint)))


def refused(status: int, problem: Problem, headers: dict[str, str] | None = None) -> web.Response:
    """A refusal as JSON."""
    body = msgspec.json.encode(problem) + b"\n"
    return web.Response(
        body=body, status=status, content_type="application/json", headers={**HEADERS, **(headers or {})}
    )


def _response(route: Route, request: web.Request, answer: Any) -> web.StreamResponse:
    if route.answer is None:
        return web.Response(status=204, headers=HEADERS)
    kind, body, headers = "application/json", b"", dict(HEADERS)
    if isinstance(answer, Bytes):
        kind, body = answer.content_type, answer.data
        if answer.file_name:
            headers["Content-Disposition"] = f'attachment; filename="{answer.file_name}"'
    else:
        body = msgspec.json.encode(answer) + b"\n"
    if request.method in ("GET", "HEAD"):
        tag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
        headers["ETag"] = tag
        known = [part.strip().removeprefix("W/") for part in request.headers.get("If-None-Match", "").split(",")]
        if tag in known or known == ["*"]:
            return web.Response(status=304, headers=headers)
    if len(body) > GZIP_FROM and "gzip" in request.headers.get("Accept-Encoding", ""):
        body, headers["Content-Encoding"] = zlib.compress(body, GZIP_LEVEL, wbits=GZIP), "gzip"
    return web.Response(body=body, status=route.status, headers=headers, content_type=kind)
