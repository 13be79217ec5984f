"""An alarm of every kind through a whole daemon: each output has the event's own sentence, and a link to the alarm."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from journal_lines import journal_lines
from waiting import PATIENCE_S

from watchkeeper.config.outputs import Alertmanager, HomeAssistant, Notify, Webhook
from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.alarms.events import CLEARED, AlarmEvent
from watchkeeper.detectors.catalog import REGISTRY, kinds
from watchkeeper.detectors.engine.pipeline import Pipeline

GOLDEN = Path(__file__).parents[1] / "golden"


def golden_alarms() -> dict[str, list[AlarmEvent]]:
    """Of every kind one alarm, of the golden replays where they have one: its first event, and its last."""
    lives: dict[str, list[AlarmEvent]] = {}
    for path in sorted(path for path in GOLDEN.glob("*.jsonl") if path.name.count(".") == 1):
        for line in path.read_bytes().splitlines():
            event = AlarmEvent.of(line)
            lives.setdefault(event.id, []).append(event)
    for kind in set(kinds()) - {life[0].kind for life in lives.values()}:
        for event in scene(kind):
            lives.setdefault(event.id, []).append(event)
    whole = sorted(lives.values(), key=lambda life: life[-1].state != CLEARED)
    return {kind: next(life for life in whole if life[0].kind == kind) for kind in kinds()}


def scene(kind: str) -> list[AlarmEvent]:
    """The alarms of a kind that no golden replay has, in the scenario of its detector."""
    pipeline = Pipeline(DEFAULT)
    makers = [d.declaration for d in REGISTRY.values() if kind in {k.name for k in d.declaration.kinds}]
    return [e for d in makers for batch in d.scenario.batches() for e in pipeline.feed(batch) if e.kind == kind]


class Receivers:
    """One web server for the webhook (/hook), Alertmanager (/alerts) and Apprise (/phone)."""

    def __init__(self) -> None:
        self.got: dict[str, list[tuple[dict[str, str], Any]]] = {"hook": [], "alerts": [], "phone": []}
        got = self.got

        class Take(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                got[self.path.split("/")[1]].append((dict(self.headers), body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_words: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Take)
        self.address = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def receivers() -> Iterator[Receivers]:
    made = Receivers()
    yield made
    made.server.shutdown()
    made.server.server_close()


class Viewer:
    """An open live page, until it has been sent so many events."""

    def __init__(self, url: str, count: int) -> None:
        self.events: list[dict[str, Any]] = []
        self.here = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._watch(url, count)), daemon=True)
        self.thread.start()
        assert self.here.wait(PATIENCE_S)

    async def _watch(self, url: str, count: int) -> None:
        async with aiohttp.ClientSession() as session, session.ws_connect(f"{url}/live") as page:
            while len(self.events) < count:
                message = await page.receive()
                self.here.set()
                if message.type == aiohttp.WSMsgType.TEXT:
                    self.events += [news for news in json.loads(message.data).get("news", ()) if "event" in news]


def test_every_output_says_the_same(
    broker: Any, listener: Any, configure: Any, start: Any, wait_for: Any, receivers: Receivers, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    alarms = golden_alarms()
    begun = {kind: life[0] for kind, life in alarms.items()}
    assert all(event.say for event in begun.values())
    config = msgspec.structs.replace(
        configure(broker.url, sinks={"terminal": True, "journal_fsync": False}),
        webhooks=(
            Webhook(name="hook", url=f"http://{receivers.address}/hook", states=("raised", "updated", "cleared")),
        ),
        alertmanager=Alertmanager(url=f"http://{receivers.address}/alerts"),
        home_assistant=HomeAssistant(enabled=True),
        notify=(
            Notify(name="phone", url=f"json://{receivers.address}/phone", severity="advisory", burst_messages=1000),
        ),
    )
    running = start(config)
    url = running.app.http.url
    viewer = Viewer(url, len(begun))
    running._loop.call_soon_threadsafe(running.app.router.submit, list(begun.values()), None)

    count = len(begun)
    viewer.thread.join(PATIENCE_S)
    wait_for(lambda: len(receivers.got["hook"]) >= count)
    wait_for(lambda: sum(len(alerts) for _, alerts in receivers.got["alerts"]) >= count)
    wait_for(lambda: len(receivers.got["phone"]) >= count)
    summary = wait_for(lambda: summed(listener, count))

    published = by_kind(
        json.loads(p) for topic, p, _ in list(listener.messages) if p and topic != "watchkeeper/summary"
    )
    journal = by_kind(map(json.loads, journal_lines(tmp_path / "state" / "journal.jsonl")))
    posted = {body["kind"]: (headers, body) for headers, body in receivers.got["hook"]}
    alerts = {a["labels"]["kind"]: a for _, batch in receivers.got["alerts"] for a in batch}
    phone = {sent["message"].splitlines()[-1]: sent["message"] for _, sent in receivers.got["phone"]}
    # the page shows `say` of the message, and keeps the event
    page = {told["event"]["kind"]: {told["say"], told["event"]["say"]} for told in viewer.events}
    api = by_kind(json.loads(running.get("/api/v1/alarms?limit=1000")[1])["alarms"])
    running.stop()
    terminal = " ".join(capsys.readouterr().out.split())
    for kind, event in begun.items():
        link = f"{url}/#alarm={event.id}&t={event.t}"
        assert event.say in terminal
        assert published[kind]["say"] == event.say
        assert journal[kind]["say"] == event.say
        assert page[kind] == {event.say}
        assert api[kind]["say"] == event.say
        assert posted[kind][1]["say"] == event.say
        assert posted[kind][0]["Link"] == f'<{link}>; rel="alternate"'
        assert alerts[kind]["annotations"]["summary"] == event.say
        assert alerts[kind]["generatorURL"] == alerts[kind]["annotations"]["link"] == link
        assert summary["said"][kind] == {"alarm": event.say, "link": f"{url}/#alarm={event.id}&t={event.t_raised}"}
        assert phone[link] == f"{event.say}\n{link}"


def by_kind(events: Any) -> dict[str, dict[str, Any]]:
    return {event["kind"]: event for event in events if "kind" in event and "say" in event}


def summed(listener: Any, count: int) -> dict[str, Any] | None:
    """What Home Assistant shows once all kinds are active."""
    told = [json.loads(p) for topic, p, _ in list(listener.messages) if topic == "watchkeeper/summary" and p]
    found: dict[str, Any] | None = told[-1] if told and sum(told[-1]["alarms"].values()) >= count else None
    return found
