"""The unit of deploy/systemd, as it is, started by a real systemd: part of `make parts`, as root, some minutes.

systemd is PID 1 in namespaces of its own (processes, mounts, network, cgroups) and knows our unit only. /etc, /opt,
/var/lib and /var/cache are copies or empty there: nothing of this machine's is changed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

pytestmark = pytest.mark.long

UNIT = "watchkeeper.service"
# What a booting machine has and the unit asks for: nothing that does anything.
TARGETS = ("basic", "sysinit", "shutdown", "multi-user", "network-online")
BOOT = """
set -e
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
cp -a /etc /run/etc
mount --bind /run/etc /etc
if [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; then
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
else
  mount -t tmpfs tmpfs /sys/fs/cgroup
  mkdir /sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
fi
for folder in /opt /var/lib /var/cache; do mount -t tmpfs tmpfs $folder; done
mkdir -p /opt/watchkeeper /opt/kernels /run/units /etc/watchkeeper
mount --bind "$1/environment" /opt/watchkeeper
mount --bind "$1/kernels" /opt/kernels
sed "1s|^#!.*|#!/opt/watchkeeper/bin/python3|" "$1/environment/bin/watchkeeper" > /run/program
chmod 755 /run/program
mount --bind /run/program /opt/watchkeeper/bin/watchkeeper
cp "$2"/* /run/units/
cp "$3" /etc/watchkeeper/watchkeeper.toml
printf 'NUMBA_CPU_NAME=generic\\nNUMBA_CACHE_DIR=/opt/kernels\\n' > /etc/watchkeeper/environment
ip link set lo up
export container=other SYSTEMD_UNIT_PATH=/run/units
exec /lib/systemd/systemd --system --unit=multi-user.target --log-target=null --show-status=0
"""


class Machine:
    """A systemd of its own, by the number that its PID 1 has outside."""

    def __init__(self, pid: int) -> None:
        self._inside = ("nsenter", "-t", str(pid), "-a")

    def do(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self._inside, *words], capture_output=True, text=True, check=False)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self._inside, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def shown(self) -> dict[str, str]:
        """What systemd knows of the unit."""
        lines = self.do("systemctl", "show", UNIT).stdout.splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def asked(self, path: str) -> Any:
        """The answer of the page, or nothing yet."""
        code = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:9108{path}', timeout=5).read().decode())"
        done = self.do("/usr/bin/python3", "-c", code)
        return json.loads(done.stdout) if done.returncode == 0 else None


def groups() -> list[Path]:
    """A group below ours in each hierarchy, so that what systemd makes can be found and removed."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    made = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, kinds, path = line.split(":", 2)
        at = [m[1] for m in mounts if (m[2] == "cgroup2" if not kinds else m[2] == "cgroup" and kinds in m[3])]
        made += [Path(f"{at[0]}{path}") / f"watchkeeper-systemd-{os.getpid()}"] if at else []
    for group in made:
        group.mkdir()
    return made


def removed(group: Path) -> bool:
    """Whether a group and what systemd made in it are gone: processes take a moment to end."""
    try:
        for each in sorted(group.rglob("*/"), reverse=True):
            each.rmdir()
        group.rmdir()
    except OSError:
        return not group.exists()
    return True


@pytest.fixture
def machine(deploy: Path, image: Path, alone: Callable[..., list[str]], tmp_path: Path) -> Iterator[Machine]:
    if not Path("/lib/systemd/systemd").exists() or not shutil.which("nsenter"):
        pytest.skip("systemd is not installed: apt install systemd")
    start = alone("--pid", "--mount", "--net", "--uts", "--ipc", "--cgroup")
    units = tmp_path / "units"
    units.mkdir()
    shutil.copy(deploy / "systemd" / UNIT, units)
    for name in TARGETS:
        (units / f"{name}.target").write_text("[Unit]\nDefaultDependencies=no\n")
    config = tmp_path / "watchkeeper.toml"
    config.write_text('[broker]\nurl = "mqtt://127.0.0.1:1883"\n')
    made = groups()

    def join() -> None:
        for group in made:
            # not every hierarchy lets a process in; systemd then uses the others
            with suppress(OSError):
                (group / "cgroup.procs").write_text("0")

    words = [*start, "bash", "-c", BOOT, "boot", image, units, config]
    outer = subprocess.Popen(words, preexec_fn=join, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)  # noqa: PLW1509
    try:
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
        found = Machine(int(wait_for(lambda: children.read_text().split() if outer.poll() is None else ["0"])[0]))
        wait_for(lambda: outer.poll() is not None or "running" in found.do("systemctl", "is-system-running").stdout)
        assert outer.poll() is None, outer.stderr.read().decode() if outer.stderr else ""
        yield found
    finally:
        outer.kill()
        outer.wait()
        for group in made:
            wait_for(lambda group=group: removed(group))  # type: ignore[misc]


def test_the_unit_starts_reloads_recovers_and_refuses(machine: Machine) -> None:
    broker = machine.start("/usr/sbin/mosquitto", "-p", "1883")
    try:
        check_start_and_reload(machine)
        check_recovery(machine)
        check_end(machine)
        check_refusal(machine)
    finally:
        broker.kill()
        broker.wait()


def check_start_and_reload(machine: Machine) -> None:
    """`systemctl start` returns when the daemon watches; the process has what the unit grants, and no more."""
    started = machine.do("systemctl", "start", UNIT)
    assert started.returncode == 0, machine.do("systemctl", "status", UNIT).stdout
    assert machine.shown()["ActiveState"] == "active"
    assert wait_for(lambda: machine.asked("/readyz"))
    wait_for(lambda: machine.shown()["StatusText"].startswith("watching"))
    pid = machine.shown()["MainPID"]
    status = dict(line.split(":\t", 1) for line in machine.do("cat", f"/proc/{pid}/status").stdout.splitlines())
    assert 61184 <= int(status["Uid"].split()[0]) <= 65519, "systemd's range for users that exist while they run"
    assert (int(status["CapEff"], 16), status["NoNewPrivs"], status["Seccomp"]) == (0, "1", "2")
    mounts = machine.do("cat", f"/proc/{pid}/mounts").stdout.splitlines()
    assert [line.split()[3].split(",")[0] for line in mounts if line.split()[1] == "/"][-1] == "ro"
    assert machine.do("ls", "/var/lib/private/watchkeeper").stdout.split()
    assert machine.do("systemctl", "reload", UNIT).returncode == 0
    assert machine.shown()["MainPID"] == pid


def check_recovery(machine: Machine) -> None:
    """After kill -9, and when nothing beats any more."""
    for signalled, result in ((signal.SIGKILL, "signal"), (signal.SIGSTOP, "watchdog")):
        before = machine.shown()
        machine.do("kill", f"-{int(signalled)}", before["MainPID"])
        print(f"\n{signalled.name}: expects a restart because of {result}")
        wait_for(lambda before=before: int(machine.shown()["NRestarts"]) > int(before["NRestarts"]))  # type: ignore[misc]
        assert wait_for(lambda: machine.shown()["ActiveState"] == "active" and machine.asked("/readyz"))
        assert machine.shown()["MainPID"] != before["MainPID"]


def check_end(machine: Machine) -> None:
    assert machine.do("systemctl", "stop", UNIT).returncode == 0
    shown = machine.shown()
    assert (shown["ActiveState"], shown["Result"], shown["ExecMainStatus"]) == ("inactive", "success", "0")


def check_refusal(machine: Machine) -> None:
    """A bad configuration is tried once: RestartSec is 2 s, so a second try would be seen."""
    machine.do("sh", "-c", "printf '[time]\\ntick_s = -1\\n' > /etc/watchkeeper/watchkeeper.toml")
    assert machine.do("systemctl", "start", UNIT).returncode != 0
    assert wait_for(lambda: machine.shown()["ActiveState"] == "failed")
    machine.do("sleep", "5")
    shown = machine.shown()
    assert (shown["ActiveState"], shown["ExecMainStatus"], shown["NRestarts"]) == ("failed", "78", "0")
