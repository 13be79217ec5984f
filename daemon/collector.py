"""The garbage collector at a start: most of what is loaded stays for good, and the collector would walk it ever again.

with paused():        while modules are imported and kernels loaded: a tenth of a start goes into finding nothing
keep_what_exists()    once that is done, and once in a process: it is left alone from now on
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache


@contextmanager
def paused() -> Iterator[None]:
    """No garbage is collected meanwhile."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@cache
def keep_what_exists() -> None:
    """Have the collector leave alone what exists now: a compiler's worth of objects."""
    gc.freeze()
