"""Replays with Numba's compiler off, in a process of its own. Used by test_interpreted.py.

    NUMBA_DISABLE_JIT=1 python tests/golden/interpreted.py DIR NAME…

writes the files of these replays to DIR and prints the kernels below detectors/ that none of them has called.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOMS = ("watchkeeper.detectors.", "watchkeeper.streams.geo", "watchkeeper.streams.check")


def watch_kernels() -> tuple[set[str], set[str]]:
    """Names of all kernels that are defined from now on, and of those that have been called."""
    defined: set[str] = set()
    called: set[str] = set()

    def njit(*args: Any, **options: Any) -> Any:
        def wrap(kernel: Callable[..., Any]) -> Callable[..., Any]:
            name = f"{kernel.__module__}.{kernel.__name__}"
            if name.startswith(ROOMS):
                defined.add(name)

            @functools.wraps(kernel)
            def watched(*values: Any) -> Any:
                called.add(name)
                return kernel(*values)

            return watched

        return wrap(args[0]) if args else wrap

    importlib.import_module("watchkeeper.streams.kernels").njit = njit  # type: ignore[attr-defined]
    return defined, called


def main(into: Path, names: list[str]) -> None:
    """Replay and print."""
    defined, called = watch_kernels()
    replays = importlib.import_module("golden.replays")
    for name in names:
        for file, content in replays.outputs(name).items():
            (into / file).write_bytes(content)
    print("\n".join(sorted(defined - called)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
