"""Zeros for tables with room for every vehicle that may come: memory is taken by the page, when a row is first written.

`np.zeros` gives such memory too, but only while the C library maps blocks of that size; after a large block was freed
it cuts them from the heap instead, and clears them, all at once: 150 MB for each Pipeline after the first. So large
tables are mapped here, whatever has happened in the process before. A forked process gets a copy of its own.
"""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

# A mapping takes whole pages and a call of the system: not worth it for less.
LEAST_BYTES = 128 * 1024


def zeros(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """An array of zeros that takes memory where it is written."""
    kind = np.dtype(dtype)
    count = math.prod(shape) if isinstance(shape, tuple) else shape
    size = count * kind.itemsize
    if size < LEAST_BYTES:
        return np.zeros(shape, kind)
    mapped = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(mapped, kind, count).reshape(shape)
