"""The compiler's processes: everything that is needed into the cache, a line of output for each kernel.

    python -m watchkeeper.daemon.compiler PROCESSES KINDS OFF      see compiling.py, which starts it

The second process is a fork of the first, with everything imported and Numba at work. Each goes through all that is
needed, in another order; where one comes to a kernel that the other is at, it waits for it. No garbage is collected,
because both end soon, and at the end nothing is taken apart, which takes as long as a tenth of the work; Numba leaves
out work that need not be done (haste/). Should one fail, kernels are compiled elsewhere when they are called.
"""

from __future__ import annotations

import gc
import math
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numba.core import event

from watchkeeper.config.loader import load
from watchkeeper.config.schema import Config
from watchkeeper.daemon.compiling import free_bytes, name_of
from watchkeeper.daemon.haste import hurry
from watchkeeper.detectors.engine.warmup import KINDS, heavy_kernels, warm_up
from watchkeeper.streams.batch import F8
from watchkeeper.streams.codec import decode
from watchkeeper.streams.kernelcache import KernelCache
from watchkeeper.streams.kernels import njit
from watchkeeper.streams.messages import KIND_OF_WORD

# With less memory garbage is collected.
HASTY_BYTES = 1.2e9


def main(arguments: Sequence[str]) -> int:
    """How many processes, kinds of samples, and detectors that are off."""
    processes, words, off = arguments
    # who started us has been asked to stop, too, and says what is to be said
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if free_bytes() > HASTY_BYTES:
        gc.disable()
    event.register("numba:compile", _Progress())  # type: ignore[no-untyped-call]
    hurry()
    kinds = [KIND_OF_WORD[word] for word in words.split(",")]
    config = _without(off.split(","))
    _common(np.zeros(1), 1)
    other = os.fork() if int(processes) > 1 else None
    heavy = heavy_kernels(config, kinds)
    longest_first = list(chain.from_iterable(heavy.values()))
    if other == 0:
        if KINDS.issubset(kinds):
            # recorded logs hold columns: only a daemon, which takes everything, decodes messages
            decode.warm_up()
        # from the other end: what takes longest is the first one's, and so is what nobody has come to
        warm_up(_without([*off.split(","), *heavy]), kinds)
        longest_first.reverse()
    for call in longest_first:
        call()
    if other == 0:
        return 0
    warm_up(config, kinds)
    return os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]) if other else 0


@njit
def _common(values: F8, n: int) -> float:
    """What nearly every kernel needs of Numba: made ready before there are two who would do so."""
    rows, more, flags = np.zeros(n), np.empty(n), np.zeros(n, np.bool_)
    for i in range(n):
        rows[i] = more[i] = max(min(values[i], 1.0), math.sqrt(2.0))
        flags[i] = math.isnan(rows[i])
    found: float = max(min(n, 1), int(np.ceil(rows[0]))) + abs(more[0])
    return found


def _without(names: Iterable[str]) -> Config:
    return load(None, env={}, overrides={"detectors": {name: {"enabled": False} for name in names if name}})


class _Progress(event.Listener):
    def on_start(self, event: Any) -> None:
        """One begins."""

    def on_end(self, event: Any) -> None:
        """One is done."""
        dispatcher = event.data["dispatcher"]
        if isinstance(dispatcher._cache, KernelCache):
            try:
                print(name_of(dispatcher), flush=True)
            except BrokenPipeError:
                # nobody waits for the rest: the process that asked is gone
                os._exit(1)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)
