"""Shared by the tests: a browser, one detector driven by hand, and where the real recordings are."""

from __future__ import annotations

import gc
import gzip
import io
import logging
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from watchkeeper.config.schema import DEFAULT, Config
from watchkeeper.detectors.base import Detector, Evidence, Window
from watchkeeper.detectors.engine.window import Block, samples_of
from watchkeeper.detectors.fleet.fleet import Fleet
from watchkeeper.streams.batch import columns_of
from watchkeeper.streams.messages import Kind

from where import CUTS, SHARED

SHARED_DATA = SHARED / "data"
# What earlier tests have left is given back each time the process has grown by so much.
ROOM_BYTES = 5e8


# No example is too slow: the first one compiles a kernel, whichever test comes first, and others share the machine.
settings.register_profile("watchkeeper", deadline=None)
settings.load_profile("watchkeeper")


@pytest.fixture(autouse=True)
def _plain_logging() -> Iterator[None]:
    """A command that runs in this process takes our logs to a standard error that ends with its test."""
    logger = logging.getLogger("watchkeeper")

    def plain() -> None:
        logger.handlers, logger.propagate = [], True
        logger.setLevel(logging.NOTSET)
        # a fuzzer keeps what damaged files make readers say out of its own output
        logging.disable(logging.NOTSET)

    plain()
    yield
    plain()


@pytest.fixture(autouse=True)
def _room(resident: list[int]) -> Iterator[None]:
    """Pipelines are large and refer to themselves: without this those of earlier tests fill the machine's memory."""
    yield
    if resident_bytes() - resident[-1] > ROOM_BYTES:
        gc.collect()
        resident.append(resident_bytes())


@pytest.fixture(scope="session")
def resident() -> list[int]:
    """The size of the process in bytes: at first, and after each time that memory was given back."""
    return [resident_bytes()]


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.fixture(scope="session", autouse=True)
def _open_folders(tmp_path_factory: pytest.TempPathFactory) -> None:
    """mosquitto gives up root's rights and must still read what tests write for it, in any worker's folder."""
    base = tmp_path_factory.getbasetemp()
    for folder in (base, *base.parents):
        if folder.name.startswith(("pytest-", "popen-")):
            folder.chmod(0o755)


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder of real recordings; tests that need it are skipped where it is not there."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no recordings in {SHARED_DATA}")
    return SHARED_DATA


@pytest.fixture(scope="session")
def px4_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the cuts of PX4's logs, which every clone has, unpacked."""
    folder = tmp_path_factory.mktemp("px4")
    for path in (CUTS / "px4").glob("*.ulg.gz"):
        (folder / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    return folder


# A real browser: Debian's, without sandbox and GPU.
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
# Larger pictures are cut to 256 colours, bytes.
PICTURE_LIMIT = 290_000


@contextmanager
def chromium() -> Iterator[Any]:
    """One Chromium, driven by Playwright; FileNotFoundError when there is none."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  few tests need it

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        raise FileNotFoundError("no chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield running
        finally:
            running.close()


def save_picture(shot: bytes, path: Path) -> None:
    """A screenshot as a file for the documentation."""
    from PIL import Image  # noqa: PLC0415  only the scripts that make pictures need it

    picture = Image.open(io.BytesIO(shot)).convert("RGB")
    picture.save(path, optimize=True)
    if path.stat().st_size > PICTURE_LIMIT:
        picture.quantize(256, kmeans=4, dither=Image.Dither.NONE).save(path, optimize=True)
    print(path.name, path.stat().st_size // 1000, "kB")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium; tests are skipped where it is not installed."""
    with ExitStack() as stack:
        try:
            running = stack.enter_context(chromium())
        except FileNotFoundError as error:
            pytest.skip(str(error))
        yield running


class Bench:
    """A detector with a fleet of its own, fed one window at a time."""

    def __init__(self, make: Callable[[Config, Fleet], Detector], config: Config = DEFAULT) -> None:
        self.fleet = Fleet(config.fleet)
        self.detector = make(config, self.fleet)

    def tick(self, t: float, **kinds: list[dict[str, float | str]]) -> list[Evidence]:
        """One tick at t with rows such as `adsb=[{"id": "a", "t": 1.0, "lat": …}]`."""
        samples = {}
        for word, rows in kinds.items():
            kind = Kind[word.upper()]
            if not rows:
                continue
            rows.sort(key=lambda r: float(r["t"]))
            slot = np.array([self.fleet.slot_for(str(r["id"])) for r in rows], np.int32)
            names = {k for r in rows for k in r} - {"id", "t"}
            cols = columns_of(
                kind, slot, np.array([r["t"] for r in rows], float),
                {n: np.array([r.get(n, np.nan) for r in rows], float) for n in names},
            )  # fmt: skip
            block = Block(cols.vid, cols.via, cols.t, cols.data)
            samples[kind] = samples_of(kind, block, self.fleet.high, lambda n: None)
            self.fleet.ingest(samples[kind])
        return self.detector.step(Window(t, samples))


@pytest.fixture
def bench() -> type[Bench]:
    """The class, so that a test names its detector and configuration."""
    return Bench
