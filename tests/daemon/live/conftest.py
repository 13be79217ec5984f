"""A daemon with a page, and screens that show it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_screen import DESKTOP, Screen

CONFIG = """
[broker]
url = "{url}"
client_id = "{name}"
[time]
lateness_s = 0
idle_timeout_s = 3600
[fleet]
max_vehicles = 3000
[sinks]
state_dir = "{state_dir}"
terminal = false
# when the alarm comes, and how severe it is, shall not depend on what the profiles are tuned to
[detectors.conflict]
caution_s = 80
warning_s = 40
[detectors.conflict.debounce]
n = 5
m = 5
most_s = 0
strong = 0
[http]
port = 0
"""


@pytest.fixture
def watch(request: pytest.FixtureRequest, daemon: Any, broker: Any, wait_for: Any, tmp_path: Path) -> str:
    """The address of a daemon that is connected; a parameter is more configuration, of http first."""
    config = tmp_path / "wk.toml"
    more = getattr(request, "param", "")
    config.write_text(CONFIG.format(url=broker.url, name=tmp_path.name, state_dir=tmp_path / "state") + more)
    process = daemon(config)
    wait_for(lambda: "connected to the broker" in process.log)
    found = re.search(r"url=(http://\S+)", process.log)
    assert found is not None
    return found[1]


@pytest.fixture
def screen(browser: Any, watch: str) -> Iterator[Callable[..., Screen]]:
    opened: list[Screen] = []

    def start(theme: str = "dark", size: dict[str, int] = DESKTOP, motion: str = "reduce") -> Screen:
        opened.append(Screen(browser, watch, theme, size, motion))
        opened[-1].see("Boolean(window.watchkeeper?.newest)")
        return opened[-1]

    yield start
    for each in opened:
        each.context.close()
        assert each.complaints == []
