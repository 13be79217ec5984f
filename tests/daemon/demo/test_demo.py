"""`watchkeeper demo` as a user starts it, in a pipe."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from waiting import PATIENCE_S, wait_for

from watchkeeper.daemon.demo.demo import Tally


def start(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "watchkeeper.daemon.cli", "demo", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_short_demo_shows_the_addresses_and_ends_by_itself(tmp_path: Path) -> None:
    process = start("--seconds", "3", "--port", "0", "--state-dir", str(tmp_path))
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err
    assert re.search(r"broker +mqtt://127\.0\.0\.1:\d+", out)
    assert re.search(r"look +http://127\.0\.0\.1:\d+/\n", out)
    assert re.search(r"metrics +http://127\.0\.0\.1:\d+/metrics", out)
    assert re.search(r"conflict +raised +\d+ +cleared +\d+", out)
    assert "Traceback" not in err
    assert (tmp_path / "snapshot.msgpack").exists()


def is_ready(url: str) -> bool:
    """Its address is said before it has compiled."""
    with suppress(HTTPError), urlopen(url + "/readyz", timeout=PATIENCE_S) as answer:
        return bool(json.load(answer)["ready"])
    return False


def test_ctrl_c_ends_it_cleanly_while_its_pages_answer() -> None:
    process = start("--port", "0")
    assert process.stdout is not None
    url = ""
    for line in process.stdout:
        if found := re.search(r"(http://\S+)/readyz", line):
            url = found[1]
            break
    assert wait_for(lambda: is_ready(url))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert "Traceback" not in err
    assert "alarms:" in out


def test_the_verdict_wants_each_kind_raised_and_cleared() -> None:
    events = {(kind, "raised"): 1 for kind in ("conflict", "gps_imu", "silence")}
    tally = Tally({**events, ("conflict", "cleared"): 1, ("gps_imu", "updated"): 1})
    assert tally.missing() == ["gps_imu", "silence"]


@pytest.mark.long
def test_a_minute_of_the_demo_proves_itself() -> None:
    process = start("--seconds", "60", "--port", "0")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err
