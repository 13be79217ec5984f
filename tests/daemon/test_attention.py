"""What an operator has acknowledged or shelved stays so when the daemon is killed the moment it has said yes."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from waiting import PATIENCE_S

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
max_vehicles = 100
[detectors.silence]
factor = 2
min_silence_s = 3
[detectors.watch]
enabled = false
[diagnosis]
enabled = false
[sinks]
state_dir = "{state_dir}"
snapshot_s = 3600
terminal = false
[history]
enabled = {history}
"""


@pytest.fixture
def watching(tmp_path: Path, broker: Any, daemon: Any, wait_for: Any) -> Callable[[bool], Any]:
    path = tmp_path / "watch.toml"

    def start(history: bool) -> Any:
        text = CONFIG.format(
            url=broker.url, name=tmp_path.name, state_dir=tmp_path / "state", history=str(history).lower()
        )
        path.write_text(text)
        running = daemon(path)
        wait_for(lambda: "url=" in running.log and running.figure("watchkeeper_ready ") == 1.0)
        return running

    return start


def ask(running: Any, path: str, body: Any = None, method: str | None = None) -> Any:
    url = running.log.partition("url=")[2].split()[0]
    data = json.dumps(body).encode() if body is not None else None
    request = Request(f"{url}/api/v1{path}", data, {"Content-Type": "application/json"}, method=method)
    with urlopen(request, timeout=PATIENCE_S) as answer:
        return json.loads(answer.read() or b"null")


def hear(listener: Any, drones: str, first_t: int, last_t: int, *, turned: bool = False) -> None:
    """Drones that stand still and two aircraft that meet, second by second."""
    for t in range(first_t, last_t + 1):
        listener.aircraft(t, t, turned=turned)
        listener.fixes(drones, t, t)


@pytest.mark.parametrize("history", [True, False])
def test_acknowledged_and_shelved_alarms_stay_so_after_kill_9(
    watching: Any, listener: Any, wait_for: Any, history: bool
) -> None:
    first = watching(history)
    hear(listener, "drone", 1000, 1005)
    hear(listener, "", 1006, 1015)
    wait_for(lambda: len(listener.alarms("raised")) == 2)
    one, two = (next(a["id"] for a in listener.alarms("raised") if a["kind"] == k) for k in ("silence", "conflict"))
    given = ask(first, f"/alarms/{one}/acknowledge", {"by": "tower"})
    taken_down = ask(first, "/shelves", {"minutes": 60, "vehicle": "busy"})
    ask(first, f"/shelves/{taken_down['id']}", method="DELETE")
    shelf = ask(first, f"/alarms/{two}/shelve", {"minutes": 60, "what": "alarm", "reason": "parked", "by": "tower"})
    first.end(signal.SIGKILL)

    second = watching(history)
    shown = {row["id"]: row for row in ask(second, "/alarms?active=true")["alarms"]}
    assert shown.keys() == {one, two}
    assert (shown[one]["acknowledged"], shown[one]["shelved"]) == (given, None)
    assert (shown[two]["acknowledged"], shown[two]["shelved"]) == (None, shelf["id"])
    assert ask(second, "/shelves")["shelves"] == [shelf]
    # nothing of it changes the watch: both end by themselves, and are forgotten
    ask(second, f"/alarms/{two}/acknowledge", {"by": "ground"})
    ask(second, f"/alarms/{two}/acknowledge", {"by": "ground", "on": False})
    hear(listener, "drone", 1016, 1040, turned=True)
    wait_for(lambda: len(listener.alarms("cleared")) == 2)
    assert ask(second, "/alarms?active=true")["alarms"] == []
    second.end()

    third = watching(history)
    assert [kept["id"] for kept in ask(third, "/shelves")["shelves"]] == [shelf["id"]]
    assert "damaged" not in third.log
    third.end()
