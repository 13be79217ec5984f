"""Makes the pictures of the live page in docs/images, from simulated traffic:

    PYTHONPATH=tests .venv/bin/python -P tests/daemon/live/screenshots.py

Busy airspace that nobody controls, and drones behind three gateways of which one becomes slow, are simulated, recorded
and replayed with an audience. Takes about a minute; needs chromium.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conftest import chromium, save_picture
from playwright.sync_api import Browser, Page

from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.simulate import simulate
from watchkeeper.streams.simulate.network import NetworkFault, network_batches, network_source

from where import DOCS

IMAGES = DOCS / "images"
SECONDS = 300.0
# A minute after the gateway became slow.
MOMENT_T = 1_700_000_170.0
DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


def record(folder: Path) -> list[Path]:
    """The two logs."""
    traffic, drones = folder / "traffic.wklog", folder / "drones.wklog"
    with LogWriter(traffic) as log:
        for batch in simulate("random", seed=5, vehicles=240, seconds=SECONDS).batches():
            log.write(batch)
    fault = NetworkFault("latency", "gw-2", 130.0, 0.6)
    with LogWriter(drones) as log:
        for batch in network_batches(network_source(11, 14, 3, SECONDS, fault), SECONDS):
            log.write(batch)
    return [traffic, drones]


@contextmanager
def replayed(logs: list[Path]) -> Iterator[str]:
    """The address of a replay of these logs."""
    # by their names: where they are is nobody's business
    command = [sys.executable, "-m", "watchkeeper.daemon.cli", "replay", *(log.name for log in logs)]
    command += ["--http", "0", "--speed", "max", "--alarms", "/dev/null"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=logs[0].parent)
    assert process.stderr is not None
    try:
        yield next(found[1] for line in process.stderr if (found := re.search(r"look at it: (\S+)", line)))
    finally:
        process.terminate()
        process.wait(30)


def open_page(browser: Browser, url: str, theme: str, size: dict[str, int]) -> Page:
    """A page that complains about nothing."""
    scale = 2 if size is PHONE else 1
    context = browser.new_context(viewport=size, color_scheme=theme, device_scale_factor=scale)  # type: ignore[arg-type]
    page = context.new_page()
    page.on("console", lambda message: print("console:", message.text))
    page.on("pageerror", lambda error: print("error:", error.stack))
    page.goto(url)
    return page


def look(page: Page, t: float) -> None:
    """Show this moment of the log, as soon as it has been read."""
    while not page.evaluate(f"watchkeeper.playback.state?.read && watchkeeper.timeline.extent()[1] > {t}"):
        time.sleep(0.2)
    page.evaluate(f"watchkeeper.timeline.show({t})")
    while not page.evaluate(f"watchkeeper.past.t === {t} && watchkeeper.fleet.picture.t === {t}"):
        time.sleep(0.1)
    time.sleep(1.5)


def choose(page: Page, kind: str) -> None:
    """Open the worst active alarm of a kind, and wait for the map to get there."""
    page.evaluate(
        """kind => {
          const active = watchkeeper.rows().filter((row) => row.state !== 'cleared');
          watchkeeper.choose(active.find((row) => row.alarm.event.kind === kind)?.alarm.id ?? null);
        }""",
        kind,
    )
    time.sleep(1.5)


def save(page: Page, name: str) -> None:
    """One picture."""
    page.mouse.move(700, 450)
    save_picture(page.screenshot(), IMAGES / f"live-{name}.png")


def main() -> None:
    """All pictures."""
    with tempfile.TemporaryDirectory() as folder, replayed(record(Path(folder))) as url, chromium() as browser:
        desktop, phone = open_page(browser, url, "dark", DESKTOP), open_page(browser, url, "dark", PHONE)
        light = open_page(browser, url, "light", DESKTOP)
        for page in (desktop, phone, light):
            look(page, MOMENT_T)
        desktop.evaluate("watchkeeper.showPane('fleet')")
        save(desktop, "overview")
        desktop.evaluate("watchkeeper.showPane('alarms')")
        choose(desktop, "conflict")
        save(desktop, "dark")
        choose(phone, "conflict")
        save(phone, "phone")
        choose(light, "link")
        light.evaluate("watchkeeper.showPane('vehicle')")
        time.sleep(1.5)
        save(light, "light")
        light.evaluate("watchkeeper.choose(null), watchkeeper.showPane('alarms')")
        light.keyboard.press("s")
        light.keyboard.type("separation")
        light.locator(".alarm .open").nth(4).click()
        time.sleep(2.5)
        save(light, "search")
        # the links are known at the end of the log
        desktop.evaluate("watchkeeper.timeline.live(), watchkeeper.showPane('network')")
        time.sleep(3.0)
        save(desktop, "network")


if __name__ == "__main__":
    main()
