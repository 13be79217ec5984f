"""Makes the pictures of an episode's page in docs/images, from simulated traffic:

    PYTHONPATH=tests .venv/bin/python -P tests/evaluation/conflicts/screenshots.py

The moment shown is shortly before a missed conflict becomes a loss of separation. Needs chromium.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from conftest import chromium, save_picture

from watchkeeper.daemon.cli import main as watchkeeper

from where import DOCS

SIZE = {"width": 1280, "height": 1080}
MOMENT, STEP = "48", "document.getElementById('clock').value.includes('step 49')"


def main() -> None:
    """Both pictures."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        log, file = Path(folder) / "c.wklog", Path(folder) / "c.html"
        watchkeeper(["simulate", "controlled", "--seed", "3", "--out", str(log)])
        watchkeeper(["evaluate", "conflicts", str(log), "--page", str(file), "--quiet"])
        for theme in ("light", "dark"):
            page = browser.new_context(viewport=SIZE, color_scheme=theme).new_page()
            page.goto(file.as_uri())
            page.locator("#slider").fill(MOMENT)
            page.locator("#near").click()
            assert page.evaluate(STEP)
            save_picture(page.screenshot(), DOCS / "images" / f"episode-{theme}.png")


if __name__ == "__main__":
    main()
