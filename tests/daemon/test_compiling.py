"""Kernels are compiled in processes of their own, once, with a word about it; the daemon itself only loads them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon import compiling
from watchkeeper.daemon.compiling import compile_kernels
from watchkeeper.streams import kernelcache
from watchkeeper.streams.messages import Kind

LOG = "t,kind,id,lat,lon,alt_ft,gs_kt,trk_deg\n" + "".join(f"{t},adsb,a,50.0,8.0,3000,100,90\n" for t in range(5))
# Counts what is compiled in this process and not in others.
COUNTED = """
import sys
from numba.core import event

class Compiled(event.Listener):
    names = []
    def on_start(self, e): ...
    def on_end(self, e):
        # a CSV is read before it is known what is in it
        function = e.data["dispatcher"].py_func
        if function.__module__.startswith("watchkeeper.detectors."):
            self.names.append(function.__qualname__)

event.register("numba:compile", Compiled())
from watchkeeper.daemon.cli import main
code = main(sys.argv[1:])
print("here:", Compiled.names, "exit:", code)
"""


def run(cache: Path, *words: str, before: str = "") -> subprocess.CompletedProcess[str]:
    env = os.environ | {"XDG_CACHE_HOME": str(cache)}
    env.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", before + COUNTED, *words]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=True)


@pytest.mark.long
def test_the_first_replay_says_that_it_compiles_and_the_second_has_nothing_to_compile(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text(LOG)
    cache = tmp_path / "cache"
    first = run(cache, "replay", str(log))
    assert compiling.WORDS in first.stderr
    assert "here: [] exit: 0" in first.stdout
    assert not list(cache.rglob("*gps_imu*"))
    second = run(cache, "replay", str(log))
    assert compiling.WORDS not in second.stderr
    assert "here: [] exit: 0" in second.stdout
    # drones need more
    assert "kernels are ready" in (third := run(cache, "compile", "--kinds", "gps,imu,adsb")).stdout
    assert "here: [] exit: 0" in third.stdout
    assert compiling.WORDS not in run(cache, "compile", "--kinds", "gps,imu,adsb").stderr


@pytest.mark.long
def test_the_hurried_compiler_makes_the_same_code(tmp_path: Path) -> None:
    log = tmp_path / "log.wklog"
    run(tmp_path / "any", "simulate", "mixed", "--seconds", "90", "--out", str(log))
    told = []
    for name, change in (
        ("hurried", ""),
        ("plain", "import watchkeeper.daemon.compiling as c\nc._mark = lambda *_: None\n"),
    ):
        out = tmp_path / f"{name}.jsonl"
        done = run(tmp_path / name, "replay", str(log), "--alarms", str(out), before=change)
        # in a process of its own, or here
        assert ("here: []" in done.stdout) is (name == "hurried")
        told.append(out.read_bytes())
    assert told[0] == told[1]
    assert told[0].count(b"raised") > 5


# A kernel that every configuration needs.
ONE = "watchkeeper.detectors.alarms.debounce._update"


def test_a_compiler_that_fails_is_said_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    kernelcache.folder.cache_clear()
    monkeypatch.setattr(compiling, "_start", lambda *_: subprocess.Popen(
        [sys.executable, "-c", f"print('{ONE}'); print('{ONE}'); print('other'); raise SystemExit(3)"],
        stdout=subprocess.PIPE, text=True,
    ))  # fmt: skip
    heard: list[tuple[int, int]] = []
    try:
        assert compile_kernels(DEFAULT, [Kind.ADSB], lambda *numbers: heard.append(numbers)) == 1
    finally:
        kernelcache.folder.cache_clear()
    assert (heard[0][0], heard[-1][0]) == (0, 1)
    assert "compiled when they are called" in caplog.text
    assert not list(tmp_path.rglob("*.ready"))


def test_where_nothing_can_be_kept_nothing_is_compiled_in_advance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "folder", lambda: None)
    monkeypatch.setattr(compiling, "_start", lambda *_: pytest.fail("for whom?"))
    assert compile_kernels(DEFAULT) == 0


def test_control_groups_bound_what_the_compiler_may_take(tmp_path: Path) -> None:
    own = tmp_path / "cgroup"
    own.write_text("0::/pods/one\n")
    for group, most in (("pods/one", "max"), ("pods", "700000000")):
        (tmp_path / group).mkdir(parents=True, exist_ok=True)
        (tmp_path / group / "memory.max").write_text(most)
        (tmp_path / group / "memory.current").write_text("200000000")
    assert compiling.free_bytes(tmp_path, own) == 5e8
    assert compiling.free_bytes(tmp_path, tmp_path / "none") > 5e8


def test_the_older_kind_of_control_groups_counts_as_well(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("11:cpu,cpuacct:/small\n9:memory:/small/box\n1:name=systemd:/\n")
    for group, most in (("", "9223372036854771712"), ("small", "512000000"), ("small/box", "900000000")):
        (tmp_path / "memory" / group).mkdir(parents=True, exist_ok=True)
        (tmp_path / "memory" / group / "memory.limit_in_bytes").write_text(most)
        (tmp_path / "memory" / group / "memory.usage_in_bytes").write_text("12000000")
    assert compiling.free_bytes(tmp_path, own) == 5e8
