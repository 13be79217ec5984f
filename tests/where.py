"""Where the tests find things: the checkout, its pages, and recordings that lie outside of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# `make data` fetches these.
SAMPLES = ROOT / "data" / "adsb" / "traffic" / "data" / "samples"
SHARED = ROOT.parent / "shared"


def copy_checkout(into: Path) -> Path:
    """A copy of what git tracks, links as links: for builds, which write next to their sources, and for trials."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, tracked.split("\0")):
        path = into / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            path.symlink_to((ROOT / name).readlink())
        elif (ROOT / name).is_file():
            path.write_bytes((ROOT / name).read_bytes())
    return into
