"""Numba's `njit` with a cache of our own, see kernelcache.py. Every kernel takes its decorator from here.

With NUMBA_DISABLE_JIT=1 nothing is compiled: kernels are plain Python, to step through and to measure coverage of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import numba
import numpy as np

from watchkeeper.streams.kernelcache import KernelCache

__all__ = ["njit"]

_INTERPRETED = bool(numba.config.DISABLE_JIT)  # type: ignore[attr-defined]
if _INTERPRETED:
    # compiled arithmetic goes on without a word where NumPy's scalars warn of infinities and NaN
    np.seterr(all="ignore")


F = TypeVar("F", bound=Callable[..., Any])


@overload
def njit(function: F) -> F: ...
@overload
def njit(*, cache: bool = False, **options: Any) -> Callable[[F], F]: ...
def njit(function: F | None = None, *, cache: bool = False, **options: Any) -> F | Callable[[F], F]:
    """Compile a function when it is first called; `cache`: keep what was compiled. Options are Numba's."""

    def decorate(function: F) -> F:
        made: Any = numba.njit(**options)(function)
        if cache and not _INTERPRETED:
            made._cache = KernelCache(made)
        return made  # type: ignore[no-any-return]

    return decorate if function is None else decorate(function)
