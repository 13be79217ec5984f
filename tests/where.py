"""Where the tests find things: the checkout, its pages, and recordings that lie outside of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Cuts of real recordings that every clone has.
CUTS = ROOT / "tests" / "recordings"
# All samples of the traffic library, which `make data` fetches; without them, those of the cuts.
WHOLE_SAMPLES = ROOT / "data" / "adsb" / "traffic" / "data" / "samples"
SAMPLES = WHOLE_SAMPLES if WHOLE_SAMPLES.is_dir() else CUTS / "traffic"
SHARED = ROOT.parent / "shared"


def own_files() -> list[str]:
    """Every file of the checkout that is not ignored; of an sdist, which has no git, every file."""
    if not (ROOT / ".git").exists():
        return [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file() and ".venv" not in path.parts]
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return [name for name in listed.split("\0") if name and os.path.lexists(ROOT / name)]


def copy_checkout(into: Path) -> Path:
    """A copy of the checkout, links as links: for builds, which write next to their sources, and for trials."""
    for name in own_files():
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, into / name, follow_symlinks=False)
    return into
