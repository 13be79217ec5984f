"""The live page over HTTP: its files, who may connect and post, how many, and what a slow one costs."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import msgspec
import pytest
from aiohttp import WSMsgType
from waiting import PATIENCE_S, until

from watchkeeper.config.loader import ConfigError, load
from watchkeeper.config.schema import Http
from watchkeeper.daemon.app import App
from watchkeeper.daemon.http.asked import is_ours
from watchkeeper.daemon.live import http as live_http
from watchkeeper.daemon.live.viewer import NEWS_WAITING
from watchkeeper.detectors.alarms.events import RAISED, AlarmEvent

T = TypeVar("T")
Visit = Callable[[aiohttp.ClientSession, str], Awaitable[T]]


def alarm(number: int, size: int = 1) -> AlarmEvent:
    return AlarmEvent(
        id=f"{number:016x}", kind="conflict", state=RAISED, severity="caution", subjects=("a", "b"), t=1.0, t_onset=0.0,
        t_raised=1.0, t_cleared=None, score=1.0, threshold=1.0, evidence={"note": "x" * size},
    )  # fmt: skip


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    settings = {
        "http": {"port": 0, "viewers": 2}, "fleet": {"max_vehicles": 10}, "detectors": {"conflict": {"max_pairs": 10}},
        "sinks": {"state_dir": str(tmp_path)},
    }  # fmt: skip
    made = App(load(None, env={}, overrides=settings))
    event = alarm(1)
    made.pipeline.book.adopt(event)
    yield made
    made.close()


def visit(app: App, what: Visit[T]) -> T:
    async def main() -> T:
        assert app.http is not None
        await app.http.start()
        try:
            async with aiohttp.ClientSession() as session:
                return await what(session, app.http.url)
        finally:
            await app.http.stop()

    return asyncio.run(main())


def fetch(app: App, method: str, page: str, **more: Any) -> tuple[int, dict[str, str], bytes]:
    async def ask(session: aiohttp.ClientSession, url: str) -> tuple[int, dict[str, str], bytes]:
        async with session.request(method, url + page, **more) as answer:
            return answer.status, dict(answer.headers), await answer.read()

    return visit(app, ask)


async def hear(line: aiohttp.ClientWebSocketResponse, wanted: str) -> Any:
    """The next message of this type."""
    async with asyncio.timeout(PATIENCE_S):
        async for message in line:
            if message.type == WSMsgType.BINARY and wanted == "picture":
                return message.data
            if message.type == WSMsgType.TEXT and (found := msgspec.json.decode(message.data))["type"] == wanted:
                return found
    raise AssertionError(f"closed with {line.close_code} before any {wanted}")


# -- files ------------------------------------------------------------------------------------------------------


def test_the_page_and_all_it_names_are_served_and_nothing_from_elsewhere_is_named(app: App) -> None:
    async def walk(session: aiohttp.ClientSession, url: str) -> dict[str, str]:
        found: dict[str, str] = {}
        todo = ["/"]
        while todo:
            page = todo.pop()
            if page in found:
                continue
            async with session.get(url + page) as answer:
                assert answer.status == 200, page
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                found[page] = await answer.text(errors="replace")
            todo += re.findall(r'(?:href|src)="(/page/[^"]+)"', found[page])
            todo += ["/page/" + name for name in re.findall(r"(?:from '\./|load\(')([^']+)'", found[page])]
        return found

    found = visit(app, walk)
    assert {name for name in found if name != "/"} == {f"/page/{name}" for name in live_http._load()} - {
        "/page/index.html"
    }
    # every script is named on top, so that none waits for another to ask for it
    scripts = {name for name in found if name.endswith(".js")}
    assert set(re.findall(r'modulepreload" href="([^"]+)"', found["/"])) == scripts - {"/page/main.js"}
    for page, text in found.items():
        assert not re.search(r"https?://(?!www\.w3\.org/)", text), page


def test_images_of_a_map_server_are_allowed_only_when_the_configuration_names_it() -> None:
    def policy(**settings: str) -> str:
        return live_http._headers(Http(**settings))["Content-Security-Policy"]

    assert "img-src 'self';" in policy()
    named = policy(tiles="https://tiles.example:8443/osm/{z}/{x}/{y}.png")
    assert "img-src 'self' https://tiles.example:8443;" in named
    assert named.replace(" https://tiles.example:8443", "") == policy()
    for wrong in ("https://a.example/{z}; script-src *", "javascript:{z}", "https://a.example/no-zoom.png"):
        with pytest.raises(ConfigError):
            load(None, env={}, overrides={"http": {"tiles": wrong}})


def test_a_file_that_is_known_is_not_sent_again(app: App) -> None:
    async def twice(session: aiohttp.ClientSession, url: str) -> tuple[int, bytes]:
        async with session.get(url + "/page/main.js") as answer:
            tag = answer.headers["ETag"]
        async with session.get(url + "/page/main.js", headers={"If-None-Match": tag}) as answer:
            return answer.status, await answer.read()

    assert visit(app, twice) == (304, b"")


@pytest.mark.parametrize("name", ["nothing.js", "..%2fhttp.py", "%2e%2e/app.py", ""])
def test_no_other_file_can_be_had(app: App, name: str) -> None:
    assert fetch(app, "GET", f"/page/{name}")[0] == 404


# -- acknowledge ------------------------------------------------------------------------------------------------

ACK = "/alarms/0000000000000001/acknowledge"


def test_an_alarm_is_acknowledged_and_everybody_who_watches_hears_it(app: App) -> None:
    async def both(session: aiohttp.ClientSession, url: str) -> Any:
        async with session.ws_connect(url + "/live") as line:
            await hear(line, "alarms")
            async with session.post(url + ACK, json={"by": "tower\x00"}) as answer:
                assert answer.status == 200
            news = (await hear(line, "news"))["news"]
        async with session.ws_connect(url + "/live") as later:
            return news, await hear(later, "alarms")

    ((news,), later) = visit(app, both)
    assert news["acknowledged"] == "0000000000000001"
    assert news["by"]["by"] == "tower"
    assert later["acknowledged"]["0000000000000001"] == news["by"]


@pytest.mark.parametrize(
    ("status", "more"),
    [
        (415, {"data": b"{}", "headers": {"Content-Type": "text/plain"}}),
        (415, {"data": {"by": "form"}}),
        (403, {"json": {}, "headers": {"Origin": "http://evil.example"}}),
        (403, {"json": {}, "headers": {"Origin": "null"}}),
        (403, {"json": {}, "headers": {"Host": "evil.example", "Origin": "http://evil.example"}}),
        (400, {"json": {"by": 7}}),
        (400, {"json": {"acknowledged": True}}),
        (400, {"data": b"{", "headers": {"Content-Type": "application/json"}}),
        (413, {"json": {"by": "x" * 5000}}),
    ],
)
def test_what_another_site_or_nonsense_sends_is_refused(app: App, status: int, more: dict[str, Any]) -> None:
    assert fetch(app, "POST", ACK, **more)[0] == status
    assert not app.live.desk.acknowledged


def test_an_alarm_that_is_not_there_cannot_be_acknowledged(app: App) -> None:
    assert fetch(app, "POST", "/alarms/ffffffffffffffff/acknowledge", json={})[0] == 404


def test_no_other_site_may_connect(app: App) -> None:
    async def connect(session: aiohttp.ClientSession, url: str) -> list[int]:
        refused = []
        for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example:9108"}):
            with pytest.raises(aiohttp.WSServerHandshakeError) as error:
                await session.ws_connect(url + "/live", headers=headers)
            refused.append(error.value.status)
        async with session.ws_connect(url + "/live", headers={"Origin": url}) as line:
            await hear(line, "alarms")
        return refused

    assert visit(app, connect) == [403, 403]


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("127.0.0.1:9108", True), ("[::1]:9108", True), ("10.1.2.3", True), ("localhost:80", True), ("pi.local", True),
        ("watchkeeper:9108", True), ("watch.example.org", True), ("WATCH.example.org.", True), ("example.org", False),
        ("127.0.0.1.evil.example", False), ("", False), ("[", False),
    ],
)  # fmt: skip
def test_names_that_anybody_could_give_to_this_machine_are_not_ours(host: str, ours: bool) -> None:
    assert is_ours(host, "watch.example.org") is ours


# -- how many, how slow -----------------------------------------------------------------------------------------


def test_there_is_room_for_so_many_and_nothing_is_made_for_nobody(app: App) -> None:
    async def crowd(session: aiohttp.ClientSession, url: str) -> int | None:
        assert app.history is not None
        alone = app.history.recorder.take
        assert app.pipeline.on_evidence == alone
        async with session.ws_connect(url + "/live") as one, session.ws_connect(url + "/live") as two:
            await hear(one, "picture")
            await hear(two, "picture")
            assert app.pipeline.on_evidence != alone
            third = await session.ws_connect(url + "/live")
            await third.receive(timeout=PATIENCE_S)
            code = third.close_code
        await until(lambda: not app.live.viewers)
        assert app.pipeline.on_evidence == alone
        assert app.live.picture is None
        return code

    assert visit(app, crowd) == 1013
    assert app.live.turned_away == 1


def test_a_page_that_reads_nothing_does_not_grow_and_is_told_everything_when_it_reads_again(app: App) -> None:
    async def stall(session: aiohttp.ClientSession, url: str) -> Any:
        line = await session.ws_connect(url + "/live", max_msg_size=0)
        await hear(line, "alarms")
        line._response.connection.transport.pause_reading()
        (viewer,) = app.live.viewers
        # far more than all buffers on the way can hold
        most = 0
        for number in range(20_000):
            app.live.put(alarm(number, 4000))
            most = max(most, viewer.waiting)
            if number % 50 == 0:
                await asyncio.sleep(0)
        assert most <= NEWS_WAITING
        line._response.connection.transport.resume_reading()
        found = await hear(line, "alarms")
        await line.close()
        return found

    found = visit(app, stall)
    assert app.live.resyncs >= 1
    assert [event["id"] for event in found["alarms"]] == ["0000000000000001"]


def test_a_page_that_takes_nothing_for_long_is_cut_off(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_http, "STALL_S", 0.2)

    async def stall(session: aiohttp.ClientSession, url: str) -> None:
        line = await session.ws_connect(url + "/live", max_msg_size=0)
        await hear(line, "alarms")
        line._response.connection.transport.pause_reading()
        async with asyncio.timeout(PATIENCE_S):
            while app.live.viewers:
                for number in range(100):
                    app.live.put(alarm(number, 40_000))
                await asyncio.sleep(0.01)

    visit(app, stall)
    assert app.live.slow == 1


def test_the_daemon_does_not_wait_for_a_page_that_takes_nothing(app: App) -> None:
    async def stall(session: aiohttp.ClientSession, url: str) -> float:
        line = await session.ws_connect(url + "/live", max_msg_size=0)
        await hear(line, "alarms")
        line._response.connection.transport.pause_reading()
        for number in range(400):
            app.live.put(alarm(number, 40_000))
            await asyncio.sleep(0)
        assert app.http is not None
        began = time.monotonic()
        await app.http.stop()
        return time.monotonic() - began

    # the time that a page is given otherwise
    assert visit(app, stall) < live_http.STALL_S / 2


def test_without_the_page_there_is_a_list_and_no_way_in(tmp_path: Path) -> None:
    settings = {
        "http": {"port": 0, "page": False}, "fleet": {"max_vehicles": 10},
        "detectors": {"conflict": {"max_pairs": 10}}, "sinks": {"state_dir": str(tmp_path)},
    }  # fmt: skip
    app = App(load(None, env={}, overrides=settings))

    async def look(session: aiohttp.ClientSession, url: str) -> tuple[str, list[int]]:
        async with session.get(url) as index, session.get(url + "/live") as live, session.post(url + ACK) as post:
            return await index.text(), [live.status, post.status]

    text, others = visit(app, look)
    assert 'href="/metrics"' in text
    assert others == [404, 404]
    app.close()
