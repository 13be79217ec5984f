"""Where the tests find things: the checkout, its pages, and recordings that lie outside of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Cuts of real recordings that every clone has.
CUTS = ROOT / "tests" / "recordings"
# All samples of the traffic library, which `make data` fetches; without them, those of the cuts.
WHOLE_SAMPLES = ROOT / "data" / "adsb" / "traffic" / "data" / "samples"
SAMPLES = WHOLE_SAMPLES if WHOLE_SAMPLES.is_dir() else CUTS / "traffic"
SHARED = ROOT.parent / "shared"
# The folders at the root that are subpackages: in src/watchkeeper a checkout has a link to each, an sdist a copy.
SUBPACKAGES = {path.name for path in (ROOT / "src" / "watchkeeper").iterdir() if (ROOT / path.name).is_dir()}
LINKED = (ROOT / "src" / "watchkeeper" / "detectors").is_symlink()
NOT_LINKED = "an sdist has copies in src/watchkeeper where a checkout has links: run it in a clone"
# What tests, builds and make leave in an sdist, where no git tells it from the sources.
LEFT = {"__pycache__", "build", "data", "dist", "node_modules", "results"}
KEPT = {".ci", ".github", ".pre-commit-config.yaml"}


def own_files() -> list[str]:
    """Every file of the checkout that is not ignored; of an sdist, which has no git, every file that it came with."""
    if not (ROOT / ".git").exists():
        return [str(path) for path in _came_with_the_sdist()]
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return [name for name in listed.split("\0") if name and os.path.lexists(ROOT / name)]


def _came_with_the_sdist() -> Iterator[Path]:
    """Files by their path from the root, each subpackage once."""
    for folder, inner, files in os.walk(ROOT):
        here = Path(folder).relative_to(ROOT)
        copies = SUBPACKAGES if here == Path("src", "watchkeeper") else set()
        inner[:] = [name for name in inner if name not in LEFT | copies and not name.endswith(".egg-info")]
        inner[:] = [name for name in inner if not name.startswith(".") or str(here / name) in KEPT]
        yield from (here / name for name in files if not name.startswith(".") or str(here / name) in KEPT)


def copy_checkout(into: Path) -> Path:
    """A copy of the checkout, with its links: for builds, which write next to their sources, and for trials."""
    for name in own_files():
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, into / name, follow_symlinks=False)
    for name in () if LINKED else SUBPACKAGES:
        (into / "src" / "watchkeeper" / name).symlink_to(Path("..", "..", name))
    return into
