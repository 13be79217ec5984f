"""Numba's `njit`, with a compile cache that cannot be stale. Every kernel takes its decorator from here.

Numba notices a change in the file that holds a kernel, but not in another file whose kernels that one calls: after an
update half of the old code could live on inside the new. So the cache has a folder per state of our sources, below
the user's cache directory. NUMBA_CACHE_DIR, where it is set, is left alone. Where nothing can be written Numba
compiles again at each start.

With NUMBA_DISABLE_JIT=1 nothing is compiled: kernels are plain Python, to step through and to measure coverage of.
"""

from __future__ import annotations

import os
import shutil
from hashlib import blake2b
from pathlib import Path

import numba
import numpy as np
from numba import njit

__all__ = ["njit"]

# Folders of older sources that are kept: switching back and forth between two versions is common.
KEPT = 4


def _sources_mark() -> str:
    """Changes whenever a file that may hold a kernel, or Numba itself, does."""
    package = Path(__file__).parent.parent
    digest = blake2b(numba.__version__.encode(), digest_size=8)
    for folder in ("streams", "detectors"):
        for path in sorted((package / folder).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _use_own_cache() -> None:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    caches = home / "watchkeeper" / "kernels"
    own = caches / _sources_mark()
    try:
        own.mkdir(parents=True, exist_ok=True)
        own.touch()
        older = sorted(caches.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)[KEPT:]
    except OSError:
        return
    for path in older:
        shutil.rmtree(path, ignore_errors=True)
    numba.config.CACHE_DIR = str(own)  # type: ignore[attr-defined]


if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
    # compiled arithmetic goes on without a word where NumPy's scalars warn of infinities and NaN
    np.seterr(all="ignore")
elif not os.environ.get("NUMBA_CACHE_DIR"):
    _use_own_cache()
