"""A log through the pipeline into a history, and the API over it, for the tests of the API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import msgspec

from watchkeeper.config.schema import DEFAULT, Config, Http
from watchkeeper.daemon.history.history import History
from watchkeeper.daemon.http.api.served import Served
from watchkeeper.daemon.http.server import Site
from watchkeeper.daemon.live.view import Live, Watched
from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.engine.replay import Replay
from watchkeeper.streams.simulate import simulate

T = TypeVar("T")
Ask = Callable[["Client"], Awaitable[T]]


class Rig:
    """A log, or the first part of it, its alarm events in order, and what was recorded of it."""

    def __init__(
        self,
        folder: Path,
        scenario: str = "head-on",
        seconds: float = 700.0,
        part: float = 1.0,
        http: Http | None = None,
    ) -> None:
        self.config: Config = msgspec.structs.replace(DEFAULT, http=http or Http(port=0))
        self.replay = Replay(self.config)
        self.events: list[AlarmEvent] = []
        self.history = History(folder / "history.sqlite", self.config.history, self.replay.pipeline, patient=True)
        self.history.start()
        watched = Watched(self.replay.pipeline, "test", accept=None)
        self.live = Live(watched, 4)
        self.history.show_on(self.live)
        self.replay.watchers.append(self.history.recorder.take)
        self.replay.listeners += [self.events.append, self.history.put, self.live.put]
        batches = list(simulate(scenario, seconds=seconds).batches())
        self.replay.run(batches[: round(len(batches) * part)])
        assert self.history.writer.flush(20.0), self.history.writer.trouble

    @asynccontextmanager
    async def site(self) -> AsyncIterator[Site]:
        """The API, listening."""
        site = Site(Served(self.live, lambda: self.config, self.history), self.config.http)
        await site.start()
        try:
            yield site
        finally:
            await site.stop()

    def visit(self, ask: Ask[T]) -> T:
        """What somebody who asks over HTTP gets."""

        async def main() -> T:
            async with self.site() as site, aiohttp.ClientSession() as session:
                return await ask(Client(session, site.url))

        return asyncio.run(main())

    def get(self, path: str, **more: Any) -> Any:
        """The JSON of one page."""

        async def ask(client: Client) -> Any:
            status, body, _ = await client.ask("GET", path, **more)
            assert status == 200, body
            return msgspec.json.decode(body)

        return self.visit(ask)

    def close(self) -> None:
        """Give the file back."""
        self.history.close()


class Client:
    """Asks below /api/v1."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session, self.url = session, url

    async def ask(self, method: str, path: str, **more: Any) -> tuple[int, bytes, Mapping[str, str]]:
        """Status, body and headers."""
        async with self.session.request(method, f"{self.url}/api/v1{path}", **more) as answer:
            return answer.status, await answer.read(), answer.headers

    async def json(self, method: str, path: str, **more: Any) -> tuple[int, Any]:
        """Status and what was said."""
        status, body, _ = await self.ask(method, path, **more)
        return status, msgspec.json.decode(body) if body else None
