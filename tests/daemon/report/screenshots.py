"""Makes the pictures of reports in docs/images, from recordings (docs/report.md names them):

    PYTHONPATH=tests .venv/bin/python -P tests/daemon/report/screenshots.py

The drone is a real flight into which a spoofing of 60 s is put, the evening of ADS-B is as it was. Needs chromium.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from conftest import chromium, save_picture
from playwright.sync_api import Browser

from watchkeeper.daemon.cli import main as watchkeeper

from where import DOCS, SHARED

SIZE = {"width": 1280, "height": 1000}
ATTACK = ["--onset", "300", "--duration", "60", "--seed", "1"]


def save(browser: Browser, page: Path, name: str, theme: str, act: str = "") -> None:
    """One picture of a page that has no network."""
    context = browser.new_context(viewport=SIZE, color_scheme=theme, offline=True)  # type: ignore[arg-type]
    shown = context.new_page()
    shown.goto(page.as_uri())
    if act:
        shown.evaluate(act)
    shown.wait_for_timeout(800)
    path = DOCS / "images" / f"report-{name}.png"
    save_picture(shown.screenshot(), path)
    context.close()


def main() -> None:
    """All pictures."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        # by their names: where they are is nobody's business
        os.chdir(folder)
        for log in ("flights/quad106.csv.gz", "adsb/monterey.csv.gz"):
            Path(Path(log).name).symlink_to(SHARED / "data" / log)
        assert watchkeeper(["inject", "gps_drift_2mps", "quad106.csv.gz", "quad106-spoofed.wklog", *ATTACK]) == 0
        assert watchkeeper(["report", "quad106-spoofed.wklog", "monterey.csv.gz", "--out", "."]) == 0
        drone, sky = Path(folder, "quad106-spoofed.html"), Path(folder, "monterey.html")
        save(browser, drone, "drone", "dark")
        save(browser, drone, "plots", "light", "document.querySelector('.alarm:not(:has(.alarm)) button.show').click()")
        save(browser, sky, "sky", "light", "document.querySelector('.sky button.show').click()")


if __name__ == "__main__":
    main()
