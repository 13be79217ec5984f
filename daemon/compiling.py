"""Compiles kernels before they are called: in processes of their own, on all cores, and says so meanwhile.

    compile_kernels(config)     returns when every kernel that this configuration needs is on disk

The compiler is large and slow. In processes of its own it leaves no garbage in the daemon, two of them share the work,
and what they have done is there for the next start (streams/kernelcache.py).

Where nothing can be kept, or a process fails, nothing is lost: kernels are compiled when they are called.
"""

from __future__ import annotations

import logging
import os
import platform
import resource
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from threading import Thread
from typing import Any

import llvmlite.binding as llvm
from numba.core.dispatcher import Dispatcher

from watchkeeper.config.guests import section_of
from watchkeeper.config.schema import Config
from watchkeeper.daemon.collector import keep_what_exists, paused
from watchkeeper.daemon.logs import kv
from watchkeeper.detectors.catalog import REGISTRY
from watchkeeper.detectors.engine.warmup import KINDS, warm_up
from watchkeeper.streams.kernelcache import KernelCache, digest_of, folder, forget_unused
from watchkeeper.streams.messages import Kind

log = logging.getLogger(__name__)

WORKERS_MAX = 2
LOOK_S = 0.05
# What a process of the compiler needs.
WORKER_BYTES = 700e6

# Files of a control group that say how much memory it may have and has, by version.
V1, V2 = ("memory.limit_in_bytes", "memory.usage_in_bytes"), ("memory.max", "memory.current")

WORDS = "compiling, once per version"

Said = Callable[[int, int], None]


def compile_kernels(config: Config, kinds: Collection[Kind] = KINDS, said: Said = lambda _done, _most: None) -> int:
    """Compile what is needed for samples of these kinds; how many kernels were. `said` hears how many there are so far.

    The second number that it hears is that of all kernels; not every input needs them all.
    """
    off = [name for name in REGISTRY if not getattr(section_of(config, "detectors", name), "enabled", True)]
    mark = _mark(off, kinds)
    if mark is None or mark.exists():
        return 0
    began, wanted, names = time.monotonic(), set(map(name_of, _kernels())), deque[str]()
    most = len(wanted)
    said(0, most)
    try:
        compiler = _start(_workers(), kinds, off)
    except OSError as error:
        log.warning("kernels are compiled when they are called", extra=kv(compiler=error))
        return 0
    reader = Thread(target=_read, args=(compiler, names), daemon=True)
    reader.start()
    done, running = 0, True
    while running:
        reader.join(LOOK_S)
        # what came before the end is counted, too
        running = reader.is_alive()
        # each process names what it compiles and what it finds
        if (now := len(wanted.intersection(names))) > done:
            done = now
            said(done, most)
    if code := compiler.wait():
        log.warning("kernels are compiled when they are called", extra=kv(compiler=f"exit {code}"))
        return done
    forget_unused()
    with suppress(OSError):
        mark.touch(mode=0o600)
    log.info("kernels compiled", extra=kv(kernels=done, seconds=round(time.monotonic() - began, 1)))
    return done


def prepare(config: Config, kinds: Collection[Kind] = KINDS) -> None:
    """Have all kernels ready that this process will call, and say on standard error what takes so long."""
    terminal = sys.stderr.isatty()

    def said(done: int, most: int) -> None:
        if terminal:
            print(f"\r{WORDS}: {done} of at most {most}", end="", file=sys.stderr, flush=True)
        elif not done:
            print(WORDS, file=sys.stderr, flush=True)

    if compile_kernels(config, kinds, said) and terminal:
        print(file=sys.stderr)
    with paused():
        warm_up(config, kinds)
    keep_what_exists()


def _kernels() -> list[Any]:
    """The kernels of the pipeline, the detectors and the codec; others, which they call, are in their digests."""
    parts = [f"watchkeeper.detectors.{part}" for part in ("engine", "fleet", "alarms", "coverage", "incidents")]
    places = (
        "watchkeeper.streams.codec",
        *parts,
        *(detector.__module__.rpartition(".")[0] for detector in REGISTRY.values()),
    )
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(places)]
    found: set[Any] = {value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)}
    return [kernel for kernel in found if isinstance(kernel._cache, KernelCache)]


def name_of(kernel: Any) -> str:
    """The name of a kernel in the compiler's output."""
    return f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"


def _mark(off: Sequence[str], kinds: Collection[Kind]) -> Path | None:
    """The file that says that everything is there; None: nothing can be kept."""
    path = folder()
    if path is None or not os.access(path, os.W_OK):
        return None
    parts = [*sorted(map(digest_of, _kernels())), *off, *sorted(kind.word for kind in kinds)]
    parts += [platform.machine(), llvm.get_host_cpu_name(), platform.python_version()]
    parts += [os.environ.get(name, "") for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")]
    return path / f"{blake2b(' '.join(parts).encode(), digest_size=10).hexdigest()}.ready"


def _workers() -> int:
    return max(1, min(WORKERS_MAX, len(os.sched_getaffinity(0)), int(free_bytes() / WORKER_BYTES)))


def free_bytes(cgroups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> float:
    """Memory that a process may still have, by the machine, by its control groups and by its own limit."""
    free = [float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))]
    with suppress(OSError, ValueError, StopIteration):
        # what only files are kept in is free as well
        found = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))
        free = [1024.0 * int(found.split()[1])]
    with suppress(OSError, ValueError):
        for line in own.read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            # version 2 has one line, 0::/path; version 1 has one for each controller, 9:memory:/path
            root, names = (cgroups, V2) if not controllers else (cgroups / controllers, V1)
            if names is V2 or "memory" in controllers.split(","):
                free += _left(root / group.lstrip("/"), *names)
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return min(free) if limit == resource.RLIM_INFINITY else min(*free, limit)


def _left(path: Path, most: str, used: str) -> Iterator[float]:
    """What a control group and those around it leave."""
    for group in (path, *path.parents):
        with suppress(OSError, ValueError):
            yield float(int((group / most).read_text()) - int((group / used).read_text()))


def _start(processes: int, kinds: Collection[Kind], off: Sequence[str]) -> subprocess.Popen[str]:
    words = ",".join(sorted(kind.word for kind in kinds))
    command = [sys.executable, "-m", "watchkeeper.daemon.compiler", str(processes), words, ",".join(off)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)


def _read(compiler: subprocess.Popen[str], names: deque[str]) -> None:
    assert compiler.stdout is not None
    for line in compiler.stdout:
        names.append(line.rstrip())
