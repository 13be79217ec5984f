"""Metrics, health and the live page over HTTP, for Prometheus, orchestrators and people.

    GET /         the live page, see live/http.py; without it (`http.page = false`) a list of what there is
    /api/v1/…     everything for programs, see api/ and docs/api.md
    GET /metrics  Prometheus text format
    GET /healthz  200 while the daemon does its work, 503 when it hangs: restart it
    GET /readyz   200 when alarms can be relied on, 503 with the reasons until then: do not send anybody here;
                  `warnings` are ways out that do not deliver, which a restart or another instance would not mend

It listens on loopback unless configured otherwise; other machines need a token, see gate.py. Nothing here changes what
is published or recorded of the past: people mark alarms, accept lasting states, and shelve.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from watchkeeper.config.schema import Http
from watchkeeper.daemon.http.api.routes import all_routes
from watchkeeper.daemon.http.api.served import Served
from watchkeeper.daemon.http.api.serving import problems_as_json, web_routes
from watchkeeper.daemon.http.asked import WISH_MAX
from watchkeeper.daemon.http.door import IDLE_S, Door
from watchkeeper.daemon.http.gate import PASS, Gate
from watchkeeper.daemon.live.http import Page

PAGES = {
    "/metrics": "Prometheus metrics",
    "/healthz": "is it alive",
    "/readyz": "can it be relied on, and if not, why",
    "/api/v1/openapi.json": "the API",
}


class Site:
    """Serves the live page, and whatever routes it is given. `start` binds; OSError: the address is taken."""

    def __init__(self, served: Served, settings: Http, routes: Iterable[web.RouteDef] = ()) -> None:
        self._settings = settings
        self._page = Page(served.live, settings) if settings.page else None
        self.door = Door(settings)
        self.gate = Gate(settings)
        middlewares = [self.door.asked, problems_as_json, self.gate.enter]
        site = web.Application(middlewares=middlewares, client_max_size=WISH_MAX)
        api = web_routes(all_routes(served), settings.public_name)
        site.add_routes([*routes, *self.gate.routes, *api, *(self._page.routes if self._page else [])])
        # no access log: a scrape every few seconds is not news
        self._runner = web.AppRunner(
            site, access_log=None, handle_signals=False, shutdown_timeout=1.0, keepalive_timeout=IDLE_S
        )
        self.port = 0

    async def start(self) -> None:
        """Listen."""
        await self._runner.setup()
        assert self._runner.server is not None
        self.door.guard(self._runner.server)
        listener = web.TCPSite(self._runner, self._settings.host, self._settings.port)
        await listener.start()
        self.port = self._runner.addresses[0][1]
        if self._page is not None:
            self._page.start()

    @property
    def url(self) -> str:
        """Where to point a browser."""
        host = self._settings.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    async def stop(self) -> None:
        """Close all connections."""
        if self._page is not None:
            await self._page.stop()
        await self._runner.cleanup()


@dataclass(frozen=True, slots=True)
class Health:
    """What a daemon says of itself when it is asked: `status` for people, the rest for orchestrators."""

    version: str
    status: Callable[[], str]
    not_ready: Callable[[], list[str]]
    warnings: Callable[[], list[str]]
    alive: Callable[[], bool]
    pump_age_s: Callable[[], float]


class HttpServer(Site):
    """All the pages of one daemon."""

    def __init__(self, served: Served, settings: Http, registry: CollectorRegistry, health: Health) -> None:
        self._registry = registry
        self._health = health
        routes = [
            web.get("/metrics", self._metrics),
            web.get("/healthz", self._healthz),
            web.get("/readyz", self._readyz),
        ]
        if not settings.page:
            routes.append(web.get("/", self._index))
        super().__init__(served, settings, routes)

    async def _index(self, _request: web.Request) -> web.Response:
        links = "".join(f'<li><a href="{page}">{page}</a> {what}</li>' for page, what in PAGES.items())
        text = (
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>Watchkeeper</title>'
            f"<h1>Watchkeeper {html.escape(self._health.version)}</h1>"
            f"<p>{html.escape(self._health.status())}</p><ul>{links}</ul></html>"
        )
        return web.Response(text=text, content_type="text/html")

    async def _metrics(self, _request: web.Request) -> web.Response:
        body = generate_latest(self._registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _healthz(self, _request: web.Request) -> web.Response:
        alive = self._health.alive()
        return _json({"alive": alive, "pump_age_s": round(self._health.pump_age_s(), 3)}, ok=alive)

    async def _readyz(self, _request: web.Request) -> web.Response:
        reasons = self._health.not_ready()
        if PASS.get() is None and not self._settings.open_metrics:
            # a probe from another machine learns whether, and not why
            return _json({"ready": not reasons, "reasons": [], "warnings": []}, ok=not reasons)
        answer = {"ready": not reasons, "reasons": reasons, "warnings": self._health.warnings()}
        return _json(answer, ok=not reasons)


def _json(body: dict[str, object], *, ok: bool) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(body) + b"\n", status=200 if ok else 503, content_type="application/json"
    )
