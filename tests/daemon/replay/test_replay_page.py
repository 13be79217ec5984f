"""`replay --http`: a recorded log before an audience. The alarms are those of any replay, byte for byte."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from waiting import PATIENCE_S

from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.simulate import simulate


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "head-on.wklog"
    with LogWriter(path) as file:
        for batch in simulate("head-on", seconds=200.0).batches():
            file.write(batch)
    return path


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "watchkeeper.daemon.cli", "replay", *words]


async def watched(url: str) -> dict[str, Any]:
    """The alarms of a page that is opened after the log has ended."""
    ended = False
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.ws_connect(url + "/live") as line:
                first: dict[str, Any] = msgspec.json.decode(await line.receive_str(timeout=PATIENCE_S))
                # one that saw the end come was told of alarms before it
                if ended:
                    return first
                picture = b""
                while not picture:
                    message = await line.receive(timeout=PATIENCE_S)
                    picture = message.data if message.type is aiohttp.WSMsgType.BINARY else b""
                ended = b"the log has ended" in picture
            await asyncio.sleep(0.2)


def test_a_replay_with_an_audience_gives_the_same_alarms(log: Path, tmp_path: Path) -> None:
    alone, shown = tmp_path / "alone.jsonl", tmp_path / "shown.jsonl"
    subprocess.run(command(str(log), "--alarms", str(alone)), check=True, timeout=300)
    words = (str(log), "--http", "0", "--speed", "100", "--alarms", str(shown))
    process = subprocess.Popen(command(*words), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    url = next(found[1] for line in process.stderr if (found := re.search(r"look at it: (\S+)", line)))
    page = asyncio.run(watched(url))
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 0
    process.stderr.close()
    assert alone.read_bytes() == shown.read_bytes() != b""
    last = {event["id"]: event for event in map(msgspec.json.decode, shown.read_bytes().splitlines())}
    assert {event["id"]: event for event in page["alarms"]} == last
    assert page["recorded"] is True


def test_publishing_shows_nothing(log: Path) -> None:
    done = subprocess.run(
        command(str(log), "--http", "0", "--to-mqtt", "mqtt://127.0.0.1:1"), capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"no --http" in done.stderr


def test_a_port_is_a_port(log: Path) -> None:
    done = subprocess.run(command(str(log), "--http", "70000"), capture_output=True, check=False)
    assert done.returncode == 2
    assert b"0 to 65535" in done.stderr
