"""Keeps the daemon's memory small: what is no longer used, and what only the start needed, is given back.

    map_large_blocks()  before the first large block is made
    give_back()         once, when all kernels are loaded

Large blocks that come and go leave holes in the heap: the C library maps only those over a threshold, which it raises
up to 32 MB when one is freed. A fixed threshold keeps a daemon 7 MB smaller. Tables with room for vehicles that may
come need no such thing (watchkeeper.detectors.fleet.tables).

Loading kernels runs through most of LLVM, 50 MB of a library's code that is not called again; imports leave holes in
the heap. The system would take such pages back by itself, but only when memory is short, and until then they count as
ours. Pages of files are read again from the system's cache if they are needed after all.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

SMAPS = Path("/proc/self/smaps")
MADV_DONTNEED = 4
M_MMAP_THRESHOLD = -3
# The C library's own, from which it would rise.
MAPPED_BYTES = 128 * 1024
# First line of a mapping: from-to, rights, offset, device, inode, file. A library stays where it is.
MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r-[x-]p \S+ \S+ [1-9]\d* +/.*\.so[.\d]*$")
SIZE = re.compile(r"(\w+): +(\d+) kB")


def map_large_blocks() -> None:
    """Let large blocks go back to the system when they are freed. Does nothing where there is no such setting."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)


def give_back() -> int:
    """Let go of libraries' clean pages and of free memory; how many bytes of libraries. Nothing where it cannot."""
    given = 0
    with suppress(OSError, AttributeError, ValueError):
        libc = ctypes.CDLL(None)
        madvise = libc.madvise
        madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        for start, end, resident in _clean(SMAPS.read_text()):
            if madvise(start, end - start, MADV_DONTNEED) == 0:
                given += resident
        # not every C library has it
        libc.malloc_trim(0)
    return given


def _clean(smaps: str) -> Iterator[tuple[int, int, int]]:
    """Mappings of libraries that nobody writes and of which no page was changed: start, end, resident bytes."""
    start = end = 0
    sizes: dict[str, int] = {}
    for line in (*smaps.splitlines(), "0-0 ---p"):
        if found := SIZE.match(line):
            sizes[found[1]] = int(found[2]) * 1024
        elif re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            changed = sizes.get("Private_Dirty", 1) + sizes.get("Anonymous", 1) + sizes.get("Locked", 0)
            if end and not changed and sizes.get("Rss"):
                yield start, end, sizes["Rss"]
            sizes = {}
            mapping = MAPPING.match(line)
            start, end = (int(mapping[1], 16), int(mapping[2], 16)) if mapping else (0, 0)
