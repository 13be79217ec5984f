"""Numba without SciPy's linear algebra until a kernel needs it.

Numba imports it with its first kernel, only to see whether it is there: a tenth of a second and 17 MB in every process.
None of our kernels multiplies matrices. One of a guest that does gets it when it is compiled, as ever.
"""

# Numba's modules are half typed.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import importlib
from functools import cache
from importlib.util import find_spec
from typing import Any, NoReturn


@cache
def ask_later() -> None:
    """Before the first kernel of the process; where Numba does it in another way, nothing happens."""
    linalg: Any = importlib.import_module("numba.np.linalg")
    asks = getattr(linalg, "ensure_blas", None)
    if asks is None:
        return
    linalg.ensure_blas = _not_now
    try:
        arrays: Any = importlib.import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = asks
    if getattr(arrays, "ensure_blas", None) is _not_now:
        arrays.ensure_blas, arrays._HAVE_BLAS = asks, find_spec("scipy") is not None


def _not_now() -> NoReturn:
    raise ImportError("asked for when a kernel needs it")
