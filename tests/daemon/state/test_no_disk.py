"""The daemon as a process on a real disk that is full, read-only, deleted or mounted over: alarms are heard.

Needs the right to mount; skipped with words where there is none.
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
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from waiting import PATIENCE_S

from watchkeeper.daemon.outputs.journal import Journal

pytestmark = pytest.mark.long

CONFIG = """
[broker]
url = "{url}"
client_id = "{name}"
reconnect_min_s = 0.05
[time]
lateness_s = 0
idle_timeout_s = 3600
[http]
port = 0
[fleet]
max_vehicles = 20
[detectors.conflict]
max_pairs = 100
[detectors.silence]
factor = 2
min_silence_s = 3
[detectors.watch]
enabled = false
[diagnosis]
enabled = false
[sinks]
terminal = false
state_dir = "{state_dir}"
snapshot_s = 1
"""


def mount(*words: str | Path) -> None:
    done = subprocess.run(["mount", *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount: {done.stderr.strip()}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """An empty disk of 4 MB."""
    path = tmp_path / "disk"
    path.mkdir()
    mount("-t", "tmpfs", "-o", "size=4m,mode=0700", "none", path)
    yield path
    subprocess.run(["umount", "-l", path], check=False)


class World:
    """One daemon with its state on a disk, and somebody who listens."""

    def __init__(self, config: Path, state: Path, daemon: Any, listener: Any, wait_for: Any) -> None:
        self.state, self.listener, self.wait_for = state, listener, wait_for
        self._config, self._daemon = config, daemon
        self.t = 100
        self.start()

    def start(self) -> None:
        self.process = self._daemon(self._config)
        self.wait_for(lambda: "connected to the broker" in self.process.log or self.process.process.poll() is not None)
        assert self.process.process.poll() is None, self.process.log

    def readyz(self) -> tuple[bool, list[str]]:
        url = self.process.log.rpartition("url=http://")[2].split()[0]
        try:
            with urlopen(f"http://{url}/readyz", timeout=PATIENCE_S) as page:
                answer = json.loads(page.read())
        except HTTPError as error:
            answer = json.loads(error.read())
        return answer["ready"], answer["reasons"]

    def story(self) -> None:
        """A drone falls silent and speaks again; both is heard."""
        raised, cleared = len(self.listener.alarms("raised")), len(self.listener.alarms("cleared"))
        self.listener.fixes("quiet busy", self.t, self.t + 5)
        self.listener.fixes("busy", self.t + 6, self.t + 15)
        self.wait_for(lambda: len(self.listener.alarms("raised")) > raised)
        self.listener.fixes("quiet busy", self.t + 16, self.t + 22)
        self.wait_for(lambda: len(self.listener.alarms("cleared")) > cleared)
        self.t += 23

    def raise_one(self) -> str:
        """The id of an alarm that stays."""
        raised = len(self.listener.alarms("raised"))
        self.listener.fixes("quiet busy", self.t, self.t + 5)
        self.listener.fixes("busy", self.t + 6, self.t + 15)
        self.t += 16
        return self.wait_for(lambda: self.listener.alarms("raised")[raised:])[0]["id"]

    def not_ready(self, words: str) -> None:
        self.wait_for(lambda: any(words in reason for reason in self.readyz()[1]))

    def well(self) -> None:
        self.wait_for(lambda: self.readyz()[0])

    def keeps(self, *alarms: str) -> None:
        """The journal is whole, and has as active what the broker shows: these alarms among them."""
        self.process.end()
        past = Journal(self.state, fsync=False).past
        assert past.notes == []
        active = {event.id for event in past.active}
        assert active == {alarm["id"] for alarm in self.listener.retained().values()}
        assert active >= set(alarms)


@pytest.fixture
def world(tmp_path: Path, broker: Any, daemon: Any, listener: Any, wait_for: Any) -> Callable[[Path], World]:
    def make(state: Path) -> World:
        config = tmp_path / "wk.toml"
        config.write_text(CONFIG.format(url=broker.url, name=tmp_path.name, state_dir=state))
        return World(config, state, daemon, listener, wait_for)

    return make


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"0" * 4096)
    with suppress(OSError), filler.open("ab", buffering=0) as file:
        while True:
            file.write(b"0")
    return filler


def test_a_full_disk(disk: Path, world: Callable[[Path], World]) -> None:
    one = world(disk / "state")
    one.well()
    one.story()
    filler = fill(disk)
    # until the last block of the journal is full too
    while not one.process.figure("watchkeeper_journal_errors_total"):
        one.story()
    one.story()
    alarm = one.raise_one()
    one.not_ready("journal not written: No space left on device")
    filler.unlink()
    one.well()
    one.keeps(alarm)


def test_a_start_on_a_full_disk(disk: Path, world: Callable[[Path], World]) -> None:
    one = world(disk / "state")
    alarm = one.raise_one()
    one.process.end()
    filler = fill(disk)
    one.start()
    one.not_ready("No space left on device")
    assert one.listener.retained()["watchkeeper/alarm/silence/quiet"]["id"] == alarm
    one.listener.fixes("quiet busy", one.t, one.t + 6)
    one.wait_for(lambda: one.listener.alarms("cleared"))
    filler.unlink()
    one.well()
    one.keeps()


def test_a_start_on_a_disk_that_is_read_only(disk: Path, world: Callable[[Path], World]) -> None:
    one = world(disk / "state")
    alarm = one.raise_one()
    one.process.end()
    mount("-o", "remount,ro", disk)
    one.start()
    one.not_ready("Read-only file system")
    # what is on it is read all the same
    assert one.listener.retained()["watchkeeper/alarm/silence/quiet"]["id"] == alarm
    one.listener.fixes("quiet busy", one.t, one.t + 6)
    one.t += 7
    assert [e["id"] for e in one.wait_for(lambda: one.listener.alarms("cleared"))] == [alarm]
    one.story()
    mount("-o", "remount,rw", disk)
    one.well()
    one.keeps()


def test_a_disk_that_fails_and_turns_read_only(tmp_path: Path, world: Callable[[Path], World]) -> None:
    image, disk = tmp_path / "image", tmp_path / "disk"
    disk.mkdir()
    image.write_bytes(b"")
    os.truncate(image, 16 << 20)
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("no mkfs.ext4")
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    mount("-o", "loop,errors=remount-ro", image, disk)
    try:
        one = world(disk / "state")
        one.well()
        old = one.raise_one()
        device = subprocess.run(
            ["findmnt", "-no", "SOURCE", disk], capture_output=True, text=True, check=True
        ).stdout.strip()
        trigger = Path("/sys/fs/ext4") / Path(device).name / "trigger_fs_error"
        if not trigger.exists():
            pytest.skip("this kernel cannot let a file system fail")
        trigger.write_text("1")
        one.listener.fixes("quiet busy", one.t, one.t + 6)
        one.t += 7
        one.wait_for(lambda: [e for e in one.listener.alarms("cleared") if e["id"] == old])
        one.not_ready("ead-only file system")
        alarm = one.raise_one()
        # somebody mends it, and mounts it in its place
        subprocess.run(["umount", "-l", disk], check=True)
        mount("-t", "tmpfs", "-o", "size=4m,mode=0700", "none", disk)
        one.well()
        assert one.listener.retained()["watchkeeper/alarm/silence/quiet"]["id"] == alarm
        one.keeps(alarm)
    finally:
        subprocess.run(["umount", "-l", disk], check=False, capture_output=True)
        subprocess.run(["umount", "-l", disk], check=False, capture_output=True)


def test_a_directory_that_is_deleted(tmp_path: Path, world: Callable[[Path], World]) -> None:
    one = world(tmp_path / "state")
    alarm = one.raise_one()
    shutil.rmtree(one.state)
    one.wait_for(lambda: (one.state / "snapshot.msgpack").exists() and (one.state / "journal.sent").exists())
    assert one.process.figure("watchkeeper_state_returns_total") == 1
    one.well()
    one.keeps(alarm)


def test_a_disk_that_is_mounted_late_with_the_state_of_an_earlier_run_on_it(
    tmp_path: Path, world: Callable[[Path], World]
) -> None:
    store, place = tmp_path / "store", tmp_path / "place"
    for path in (store, place):
        path.mkdir(mode=0o700)
    mount("--bind", store, place)
    try:
        one = world(place / "state")
        old = one.raise_one()
        one.process.end(signal.SIGKILL)
        subprocess.run(["umount", place], check=True)
        # nobody noticed that the disk is not there
        one.start()
        one.well()
        one.story()
        mount("--bind", store, place)
        # nobody follows that alarm any more, and it is not kept for ever
        one.wait_for(lambda: [e for e in one.listener.alarms("cleared") if e["id"] == old])
        one.wait_for(lambda: "watchkeeper/alarm/silence/quiet" not in one.listener.retained())
        alarm = one.raise_one()
        one.well()
        one.keeps(alarm)
    finally:
        subprocess.run(["umount", "-l", place], check=False, capture_output=True)
