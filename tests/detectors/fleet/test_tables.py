"""Tables take memory where they are written, whatever large blocks the process freed before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from watchkeeper.detectors.fleet.tables import LEAST_BYTES, zeros

# A process of its own: its heap is as the program leaves it.
PROGRAM = """
import numpy as np
from pathlib import Path
from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.engine.pipeline import Pipeline

def resident():
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS"))) * 1024

Pipeline(DEFAULT)
# freed blocks of this size make the C library cut later ones from the heap
block = np.ones(31 * 1024 * 1024 // 8)
del block
before = resident()
# one after the other, each in the holes that the ones before it have left
for _ in range(6):
    pipeline = Pipeline(DEFAULT)
grown = resident() - before
assert grown < 100e6, grown
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux only")
def test_a_pipeline_that_watches_nothing_stays_small_after_large_blocks_were_freed() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("rows", [0, 3, LEAST_BYTES])
def test_it_is_an_array_of_zeros_that_can_be_written(rows: int) -> None:
    table = zeros((rows, 2), np.float32)
    assert (table.shape, table.dtype) == ((rows, 2), np.float32)
    assert not table.any()
    table[...] = 7.0
    assert (table == 7.0).all()


def test_a_forked_process_has_a_copy_of_its_own() -> None:
    table = zeros(LEAST_BYTES)
    if not (child := os.fork()):
        table[0] = 1.0
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert table[0] == 0.0
