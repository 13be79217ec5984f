"""Who may ask over HTTP, and for what. Stands before every path.

On this machine (loopback, or `http.trusted`) everything is allowed without a token, unless `http.require_token` is set.
From anywhere else a token is needed: `Authorization: Bearer …`, or the cookie of the login form. `view` may look,
`operate` may also change something. Without one the answer is 401: for the page with a form to log in. Open to
everybody are /healthz, whether /readyz says yes (not why), and, with `http.open_metrics`, all of /readyz and /metrics.

A request with a `Forwarded` or `X-Forwarded-For` header came through a proxy, so it is not from this machine, whatever
its address. Tokens are compared in constant time. An address that was wrong TRIES times has to wait for a minute.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from prometheus_client.core import Metric

from watchkeeper.config.schema import Http
from watchkeeper.config.tokens import Token
from watchkeeper.daemon.families import totals_by
from watchkeeper.daemon.http.api.table import Refusal, Role
from watchkeeper.daemon.http.asked import check_origin
from watchkeeper.daemon.http.login import STYLE_SOURCE, form
from watchkeeper.daemon.logs import kv

log = logging.getLogger(__name__)

COOKIE = "watchkeeper"
# A login lasts so long after its last use.
SESSION_S = 12 * 3600.0
SESSIONS = 1000
# Wrong tokens of one address within TRIES_S.
TRIES, TRIES_S = 10, 60.0
# Addresses whose wrong tokens are remembered; the oldest go.
ADDRESSES = 4096
# A shorter token can be guessed.
TOKEN_MIN = 16
PROXIED = ("Forwarded", "X-Forwarded-For", "X-Real-IP")
OPEN = ("/healthz", "/readyz", "/login")
FIGURES = ("/metrics", "/readyz")
HOW = "set [[http.tokens]] with a token_file or token_env, and send it as Authorization: Bearer"
OUTCOMES = ("no_token", "wrong_token", "wrong_role", "too_many")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Pass:
    """What somebody may do, and their name if they have one."""

    role: Role
    name: str = ""


LOCAL = Pass("operate")
# What a request carries once it is in.
PASS: ContextVar[Pass | None] = ContextVar("pass", default=None)


class Gate:
    """One server's gate. `peer` gives the address of a request: another one in tests."""

    def __init__(self, settings: Http, *, now: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._now = settings, now
        self._tokens = [(_digest(read_token(token)), Pass(token.role, token.name)) for token in settings.tokens]
        self._trusted = [ipaddress.ip_network(words, strict=False) for words in settings.trusted]
        self._sessions: OrderedDict[str, tuple[Pass, float]] = OrderedDict()
        self._wrong: OrderedDict[str, list[float]] = OrderedDict()
        self.refused = dict.fromkeys(OUTCOMES, 0)
        self.peer: Callable[[web.Request], str] = lambda request: request.remote or ""
        self.routes = [web.post("/login", self._login), web.post("/logout", self._logout)]

        @web.middleware
        async def enter(request: web.Request, handler: Handler) -> web.StreamResponse:
            found = self.admit(request)
            PASS.set(found)
            return await handler(request)

        self.enter = enter

    def warnings(self) -> list[str]:
        """What is wrong with the settings, in words."""
        if self._tokens or self._trusted or _is_loopback(self._settings.host):
            return []
        return [f"http: listens on {self._settings.host} without a token, so other machines are refused; {HOW}"]

    def metrics(self) -> Iterator[Metric]:
        """For Prometheus."""
        family = totals_by(["reason"], "http_unauthorized", "Requests from other machines that were refused")
        for reason, n in self.refused.items():
            family.add_metric([reason], n)
        yield family

    # -- who it is ------------------------------------------------------------------------------------------

    def admit(self, request: web.Request) -> Pass | None:
        """What this request may do; None on a path that is open to everybody. Raises when it may not come in."""
        found = self._who(request)
        if found is None:
            if request.path in OPEN or (self._settings.open_metrics and request.path in FIGURES):
                return None
            self.refused["no_token"] += 1
            raise _unauthorized(
                request, f"a token is needed from another machine: {HOW}" if not self._tokens else NEEDED
            )
        if request.method not in ("GET", "HEAD", "OPTIONS") and found.role != "operate" and request.path != "/logout":
            self.refused["wrong_role"] += 1
            raise _refusal(request, 403, "forbidden", f"the token {found.name!r} may look, and change nothing")
        return found

    def _who(self, request: web.Request) -> Pass | None:
        words = request.headers.get("Authorization", "")
        if words:
            scheme, _, token = words.partition(" ")
            found = self._check(request, token.strip()) if scheme.lower() == "bearer" else None
            if found is None:
                raise _unauthorized(request, "this token is not known here")
            return found
        session = self._session(request.cookies.get(COOKIE, ""))
        return session or (LOCAL if self._is_local(request) and not self._settings.require_token else None)

    def _is_local(self, request: web.Request) -> bool:
        if any(name in request.headers for name in PROXIED):
            return False
        try:
            address = ipaddress.ip_address(self.peer(request).partition("%")[0])
        except ValueError:
            return False
        plain = getattr(address, "ipv4_mapped", None) or address
        return bool(plain.is_loopback) or any(plain in network for network in self._trusted)

    def _check(self, request: web.Request, token: str) -> Pass | None:
        """The pass of a token. Raises when this address was wrong too often."""
        peer, now_s = self.peer(request), self._now()
        tries = [at_s for at_s in self._wrong.get(peer, []) if now_s - at_s < TRIES_S]
        if len(tries) >= TRIES:
            self.refused["too_many"] += 1
            raise _refusal(request, 429, "too_many", "too many wrong tokens: wait a minute")
        given, found = _digest(token), None
        for digest, allowed in self._tokens:  # all of them, so that time says nothing
            if hmac.compare_digest(given, digest):
                found = allowed
        if found is None:
            self.refused["wrong_token"] += 1
            self._wrong[peer] = [*tries, now_s]
            self._wrong.move_to_end(peer)
            while len(self._wrong) > ADDRESSES:
                self._wrong.popitem(last=False)
            log.warning("wrong token", extra=kv(peer=peer))
        return found

    # -- the page's login -----------------------------------------------------------------------------------

    def _session(self, name: str) -> Pass | None:
        found = self._sessions.get(name) if name else None
        if found is None:
            return None
        if self._now() > found[1]:
            del self._sessions[name]
            return None
        self._sessions[name] = found[0], self._now() + SESSION_S
        return found[0]

    async def _login(self, request: web.Request) -> web.StreamResponse:
        check_origin(request, self._settings.public_name)
        given = (await request.post()).get("token", "")
        found = self._check(request, given.strip()) if isinstance(given, str) else None
        if found is None:
            raise _unauthorized(request, "this token is not known here", page=True)
        name = secrets.token_urlsafe(32)
        self._sessions[name] = found, self._now() + SESSION_S
        while len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)
        log.info("logged in", extra=kv(token=found.name, peer=self.peer(request)))
        answer = web.Response(status=303, headers={"Location": "/"})
        secure = request.secure or request.headers.get("X-Forwarded-Proto", "") == "https"
        answer.set_cookie(COOKIE, name, httponly=True, samesite="Strict", secure=secure, path="/")
        return answer

    async def _logout(self, request: web.Request) -> web.StreamResponse:
        check_origin(request, self._settings.public_name)
        self._sessions.pop(request.cookies.get(COOKIE, ""), None)
        answer = web.Response(status=303, headers={"Location": "/"})
        answer.del_cookie(COOKIE, path="/")
        return answer


NEEDED = "a token is needed from another machine: Authorization: Bearer, or log in on the page"
# The same on the form itself, for a person.
ON_FORM = "a token is needed: the person who runs this Watchkeeper gives you one"


def read_token(settings: Token) -> str:
    """The token itself. OSError: it is named, but not there, or too short."""
    if settings.token_file:
        where, word = settings.token_file, Path(settings.token_file).read_text(errors="replace").strip()
    else:
        where, word = settings.token_env, os.environ.get(settings.token_env, "").strip()
    if len(word) < TOKEN_MIN:
        raise OSError(f"token {settings.name!r}: {where} holds less than {TOKEN_MIN} characters: openssl rand -hex 24")
    return word


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _unauthorized(request: web.Request, words: str, *, page: bool = False) -> Exception:
    headers = {"WWW-Authenticate": 'Bearer realm="watchkeeper"'}
    if page or (request.method == "GET" and request.path == "/" and "text/html" in request.headers.get("Accept", "")):
        return web.HTTPUnauthorized(
            text=form(ON_FORM if words == NEEDED else words),
            content_type="text/html",
            headers={**headers, **PAGE_HEADERS},
        )
    return web.HTTPUnauthorized(text=f"{words}\n", headers=headers)


def _refusal(request: web.Request, status: int, code: str, words: str) -> Exception:
    if request.path.startswith("/api/"):
        return Refusal(status, code, words)
    if request.path == "/login":
        return web.HTTPTooManyRequests(text=form(words), content_type="text/html", headers=PAGE_HEADERS)
    return web.HTTPForbidden(text=f"{words}\n") if status == 403 else web.HTTPTooManyRequests(text=f"{words}\n")


PAGE_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src {STYLE_SOURCE}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
