"""`watchkeeper` as a person types it in a shell that a test drives: some commands end only when that person ends them.

    typed.py run …             in the background; its log is also kept in a file, where the test sees that it listens
    typed.py record …          Ctrl-C once it has listened for a moment
    typed.py replay --http …   Ctrl-C after a look at the page

Everything else is passed on as it is.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from urllib.request import urlopen

LISTEN_S = 2.0
COMMAND = [sys.executable, "-m", "watchkeeper.daemon.cli"]
INTERRUPTED = 130


def main(words: list[str]) -> int:
    """The exit code of the command, or 0 for one that was ended in order."""
    if words[:1] == ["run"] and "--once" not in words:
        log = os.open(f"run-{os.getpid()}.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.dup2(log, 2)
    if words[:1] == ["record"]:
        running = subprocess.Popen(COMMAND + words)
        time.sleep(LISTEN_S)
        return _interrupt(running)
    if words[:1] == ["replay"] and "--http" in words:
        running = subprocess.Popen(COMMAND + words, stderr=subprocess.PIPE, text=True)
        assert running.stderr is not None
        for line in running.stderr:
            sys.stderr.write(line)
            if line.startswith("look at it: "):
                with urlopen(line.split()[-1], timeout=30) as page:
                    assert b"<html" in page.read()
                break
        return _interrupt(running)
    os.execv(COMMAND[0], COMMAND + words)
    raise AssertionError("not reached")


def _interrupt(running: subprocess.Popen[str] | subprocess.Popen[bytes]) -> int:
    running.send_signal(signal.SIGINT)
    running.communicate()
    return 0 if running.returncode in (0, INTERRUPTED) else running.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
