"""Webhooks: each event arrives, in order, signed, whatever the receiver does meanwhile; and nobody waits for it."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import shutil
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from waiting import PATIENCE_S, until

from watchkeeper.config.outputs import Webhook
from watchkeeper.daemon.app import App
from watchkeeper.daemon.outputs.delivered import SPARE_LINES, Delivered
from watchkeeper.daemon.outputs.webhook import WebhookSink
from watchkeeper.daemon.state.folder import StateFolder
from watchkeeper.detectors.alarms.events import AlarmEvent, encode_event

from where import DOCS


def event(alarm_id: str, state: str = "raised", t: float = 1.0) -> AlarmEvent:
    return AlarmEvent(
        id=alarm_id, kind="silence", state=state, severity="caution", subjects=("d1",), t=t, t_onset=0.0,
        t_raised=1.0, t_cleared=t if state == "cleared" else None, score=2.0, threshold=1.0, evidence={"stream": "gps"},
    )  # fmt: skip


# longer than any test waits for an answer
SILENCE_S = 600.0


class Receiver:
    """A web server that remembers requests and answers as it is told: a list of statuses, then 204 for ever."""

    def __init__(self) -> None:
        self.answers: list[int | float] = []
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.got.append((dict(request.headers), body))
        answer = self.answers.pop(0) if self.answers else 204
        if isinstance(answer, float):  # seconds without an answer
            await asyncio.sleep(answer)
            answer = 204
        return web.Response(status=answer)

    def told(self) -> list[tuple[str, str]]:
        return [(e["id"], e["state"]) for e in (json.loads(body) for _, body in self.got)]

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Receiver]:
        with socket.socket() as line:
            self.url = bound(line)
            async with self.answering(line):
                yield self

    @asynccontextmanager
    async def answering(self, line: socket.socket) -> AsyncIterator[None]:
        site = web.Application()
        site.add_routes([web.post("/hook", self.handle)])
        runner = web.AppRunner(site, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.SockSite(runner, line).start()
        try:
            yield
        finally:
            await runner.cleanup()


def bound(line: socket.socket) -> str:
    """The address of a receiver that is away: nobody listens there, and nobody else can take the port."""
    line.bind(("127.0.0.1", 0))
    return f"http://127.0.0.1:{line.getsockname()[1]}/hook"


def settings(url: str, **changes: Any) -> Webhook:
    return Webhook(**{"name": "ours", "url": url, "retry_min_s": 0.05, "retry_max_s": 0.1, **changes})


def documented_check() -> Callable[[str, bytes, bytes, float], bool]:
    found: dict[str, Any] = {"hmac": hmac, "hashlib": hashlib}
    page = (DOCS / "outputs" / "sinks.md").read_text()
    exec(page.split("```python\n")[1].split("```")[0], found)
    check: Callable[[str, bytes, bytes, float], bool] = found["genuine"]
    return check


async def flushed(sink: WebhookSink) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await sink.flush()


def test_events_arrive_as_they_are_with_a_key_each(sending: Any) -> None:
    async def scene() -> None:
        async with Receiver().listening() as receiver:
            async with sending(WebhookSink(settings(receiver.url), None)) as sink:
                sink.put(event("a"))
                sink.put(event("a", "updated", 2.0))
                sink.put(event("a", "cleared", 3.0))
                await flushed(sink)
            assert [body for _, body in receiver.got] == [
                encode_event(event("a")),
                encode_event(event("a", "cleared", 3.0)),
            ]
            headers = receiver.got[0][0]
            assert headers["Idempotency-Key"] == "a-raised-1.0"
            assert headers["Content-Type"] == "application/json"
            assert "Watchkeeper-Signature" not in headers
            assert (sink.delivered, sink.failures, sink.refused, sink.waiting) == (2, 0, 0, 0)

    asyncio.run(scene())


def test_a_signature_proves_body_and_time(sending: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("s3cret\n")
    monkeypatch.setenv("HOOK_KEY", "s3cret")

    async def scene(**where: str) -> None:
        async with Receiver().listening() as receiver:
            sink = WebhookSink(settings(receiver.url, **where), None, now=lambda: 1_700_000_000.9)
            async with sending(sink):
                sink.put(event("a"))
                await flushed(sink)
            headers, body = receiver.got[0]
            expected = hmac.new(b"s3cret", b"1700000000." + body, hashlib.sha256).hexdigest()
            assert headers["Watchkeeper-Signature"] == f"t=1700000000,v1={expected}"
            # the check that docs/outputs/sinks.md gives to receivers
            genuine = documented_check()
            assert genuine(headers["Watchkeeper-Signature"], body, b"s3cret", 1_700_000_100)
            assert not genuine(headers["Watchkeeper-Signature"], body + b" ", b"s3cret", 1_700_000_100)
            assert not genuine(headers["Watchkeeper-Signature"], body, b"other", 1_700_000_100)
            assert not genuine(headers["Watchkeeper-Signature"], body, b"s3cret", 1_700_001_000)

    asyncio.run(scene(secret_file=str(tmp_path / "key")))
    asyncio.run(scene(secret_env="HOOK_KEY"))
    with pytest.raises(OSError, match="NO_SUCH_KEY holds no key"):
        WebhookSink(settings("http://127.0.0.1/", secret_env="NO_SUCH_KEY"), None)


@pytest.mark.parametrize("trouble", [500, 503, 429, 408, SILENCE_S])
def test_what_may_get_better_is_repeated_in_order(sending: Any, trouble: int | float) -> None:
    # others take as long as they take; who never answers is given up after a while
    patience = {"timeout_s": 2.0} if trouble == SILENCE_S else {}

    async def scene() -> None:
        async with Receiver().listening() as receiver:
            receiver.answers = [trouble, trouble]
            async with sending(WebhookSink(settings(receiver.url, **patience), None)) as sink:
                for name in "abc":
                    sink.put(event(name))
                await flushed(sink)
            # what was not answered has arrived all the same: at least once
            told = list(dict.fromkeys(receiver.told()))
            assert told == [("a", "raised"), ("b", "raised"), ("c", "raised")]
            assert sink.failures == 2
            assert sink.delivered == 3
            keys = [headers["Idempotency-Key"] for headers, _ in receiver.got]
            assert len(set(keys)) == 3

    asyncio.run(scene())


@pytest.mark.parametrize("verdict", [400, 401, 404, 410, 301])
def test_what_will_not_get_better_is_given_up(sending: Any, verdict: int) -> None:
    async def scene() -> None:
        async with Receiver().listening() as receiver:
            receiver.answers = [verdict]
            async with sending(WebhookSink(settings(receiver.url), None)) as sink:
                sink.put(event("a"))
                sink.put(event("b"))
                await flushed(sink)
            assert (sink.refused, sink.delivered, sink.failures) == (1, 1, 0)

    asyncio.run(scene())


def test_a_receiver_that_is_away_costs_nobody_any_time_and_hears_all_of_it_later(sending: Any) -> None:
    async def scene() -> None:
        receiver = Receiver()
        with socket.socket() as line:
            async with sending(WebhookSink(settings(bound(line)), None)) as sink:
                # `put` is no coroutine, and the event loop gets no turn in between: nothing can wait here
                for i in range(100):
                    sink.put(event(str(i)))
                await until(lambda: sink.failures >= 2)
                assert sink.waiting == 100
                async with receiver.answering(line):
                    await flushed(sink)
        assert [name for name, _ in receiver.told()] == [str(i) for i in range(100)]

    asyncio.run(scene())


def test_a_full_queue_sheds_what_is_over_or_replaced() -> None:
    sink = WebhookSink(settings("http://127.0.0.1:1/", queue_events=10, states=("raised", "updated", "cleared")), None)
    for i in range(50):
        sink.put(event(f"gone{i}", "raised", i))
        sink.put(event(f"gone{i}", "cleared", i + 0.5))
    sink.put(event("here"))
    assert sink.waiting <= 10
    assert sink.dropped == 101 - sink.waiting


def test_after_a_crash_the_receiver_hears_the_ends_and_the_beginnings_that_it_missed(
    sending: Any, tmp_path: Path
) -> None:
    async def first() -> None:
        async with Receiver().listening() as receiver, sending(WebhookSink(settings(receiver.url), tmp_path)) as sink:
            for name in ("ends", "stays"):
                sink.put(event(name))
            await flushed(sink)
            # the crash: these are in the journal, but nobody was told
            receiver.answers = [503] * 1000
            sink.put(event("ends", "cleared", 2.0))
            sink.put(event("new", "raised", 2.0))
            sink.put(event("brief", "raised", 2.0))
            await until(lambda: sink.failures)

    async def second() -> None:
        async with Receiver().listening() as receiver:
            sink = WebhookSink(settings(receiver.url), tmp_path)
            active = [event("stays", "updated", 3.0), event("new", "raised", 2.0)]
            sink.catch_up(active, [event("ends", "cleared", 2.0), event("brief", "cleared", 2.5)])
            async with sending(sink):
                await flushed(sink)
            assert receiver.told() == [("ends", "cleared"), ("new", "raised")]

    asyncio.run(first())
    asyncio.run(second())


def test_only_what_is_asked_for_is_sent_and_memory_does_not_grow(sending: Any) -> None:
    async def scene() -> None:
        async with Receiver().listening() as receiver:
            async with sending(WebhookSink(settings(receiver.url, states=("raised",)), None)) as sink:
                for i in range(5):
                    sink.put(event(str(i)))
                    await flushed(sink)
                    sink.put(event(str(i), "cleared"))
                assert not sink._known.ids
            assert {state for _, state in receiver.told()} == {"raised"}

    asyncio.run(scene())


def test_what_was_told_survives_and_the_file_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "x.told"
    told = Delivered(path)
    told.note(event("kept"))
    for i in range(SPARE_LINES // 2 + 10):
        told.note(event(f"{i}"))
        told.note(event(f"{i}", "cleared"))
    assert len(path.read_text().splitlines()) <= SPARE_LINES + 3
    with path.open("a") as file:
        file.write('{"id":"torn')
    again = Delivered(path)
    assert (list(again.ids), again.unsure) == (["kept"], True)
    assert not Delivered(path).unsure


def test_a_list_of_an_earlier_version_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "webhook-pager.told"
    stays, ends = event("57a5"), event("e4d5")
    path.write_text(f"+{stays.id}\n+{ends.id}\n+0123456789abcdef\n+aa\n-aa\n")
    sink = WebhookSink(settings("http://127.0.0.1:1/", name="pager"), tmp_path)
    sink.catch_up([stays], [event("e4d5", "cleared", 2.0)])
    assert sink.waiting == 1
    again = Delivered(path)
    assert (list(again.ids), again.unsure) == ([stays.id], False)


def test_with_a_damaged_list_ends_are_told_again_and_the_damage_is_said(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    path = tmp_path / "webhook-pager.told"
    told = Delivered(path)
    for one in (event("ended"), event("told"), event("told", "cleared", 1.0), event("lost"), event("stays")):
        told.note(one)
    path.write_bytes(path.read_bytes().replace(b'"ended"', b'"enDed"', 1))
    sink = WebhookSink(settings("http://127.0.0.1:1/", name="pager"), tmp_path, state=state)
    sink.catch_up([event("stays")], [event("ended", "cleared", 2.0), event("told", "cleared", 1.0)])
    waiting = [sink._outbox.take().event for _ in range(sink.waiting)]
    # of "lost" the journal knows nothing: nobody else would end it
    assert sorted((e.id, e.state, e.ended) for e in waiting) == [
        ("ended", "cleared", None), ("lost", "cleared", "not_known")
    ]  # fmt: skip
    assert state.warnings() == [f"{path.name} is damaged: its receiver may be told something a second time"]


def test_a_list_that_was_deleted_or_could_not_be_written_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = StateFolder(tmp_path / "state")
    told = Delivered(state.path / "x.told", state)
    told.note(event("a"))
    shutil.rmtree(state.path)
    state.check()
    assert list(Delivered(state.path / "x.told").ids) == ["a"]

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "write", full)
        told.note(event("b"))
        assert state.warnings() == ["x.told not written: No space left on device"]
    told.note(event("c"))
    assert state.warnings() == []
    assert len(Delivered(state.path / "x.told").ids) == 3


# two drones for eleven seconds, one of them for twenty, both for thirty
FIXES = 2 * 11 + 20 + 2 * 30


def test_the_daemon_posts_real_alarms(broker: Any, listener: Any, configure: Callable[..., Any]) -> None:
    async def scene() -> None:
        async with Receiver().listening() as receiver:
            config = msgspec.structs.replace(configure(broker.url), webhooks=(settings(receiver.url),))
            app = App(config)
            running = asyncio.create_task(app.run(signals=False))
            async with asyncio.timeout(2 * PATIENCE_S):
                await until(lambda: not app.condition.not_ready())
                await asyncio.to_thread(listener.fixes, "d1 d2", 1000, 1010)
                await asyncio.to_thread(listener.fixes, "d1", 1011, 1030)
                await until(lambda: ("silence", "raised") in [(e["kind"], e["state"]) for e in _events(receiver)])
                await asyncio.to_thread(listener.fixes, "d1 d2", 1031, 1060)
                # what the broker still has when we stop is not ours to judge
                await until(lambda: app.intake.received == FIXES)
                # the end waits for the receiver too
                app.stop()
                await running
            by_id: dict[str, list[str]] = {}
            for e in _events(receiver):
                by_id.setdefault(e["id"], []).append(e["state"])
            assert ["raised", "cleared"] in by_id.values()
            (webhook,) = (sink for sink in app.router.sinks if sink.name == "ours")
            assert webhook.delivered == len(receiver.got)

    asyncio.run(scene())


def _events(receiver: Receiver) -> list[dict[str, Any]]:
    return [json.loads(body) for _, body in receiver.got]


def test_a_daemon_that_is_killed_tells_the_end_at_its_next_start(
    broker: Any, listener: Any, daemon: Callable[..., Any], tmp_path: Path, wait_for: Callable[..., Any]
) -> None:
    config = tmp_path / "watchkeeper.toml"

    def told(receiver: Receiver, state: str) -> list[str]:
        return [e["id"] for e in _events(receiver) if e["state"] == state and e["kind"] == "silence"]

    async def scene() -> None:
        async with Receiver().listening() as receiver:
            config.write_text(
                f"[[webhooks]]\nname = 'ours'\nurl = '{receiver.url}'\nretry_max_s = 0.5\n"
                f"[broker]\nurl = '{broker.url}'\nsession_expiry_s = 0\n"
                f"[sinks]\nterminal = false\nstate_dir = '{tmp_path / 'state'}'\n"
                "[time]\nlateness_s = 0.0\nidle_timeout_s = 3600.0\n[http]\nport = 0\n"
                "[detectors.silence]\nfactor = 2.0\n[diagnosis]\nenabled = false\n"
            )
            first = daemon(config)
            await asyncio.to_thread(wait_for, lambda: (listener.status() or {}).get("state") == "online")
            await asyncio.to_thread(listener.fixes, "d1 d2", 1000, 1010)
            await asyncio.to_thread(listener.fixes, "d1", 1011, 1030)
            await asyncio.to_thread(wait_for, lambda: told(receiver, "raised"))
            receiver.answers = [503] * 100_000
            await asyncio.to_thread(listener.fixes, "d1 d2", 1031, 1060)
            await asyncio.to_thread(wait_for, lambda: listener.alarms("cleared"))
            await asyncio.to_thread(first.end, signal.SIGKILL)
            # only what is answered with 2xx counts as told
            receiver.answers, receiver.got = [], [got for got in receiver.got if b'"raised"' in got[1]]
            again = daemon(config)
            await asyncio.to_thread(wait_for, lambda: told(receiver, "cleared"))
            assert told(receiver, "cleared") == told(receiver, "raised")
            assert await asyncio.to_thread(again.end) == 0
            assert told(receiver, "cleared") == told(receiver, "raised"), "once"

    asyncio.run(scene())
