"""The login form in a real browser: a token is asked for, a wrong one is said, a right one opens the page."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from live_screen import DESKTOP, PHONE

from watchkeeper.config.schema import DEFAULT, Http, Token
from watchkeeper.daemon.http.api.served import Served
from watchkeeper.daemon.http.server import Site
from watchkeeper.daemon.live.view import Live, Watched
from watchkeeper.detectors.engine.pipeline import Pipeline

TOKEN, LOOKS = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A site that asks for a token on this machine too."""
    folder: Path = tmp_path_factory.mktemp("login")
    (folder / "tower").write_text(TOKEN)
    (folder / "visitor").write_text(LOOKS)
    tokens = (
        Token(name="tower", role="operate", token_file=str(folder / "tower")),
        Token(name="visitor", role="view", token_file=str(folder / "visitor")),
    )
    settings = Http(port=0, require_token=True, tokens=tokens)
    loop, found, end = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    address: list[str] = []

    async def serve() -> None:
        live = Live(Watched(Pipeline(DEFAULT), "0.0.0"), 4)
        site = Site(Served(live, lambda: DEFAULT, None), settings)
        await site.start()
        address.append(site.url)
        found.set()
        drawing = asyncio.create_task(live.draw_often())
        await end.wait()
        drawing.cancel()
        with suppress(asyncio.CancelledError):
            await drawing
        await site.stop()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert found.wait(20.0)
    yield address[0]
    loop.call_soon_threadsafe(end.set)
    thread.join(20.0)


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_wrong_token_is_said_and_a_right_one_opens_the_page(
    browser: Any, url: str, theme: str, size: dict[str, int], tmp_path: Path
) -> None:
    context = browser.new_context(viewport=size, color_scheme=theme)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda m: complaints.append(m.text) if "401" not in m.text else None)
    page.goto(url)
    assert "A token is needed" in page.locator("[role=status]").inner_text()
    # its own style is applied: the policy names it
    assert page.evaluate("getComputedStyle(document.querySelector('button')).height") == "44px"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert Axe().run(page).response["violations"] == []
    page.screenshot(path=tmp_path / "login.png")
    page.keyboard.type("no such token")
    page.keyboard.press("Enter")
    page.wait_for_url("**/login")
    assert "This token is not known here" in page.locator("[role=status]").inner_text()
    # the form keeps to its own policy
    assert complaints == []
    page.locator("#token").fill(TOKEN)
    page.locator("button").click()
    page.wait_for_url(f"{url}/")
    assert page.locator("h1").inner_text() == "Watchkeeper"
    assert page.locator("#air").count() == 1
    context.close()


@pytest.mark.parametrize(("token", "name"), [(TOKEN, "tower"), (LOOKS, "visitor")])
def test_the_page_says_who_is_logged_in_offers_what_they_may_do_and_lets_them_out(
    browser: Any, url: str, token: str, name: str
) -> None:
    context = browser.new_context(viewport=DESKTOP)
    page = context.new_page()
    page.goto(url)
    page.locator("#token").fill(token)
    page.keyboard.press("Enter")
    # shown as soon as the page has learned who it is
    page.locator("#reader:not([hidden])").wait_for(state="attached")
    page.keyboard.press("?")
    words = page.locator("#reader-words")
    words.wait_for()
    assert f"logged in as “{name}”" in words.inner_text()
    assert ("may look and change nothing" in words.inner_text()) is (name == "visitor")
    # the map's buttons are behind the dialog, but they are there or not
    assert page.locator("#area").is_visible() is (name == "tower")
    page.locator("#logout").click()
    page.locator("#token").wait_for()
    context.close()
