"""The HTTP pages of an app that is not running yet, and of one that hangs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import msgspec
import pytest

from watchkeeper.config.loader import load
from watchkeeper.daemon.app import App
from watchkeeper.daemon.intake.pump import STUCK_S


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    settings = {
        "http": {"port": 0}, "fleet": {"max_vehicles": 10}, "detectors": {"conflict": {"max_pairs": 10}},
        "sinks": {"state_dir": str(tmp_path)},
    }  # fmt: skip
    made = App(load(None, env={}, overrides=settings))
    yield made
    made.close()


def get(app: App, page: str, method: str = "GET") -> tuple[int, str, str]:
    async def main() -> tuple[int, str, str]:
        assert app.http is not None
        await app.http.start()
        async with aiohttp.ClientSession() as session, session.request(method, app.http.url + page) as answer:
            found = answer.status, answer.content_type, await answer.text()
        await app.http.stop()
        return found

    return asyncio.run(main())


def test_before_it_is_warm_it_is_alive_but_not_ready(app: App) -> None:
    status, kind, body = get(app, "/readyz")
    assert (status, kind) == (503, "application/json")
    answer = msgspec.json.decode(body)
    assert answer["ready"] is False
    assert answer["reasons"][0] == "warming up"
    assert "not connected" in answer["reasons"][1]


def test_a_pump_that_hangs_is_not_alive(app: App) -> None:
    app.pump.running = True
    app.pump.beat_s = time.monotonic() - STUCK_S - 1.0
    assert get(app, "/healthz")[0] == 503


def test_a_pump_that_beats_is_alive(app: App) -> None:
    app.pump.running = True
    status, _, body = get(app, "/healthz")
    assert status == 200
    assert msgspec.json.decode(body)["alive"] is True


def test_the_first_page_leads_to_the_others(app: App) -> None:
    status, kind, body = get(app, "/")
    assert (status, kind) == (200, "text/html")
    for page in ("/metrics", "/healthz", "/readyz"):
        assert f'href="{page}"' in body


def test_nothing_can_be_written_and_nothing_else_is_there(app: App) -> None:
    assert get(app, "/metrics", "POST")[0] == 405


def test_unknown_pages_are_not_found(app: App) -> None:
    assert get(app, "/etc/passwd")[0] == 404
