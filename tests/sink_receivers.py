"""Real receivers for every built-in sink, each of which can be away and come back; and the example of the docs."""

from __future__ import annotations

import asyncio
import fcntl
import importlib.util
import os
import re
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from aiohttp import web

from watchkeeper.config.outputs import Alertmanager, Gdl90Out, GnssIntegrity, HomeAssistant, Notify, Webhook
from watchkeeper.config.schema import Broker, Http, Sinks
from watchkeeper.daemon.demo.broker import EmbeddedBroker, free_port
from watchkeeper.daemon.outputs import journal_file

from where import DOCS

# What the smallest pipe holds: a few lines.
PIPE_BYTES = 4096
VIEWERS = 2


class FullDisk:
    """The journal's disk."""

    settings = Sinks(journal_fsync=False)

    def __init__(self, _folder: Path) -> None:
        self._patch = pytest.MonkeyPatch()

    async def start(self) -> None:
        self._patch.undo()

    async def stop(self) -> None:
        def full(_handle: int, _data: bytes) -> None:
            raise OSError(28, "No space left on device")

        self._patch.setattr(journal_file, "write_all", full)

    close = start


class MqttBroker:
    """A broker; the test lets a transport connect to it."""

    settings: Any = Sinks()

    def __init__(self, _folder: Path) -> None:
        self._port = free_port()
        self.broker = Broker(url=f"mqtt://127.0.0.1:{self._port}", reconnect_min_s=0.05, reconnect_max_s=0.2)
        self._running: EmbeddedBroker | None = None

    async def start(self) -> None:
        if self._running is None:
            self._running = EmbeddedBroker(port=self._port)
            await self._running.__aenter__()

    async def stop(self) -> None:
        if self._running is not None:
            await self._running.__aexit__(None, None, None)
            self._running = None


class HomeAssistantBroker(MqttBroker):
    """The same for Home Assistant."""

    settings = HomeAssistant(enabled=True)


class WebServer:
    """Takes whatever is posted."""

    settings: Any

    def __init__(self, _folder: Path) -> None:
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.settings = Webhook(name="webhook", url=self.url, retry_min_s=0.05, retry_max_s=0.1)
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        async def take(request: web.Request) -> web.Response:
            await request.read()
            return web.Response()

        app = web.Application()
        app.router.add_post("/{path:.*}", take)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None


class AlertServer(WebServer):
    """The same at Alertmanager's address."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.settings = Alertmanager(url=self.url, resend_s=3600.0, expire_s=7200.0)


class Phone(WebServer):
    """The same as a service that Apprise knows."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        url = self.url.replace("http", "json")
        self.settings = Notify(name="notify", url=url, burst_messages=1000, retry_min_s=0.05, retry_max_s=0.1)


class Pager:
    """Reads standard output; away, it stands still."""

    settings = Sinks()

    def __init__(self, _folder: Path) -> None:
        read_end, write_end = os.pipe()
        fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._go = threading.Event()
        self._read_end = read_end
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(sys, "stdout", os.fdopen(write_end, "w"))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with suppress(OSError):
            while self._go.wait() and os.read(self._read_end, 256):
                pass

    async def start(self) -> None:
        self._go.set()

    async def stop(self) -> None:
        self._go.clear()

    async def close(self) -> None:
        self._patch.undo()
        self._go.set()


class Audience:
    """The live page's viewers; away means that there is no room for one more."""

    settings = Http(viewers=VIEWERS)

    def __init__(self, _folder: Path) -> None:
        self.page: Any = None
        self._viewers: list[Any] = []

    async def start(self) -> None:
        while self._viewers:
            self.page.leave(self._viewers.pop())

    async def stop(self) -> None:
        self._viewers = [self.page.join() for _ in range(VIEWERS)]


class Tablet:
    """Listens to UDP."""

    def __init__(self, _folder: Path) -> None:
        self._port = free_port()
        self.settings: Any = Gdl90Out(url=f"udp://127.0.0.1:{self._port}")
        self._line: asyncio.DatagramTransport | None = None

    async def start(self) -> None:
        if self._line is None:
            self._line, _ = await asyncio.get_running_loop().create_datagram_endpoint(
                asyncio.DatagramProtocol, local_addr=("127.0.0.1", self._port)
            )

    async def stop(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None
            await asyncio.sleep(0)


class Companion(Tablet):
    """Listens to UDP too."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.settings = GnssIntegrity(vehicle="d0", dry_run=False, url=self.settings.url)


COUNTERPARTS: dict[str, Any] = {
    "journal": FullDisk,
    "mqtt": MqttBroker,
    "live_page": Audience,
    "terminal": Pager,
    "home_assistant": HomeAssistantBroker,
    "webhook": WebServer,
    "alertmanager": AlertServer,
    "notify": Phone,
    "gdl90": Tablet,
    "gnss_integrity": Companion,
}


def page_code() -> str:
    """The example of docs/outputs/writing-a-sink.md."""
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "outputs" / "writing-a-sink.md").read_text(), re.DOTALL)
    return str(code)


def from_page(folder: Path) -> ModuleType:
    """The same as the module that the page says it is."""
    path = folder / "watchkeeper_siren.py"
    path.write_text(page_code())
    spec = importlib.util.spec_from_file_location("watchkeeper_siren", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


async def until(what: Any, patience_s: float = 20.0) -> None:
    """Wait for a true answer."""
    async with asyncio.timeout(patience_s):
        while not what():
            await asyncio.sleep(0.01)
