"""What every request passes before it is answered: where it comes from, and its body within limits.

Two things keep other web sites out. A page of another origin may neither ask nor post: the `Origin` that browsers send
must be ours, and a post must be JSON, which no other site can send unasked. And the name in `Host` must not be one that
anybody could point at this machine (DNS rebinding): addresses, names without a dot, `.local` and `.localhost` are fine,
any other name must be `http.public_name`.
"""

from __future__ import annotations

import asyncio
import ipaddress
from typing import TypeVar
from urllib.parse import urlsplit

from aiohttp import web

from watchkeeper.streams.foreign.decode import ForeignError, from_json

T = TypeVar("T")

# Nobody who asks says more than this at once, in bytes.
WISH_MAX = 4096
# The body of a post, which is a few hundred bytes at most, is there after this.
BODY_S = 10.0


def check_origin(request: web.Request, public_name: str) -> None:
    """Raises HTTPForbidden for a page of another site, or a host name that is not ours."""
    host = request.headers.get("Host", "")
    origin = request.headers.get("Origin")
    if not is_ours(host, public_name):
        raise web.HTTPForbidden(text=f"unknown host name {host!r}: set http.public_name if it is ours\n")
    if origin is not None and _netloc(origin) != host:
        raise web.HTTPForbidden(text="another origin\n")


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def is_ours(host: str, public_name: str) -> bool:
    """False for a name that a stranger's DNS could give to this machine.

    >>> [is_ours(host, "") for host in ("127.0.0.1:9108", "[::1]:9108", "watch.local", "watchkeeper:9108", "evil.com")]
    [True, True, True, True, False]
    """
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        near = "." not in name or name.endswith((".localhost", ".local"))
        return bool(name) and (near or name == public_name.lower())
    return True


async def body_of(request: web.Request, what: type[T]) -> T:
    """What a page, or a script, posted. Raises an HTTPException that says what is wrong with it."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="send JSON, as application/json\n")
    if (request.content_length or WISH_MAX + 1) > WISH_MAX:
        raise web.HTTPRequestEntityTooLarge(WISH_MAX, request.content_length or 0)
    try:
        async with asyncio.timeout(BODY_S):
            body = await request.read()
        return from_json(body, what)
    except TimeoutError as error:
        raise web.HTTPRequestTimeout(text=f"no whole request within {BODY_S:g} s\n") from error
    except ForeignError as error:
        raise web.HTTPBadRequest(text=f"{error}\n") from error
