"""What the tests of deploy/ share: its files, and real programs from Debian where they are installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from waiting import PATIENCE_S

from where import ROOT

DEPLOY = ROOT / "deploy"
SBIN = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))


@pytest.fixture(scope="session")
def deploy() -> Path:
    """The folder."""
    return DEPLOY


@pytest.fixture(scope="session")
def tool() -> Callable[[str, str], str]:
    """`tool("promtool", "prometheus")`: the program's path, or the test is skipped and says which package has it."""

    def find(program: str, package: str) -> str:
        path = shutil.which(program, path=SBIN)
        if path is None:
            pytest.skip(f"{program} is not installed: apt install {package}")
        return path

    return find


@pytest.fixture(scope="session")
def panels() -> list[tuple[str, str, str]]:
    """Every query of every panel: dashboard, panel title, expression as Grafana would send it."""
    found = []
    for path in sorted((DEPLOY / "grafana" / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            found += [(path.stem, panel["title"], _filled(t["expr"])) for t in panel.get("targets", [])]
    return found


def _filled(expr: str) -> str:
    """With the variables as Grafana fills them in: every daemon, and four scrapes for a rate."""
    expr = expr.replace("$__rate_interval", "20s").replace("$instance", ".+")
    assert not re.search(r"\$\w", expr), f"a variable is left in {expr}"
    return expr


@pytest.fixture
def run() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """`run(program, …)` starts a process that ends with the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str, **options: Any) -> subprocess.Popen[str]:
        options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options}
        started.append(subprocess.Popen(list(words), text=True, **options))
        return started[-1]

    yield start
    for process in reversed(started):
        process.terminate()
    for process in reversed(started):
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def said() -> Callable[..., tuple[int, str]]:
    """`said(program, …)`: the exit code of a command, and all that it wrote."""

    def call(*words: str | Path, **options: Any) -> tuple[int, str]:
        done = subprocess.run(
            words,
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
            **options,
        )
        return done.returncode, done.stdout

    return call


@pytest.fixture
def answer() -> Callable[..., Any]:
    """`answer(url)`: the JSON there; with `until`, the first answer that it accepts."""

    def get(url: str, until: Callable[[Any], Any] = lambda _: True, within_s: float = PATIENCE_S) -> Any:
        end, last = time.monotonic() + within_s, None
        while time.monotonic() < end:
            try:
                with urlopen(url, timeout=10) as reply:
                    text = reply.read().decode()
                last = json.loads(text) if text.startswith(("{", "[")) else text
                if until(last):
                    return last
            except (URLError, OSError) as error:
                last = error
            time.sleep(0.1)
        raise AssertionError(f"{url}: not within {within_s} s, last {last}")

    return get
