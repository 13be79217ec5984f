"""Memory that only the start needed: given back, and what was given back still works."""

from __future__ import annotations

import subprocess
import sys

import pytest

from watchkeeper.daemon import footprint

SMAPS = """\
7f00-7f10 r-xp 00000000 08:01 77 /usr/lib/libclean.so.1.2
Rss:                  12 kB
Private_Dirty:         0 kB
Anonymous:             0 kB
Locked:                0 kB
VmFlags: rd ex mr mw me
7f10-7f20 r--p 00001000 08:01 77 /usr/lib/librelocated.so
Rss:                  12 kB
Private_Dirty:         4 kB
Anonymous:             4 kB
7f20-7f30 rw-p 00001000 08:01 77 /usr/lib/libwritten.so
Rss:                  12 kB
Private_Dirty:         0 kB
Anonymous:             0 kB
7f30-7f40 r--p 00001000 08:01 77 /var/cache/a file.dat
Rss:                  12 kB
Private_Dirty:         0 kB
Anonymous:             0 kB
7f40-7f50 r--p 00001000 00:00 0
Rss:                  12 kB
Private_Dirty:         0 kB
Anonymous:             0 kB
7f50-7f60 r--p 00001000 08:01 77 /usr/lib/libempty.so
Rss:                   0 kB
Private_Dirty:         0 kB
Anonymous:             0 kB
7f60-7f80 r--p 00001000 08:01 78 /opt/a b/last.cpython-311-x86_64-linux-gnu.so
Rss:                   8 kB
Private_Dirty:         0 kB
Anonymous:             0 kB
"""
# A process of its own: what it gives back is its own.
PROGRAM = """
from watchkeeper.daemon.footprint import give_back, map_large_blocks
map_large_blocks()
import numpy as np, numba
def resident():
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS"))) * 1024
add = numba.njit(lambda a: a + 1)
assert add(1) == 2
before = resident()
given = give_back()
assert given > 20e6, given
assert resident() < before - 0.8 * given, (resident(), before, given)
mul = numba.njit(lambda a: a * 3.0)
assert (add(2), mul(2.0), np.linalg.inv(np.eye(3)).trace()) == (3, 6.0, 3.0)
# large blocks that come and go must not make the next one a part of the heap
for _ in range(3):
    block = np.ones(2_000_000)
    del block
before = resident()
tables = [np.zeros(1_000_000) for _ in range(10)]
assert resident() < before + 8e6
"""


def test_only_clean_pages_of_libraries_are_given_back() -> None:
    assert list(footprint._clean(SMAPS)) == [(0x7F00, 0x7F10, 12 * 1024), (0x7F60, 0x7F80, 8 * 1024)]


@pytest.mark.skipif(not footprint.SMAPS.exists(), reason="Linux only")
def test_what_is_given_back_comes_again_when_it_is_needed() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_where_there_is_no_such_thing_nothing_happens(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(footprint, "SMAPS", tmp_path / "none")
    assert footprint.give_back() == 0
