"""The image's steps by hand, then the daemon as a container would have it: `make contained`, as root, some minutes.

Without network, on read-only file systems, as uid 65534 without capabilities, with 512 MB: it starts in 5 s, holds 200
aircraft, and goes on after kill -9. A container engine adds nothing to that but the image's layers.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from where import copy_checkout

pytestmark = pytest.mark.long
START_S = 5.0
MEMORY = 512 * 2**20


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where user 65534 can read: pytest's own folders are closed to others."""
    path = Path(tempfile.mkdtemp(prefix="watchkeeper-contained-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


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


def test_contained(folder: Path, deploy: Path, group: Path) -> None:
    alone = [
        "unshare",
        "--net",
        "--mount",
        "--propagation",
        "private",
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child",
    ]
    if os.geteuid() != 0 or subprocess.run([*alone, "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs root, and a kernel that lets it make namespaces")
    python = next(p for p in ("/usr/bin/python3.11", "/usr/bin/python3", sys.executable) if Path(p).exists())
    steps = re.sub(r"\\\n\s*", "", (deploy / "Dockerfile").read_text())
    extras = re.search(r'ARG EXTRAS="([^"]*)"', steps)
    assert extras
    environment, source = folder / "environment", copy_checkout(folder / "source")
    subprocess.run([python, "-m", "venv", environment], check=True)
    pip = [environment / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--require-hashes", "-r", deploy / "requirements.lock"], check=True)
    for extra in extras[1].split():
        subprocess.run([*pip, "--require-hashes", "--no-deps", "-r", deploy / "locks" / f"{extra}.lock"], check=True)
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", source], check=True)
    kernels = {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(folder / "kernels")}
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | kernels
    subprocess.run([environment / "bin" / "watchkeeper", "compile"], env=env, cwd="/", check=True)
    subprocess.run(["chmod", "-R", "a+rX,go-w", folder / "kernels", environment], check=True)
    (folder / "state").mkdir()
    words = [*alone, sys.executable, Path(__file__).with_name("contained.py"), environment / "bin", folder, group]
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
