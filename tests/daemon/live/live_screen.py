"""The live page on a screen of Chromium: what tests of the page see, do, and hear it complain about."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from waiting import PATIENCE_S

DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


class Screen:
    """A page, with everything that it complained about."""

    def __init__(self, browser: Any, url: str, theme: str, size: dict[str, int], motion: str) -> None:
        self.context = browser.new_context(viewport=size, color_scheme=theme, reduced_motion=motion)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "request", lambda r: self.complaints.append(r.url) if not r.url.startswith((url, "about:")) else None
        )
        self.page.goto(url)

    def see(self, expression: str, what: Callable[[Any], bool] = bool) -> Any:
        """The first value of this expression that is as wanted; the page's policy forbids Playwright's own waiting."""
        end = time.monotonic() + PATIENCE_S
        while not what(found := self.page.evaluate(expression)):
            assert time.monotonic() < end, f"{expression}: {found!r}"
            time.sleep(0.02)
        return found

    def row(self, kind: str) -> Any:
        return self.page.locator(".alarm", has=self.page.locator(".kind", has_text=kind)).first

    def classes(self, kind: str) -> str:
        return f"document.querySelector('.alarm:has(.kind)[data-id=\"{self.id_of(kind)}\"]').className"

    def id_of(self, kind: str) -> str:
        return str(self.row(kind).get_attribute("data-id"))
