"""Runs in namespaces of its own, started by test_contained.py: no network but loopback, every file system read-only.

    python contained.py BIN FOLDER GROUP

BIN: programs of the image's environment. FOLDER/state: the only place to write. GROUP: a cgroup with little memory.

Starts mosquitto, then the daemon as uid 65534 without capabilities and with 512 MB, then 200 aircraft; kills the daemon
with -9 and starts it again. Prints what was seen as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

NOBODY = 65534
PAGE = "http://127.0.0.1:9108"
BROKER = "mqtt://127.0.0.1:1883"


def seal(folder: Path) -> None:
    """Everything read-only but a small file system for the state; loopback up."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    state = folder / "state"
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size=64m,uid={NOBODY},gid={NOBODY},mode=0700", "wk", state], check=True
    )
    for line in Path("/proc/mounts").read_text().splitlines():
        where, kind = line.split()[1:3]
        if (
            kind not in ("proc", "sysfs", "devpts", "mqueue", "cgroup", "cgroup2")
            and where != str(state)
            and not where.startswith("/dev")
        ):
            subprocess.run(["mount", "-o", "remount,bind,ro", where], check=False, stderr=subprocess.DEVNULL)


def confined() -> None:
    """In the child: join the group with little memory."""
    Path(sys.argv[3], "cgroup.procs").write_text("0")


def asked(path: str) -> Any:
    with urlopen(PAGE + path, timeout=5) as reply:
        return json.load(reply)


def start(programs: Path, folder: Path) -> tuple[subprocess.Popen[bytes], float]:
    """The daemon, and the seconds that it took to be ready."""
    env = {
        "PATH": f"{programs}:/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CPU_NAME": "generic",
        "NUMBA_CACHE_DIR": str(folder / "kernels"), "WATCHKEEPER_BROKER__URL": BROKER,
        "WATCHKEEPER_SINKS__STATE_DIR": str(folder / "state"), "WATCHKEEPER_SINKS__TERMINAL": "false",
    }  # fmt: skip
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
    drop += ["--inh-caps=-all", "--bounding-set=-all"]
    began = time.monotonic()
    words = [*drop, str(programs / "watchkeeper"), "run"]
    daemon = subprocess.Popen(words, env=env, cwd="/", preexec_fn=confined)  # noqa: PLW1509
    while time.monotonic() < began + 120:
        try:
            if asked("/readyz"):
                return daemon, time.monotonic() - began
        except (URLError, OSError):
            assert daemon.poll() is None, f"exit {daemon.returncode}"
        time.sleep(0.05)
    raise AssertionError("not ready within 120 s")


def peak_mb(pid: int) -> float:
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) / 1024


def conflicts() -> set[str]:
    return {alarm["id"] for alarm in asked("/api/v1/alarms?active=true&kind=conflict&limit=500")["alarms"]}


def main() -> None:
    programs, folder = Path(sys.argv[1]), Path(sys.argv[2])
    seal(folder)
    seen: dict[str, Any] = {}
    try:
        (folder / "written").write_text("x")
        seen["root"] = "writable"
    except OSError as error:
        seen["root"] = os.strerror(error.errno or 0)
    broker = subprocess.Popen(["/usr/sbin/mosquitto", "-p", "1883"], stderr=subprocess.DEVNULL)
    daemon, seen["start_s"] = start(programs, folder)
    feed = [str(programs / "watchkeeper"), "simulate", "random", "--vehicles", "200", "--seconds", "90", "--now"]
    env = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(folder / "kernels")}
    sender = subprocess.Popen([*feed, "--to-mqtt", BROKER], env=env, cwd="/", stdout=subprocess.DEVNULL)
    end = time.monotonic() + 60
    before: set[str] = set()
    while time.monotonic() < end and not before:
        time.sleep(1.0)
        before = conflicts() if asked("/api/v1/vehicles?limit=1")["total"] >= 200 else set()
    seen["vehicles"] = asked("/api/v1/vehicles?limit=1")["total"]
    time.sleep(10)
    before = conflicts()
    seen["owner"] = Path(f"/proc/{daemon.pid}").stat().st_uid
    seen["peak_mb"] = peak_mb(daemon.pid)
    daemon.send_signal(signal.SIGKILL)
    daemon.wait()
    daemon, seen["restart_s"] = start(programs, folder)
    time.sleep(5)
    after = {alarm["id"] for alarm in asked("/api/v1/alarms?limit=500")["alarms"]}
    seen["alarms_before"], seen["alarms_known_after"] = len(before), len(before & after)
    time.sleep(10)
    seen["vehicles_after"] = asked("/api/v1/vehicles?limit=1")["total"]
    seen["peak_after_mb"] = peak_mb(daemon.pid)
    daemon.terminate()
    seen["exit"] = daemon.wait(30)
    sender.kill()
    broker.terminate()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
