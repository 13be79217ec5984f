"""The wheel alone in a fresh environment and an empty folder does what the README says; the sdist tests itself.

`make packages` runs it. It builds both, installs from the package index, and takes some minutes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import end_program

from watchkeeper.daemon.demo.broker import free_port

from where import DOCS, ROOT, copy_checkout

pytestmark = pytest.mark.long
# Those of pyproject.toml.
PYTHONS = ("3.11", "3.12", "3.13")
# Of the sdist's tests: contracts of every component, recorded replays, settings, the codec, and the real flights.
SAMPLE = (
    "tests/conformance",
    "tests/golden",
    "tests/config",
    "tests/streams/codec",
    "tests/test_face.py",
    "tests/detectors/test_recordings.py",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist."""
    source, out = copy_checkout(tmp_path_factory.mktemp("source")), tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", out, source], check=True, capture_output=True)
    return out


def interpreter(version: str) -> str | None:
    """A Python of this version that starts: a shim may be there for one that is not chosen."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    chosen = [str(path) for path in Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    if found := shutil.which(f"python{version}"):
        chosen.insert(0, found)
    starts = (subprocess.run([path, "-c", "import venv"], check=False, capture_output=True) for path in chosen)
    return next((path for path, done in zip(chosen, starts, strict=True) if done.returncode == 0), None)


@pytest.fixture(scope="module", params=PYTHONS)
def bin_folder(request: pytest.FixtureRequest, built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has the wheel and nothing of ours besides, with each Python that is here."""
    python = interpreter(request.param)
    if python is None:
        pytest.skip(f"no Python {request.param} on this machine")
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([python, "-m", "venv", folder], check=True)
    (wheel,) = built.glob("*.whl")
    subprocess.run([folder / "bin" / "pip", "install", "--quiet", wheel], check=True)
    return folder / "bin"


@pytest.fixture
def typed(bin_folder: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`typed("init")`: watchkeeper with these words, in an empty folder, without the repository on any path."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "WATCHKEEPER", "VIRTUAL"))}

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [bin_folder / "watchkeeper", *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )

    return call


@pytest.fixture
def broker(tool: Callable[[str, str], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    port = free_port()
    process = subprocess.Popen([tool("mosquitto", "mosquitto"), "-p", str(port)], stderr=subprocess.DEVNULL)
    yield port
    end_program(process)


def test_the_metadata_would_be_taken(built: Path) -> None:
    own = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for program, *words in (
        ["twine", "check", "--strict", *built.iterdir()],
        ["check-wheel-contents", *built.glob("*.whl")],
    ):
        found = shutil.which(str(program), path=own)
        assert found, f"{program} is not installed: pip install -e '.[dev]'"
        done = subprocess.run([found, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_alone_does_what_the_readme_says(
    typed: Callable[..., Any], broker: int, bin_folder: Path, run: Callable[..., Any], answer: Callable[..., Any],
    tmp_path: Path,
) -> None:  # fmt: skip
    assert typed("init", "--for", "fleet").returncode == 0
    config = tmp_path / "watchkeeper.toml"
    page = free_port()
    text = config.read_text().replace("mqtt://127.0.0.1:1883", f"mqtt://127.0.0.1:{broker}")
    config.write_text(text.replace("[http]\n", f"[http]\nport = {page}\n", 1))
    checked = typed("check-config", "watchkeeper.toml", "--connect")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    process = run(str(bin_folder / "watchkeeper"), "run", "-c", str(config), cwd=tmp_path)
    answer(f"http://127.0.0.1:{page}/readyz", within_s=300.0)
    assert "<title>Watchkeeper" in answer(f"http://127.0.0.1:{page}/")
    assert typed("simulate", "demo", "--seconds", "40", "--out", "demo.wklog").returncode == 0
    process.terminate()
    assert process.wait(30) == 0
    told = typed("report", "demo.wklog")
    assert told.returncode == 0, told.stderr
    assert any(tmp_path.glob("*.html"))
    shown = typed("demo", "--seconds", "20", "--port", str(free_port()))
    assert shown.returncode == 0, shown.stdout + shown.stderr


def test_the_line_for_one_user_works_from_the_wheel(built: Path, linter: Callable[[str], str], tmp_path: Path) -> None:
    """`uv tool install` as docs/install.md has it, in a folder with the wheel and a home of its own."""
    (wheel,) = built.glob("*.whl")
    (line,) = re.findall(r"^    uv (tool install \S+\.whl)$", (DOCS / "install.md").read_text(), re.MULTILINE)
    shutil.copy(wheel, tmp_path)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "WATCHKEEPER", "VIRTUAL"))}
    env |= {"UV_TOOL_DIR": f"{tmp_path}/tools", "UV_TOOL_BIN_DIR": f"{tmp_path}/bin", "UV_PYTHON": sys.executable}
    done = subprocess.run(
        [linter("uv"), *line.split()], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for words in (["--version"], ["init", "--for", "receiver"], ["check-config", "watchkeeper.toml"]):
        said = subprocess.run(
            [tmp_path / "bin" / "watchkeeper", *words],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize("python", PYTHONS)
def test_64_bit_arm_has_a_wheel_of_every_package(linter: Callable[[str], str], python: str) -> None:
    """A Raspberry Pi compiles nothing: Debian 12 has Python 3.11, Debian 13 has 3.13, and both a glibc above 2.28."""
    words = ("pip", "compile", ROOT / "pyproject.toml", "--only-binary", ":all:", "--no-header", "--no-annotate")
    words += ("--python-version", python, "--python-platform", "aarch64-manylinux_2_28")
    done = subprocess.run([linter("uv"), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "\nllvmlite==" in done.stdout


def test_an_extra_is_added_without_an_index_that_knows_us(bin_folder: Path) -> None:
    """Before the first release too: pip sees that Watchkeeper is there, and asks for the rest only."""
    words = ("install", "--dry-run", "--no-index", "--no-deps", "watchkeeper[drone,receiver]")
    done = subprocess.run([bin_folder / "pip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "already satisfied" in done.stdout


def test_the_sdist_tests_itself(built: Path, tmp_path: Path) -> None:
    """Its own tests, on its own sources, with the packages of this environment."""
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path, filter="data")
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    env = {**os.environ, "PYTHONPATH": f"{folder}/src"}
    words = (sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "not long", "-p", "no:cacheprovider", *SAMPLE)
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
    print(done.stdout[-400:])
    assert done.returncode == 0, done.stdout[-3000:]
    asked = (sys.executable, "-c", "import watchkeeper.config as c, json; print(json.dumps(c.__file__))")
    where = subprocess.run(asked, cwd=folder, env=env, capture_output=True, text=True, check=True)
    assert Path(json.loads(where.stdout)).is_relative_to(folder)
