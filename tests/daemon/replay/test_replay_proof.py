"""Ten minutes of 200 aircraft and 20 drones: the same alarm bytes at any speed, any chunking, and through a broker."""

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest

from watchkeeper.config.loader import load
from watchkeeper.daemon.commands.record import Recording
from watchkeeper.daemon.replay.publish import publish
from watchkeeper.detectors.alarms.events import encode_event
from watchkeeper.detectors.engine.replay import Replay
from watchkeeper.streams.logs.pacing import Pacer, SystemClock, paced
from watchkeeper.streams.logs.source import open_log, read_logs
from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.simulate import simulate

CONFIG = load(None, env={})
BROKER_S = 1200.0

pytestmark = pytest.mark.long


class SteppedClock:
    """Sleeps by moving on: a paced replay goes through all its groups and waits for none."""

    def __init__(self) -> None:
        self.t = 0.0

    def now(self) -> float:
        return self.t

    def sleep(self, seconds: float) -> None:
        self.t += seconds


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("proof") / "mixed.wklog"
    with LogWriter(path) as writer:
        for batch in simulate("mixed", vehicles=220, seconds=600, seed=1).batches():
            writer.write(batch)
    return path


def alarms(log: Path, speed: float = math.inf, chunk: int | None = None) -> bytes:
    lines: list[bytes] = []
    replay = Replay(CONFIG, lambda event: lines.append(encode_event(event) + b"\n"))
    replay.run(paced(read_logs([open_log(log)], chunk=chunk), Pacer(speed, SteppedClock(), max_gap_s=600.0)))
    return b"".join(lines)


@pytest.fixture(scope="module")
def expected(recording: Path) -> bytes:
    found = alarms(recording)
    assert found.count(b'"state":"raised"') >= 10
    return found


@pytest.mark.parametrize(("speed", "chunk"), [(50.0, None), (1.0, None), (math.inf, 10_000), (math.inf, 1)])
def test_speed_and_chunk_do_not_change_a_byte(
    recording: Path, expected: bytes, speed: float, chunk: int | None
) -> None:
    assert alarms(recording, speed, chunk) == expected


@pytest.mark.parametrize("by_sample", [False, True])
def test_a_real_broker_does_not_change_a_byte(
    recording: Path, expected: bytes, broker: Any, tmp_path: Path, by_sample: bool
) -> None:
    async def through_the_broker(writer: LogWriter) -> None:
        listening = Recording(CONFIG, writer)
        task = asyncio.create_task(listening.run(broker.url, None))
        async with asyncio.timeout(BROKER_S):
            while not listening.connected:
                await asyncio.sleep(0.01)
            pacer = Pacer(math.inf, SystemClock(), max_gap_s=600.0)
            sent = await publish(read_logs([open_log(recording)]), CONFIG, broker.url, pacer, by_sample=by_sample)
            while listening.messages < sent.messages:
                await asyncio.sleep(0.01)
        listening.stop.set()
        await task
        assert not listening.bad

    with LogWriter(tmp_path / "heard.wklog") as writer:
        asyncio.run(through_the_broker(writer))
    assert alarms(tmp_path / "heard.wklog") == expected
