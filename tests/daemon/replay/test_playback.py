"""The playback of a replay: it goes on by itself, stands still, jumps; and over HTTP after the log has been read."""

from __future__ import annotations

import asyncio
import math
import re
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import msgspec
import pytest
from waiting import PATIENCE_S

from watchkeeper.daemon.http.api.playback import Playback
from watchkeeper.daemon.replay import page
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.chunks import join
from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.simulate import simulate


def test_others_have_their_turn_within_a_batch_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of a sparse log is hours of flight: for its half a minute the page did not open."""
    clock, turns, fed = [0.0], [0], []
    monkeypatch.setattr(page, "time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def feed(batch: Batch) -> None:
        clock[0] += 0.004 * len(batch)
        fed.append(([float(t) for cols in batch.kinds.values() for t in cols.t], turns[0]))

    async def others() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0.0)

    async def read(batches: list[Batch]) -> None:
        other = asyncio.create_task(others())
        stage = SimpleNamespace(worked=lambda _s: None, over=False, playback=SimpleNamespace(read=False))
        history = SimpleNamespace(flush=lambda: asyncio.sleep(0.0))
        await page._read(SimpleNamespace(feed=feed, finish=lambda: None), batches, stage, history)  # type: ignore[arg-type]
        other.cancel()

    made = join(list(simulate("random", vehicles=40, seconds=60).batches()))
    assert len(made) > 2000
    asyncio.run(read([made]))
    assert [t for times, _ in fed for t in times] == [float(t) for cols in made.kinds.values() for t in cols.t]
    # after the first ones a piece takes little, and there is a turn before each
    assert all(0.004 * len(times) <= 2 * page.PIECE_S for times, _ in fed[6:])
    seen = [turn for _, turn in fed]
    assert all(a < b for a, b in pairwise(seen))


def test_it_goes_on_at_its_speed_stands_still_and_jumps() -> None:
    now, extent = [0.0], [(-math.inf, -math.inf)]
    playback = Playback(lambda: extent[0], 10.0, lambda: now[0])
    assert playback.state().t is None
    extent[0] = (1000.0, 1500.0)
    assert playback.t == 1000.0
    now[0] += 5.0
    assert playback.t == 1050.0
    playback.pause(on=True)
    now[0] += 100.0
    assert playback.t == 1050.0
    assert playback.step(-20.0).t == 1030.0
    playback.pause(on=False)
    playback.play_at(1.0)
    now[0] += 7.0
    assert playback.t == 1037.0
    assert playback.seek(5000.0).t == 1500.0
    assert playback.seek(0.0).t == 1000.0
    # at the end of what has been read it waits for more
    playback.seek(1499.0)
    now[0] += 60.0
    assert playback.t == 1500.0
    extent[0] = (1000.0, 3000.0)
    now[0] += 1.0
    assert playback.t == 1501.0


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "head-on.wklog"
    with LogWriter(path) as file:
        for batch in simulate("head-on", seconds=600.0).batches():
            file.write(batch)
    return path


async def looked_back(url: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The state when all is read; then the alarms that the page shows after a jump to the first one's beginning."""
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"{url}/api/v1/replay") as answer:
                state = await answer.json()
            if state["read"]:
                break
            await asyncio.sleep(0.1)
        async with session.get(f"{url}/api/v1/alarms?order=asc&limit=1") as answer:
            first = (await answer.json())["alarms"][0]
        await session.post(f"{url}/api/v1/replay/pause", json={"on": True})
        async with session.post(f"{url}/api/v1/replay/seek", json={"t": first["t_raised"] + 25.0}) as answer:
            assert answer.status == 200
        async with session.ws_connect(f"{url}/live") as line:
            page: dict[str, Any] = msgspec.json.decode(await line.receive_str(timeout=PATIENCE_S))
        return state, first, page


def test_after_a_jump_the_page_shows_the_evidence_of_that_moment(log: Path, tmp_path: Path) -> None:
    alarms, kept = tmp_path / "alarms.jsonl", tmp_path / "kept.sqlite"
    words = ("--http", "0", "--alarms", str(alarms), "--history", str(kept))
    process = subprocess.Popen(
        [sys.executable, "-m", "watchkeeper.daemon.cli", "replay", str(log), *words], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    url = next(found[1] for line in process.stderr if (found := re.search(r"look at it: (\S+)", line)))
    state, first, page = asyncio.run(asyncio.wait_for(looked_back(url), PATIENCE_S))
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 0
    process.stderr.close()
    assert state["t_last"] - state["t_first"] > 590.0
    then = first["t_raised"] + 25.0
    known = {e["id"]: e for e in map(msgspec.json.decode, alarms.read_bytes().splitlines()) if e["t"] <= then}
    assert {event["id"]: event for event in page["alarms"]} == known != {}
    assert kept.exists()
