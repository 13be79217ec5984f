"""`watchkeeper run --workers` behind a real broker: the alarms of one process, and a worker that dies loses nothing."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
from journal_lines import journal_lines
from waiting import PATIENCE_S

from watchkeeper.config.schema import DEFAULT
from watchkeeper.daemon.cli import main
from watchkeeper.streams.codec.encode import encode_batch
from watchkeeper.streams.logs.source import open_log

CONFIG = """
[broker]
url = "{url}"
client_id = "workers"
reconnect_min_s = 0.05
[http]
port = 0
[time]
idle_timeout_s = 3600
[sinks]
terminal = false
state_dir = "{state_dir}"
snapshot_s = {snapshot_s}
"""


def messages(log: Path) -> Iterator[tuple[str, bytes]]:
    for batch in open_log(str(log)).batches():
        yield from encode_batch(batch, DEFAULT.topics)


def workers(process: Any) -> list[psutil.Process]:
    """The processes that judge vehicles; multiprocessing has one more, which watches over resources."""
    children = psutil.Process(process.process.pid).children()
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def written(state: Path) -> bytes:
    return b"".join(line + b"\n" for line in journal_lines(state / "journal.jsonl"))


def test_a_killed_worker_ends_the_daemon_and_the_next_run_goes_on_to_the_byte(
    broker: Any, daemon: Any, listener: Any, wait_for: Any, tmp_path: Path
) -> None:
    log, replayed, state, config = (tmp_path / n for n in ("log.wklog", "replayed.jsonl", "state", "wk.toml"))
    config.write_text(CONFIG.format(url=broker.url, state_dir=state, snapshot_s=1))
    assert main(["simulate", "demo", "--seconds", "60", "--out", str(log)]) == 0
    assert main(["replay", str(log), "--alarms", str(replayed)]) == 0
    sent = list(messages(log))
    third = len(sent) // 3

    first = daemon(config, "--workers", "2")
    wait_for(lambda: "connected to the broker" in first.log or first.process.poll() is not None)
    assert len(workers(first)) == 3, first.log
    for message in sent[:third]:
        listener.send(*message)
    # a snapshot of all workers, and input after it
    wait_for(lambda: (state / "snapshot.msgpack").exists() and len(written(state)) > 0)
    for message in sent[third : 2 * third]:
        listener.send(*message)
    workers(first)[0].send_signal(signal.SIGKILL)
    assert first.process.wait(PATIENCE_S) == 1
    assert "WorkerError: worker vehicles 1 of 2 ended (exit code -9)" in first.log
    wait_for(lambda: (listener.status() or {}).get("state") == "offline")
    assert not psutil.pid_exists(first.process.pid) or not workers(first)

    # what is published while nobody listens waits in our session; the number of workers may be another
    for message in sent[2 * third :]:
        listener.send(*message)
    second = daemon(config, "--workers", "3")
    wait_for(lambda: "connected to the broker" in second.log or second.process.poll() is not None)
    samples = sum(map(len, open_log(str(log)).batches()))
    wait_for(lambda: second.figure("watchkeeper_samples_total") >= samples)
    assert second.end() == 0, second.log
    wanted, told = replayed.read_bytes(), written(state)
    assert told.count(b"\n") > 10
    assert wanted.startswith(told)
    # a replay judges its last second without waiting for stragglers, a daemon in its next run
    rest = [json.loads(line)["t"] for line in wanted[len(told) :].splitlines()]
    assert not rest or min(rest) > json.loads(wanted.splitlines()[-1])["t"] - 2.0


def test_what_there_is_to_see_and_to_change(
    broker: Any, daemon: Any, listener: Any, wait_for: Any, tmp_path: Path
) -> None:
    log, state, config = (tmp_path / n for n in ("log.wklog", "state", "wk.toml"))
    config.write_text(CONFIG.format(url=broker.url, state_dir=state, snapshot_s=3600))
    assert main(["simulate", "demo", "--seconds", "30", "--out", str(log)]) == 0
    names = {name for batch in open_log(str(log)).batches() for name in batch.ids}
    process = daemon(config, "--workers", "2")
    wait_for(lambda: "connected to the broker" in process.log or process.process.poll() is not None)
    for message in messages(log):
        listener.send(*message)
    url = process.log.partition("url=")[2].split()[0]

    def asked(path: str) -> Any:
        with urlopen(url + path, timeout=PATIENCE_S) as answer:
            return json.load(answer)

    wait_for(lambda: process.figure("watchkeeper_vehicles ") == len(names))
    found = wait_for(lambda: [v for v in asked("/api/v1/vehicles?limit=1000")["vehicles"] if v["score"] is not None])
    assert {vehicle["id"] for vehicle in found} <= names
    one = asked(f"/api/v1/vehicles/{found[0]['id']}")
    assert one["now"]["coverage"]["watched"]
    assert process.figure("watchkeeper_detector_failures_total") == 0
    with config.open("a") as file:
        file.write("[detectors.gps_imu]\nthreshold = 9.0\n")
    process.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "configuration reloaded" in process.log)
    assert "detectors.gps_imu.threshold" in process.log
    assert process.end() == 0, process.log
