"""The image's steps by hand, then the daemon as a container would have it: `make contained`, as root, some minutes.

Without network, on read-only file systems, as uid 65534 without capabilities, with 512 MB: it starts in 5 s, holds 200
aircraft, and goes on after kill -9. A container engine adds nothing to that but the image's layers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.long
START_S = 5.0
MEMORY = 512 * 2**20


@pytest.fixture
def group() -> Iterator[Path]:
    """A group below our own whose processes have 512 MB together; swap is not counted."""
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    old = next((path for _, kinds, path in lines if "memory" in kinds.split(",")), None)
    own = Path(f"/sys/fs/cgroup/memory{old}") if old else Path(f"/sys/fs/cgroup{lines[-1][2]}")
    made = own / f"watchkeeper-{os.getpid()}"
    try:
        made.mkdir()
        (made / ("memory.limit_in_bytes" if old else "memory.max")).write_text(str(MEMORY))
    except OSError as error:
        pytest.skip(f"memory cannot be limited here: {error}")
    yield made
    made.rmdir()


def test_contained(image: Path, group: Path, alone: Callable[..., list[str]]) -> None:
    start = alone("--net", "--mount", "--propagation", "private", "--pid", "--mount-proc")
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    words = [*start, sys.executable, Path(__file__).with_name("contained.py"), image / "environment/bin", image, group]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    print(f"\n{seen}")
    assert seen["root"] == "Read-only file system"
    assert seen["owner"] == 65534
    assert seen["start_s"] < START_S
    assert seen["restart_s"] < START_S
    assert seen["vehicles"] >= 200
    assert seen["vehicles_after"] >= 200
    assert seen["peak_mb"] < 512
    assert seen["peak_after_mb"] < 512
    assert seen["alarms_known_after"] == seen["alarms_before"] > 0
    assert seen["exit"] == 0
