"""SciPy's linear algebra is not loaded by kernels that do without it, and is there for one that needs it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import numba
import numpy as np
from watchkeeper.streams.geo import ecef_many

ecef_many(np.zeros(1), np.zeros(1))
assert "scipy.linalg" not in sys.modules, "loaded for nothing"

@numba.njit
def product(a, b):
    return np.dot(a, b), np.convolve(a[0], b[0])

a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
found, folded = product(a, b)
assert (found == a @ b).all()
assert np.allclose(folded, np.convolve(a[0], b[0]))
assert "scipy.linalg" in sys.modules
"""


def test_linear_algebra_is_loaded_by_the_first_kernel_that_needs_it() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
