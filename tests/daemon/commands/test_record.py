"""What is published is what is recorded: through a real broker, in order, and readable after a crash."""

import asyncio
import math
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE_S, until

from watchkeeper.config.loader import load
from watchkeeper.daemon.cli import main
from watchkeeper.daemon.commands.record import Recording
from watchkeeper.daemon.replay import publish as feed
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.pacing import Pacer, SystemClock
from watchkeeper.streams.logs.source import open_log
from watchkeeper.streams.logs.wklog import LogReader, LogWriter
from watchkeeper.streams.simulate import simulate

CONFIG = load(None, env={})


def samples(batches: Any) -> list[tuple[Any, ...]]:
    """Every sample by itself, in arrival order."""
    found = []
    for batch in batches:
        rows = []
        for kind, cols in batch.kinds.items():
            for i in range(len(cols)):
                fields = tuple(x.hex() for x in cols.data[:, i].tolist())
                rows.append((int(cols.seq[i]), kind, batch.ids[cols.vid[i]], float(cols.t[i]), fields))
        found += [row[1:] for row in sorted(rows, key=lambda row: row[0])]
    return found


@pytest.fixture(scope="module")
def mixed() -> list[Batch]:
    return list(simulate("mixed", vehicles=11, seconds=5, seed=2).batches())


@pytest.mark.parametrize("by_sample", [False, True])
def test_what_is_published_is_recorded_sample_for_sample_in_order(
    broker: Any, tmp_path: Path, mixed: list[Batch], by_sample: bool
) -> None:
    async def run(writer: LogWriter) -> tuple[Recording, feed.Published]:
        recording = Recording(CONFIG, writer)
        task = asyncio.create_task(recording.run(broker.url, None))
        await until(lambda: recording.connected)
        pacer = Pacer(math.inf, SystemClock(), max_gap_s=600.0)
        async with asyncio.timeout(PATIENCE_S):
            done = await feed.publish(mixed, CONFIG, broker.url, pacer, by_sample=by_sample)
        await until(lambda: recording.messages >= done.messages)
        recording.stop.set()
        await task
        return recording, done

    with LogWriter(tmp_path / "x.wklog") as writer:
        recording, done = asyncio.run(run(writer))
    log = LogReader(tmp_path / "x.wklog")
    recorded, sent = samples(log.batches()), samples(mixed)
    if not by_sample:  # frames hold one kind each: kinds may change places, the order inside a kind stays
        recorded.sort(key=lambda sample: sample[0])
        sent.sort(key=lambda sample: sample[0])
    assert recorded == sent
    assert log.truncated is None
    assert not recording.bad
    assert done.samples == sum(map(len, mixed))
    assert (done.messages == done.samples) is by_sample


def start(broker: Any, *words: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "watchkeeper.daemon.cli", "record", *map(str, words), "--broker", broker.url]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def fill(listener: Any, wait_for: Callable[..., Any], log: Path) -> None:
    """Publish until the recording, which takes a moment to subscribe, has two samples and the rubbish between them."""

    def published() -> bool:
        listener.send("telemetry/gps/d1", {"t": 1.0, "gps_x": 1, "gps_y": 2})
        listener.send("telemetry/gps/d1", b"{rubbish")
        listener.send("telemetry/gps/d1", {"t": 1.0, "lat": 99, "lon": 1})
        return log.exists() and sum(kind.word == "gps" for kind, *_ in samples(LogReader(log).batches())) >= 2

    wait_for(published)


def test_sigterm_closes_the_log_and_bad_payloads_are_summarised(
    broker: Any, listener: Any, wait_for: Callable[..., Any], tmp_path: Path
) -> None:
    log = tmp_path / "x.wklog"
    process = start(broker, log)
    fill(listener, wait_for, log)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert b"malformed" in out
    assert b"out_of_range" in out
    found = LogReader(log)
    assert found.truncated is None
    assert samples(found.batches())


def test_after_kill_9_everything_up_to_the_last_flush_is_readable(
    broker: Any, listener: Any, wait_for: Callable[..., Any], tmp_path: Path
) -> None:
    log = tmp_path / "x.wklog"
    process = start(broker, log)
    fill(listener, wait_for, log)
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    found = LogReader(log)
    assert samples(found.batches())
    assert found.truncated is not None


def test_a_recording_is_not_overwritten_by_mistake(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "x.wklog"
    log.write_bytes(b"precious")
    assert main(["record", str(log)]) == 1
    assert "--force" in capfd.readouterr().err
    assert log.read_bytes() == b"precious"


def test_no_broker_is_a_failure_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    nowhere = "mqtt://127.0.0.1:1"
    assert main(["record", str(tmp_path / "x.wklog"), "--broker", nowhere, "--seconds", "0.1"]) == 1
    assert f"no broker at {nowhere}" in capfd.readouterr().err
    monkeypatch.setattr(feed, "CONNECT_TIMEOUT_S", 0.1)
    assert main(["simulate", "crossing", "--to-mqtt", nowhere]) == 1
    assert f"{nowhere}: no broker within" in capfd.readouterr().err


def test_simulate_and_replay_publish_to_a_broker(
    broker: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "x.wklog"
    words = ["simulate", "crossing", "--seconds", "20", "--out", str(log), "--to-mqtt", broker.url, "--speed", "max"]
    assert main(words) == 0
    assert main(["replay", str(log), "--to-mqtt", broker.url, "--samples"]) == 0
    total = sum(len(batch) for batch in open_log(log).batches())
    assert f"{total} samples in {total} messages" in capfd.readouterr().err
